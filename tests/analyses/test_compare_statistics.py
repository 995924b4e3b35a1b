# SPDX-License-Identifier: MIT
"""The statistics of `opline compare`: quantiles, corrections, intervals, verdicts, sketches."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.lib.build_run import P, RunBuilder

from opline_analyses.compare import student
from opline_analyses.compare.figures import baseline_text, figures_of, read_baseline
from opline_analyses.compare.sketch import BINS, sketch_of, sketches
from opline_analyses.compare.verdicts import by, change, difference, holm, verdict
from opline_analyses.ops.stages import select_counted
from opline_analyses.runs.run import open_tables
from opline_analyses.runs.selection import Selection


@pytest.mark.parametrize(
    ("df", "share", "t"),
    [  # from printed tables of Student's t
        (1, 0.025, 12.7062), (4, 0.025, 2.7764), (8, 0.025, 2.3060), (8, 0.05, 1.8595), (15, 0.005, 2.9467),
        (30, 0.1, 1.3104), (120, 0.025, 1.9799),
    ],
)  # fmt: skip
def test_students_quantiles_are_those_of_the_tables(df: float, share: float, t: float) -> None:
    assert student.upper(share, df) == pytest.approx(t, abs=1e-4)
    assert student.survival(t, df) == pytest.approx(share, rel=1e-3)


@pytest.mark.parametrize("df", [1.7, 4.0, 9.3, 57.0])
def test_students_tail_is_the_integral_of_its_density(df: float) -> None:
    constant = math.exp(math.lgamma((df + 1) / 2) - math.lgamma(df / 2)) / math.sqrt(df * math.pi)
    t = np.linspace(0, 3, 200_001)
    inside = float(np.trapezoid(constant * (1 + t * t / df) ** (-(df + 1) / 2), t))
    assert student.survival(3.0, df) == pytest.approx(0.5 - inside, abs=1e-9)
    assert student.survival(-3.0, df) == pytest.approx(0.5 + inside, abs=1e-9)
    assert student.two_sided(-3.0, df) == pytest.approx(1 - 2 * inside, abs=1e-9)


def test_welchs_t_by_hand() -> None:
    a, b = [100.0, 110.0, 90.0], [150.0, 120.0]
    logs_a, logs_b = np.log(a), np.log(b)
    parts = logs_a.var(ddof=1) / 3, logs_b.var(ddof=1) / 2
    d = difference(a, b)
    assert d is not None and d.error is not None and d.df is not None
    assert d.log_ratio == pytest.approx(logs_b.mean() - logs_a.mean())
    assert d.error == pytest.approx(math.sqrt(sum(parts)))
    assert d.df == pytest.approx(sum(parts) ** 2 / (parts[0] ** 2 / 2 + parts[1] ** 2 / 1))
    assert d.a == pytest.approx((100 * 110 * 90) ** (1 / 3)) and d.b == pytest.approx(math.sqrt(150 * 120))


def test_holms_correction() -> None:
    """The example of three p values: 3 * 0.01, 2 * 0.02, and the third not below the second."""
    assert holm([0.02, 0.01, 0.03]) == pytest.approx([0.04, 0.03, 0.04])
    assert holm([]) == [] and holm([0.9, 0.8]) == [1.0, 1.0]


def test_intervals_hold_the_truth_and_equal_things_are_seldom_called() -> None:
    random.seed(3)
    held = called = 0
    for _ in range(400):
        a, b = ([math.exp(random.gauss(mean, 0.3)) for _ in range(5)] for mean in (0.0, 0.5))
        d, null = difference(a, b), difference(a, [v / math.exp(0.5) for v in b])
        assert d and null
        interval, p = d.interval(), null.p()
        assert interval is not None and p is not None
        held += interval[0] <= 0.5 <= interval[1]
        called += p <= 0.05
    assert 370 <= held <= 392  # 95 % of 400 is 380, its SD 4.4
    assert called == 400 - held


@pytest.mark.parametrize(
    ("a", "b", "text"),
    [
        ((100, 101, 99, 100, 100), (112, 113, 111, 112, 112), "slower by 12 % [11, 13]"),
        ((112, 113, 111, 112, 112), (100, 101, 99, 100, 100), "faster by 11 % [9.8, 12]"),
        ((100, 101, 99, 100, 100), (301, 299, 300, 310, 290), "slower by a factor of 3 [2.9, 3.1]"),
        ((1000, 1001, 999, 1000), (1020, 1021, 1019, 1020), "slower by 2 % [1.9, 2.1], below 5 %"),
        ((100, 101, 99, 100, 100), (100, 101, 99, 100, 100), "no change larger than 0.9 %"),
        ((100, 150, 70, 90, 130), (110, 160, 60, 100, 120), "can't tell: -38 % … +63 %"),
        ((100, 250, 30, 90, 130), (110, 460, 60, 100, 1200), "can't tell: ÷2.3 … ×10"),
    ],
)
def test_verdicts_in_words(a: tuple[int, ...], b: tuple[int, ...], text: str) -> None:
    d = difference(a, b)
    assert d
    assert verdict(d, d.p()).text == text


def test_one_run_has_no_verdict() -> None:
    d = difference((100.0,), (1000.0, 1001.0, 1002.0))
    assert d and d.p() is None and d.interval() is None and d.scatter is None
    assert verdict(d, None).kind == "described"


def test_equal_whole_nanoseconds_are_not_certainty() -> None:
    """The same p50 in all runs of a side, because it is cut to whole nanoseconds: 1 ns of 20 is no finding."""
    cut = difference([20.0] * 3, [21.0] * 3, resolution=1.0)
    exact = difference([20.0] * 3, [21.0] * 3)
    assert cut and exact and cut.p() is not None and exact.p() is not None
    assert cut.p() > 0.01 > exact.p()  # type: ignore[operator]


def test_changes_in_words() -> None:
    assert [change(math.log(r)) for r in (1.0, 1.12, 0.91, 2.0, 0.25, 373, 1.004)] == [
        "+0 %", "+12 %", "-9 %", "×2", "÷4", "×373", "+0.4 %",
    ]  # fmt: skip
    assert by(math.log(0.5), math.log(0.4), math.log(0.6)) == "by a factor of 2 [1.7, 2.5]"


EDGES = [0, 1, 31, 32, 33, 63, 64, 65, 1000, 1023, 1024, 123_456_789, 2**40 - 1, 2**40, 2**45 + 12345]


def bin_of(ns: int) -> int:
    return int(BINS.index(ns))


def test_every_time_is_in_its_bin() -> None:
    for ns in EDGES:
        low, high = BINS.edges(bin_of(ns))
        assert low <= ns < high and (high - low == 1 or (high - low) * 8 <= low)
    assert [bin_of(BINS.edges(n)[0]) for n in range(350)] == list(range(350))


def test_sketches_of_a_run_have_the_bins_of_its_ops(tmp_path: Path) -> None:
    run = RunBuilder()
    for n, ns in enumerate(EDGES):
        t = 2**50 * n
        run.op([P("a", t), P("b", t + ns, stage="x"), P("c", t + ns, stage="y"), P("d", t + ns + 7, stage="x")])
    opened = open_tables(run.write(tmp_path))
    select_counted(opened, Selection(), tainted=False)
    latency, stages = sketches(opened)
    assert latency == sketch_of((n, [bin_of(e + 7) for e in EDGES].count(n)) for n in {bin_of(e + 7) for e in EDGES})
    assert stages["x"] == latency  # both pieces of an op
    assert stages["y"].bins == (0, len(EDGES))


POPULATION: dict[str, Any] = {
    "ops": 1, "incomplete_ops": 0, "requests": 1, "other_ops": 0, "other_requests": 0, "idle": False, "programs": [],
    "others": [],
}  # fmt: skip


def test_a_recorded_commands_rate_is_over_the_time_of_its_work(tmp_path: Path) -> None:
    """Neither what it reads to start, long before, nor its report, long after, makes the time longer."""
    run = RunBuilder()
    for n in range(4):
        run.op([P("a", n), P("b", n + 1, stage="x")], op_class="read", pid=10)
    for n in range(100):
        run.op([P("a", 50_000 + 100 * n), P("b", 50_100 + 100 * n, stage="x")], op_class="pwrite64", pid=11)
    run.op([P("a", 99_900), P("b", 100_000, stage="x")], op_class="write", pid=10)
    assert figures_of(open_tables(run.write(tmp_path / "whole")), Selection(), "r", 0).value("iops") == 105 * 1e4
    run.manifest["core"] = {"population": POPULATION}
    for row in run.rows["ops"]:
        row["population"] = True
    found = figures_of(open_tables(run.write(tmp_path / "recorded")), Selection(), "r", 0)
    assert (found.window_ns, found.completed, found.value("iops")) == (10_000, 100, 1e7)


def test_quantiles_of_a_sketch_are_near_those_of_the_values() -> None:
    random.seed(5)
    values = sorted(int(random.lognormvariate(11, 1)) for _ in range(5000))
    bins = [bin_of(v) for v in values]
    sketch = sketch_of((n, bins.count(n)) for n in set(bins))
    assert sketch.count == 5000
    for q in (0.0, 0.01, 0.5, 0.95, 0.999, 1.0):
        assert sketch.quantile(q) == pytest.approx(values[max(0, math.ceil(q * 5000) - 1)], rel=1 / 8)


def test_the_rate_is_of_all_complete_ops(tmp_path: Path) -> None:
    """What is known of a tainted op is too little for its stages, and it is done nonetheless."""
    run = RunBuilder()
    for n in range(10):
        run.op([P("a", 100 * n), P("b", 100 * n + 100, stage="x")], tainted=n % 2 == 0)
    opened = open_tables(run.write(tmp_path))
    plain, asked = (figures_of(opened, Selection(), "r", 0, tainted) for tainted in (False, True))
    assert (plain.ops, plain.tainted, asked.ops) == (5, 5, 10)
    assert plain.value("iops") == asked.value("iops") == pytest.approx(1e7)
    path = tmp_path / "baseline.json"
    path.write_text(baseline_text([plain]))
    assert [f.value("iops") for f in read_baseline(path)] == [pytest.approx(1e7)]
    older = path.read_text().replace('"completed": 10', '"later": 10')
    path.write_text(older)
    path.write_text(baseline_text(read_baseline(path)))
    assert [f.value("iops") for f in read_baseline(path)] == [pytest.approx(5e6)]
