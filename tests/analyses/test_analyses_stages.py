# SPDX-License-Identifier: MIT
"""Stage statistics and the CSV of ops (C1.8): exact percentiles, the partition law, and that the two agree."""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
import re
import statistics
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.lib.build_run import P, Rq, RunBuilder
from tests.lib.recorded import NAMES, RunOf, model_of

from opline import _core
from opline.correlation import stage_statistics
from opline.errors import OplineError
from opline_analyses.cli import parser_of
from opline_analyses.ops.op_csv import FIXED, collector, feed, stage_columns, write
from opline_analyses.ops.stage_text import result
from opline_analyses.ops.stages import stage_table, table_of
from opline_analyses.runs.run import Run, open_tables
from opline_analyses.runs.selection import Selection


def nearest_rank(values: list[int], q: float) -> int:
    """The definition: the ceil(q * n)-th smallest value."""
    return sorted(values)[max(1, math.ceil(round(q * len(values), 9))) - 1]


def ladder(latencies_ns: list[int]) -> RunBuilder:
    """One op per latency, in two stages: 3/4 and the rest."""
    run = RunBuilder()
    for n, latency in enumerate(latencies_ns):
        t = 1_000_000 * n
        first = latency * 3 // 4
        run.op([P("a", t), P("b", t + first, stage="one"), P("c", t + latency, stage="two", kind="wait")])
    return run


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=60))
def test_percentiles_are_nearest_rank(tmp_path: Path, latencies: list[int]) -> None:
    t = stage_table(open_tables(ladder(latencies).write(tmp_path)), Selection())
    row = t.latency
    assert (row.count, row.max_ns, row.total_ns) == (len(latencies), max(latencies), sum(latencies))
    assert [row.p50_ns, row.p90_ns, row.p99_ns, row.p999_ns] == [
        nearest_rank(latencies, q) for q in (0.5, 0.9, 0.99, 0.999)
    ]
    assert row.mean_ns == pytest.approx(statistics.fmean(latencies))
    assert row.min_ns == min(latencies)
    assert row.std_ns == pytest.approx(statistics.pstdev(latencies), rel=1e-9, abs=1e-9 * row.mean_ns)
    assert t.sums


def test_min_and_deviation_are_shown_where_they_are_asked_for(tmp_path: Path) -> None:
    t = stage_table(open_tables(ladder([1000, 2000, 6000]).write(tmp_path)), Selection())
    (head, *_), (spread, *rows) = (
        "\n".join(str(line) for line in result(t, spread=spread).lines()).splitlines() for spread in (False, True)
    )
    assert "min" not in head
    assert "std" not in head
    assert spread.split()[3:] == ["mean", "min", "p50", "p90", "p99", "p99.9", "max", "std", "share%"]
    (latency,) = [row.split() for row in rows if row.startswith("latency")]
    assert latency[2:4] == ["3.00", "1.00"]
    assert latency[8:10] == ["6.00", "2.16"]


def test_percentiles_at_exact_ranks(tmp_path: Path) -> None:
    """n = 1000: every rank is whole, and floating point must not push it up by one."""
    t = stage_table(open_tables(ladder([n * 4 for n in range(1, 1001)]).write(tmp_path)), Selection())
    assert [t.latency.p50_ns, t.latency.p90_ns, t.latency.p99_ns, t.latency.p999_ns] == [2000, 3600, 3960, 3996]


def mixed() -> RunBuilder:
    run = RunBuilder()
    run.op(
        [
            P("begin", 0),
            P("sync", 10, stage="sync"),
            P("work", 30, stage="work"),
            P("sync#2", 60, stage="sync"),
            P("end", 100, stage="unknown: sync#2 → end", kind="unknown"),
        ],
        unattributed_ns=5,
    )
    run.op([P("begin", 1000), P("end", 1100, stage="work")], op_class="read", obj='a,"b"\nc')
    run.op([P("begin", 2000)], complete=False, reason="no_end")
    run.op([P("begin", 3000), P("end", 3900, stage="work")], tainted=True)
    run.op(
        [P("begin", 4000), P("end", 5000)],
        [Rq(q=4100, g=4200, d=4300, c=4800, dev=(259 << 20) | 3, sector=77, kind="read")],
        op_class="read",
        obj=None,
    )
    return run


def test_recurring_stage_adds_up_per_op(tmp_path: Path) -> None:
    t = stage_table(open_tables(mixed().write(tmp_path)), Selection())
    rows = {s.stage: s for s in t.stages}
    assert (rows["sync"].count, rows["sync"].total_ns, rows["sync"].max_ns) == (1, 40, 40)
    assert (t.ops, t.incomplete, t.tainted) == (3, 1, 1)
    assert (t.unattributed.total_ns, t.unknown.total_ns, t.latency.total_ns) == (5, 35, 1200)
    assert t.sums


def test_tainted_ops_count_when_asked(tmp_path: Path) -> None:
    opened = open_tables(mixed().write(tmp_path))
    assert stage_table(opened, Selection(), tainted=True).latency.total_ns == 2100


def test_no_op_to_count_is_one_clear_line(tmp_path: Path) -> None:
    run = RunBuilder()
    run.op([P("begin", 0)], complete=False, reason="no_end")
    with pytest.raises(OplineError, match="1 incomplete"):
        stage_table(open_tables(run.write(tmp_path)), Selection())


def test_a_damaged_run_is_told(tmp_path: Path) -> None:
    run = mixed()
    run.rows["stages"][0]["duration_ns"] += 1
    t = stage_table(open_tables(run.write(tmp_path)), Selection())
    assert not t.sums
    assert "IS NOT latency" in result(t).text()


def test_text_fits_80_columns(tmp_path: Path) -> None:
    t = stage_table(open_tables(ladder([400_000 + n for n in range(2000)]).write(tmp_path)), Selection())
    text = result(t).text()
    assert max(map(len, text.splitlines())) <= 80
    assert text.splitlines()[0].split()[:4] == ["stage", "(us)", "count", "mean"]


@pytest.mark.parametrize("name", NAMES)
def test_a_trace_and_its_run_give_the_same(name: str, trace: Callable[[str], Path], run_of: RunOf) -> None:
    """The core counts while it reads; of a run the same class counts columns."""
    run = open_tables(run_of(name).path)
    for tainted in (False, True):
        found, losses = stage_statistics(trace(name), model_of(name), tainted=tainted, progress=False)
        told = {r["loss"]: r["count"] for r in run_of(name).rows("losses")}
        told.pop("states_missing", None)  # statistics have no threads' states
        assert losses == told
        try:
            of_run = stage_table(run, Selection(), tainted)
        except OplineError as error:
            with pytest.raises(OplineError, match=re.escape(str(error))):
                table_of(found, found["incomplete"], found["tainted"], run.path)
            continue
        of_trace = table_of(found, found["incomplete"], found["tainted"], "it")
        first, second = result(of_trace), result(of_run)
        assert first.text() == second.text()
        assert [*first.csv(), *first.json()] == [*second.csv(), *second.json()]
    run.con.close()


def test_beyond_262144_values_percentiles_are_within_0_2_per_cent() -> None:
    n = (1 << 18) + 1
    values = np.random.default_rng(1).lognormal(10, 3, n).astype(np.int64)
    found = {}
    for kept in (n - 1, n):
        statistics = _core.StageStatistics()
        statistics.ops(values[:kept], np.zeros(kept, np.int64), np.zeros(kept, np.int64))
        found[kept] = json.loads(statistics.result([]))
    latency = found[n - 1]["latency"]
    expected = np.sort(values[: n - 1])
    assert found[n - 1]["exact"]
    assert latency["quantiles_ns"] == [int(expected[math.ceil((n - 1) * q / 1000) - 1]) for q in (500, 900, 990, 999)]
    latency = found[n]["latency"]
    expected = np.sort(values)
    assert not found[n]["exact"]
    assert (latency["count"], latency["total_ns"], latency["max_ns"]) == (n, int(values.sum()), int(values.max()))
    for q, got in zip((500, 900, 990, 999), latency["quantiles_ns"], strict=True):
        exact = int(expected[math.ceil(n * q / 1000) - 1])
        assert abs(got - exact) <= exact / 512


@pytest.mark.parametrize("least", [0, 250, 500, 1000, 2**16 - 9, 2**24 - 300, 2**31 - 500])
def test_values_close_to_each_other_are_in_order(least: int) -> None:
    for spread, n in itertools.product([1, 3, 40, 1000], [1, 2, 3, 5, 64, 65, 70, 131, 1000, 5001]):
        values = np.random.default_rng(n).integers(least, least + spread, n)
        values[:: max(1, n // 7)] = 3 * least // 4
        statistics = _core.StageStatistics()
        statistics.ops(values, values, values)
        row = json.loads(statistics.result([]))["latency"]
        assert row["quantiles_ns"] == [nearest_rank([int(v) for v in values], q) for q in (0.5, 0.9, 0.99, 0.999)]
        assert (row["count"], row["total_ns"], row["max_ns"]) == (n, int(values.sum()), int(values.max()))


def test_values_of_any_size_are_in_order() -> None:
    """Longer than 2.1 s does not fit into the 4 bytes that most values take; negative is damage, but still a number."""
    values = np.array([2**40, 5, -3, 2**32 - 1, 2**32, 0, 7, 2**62, 9, 10], np.int64)
    statistics = _core.StageStatistics()
    statistics.ops(values, values, values)
    row = json.loads(statistics.result([]))["latency"]
    assert row["quantiles_ns"] == [nearest_rank([int(v) for v in values], q) for q in (0.5, 0.9, 0.99, 0.999)]
    assert row["max_ns"] == 2**62


# --- CSV --------------------------------------------------------------------------------------------------------------


def as_csv(run: Run, stages: bool = False) -> str:
    out = io.BytesIO()
    with collector(stages) as rows:
        feed(run, Selection(), rows, stages=stages)
        write(rows, out, stages=stages)
    return out.getvalue().decode()


def test_c1_8_one_row_per_op_and_the_stages_sum(tmp_path: Path) -> None:
    opened = open_tables(mixed().write(tmp_path))
    rows = list(csv.DictReader(io.StringIO(as_csv(opened), newline="")))
    assert len(rows) == 5
    names = list(rows[0])
    fixed = [c for c, _ in FIXED]
    assert names[: len(fixed)] == fixed
    assert names[-1] == "unattributed_ns"
    stages = names[len(fixed) : -1]
    assert {"sync_ns", "work_ns", "submit_ns", "Q2G_ns", "G2D_ns", "D2C_ns", "reap_ns"} <= set(stages)
    for row in rows:
        cells = [row[c] for c in (*stages, "unattributed_ns") if row[c] != ""]
        if row["complete"] == "true":
            assert sum(map(int, cells)) == int(row["latency_ns"])
        else:
            assert (cells, row["latency_ns"], row["end_ns"], row["reason"]) == ([], "", "", "no_end")
    assert rows[1]["object"] == 'a,"b"\nc'
    assert rows[3]["reason"] == "tainted"
    assert (rows[4]["dev"], rows[4]["sector"], rows[4]["rw"], rows[4]["object"]) == ("259:3", "77", "read", "")


def test_c1_8_the_columns_stay_and_are_documented() -> None:
    """What scripts read by name: a column may come, none may go or change its place."""
    names = [
        "op_id", "class", "object", "host", "pid", "comm", "begin_tid", "end_tid", "begin_ns", "end_ns", "latency_ns",
        "client_ns", "complete", "reason", "bytes", "dev", "sector", "rw", "begin_cpu",
    ]  # fmt: skip
    assert [name for name, _ in FIXED] == names
    told = parser_of("csv").format_help()
    assert [name for name in names if not re.search(rf"^ +{name} +\w", told, re.MULTILINE)] == []


def test_c1_8_reimport_gives_the_same_statistics(tmp_path: Path) -> None:
    opened = open_tables(mixed().write(tmp_path))
    t = stage_table(opened, Selection())
    frame = pd.read_csv(io.StringIO(as_csv(opened)))
    counted = frame[frame["complete"] & frame["reason"].isna()]
    for s in t.stages:
        column = counted[stage_columns([s.stage])[0]].dropna()
        assert (len(column), column.sum(), column.max()) == (s.count, s.total_ns, s.max_ns)
    assert counted["latency_ns"].sum() == t.latency.total_ns


def test_stage_columns_never_hide_a_fixed_one() -> None:
    names = ["latency", "unattributed", "client queue", "begin → dequeued", "client.queue", "2nd try", "→"]
    assert stage_columns(names) == [
        "stage_latency_ns", "stage_unattributed_ns", "client_queue_ns", "begin_to_dequeued_ns", "client_queue_2_ns",
        "n2nd_try_ns", "to_ns",
    ]  # fmt: skip
    assert all(column.isidentifier() for column in stage_columns(names))


def test_long_form_has_every_interval(tmp_path: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(as_csv(open_tables(mixed().write(tmp_path)), stages=True))))
    assert [int(r["duration_ns"]) for r in rows if r["op_id"] == "0"] == [10, 20, 30, 35]
    assert sum(int(r["duration_ns"]) for r in rows if r["op_id"] == "4") == 1000


def test_csv_and_json_of_stages_have_the_same_rows(tmp_path: Path) -> None:
    t = stage_table(open_tables(mixed().write(tmp_path)), Selection())
    document = result(t).document()
    rows = list(csv.DictReader(io.StringIO("".join(result(t).csv()))))
    assert [r["stage"] for r in rows] == [s["stage"] for s in document["stages"]]
    assert [int(r["total_ns"]) for r in rows] == [s["total_ns"] for s in document["stages"]]
    *parts, whole = rows  # a subtotal among the rows would be counted twice
    assert whole["stage"] == "latency" and sum(int(r["total_ns"]) for r in parts) == int(whole["total_ns"])
    unknown = document["of_it_unknown"]
    assert unknown["total_ns"] == sum(s["total_ns"] for s in document["stages"] if s["kind"] == "unknown") > 0
    assert "\nof it unknown" in result(t).text()
