# SPDX-License-Identifier: MIT
"""What a hit of a probe is said to cost: by what was measured, and what the BPF programs of a recording's hits took."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import pytest

from opline.capture.bpf import kernel
from opline.capture.probes import hit_cost
from opline.capture.probes.hit_cost import Measured, Thermometer, added
from opline.capture.recorder.summary import _probes

MEASURED = [Measured(0, 900, 200), Measured(4, 2000, 500), Measured(64, 12000, 3000)]


def looked(monkeypatch: pytest.MonkeyPatch, *looks: tuple[int, int]) -> Thermometer:
    """One that has seen hits, each look (what all took, how many there were)."""
    seen = [(0, 0)]
    for ns, times in looks:
        seen.append((seen[-1][0] + ns, seen[-1][1] + times))
    states = [state for before, after in pairwise(seen) for state in (before, after)]

    @contextmanager
    def counting() -> Iterator[None]:
        yield

    monkeypatch.setattr(hit_cost, "counting", counting)
    monkeypatch.setattr(hit_cost, "_LOOK_S", 0)
    monkeypatch.setattr(hit_cost, "_spent", lambda _: states.pop(0))
    thermometer = Thermometer(MEASURED)
    for _ in looks:
        thermometer.look([3])
    return thermometer


@pytest.mark.parametrize(
    ("own_ns", "hit_ns"),
    [(100, 900), (200, 900), (350, 1450), (500, 2000), (1750, 7000), (3000, 12000), (9000, 12000)],
)
def test_a_hits_cost_lies_between_what_was_measured(own_ns: int, hit_ns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert looked(monkeypatch, (10 * own_ns, 10)).hit_ns() == hit_ns


def test_the_hit_in_the_middle_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """One look at a thread that was interrupted within a hit says nothing of the others."""
    thermometer = looked(monkeypatch, (100 * 500, 100), (10_000_000, 20), (90 * 400, 90), (0, 0))
    assert (thermometer.own_ns(), thermometer.hit_ns()) == (500, 2000)


def test_nothing_counted_is_nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    idle = looked(monkeypatch, (0, 0))
    assert (idle.own_ns(), idle.hit_ns()) == (None, None)
    unknown = Thermometer([Measured(0, 900, None)])
    unknown.look([])
    assert unknown.hit_ns() is None


def test_what_a_kernel_does_not_count_is_unknown(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> int:
        raise OSError(1, "not permitted")

    monkeypatch.setattr(kernel, "count_times", refuse)
    file = os.open(tmp_path, os.O_RDONLY)  # has no run_cnt, as a program has not on an old kernel
    thermometer = Thermometer(MEASURED)
    thermometer.look([file])
    os.close(file)
    assert thermometer.hit_ns() is None


def test_a_probe_adds_no_less_with_fuller_caches() -> None:
    bare = [Measured(0, 10, None), Measured(4, 100, None), Measured(64, 900, None)]
    probed = [Measured(0, 910, 200), Measured(4, 900, 500), Measured(64, 700, 3000)]
    assert added(bare, probed) == [Measured(0, 900, 200), Measured(4, 900, 500), Measured(64, 900, 3000)]


def test_the_summary_says_what_is_known() -> None:
    report = {
        "hits": 1000, "hit_ns": 1450, "cost_ns": 1_450_000, "entry_ns": 900, "return_ns": 1300, "stepped": [],
        "placed": {"a:b": 2}, "unwritten": 0, "measured": [one._asdict() for one in MEASURED],
    }  # fmt: skip
    (known,) = _probes(report)
    assert known == "probes: 1,000 hits at 2 places, about 1,450 ns each: 0.001 s of the probed threads' time"
    (unknown,) = _probes({**report, "hit_ns": None, "cost_ns": 900_000})
    assert unknown == (
        "probes: 1,000 hits at 2 places, at least 900 ns each: at least 0.001 s of the probed threads' time"
    )
