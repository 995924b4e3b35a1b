# SPDX-License-Identifier: MIT
"""`--measure-overhead`: rounds with and without recording in turn, their ratio with its interval."""

from __future__ import annotations

import json
import math
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.lib.recorder import status

from opline_analyses.compare.overhead import Round, document, figures_of, lines, ratio, round_of

Run = Callable[..., subprocess.CompletedProcess[str]]
ROOT = Path(__file__).resolve().parents[2]
BENCH = ROOT / "examples" / "demo-store" / "run"


def test_the_ratio_and_its_interval_are_students_of_the_pairs_logarithms() -> None:
    """By hand: logarithms 0.1, 0.2, 0.3; mean 0.2, standard error 0.1/sqrt(3), t(0.975, 2) = 4.302653."""
    found = ratio([math.exp(0.1), math.exp(0.2), math.exp(0.3)], [1.0, 1.0, 1.0])
    half = 4.302652729911275 * 0.1 / math.sqrt(3)
    assert found.value == pytest.approx(math.exp(0.2))
    assert (found.low, found.high) == pytest.approx((math.exp(0.2 - half), math.exp(0.2 + half)))


def test_what_is_not_known_is_absent() -> None:
    """A mean latency in one of the rounds alone says nothing."""
    rounds = [Round(True, 110, None, None), Round(False, 100, 5.0, None), Round(False, 100, None, None)]
    rounds.append(Round(True, 120, 6.0, None))
    assert set(document(rounds)["ratios"]) == {"time"}
    said = list(lines(rounds))
    assert said[0].startswith("time with recording is 1.149 times that without") and "names no latency" in said[-1]


PGBENCH = """\
number of transactions actually processed: 1,234
latency average = 8.107 ms
tps = 986.775 (including connections establishing)
tps = 987.654321 (without initial connection time)
"""


def test_the_figures_that_were_asked_for_are_the_last_ones_printed(tmp_path: Path) -> None:
    (tmp_path / "stdout.txt").write_text(PGBENCH)
    (tmp_path / "stderr.txt").write_text("progress 7\ntime 3\n")
    asked = figures_of([r"tps = ([0-9.]+)", r"^latency average = (\S+)", "processed: (.*)", "progress (.)", "time (.)"])
    assert round_of(tmp_path, True, 5, asked).figures == {
        "tps": 987.654321, "latency average": 8.107, "processed": 1234, "progress": 7, "time (.)": 3,
    }  # fmt: skip
    (none,) = figures_of(["latency average = 8(.)"])
    assert none.of(tmp_path) is None, "a point is no number"


def test_a_figures_ratio_has_its_interval_and_what_is_missing_is_said() -> None:
    rounds = [
        Round(side, 100, None, None, {"tps": tps, "x": 1.0 if tps != 990 else None})
        for side, tps in ((True, 900), (False, 1000), (False, 1100), (True, 990))
    ]
    said = list(lines(rounds))
    assert "tps with recording is 0.900 times that without, with 95 % confidence 0.900 to 0.900" in said[1]
    assert said[1].endswith("(945 and 1,050 in the mean)")
    assert said[2:] == ["x: not in the output of every round, or not above 0: no ratio"]
    found = document(rounds)
    assert found["ratios"]["tps"]["ratio"] == pytest.approx(0.9) and "x" not in found["ratios"]
    assert [row["figures"]["tps"] for row in found["rounds"]] == [900, 1000, 1100, 990]


@pytest.mark.parametrize(
    ("figure", "said"), [("tps", "'tps' has 0 groups"), ("(a)(b)", "has 2 groups"), ("(", "is no regular expression")]
)
def test_a_figure_is_a_regular_expression_with_one_group(figure: str, said: str, opline: Run, tmp_path: Path) -> None:
    done = opline("record", "--measure-overhead", "--figure", figure, "-o", tmp_path / "cost", "--", "true")
    assert done.returncode == 2 and said in done.stderr and not (tmp_path / "cost").exists()
    done = opline("record", "--figure", "(a)", "-o", tmp_path / "cost", "--", "true")
    assert done.returncode == 2 and "--figure needs --measure-overhead" in done.stderr


def test_a_figure_that_is_not_printed_ends_it_before_anything_is_recorded(opline: Run, tmp_path: Path) -> None:
    out = tmp_path / "cost"
    done = opline("record", "--measure-overhead", "--figure", "tps = ([0-9.]+)", "-o", out, "--", "echo", "tps")
    assert done.returncode == 1 and "matches --figure 'tps = ([0-9.]+)'" in done.stderr
    assert [path.name for path in out.iterdir()] == ["warm-up"]


@pytest.mark.live
def test_rounds_with_and_without_recording_take_turns(opline: Run, tmp_path: Path) -> None:
    out = tmp_path / "cost"
    argv = ["record", "--measure-overhead", "--repeat", "3", "-o", out, "--model", "demo", "--no-states"]
    done = opline(*argv, "--figure", r"^Average IOPS: +([0-9.]+)", "--", BENCH, "--ops", "211", "--qd", "2")
    assert status(done) == 0, done.stderr
    names = sorted(path.name for path in out.iterdir())
    assert names == ["overhead.json", "plain1", "plain2", "plain3", "run1", "run2", "run3", "warm-up"]
    found = json.loads((out / "overhead.json").read_text())
    assert [row["recorded"] for row in found["rounds"]].count(True) == 3 == len(found["rounds"]) - 3
    for row in found["rounds"]:
        assert row["time_ns"] > 0 and row["mean_ns"] > 0 and row["iops"] > 0
    for name in ("time", "mean_latency", "ops_a_second"):
        of = found["ratios"][name]
        assert 0 < of["low"] < of["ratio"] < of["high"]
    pairs = [(row["iops"], row["figures"]["Average IOPS"]) for row in found["rounds"]]
    assert all(known == pytest.approx(asked, rel=1e-3) for known, asked in pairs)
    assert "mean latency with recording is" in done.stderr and "Average IOPS with recording is" in done.stderr
    assert "with 95 % confidence" in done.stderr
    assert "events/s, " in done.stderr and "bytes each" in done.stderr and "the collectors took " in done.stderr
    assert not (out / "plain1" / "trace").exists() and (out / "run1" / "trace").exists()


@pytest.mark.live
def test_a_command_that_fails_ends_it(opline: Run, tmp_path: Path) -> None:
    out = tmp_path / "cost"
    done = opline("record", "--measure-overhead", "-o", out, "--no-block", "--", "sh", "-c", "exit 7")
    assert done.returncode == 7 and "ended with status 7" in done.stderr and not (out / "overhead.json").exists()


def test_it_needs_a_command_and_two_rounds(opline: Run, tmp_path: Path) -> None:
    for more in (["--repeat", "1", "--", "true"], ["--pid", "1"]):
        done = opline("record", "--measure-overhead", "-o", tmp_path / "cost", *more)
        assert done.returncode == 2 and "at least two rounds" in done.stderr and not (tmp_path / "cost").exists()
