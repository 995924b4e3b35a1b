# SPDX-License-Identifier: MIT
"""`opline coverage`: which intervals a tracepoint would explain, by their part of the mean and of the variance."""

from __future__ import annotations

import statistics
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from tests.lib.build_run import P, Rq, RunBuilder

from opline_analyses.base.result_table import rendered
from opline_analyses.client.unsplit import unsplit, unsplit_lines
from opline_analyses.ops.stages import select_counted
from opline_analyses.runs.run import Run, open_tables
from opline_analyses.runs.selection import Selection

OPS = 40


def parse_ns(n: int) -> int:
    """What `parse` takes: it makes all of the variance but the queue's part."""
    return 30_000 + (400_000 if n % 8 == 5 else 0)


def queue_ns(n: int) -> int:
    """A declared wait, which no tracepoint would split."""
    return 100_000 + 1000 * (n % 3)


def built(states: bool = False) -> RunBuilder:
    """Each op waits in a queue, is parsed on a thread (an aside in the middle), and then works twice in a loop."""
    run = RunBuilder()
    for n in range(OPS):
        t, q, p = 10_000_000 * n, queue_ns(n), parse_ns(n)
        run.op(
            [
                P("begin", t),
                P("taken", t + q, tid=200, stage="queue", kind="wait"),
                P("half", t + q + p // 2, tid=200, aside=True),
                P("parsed", t + q + p, tid=200, stage="parse"),
                P("turn", t + q + p + 6000, tid=200, stage="turn"),
                P("end", t + q + p + 7000, tid=200, stage="last"),
            ],
            [],
        )
    if states:
        for row in run.rows["stages"]:
            if row["stage"] == "parse":
                ns = row["duration_ns"]
                row |= {"runnable_ns": ns - 20_000, "on_cpu_ns": 5_000, "blocked_ns": 15_000, "blocked_io_ns": 0}
                row["woken_by_comm"] = "flusher"
    run.fate("app:note", "ignored", 7)
    run.fate("app:begin", "transition", OPS)
    return run


def opened(run: RunBuilder, path: Path) -> Run:
    found = open_tables(run.write(path))
    select_counted(found, Selection(), tainted=False)
    return found


def test_shares_of_the_mean_and_of_the_variance_by_hand(tmp_path: Path) -> None:
    found = unsplit(opened(built(), tmp_path))
    latency = [queue_ns(n) + parse_ns(n) + 7000 for n in range(OPS)]
    parse = [parse_ns(n) for n in range(OPS)]
    first, *others = found.intervals
    assert (first.stage, first.ends, first.kind, first.number) == ("parse", "taken → parsed", "work", OPS)
    assert first.total_ns == sum(parse)
    assert first.share == pytest.approx(sum(parse) / sum(latency))
    assert first.spread == pytest.approx(statistics.covariance(parse, latency) / statistics.variance(latency))
    assert first.spread > 0.99
    assert first.asides == ["half"]
    assert first.op_id in range(5, OPS, 8)
    assert first.end_ns - first.begin_ns == 430_000
    assert [i.stage for i in others] == ["turn"]  # `last` has less than 1 %, `queue` is a declared wait
    assert others[0].spread == pytest.approx(0, abs=1e-12)
    assert found.events == [("app:note", 7)]


def test_the_wait_for_a_cpu_is_no_gap_between_tracepoints(tmp_path: Path) -> None:
    (parse, *_) = unsplit(opened(built(states=True), tmp_path)).intervals
    assert (parse.stage, parse.total_ns) == ("parse", 20_000 * OPS)
    assert parse.spread == pytest.approx(0, abs=1e-12)
    assert parse.meanwhile() == "on a CPU 25 %, blocked 75 %, woken by flusher, passes half"


def test_a_device_has_no_gap(tmp_path: Path) -> None:
    run = RunBuilder()
    for n in range(OPS):
        t = 10_000_000 * n
        run.op([P("begin", t), P("end", t + 901_000)], [Rq(q=t + 500, d=t + 600, c=t + 900_500)])
    found = unsplit(opened(run, tmp_path))
    assert found.intervals == []
    (line,) = unsplit_lines(found, opened(run, tmp_path / "again"))
    assert line == "no interval that a tracepoint could split has 1% of the mean or of the spread"


def test_what_is_printed(tmp_path: Path, capsys: Any) -> None:
    run = opened(built(), tmp_path)
    text = list(rendered(unsplit_lines(unsplit(run), run)))
    assert text[0].split() == ["where", "a", "tracepoint", "would", "explain", "most", "us", "share%", "spread%"]
    assert text[1].split()[:4] == ["parse,", "taken", "→", "parsed"]
    assert text[2] == "    passes half"
    assert "in the trace, but no point: app:note (7)" in text


def test_the_spread_of_an_interval_is_exact(tmp_path: Path) -> None:
    """Integers until the last division: no order of rows changes a digit."""
    run = built()
    more = {op["op_id"]: 10**7 + 7919**n % 1_000_003 for n, op in enumerate(run.rows["ops"])}
    for op in run.rows["ops"]:
        op["latency_ns"] += more[op["op_id"]]
    for row in run.rows["stages"]:
        row["duration_ns"] += more[row["op_id"]] if row["stage"] == "parse" else 0
    opened = open_tables(run.write(tmp_path))
    select_counted(opened, Selection(), tainted=False)
    latencies = dict(opened.rows("SELECT op_id, latency_ns FROM ops SEMI JOIN counted USING (op_id)"))
    mean = Fraction(sum(latencies.values()), len(latencies))
    found = unsplit(opened).intervals
    assert found
    for interval in found:
        rows = opened.rows(
            "SELECT op_id, duration_ns, begin_ns FROM stages SEMI JOIN counted USING (op_id) WHERE stage = ? AND"
            " from_point = ? AND to_point = ?",
            (interval.stage, interval.from_point, interval.to_point),
        )
        products = sum(ns * (latencies[op] - mean) for op, ns, _ in rows)
        assert interval.spread == float(products / sum((ns - mean) ** 2 for ns in latencies.values()))
        longest = max(ns for _, ns, _ in rows)
        op_id, begin_ns = min((op, begin) for op, ns, begin in rows if ns == longest)
        assert (interval.op_id, interval.begin_ns, interval.end_ns) == (op_id, begin_ns, begin_ns + longest)
