# SPDX-License-Identifier: MIT
"""`opline burst`: stretches that a mean hides, and whether they come back."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.lib.io_runs import TEN_HERTZ, io_run

from opline_analyses.block.bursts import MOST, PEAK, Burst, bursts, period
from opline_analyses.cli import main


def seed_ios() -> list[dict[str, Any]]:
    """I/Os of which each tenth of a second has the numbers of its row."""
    ios = []
    for n, line in enumerate(TEN_HERTZ.splitlines()):
        _, *numbers = line.split()
        for kind, (rate, kib, us) in zip(("read", "write"), (numbers[:3], numbers[3:]), strict=True):
            count, sectors = int(rate) // 10, int(kib) * 2 // 10
            for i in range(count):
                size = sectors // count + (i < sectors % count)
                end = 1_000_000 * 1000 // 1000 + 100_000 * n + 1 + i * 99_000 // count
                ios.append({"kind": kind, "d": end - int(us), "c": end, "sectors": size, "sector": 100 * i})
    return ios


@pytest.fixture(scope="module")
def seed_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Begins at 1 s, so that what was issued before its first tenth is in the run."""
    return io_run(tmp_path_factory.mktemp("seed") / "run", seed_ios(), seconds=3.0)


def document(capfd: pytest.CaptureFixture[str], *words: str | Path) -> Any:
    capfd.readouterr()
    assert main(["burst", *map(str, words), "--json"]) == 0
    return json.loads(capfd.readouterr().out)


def test_c6_7_the_burst_is_found_without_being_told_where(seed_run: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The rows of 153.6 to 153.9, which are the tenths that begin at 153.5 to 153.8: here 1.5 to 1.9 s of the run."""
    found = {kind["kind"]: kind for kind in document(capfd, seed_run, "--window", "1:3")["kinds"]}
    (burst,) = found["write"]["bursts"]
    assert (burst["begin_ns"], burst["end_ns"]) == (1_500_000_000, 1_900_000_000)
    assert 0.95 < burst["share"] < 1
    assert (burst["count"], burst["bytes"]) == (
        2629,
        512 * sum(2 * kib // 10 for kib in (331625, 1993760, 2171420, 286795)),
    )
    assert burst["read_in_mean_ns"] > 2 * burst["read_out_mean_ns"], "and what the reads paid"
    assert main(["burst", str(seed_run), "--window", "1:3"]) == 0
    text = capfd.readouterr().out
    assert "write: 1 burst." in text
    assert "--window 1.4:2.0" in text


def test_a_burst_in_which_the_window_ends_ends_there(seed_run: Path, capfd: pytest.CaptureFixture[str]) -> None:
    found = {kind["kind"]: kind for kind in document(capfd, seed_run, "--window", "1:1.77")["kinds"]}
    (burst,) = found["write"]["bursts"]
    assert (burst["begin_ns"], burst["end_ns"]) == (1_600_000_000, 1_770_000_000)
    assert main(["burst", str(seed_run), "--window", "1:1.77"]) == 0
    assert " 1.60 1.77 " in capfd.readouterr().out


def test_c6_7_at_a_second_it_is_hidden(seed_run: Path, capfd: pytest.CaptureFixture[str]) -> None:
    kinds = document(capfd, seed_run, "1", "--window", "1:3")["kinds"]
    assert [kind["bursts"] for kind in kinds] == [[], []]
    assert main(["burst", str(seed_run), "1", "--window", "1:3"]) == 0
    assert "no burst" in capfd.readouterr().out


def test_bursts_that_return_have_a_period(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    ios = [{"kind": "write", "d": at, "c": at + 100, "sectors": 8} for at in range(1_000, 10_000_000, 50_000)]
    for begin in range(500_000, 10_000_000, 2_000_000):
        ios += [{"kind": "write", "d": begin + 100 * n, "c": begin + 100 * n + 50, "sectors": 256} for n in range(200)]
    run = io_run(tmp_path / "run", ios, seconds=10.0)
    (kind,) = document(capfd, run)["kinds"]
    assert [b["begin_ns"] for b in kind["bursts"]] == [n * 100_000_000 for n in range(5, 100, 20)]
    assert kind["period"] == {
        "median_ns": 2_000_000_000, "least_ns": 2_000_000_000, "most_ns": 2_000_000_000, "regular": True,
    }  # fmt: skip
    assert main(["burst", str(run)]) == 0
    assert "write: 5 bursts, every 2 s" in capfd.readouterr().out


def test_steady_work_has_no_burst(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    ios = [{"d": at, "c": at + 100} for at in range(1_000, 3_000_000, 1_000)]
    (kind,) = document(capfd, io_run(tmp_path / "run", ios, seconds=3.0))["kinds"]
    assert kind["bursts"] == []
    assert kind["peak_to_mean"] < 1.1


def test_a_few_ios_are_no_burst(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """However large they are; and what there is nothing of is said to be not there."""
    ios: list[dict[str, Any]] = [{"d": at, "c": at + 100} for at in range(1_000, 3_000_000, 1_000)]
    ios.append({"kind": "discard", "d": 1_000_000, "c": 1_000_900, "sectors": 1 << 20})
    run = io_run(tmp_path / "run", ios, seconds=3.0)
    assert [kind["bursts"] for kind in document(capfd, run)["kinds"]] == [[], []]
    assert main(["burst", str(run)]) == 0
    out = capfd.readouterr().out
    assert "discard: 1 I/O, too few for a burst (fewer than 8).\n" in out and "write: no I/O.\n" in out


def test_too_few_or_uneven_bursts_have_no_period() -> None:
    at = [Burst(n, n, 1, 1) for n in (0, 10, 40)]
    assert period(at[:2]) is None
    uneven = period(at)
    assert uneven is not None
    assert not uneven.regular


@given(st.lists(st.integers(0, 1000), max_size=60))
def test_a_burst_stands_out_and_has_nearly_all_of_its_stretch(values: list[int]) -> None:
    found = bursts(values)
    for a, b in pairwise(found):
        assert a.last < b.first
    for burst in found:
        inside = values[burst.first : burst.last + 1]
        assert (sum(inside), max(inside)) == (burst.total, burst.peak)
        assert burst.peak * len(values) >= PEAK * sum(values)
        assert sum(inside[1:]) < burst.total
        assert MOST * burst.total <= sum(inside)


@pytest.mark.parametrize(
    ("words", "said"), [(["0"], "more than 0"), (["--of", "ops"], "of block I/O"), (["--by", "mood"], "invalid choice")]
)
def test_what_it_cannot_do_is_one_line(
    seed_run: Path, words: list[str], said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["burst", str(seed_run), *words]) == 2
    assert said in capfd.readouterr().err
