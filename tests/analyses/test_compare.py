# SPDX-License-Identifier: MIT
"""`opline compare`: planted changes are called, equal things are not, one run per side says nothing of significance."""

from __future__ import annotations

import csv
import io
import json
import math
import random
import statistics
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.lib.build_run import P, Rq, RunBuilder

from opline_analyses.base.result_table import rendered
from opline_analyses.cli import main
from opline_analyses.compare.compare import Comparison, compare, doubts
from opline_analyses.compare.figures import Device, Figures, Times, baseline_text, figures_of, read_baseline
from opline_analyses.compare.text import text_lines
from opline_analyses.runs.run import open_tables
from opline_analyses.runs.selection import Selection

# --- statistics -------------------------------------------------------------------------------------------------------


# --- sketches ---------------------------------------------------------------------------------------------------------


# --- comparisons of figures -------------------------------------------------------------------------------------------

STAGES = {"queue": 50_000, "lookup": 20_000, "device": 150_000, "reply": 30_000, "send": 15_000}


def figures(name: str, scale: dict[str, float] | None = None, wild: float = 0.0, **changes: object) -> Figures:
    """A run of 4000 ops whose stages take STAGES, times ``scale``, times the run's own luck (``wild``: its SD)."""
    luck = math.exp(random.gauss(0, wild)) if wild else 1.0
    stages = {}
    for stage, ns in STAGES.items():
        mine = ns * luck * math.exp(random.gauss(0, 0.02)) * (scale or {}).get(stage, 1.0)
        stages[stage] = times(mine)
    mean = sum(t.total_ns for t in stages.values()) / 4000
    plain: dict[str, Any] = {
        "name": name, "ops": 4000, "incomplete": 0, "tainted": 0, "window_ns": int(mean * 1000),
        "latency": times(mean), "stages": stages, "classes": {"write": 4000}, "sizes": {"4096": 4000},
        "devices": {"loop0": Device(4000, 4000, stages["device"].total_ns)}, "where": {"kernel": "6.1"},
        "model": "demo", "losses": 0,
    }  # fmt: skip
    return Figures(**{**plain, **changes})


def times(mean: float, ops: int = 4000) -> Times:
    median = int(mean * 0.9 * math.exp(random.gauss(0, 0.01)))
    return Times("work", ops, int(mean * ops), median, 2 * median, 4 * median, 9 * median, 20 * median)


def side(n: int, scale: dict[str, float] | None = None, wild: float = 0.0) -> list[Figures]:
    return [figures(f"r{i}", scale, wild) for i in range(n)]


def called(c: Comparison) -> set[str]:
    rows = [row for row in (*c.headline, *c.stages) if row.verdict.kind in ("more", "less")]
    return {f"{row.figure}({row.name})" for row in rows}


def test_a_planted_change_is_called_where_it_is() -> None:
    random.seed(1)
    c = compare(side(5), side(5, {"queue": 1.5}))
    assert {"mean(latency)", "mean(queue)", "p50(queue)", "iops(latency)"} <= called(c)
    assert not [row.name for row in c.stages if row.verdict.kind in ("more", "less") and row.name != "queue"]
    assert c.stages[0].name == "queue"  # the biggest change first
    queue = next(row for row in c.stages if row.figure == "mean")
    interval = queue.difference.interval() if queue.difference else None
    assert interval and interval[0] < math.log(1.5) < interval[1]
    assert [row.verdict.text.split()[0] for row in c.headline if row.figure == "iops"] == ["lower"]


def test_equal_things_are_not_called() -> None:
    random.seed(2)
    flagged = sum(bool(called(compare(side(k, wild=0.3), side(k, wild=0.3)))) for _ in range(14) for k in (2, 3, 5))
    assert flagged <= 3  # 5 % of 42 is 2; runs of real programs: benchmarks/compare_recordings.py


def test_shape_finds_what_time_cannot() -> None:
    """Runs differ by a factor among themselves, and so do all stages of a run: the one that grew stands out."""
    random.seed(6)
    c = compare(side(5, wild=0.5), side(5, {"lookup": 1.5}, wild=0.5))
    assert called(c) == set()
    assert {row.name for row in c.shape if row.verdict.kind == "more"} == {"lookup"}
    assert "beside the other stages of its run: lookup longer by" in " ".join(rendered(text_lines(c)))


def test_the_pace_of_a_run_is_not_that_of_one_stage() -> None:
    """The middle stage by its length is wild: it is no measure of how fast a run is, and the others' shape holds."""
    random.seed(13)

    def wild(queue: float) -> Figures:
        pace, reply = (math.exp(random.gauss(0, 0.5)) for _ in range(2))
        return figures("r", {**dict.fromkeys(STAGES, pace), "reply": pace * reply, "queue": pace * queue})

    c = compare([wild(1) for _ in range(5)], [wild(1.4) for _ in range(5)])
    assert {row.name for row in c.shape if row.verdict.kind in ("more", "less")} == {"queue"}
    assert called(c) == set()


@pytest.mark.parametrize(("n", "m"), [(1, 1), (1, 5), (5, 1)])
def test_one_run_on_a_side_is_described_never_judged(n: int, m: int) -> None:
    random.seed(7)
    c = compare(side(n), side(m, {"queue": 9.0}))
    assert c.described and called(c) == set()
    text = "\n".join(rendered(text_lines(c)))
    assert "One run of each side: these are differences" in text and "slower" not in text and "can't tell" not in text


def test_one_run_against_a_history() -> None:
    random.seed(8)
    history = side(16, wild=0.05)
    slow = compare(history, side(1, {"queue": 3.0}))
    (row,) = (row for row in slow.headline if row.figure == "p50")
    assert row.verdict.text.endswith("outside what 16 earlier runs span")
    assert {r.verdict.kind for r in slow.headline if r.figure != "p50"} == {"described"}
    (row,) = (row for row in compare(history, side(1)).headline if row.figure == "p50")
    assert row.verdict.text.endswith("inside what 16 earlier runs span")


def test_stages_that_one_side_has_are_told_and_not_judged() -> None:
    random.seed(9)
    b = side(3)
    b = [Figures(**{**vars(f), "stages": {**f.stages, "commit": times(12_000, 2000)}}) for f in b]
    a = side(3)
    a[0] = Figures(**{**vars(a[0]), "stages": {n: t for n, t in a[0].stages.items() if n != "send"}})
    c = compare(a, b)
    assert [(o.stage, o.a, o.b) for o in c.only] == [("send", 2, 3), ("commit", 0, 3)]
    text = "\n".join(rendered(text_lines(c)))
    assert "only in B: commit, in 50.0 % of the ops, 6 us per op" in text
    assert "in 2 of 3 runs of A and B: send" in text
    assert not {"commit", "send"} & {row.name for row in c.stages}


def test_little_stages_are_not_judged_and_zeros_have_no_ratio() -> None:
    random.seed(10)
    sides = []
    for n in (3, 3):
        grown = [{**f.stages, "tiny": times(90), "rare": Times("work", 9, 90_000_000, 0, 0, 9, 9, 9)} for f in side(n)]
        sides.append([figures(f"r{i}", stages=stages) for i, stages in enumerate(grown)])
    c = compare(sides[0], sides[1])
    assert [row.name for row in c.small] == ["tiny"]
    (row,) = (row for row in c.stages if (row.name, row.figure) == ("rare", "p50"))
    assert (row.difference, row.p, row.verdict.kind) == (None, None, "unjudged")


def test_several_devices_are_compared_by_themselves() -> None:
    random.seed(11)

    def disks(slow: float) -> list[Figures]:
        def device(ns: float) -> Device:
            return Device(1000, 1000, int(1000 * ns * random.gauss(1, 0.02)))

        return [figures(f"r{i}", devices={"sda": device(90_000), "sdb": device(90_000 * slow)}) for i in range(4)]

    c = compare(disks(1), disks(4))
    assert [(row.name, row.verdict.kind) for row in c.devices] == [("sda", "same"), ("sdb", "more")]
    assert any(line.startswith("sdb ") for line in rendered(text_lines(c)))


def test_what_makes_a_comparison_doubtful_is_said() -> None:
    random.seed(12)
    a = [figures("a1")]
    other = {"classes": {"write": 3000, "read": 1000}, "where": {"kernel": "6.12"}, "tainted": 100}
    said = "\n".join(doubts(compare(a, [figures("b1", **other)])))  # type: ignore[arg-type]
    assert "different kernels: 6.1, 6.12" in said
    assert "--class C" in said and "b1: lost events touch 100 ops" in said
    assert list(doubts(compare(a, [figures("b2")]))) == []


# --- the baseline -----------------------------------------------------------------------------------------------------


def test_a_baseline_is_what_was_measured(tmp_path: Path) -> None:
    path = tmp_path / "run"
    built(1, 0).write(path)
    found = figures_of(open_tables(path), Selection(), "run", 0, sketched=True)
    file = tmp_path / "baseline.json"
    file.write_text(baseline_text([found, found]))
    assert read_baseline(file) == [found, found]
    assert found.value("p95") == pytest.approx(found.value("p90"), rel=0.5)
    assert found.value("p50", "nothing") is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{}", "schema is missing"),
        ('{"schema": "other", "runs": []}', "its schema is not opline baseline 1"),
        ('{"schema": "opline baseline 1", "runs": []}', "has no run"),
        ("nonsense", "it is damaged"),
    ],
)
def test_what_is_no_baseline_is_one_clear_line(
    text: str, said: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x.json").write_text(text)
    assert main(["compare", str(tmp_path / "x.json"), str(tmp_path / "x.json")]) == 1
    err = capfd.readouterr().err
    assert said in err and err.count("\n") == 1


# --- the command ------------------------------------------------------------------------------------------------------


def built(seed: int, longer_ns: int) -> RunBuilder:
    """A run of 40 ops in two stages and a block request; ``longer_ns``: more in the stage queue."""
    rng = random.Random(seed)
    run = RunBuilder()
    for n in range(40):
        t = 1_000_000 * n
        queue = 20_000 + longer_ns + rng.randrange(300)
        run.op(
            [P("begin", t), P("work", t + queue, stage="queue", kind="wait"), P("end", t + queue + 90_000 + n)],
            [Rq(q=t + queue + 10_000, g=t + queue + 11_000, d=t + queue + 13_000, c=t + queue + 80_000, sector=8 * n)],
            op_class="read" if n % 2 else "write",
        )
    return run


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two runs, then two with 30 us more in their stage queue."""
    folder = tmp_path_factory.mktemp("runs")
    return [built(n, 30_000 * (n >= 2)).write(folder / f"r{n}") for n in range(4)]


def out_of(capfd: pytest.CaptureFixture[str], *args: object) -> str:
    assert main([str(a) for a in args]) == 0
    return capfd.readouterr().out


def test_several_runs_of_each_side(runs: list[Path], capfd: pytest.CaptureFixture[str]) -> None:
    text = out_of(capfd, "compare", *runs[:2], "--", *runs[2:])
    assert text == out_of(capfd, "compare", *runs[:2], "--with", *runs[2:])
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0] == "A  2 runs, 40 ops each: r0 r1"
    (queue,) = (line for line in lines if line.startswith("queue "))
    assert "slower by a factor of 2.5 [2.5, 2.5]" in queue
    assert not [line for line in lines if line.startswith(("D2C ", "Q2G ", "reap "))]  # folded
    assert "no change of 5 % or more: " in text
    assert "the same classes and sizes in both (4096 bytes)" in lines


def test_one_of_each_side(runs: list[Path], capfd: pytest.CaptureFixture[str]) -> None:
    text = out_of(capfd, "compare", runs[0], runs[2])
    (queue,) = (line for line in text.splitlines() if line.startswith("queue "))
    assert queue.split()[-2:] == ["×2.5", "(+30.00)"] or "×2.5" in queue
    assert "One run of each side" in text and "slower" not in text


def test_json_and_csv_have_every_figure(runs: list[Path], capfd: pytest.CaptureFixture[str]) -> None:
    both = [*runs[:2], "--", *runs[2:]]
    document = json.loads(out_of(capfd, "compare", "--json", *both))
    found = {(r["section"], r["name"], r["figure"]): r for r in document["figures"]}
    queue = found["stage", "queue", "mean"]
    assert queue["verdict"] == "more" and queue["ratio_low"] < queue["ratio"] < queue["ratio_high"]
    stages = [built(n, 0).rows["stages"] for n in range(2)]
    means = [statistics.fmean(s["duration_ns"] for s in rows if s["stage"] == "queue") for rows in stages]
    assert queue["a_runs"] == pytest.approx(means)
    assert queue["a"] == pytest.approx(statistics.geometric_mean(means))
    rows = list(csv.DictReader(io.StringIO(out_of(capfd, "compare", "--csv", *both))))
    assert [(r["section"], r["name"], r["figure"]) for r in rows] == list(found)
    assert {r["verdict"] for r in rows} <= {"more", "less", "same", "undecided", "described", "unjudged"}


def test_a_baseline_stands_for_its_runs(runs: list[Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "baseline.json"
    assert out_of(capfd, "compare", *runs[:2], "--save", file) == ""
    assert file.stat().st_size < 20_000
    of_file = out_of(capfd, "compare", file, "--", *runs[2:])
    assert of_file == out_of(capfd, "compare", *runs[:2], "--", *runs[2:])
    assert main(["compare", str(file), str(runs[2]), "--class", "read"]) == 2
    assert "--class" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["a", "b", "c"], "Write -- before the runs of B"),
        (["a"], "One run cannot be compared"),
        (["/no/such/run", "/no/such/other"], "/no/such/run does not exist"),
        (["a", "b", "--limit", "nothing"], "not a number of per cent"),
        (["a", "b", "--limit", "0"], "must be above 0"),
    ],
)
def test_usage_errors(args: list[str], said: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", *args]) == 2
    captured = capfd.readouterr()
    assert said in captured.err and captured.out == ""


def test_the_picture_has_a_line_for_each_run(runs: list[Path], tmp_path: Path) -> None:
    from opline_analyses.compare.plot import figure as picture

    found = [figures_of(open_tables(p), Selection(), p.name, 0, sketched=True) for p in runs]
    left, right = picture(compare(found[:2], found[2:])).axes
    ends = [np.asarray(line.get_xydata(), float)[-1] for line in left.lines]
    assert len(ends) == 4 and all(share == 1.0 for _, share in ends)
    for f, (last_us, _) in zip(found, ends, strict=True):
        assert f.latency.max_ns < last_us * 1e3 <= f.latency.max_ns * (1 + 1 / 8) + 1
    queue = np.asarray(right.lines[0].get_xdata(), float)
    assert queue.tolist() == pytest.approx([f.stages["queue"].total_ns / f.ops / 1e3 for f in found[:2]])
    assert main(["compare", str(runs[0]), str(runs[2]), "--plot", str(tmp_path / "c.svg")]) == 0
    assert "queue" in (tmp_path / "c.svg").read_text()
    assert main(["compare", str(runs[0]), str(runs[2]), "--plot", str(tmp_path / "c.txt")]) == 2
