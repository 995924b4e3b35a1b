# SPDX-License-Identifier: MIT
"""Interference: the blame for a request's wait and service is what was measured, and names the owner (B9)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from opline.correlation import correlate
from opline.model import load_model
from opline_analyses.ops.interference import NOBODY, Ahead, share_out

LAB = Path(__file__).parents[1] / "models" / "lab.toml"


def test_a_wait_behind_two_requests_is_theirs() -> None:
    # 0..100 waiting; a writer is at the device until 60, a second one from 20 to 101
    others = [Ahead(1, -50, 60, "writer"), Ahead(2, 20, 101, "reader")]
    assert share_out(0, 100, others, NOBODY) == Counter({"writer": 20 + 20, "reader": 20 + 40})


def test_a_wait_behind_nobody_is_nobodys() -> None:
    assert share_out(0, 10, [Ahead(1, -9, 0, "x"), Ahead(2, 10, 20, "x")], NOBODY) == Counter({NOBODY: 10})


@given(
    st.lists(st.tuples(st.integers(-50, 150), st.integers(0, 150), st.sampled_from("abc")), max_size=8),
    st.integers(0, 100),
)
def test_the_blame_is_the_measured_time(spans: list[tuple[int, int, str]], length: int) -> None:
    others = [Ahead(i, begin, begin + size, owner) for i, (begin, size, owner) in enumerate(spans)]
    blame = share_out(0, length, others, NOBODY)
    assert sum(blame.values()) == length
    assert all(v > 0 for v in blame.values())


def test_on_a_recorded_trace_with_a_deep_queue(
    trace: Callable[[str], Path], opline: Callable[..., Any], tmp_path: Path
) -> None:
    correlate(trace("ptr-libaio-qd32-hdd-bfq-seq"), load_model(LAB), tmp_path, progress=False)
    said = opline("interference", tmp_path, "--slowest", "20", "--json")
    ops = [json.loads(line) for line in said.stdout.splitlines()]
    assert len(ops) == 20
    requests = [r for op in ops for r in op["requests"]]
    assert len(requests) >= 20
    for r in requests:
        assert r["sums"]
        assert sum(r["wait"].values()) + sum(r["service"].values()) == r["complete_ns"] - r["queue_ns"]
    assert any("write ops" in r["service"] for r in requests)
    assert "charged to" in opline("interference", tmp_path, "--slowest", "1").stdout
    assert opline("interference", tmp_path, "--op", "999999").returncode == 2
