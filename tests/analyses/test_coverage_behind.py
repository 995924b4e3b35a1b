# SPDX-License-Identifier: MIT
"""Behind what a stage waited (coverage): the parts of its mean, by what the thread at its end did meanwhile."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.lib.build_run import P, RunBuilder

from opline_analyses.client.coverage import measure
from opline_analyses.ops import stages
from opline_analyses.ops.stages import select_counted
from opline_analyses.ops.thread_points import Points, Slots, Waiting
from opline_analyses.runs.run import open_tables
from opline_analyses.runs.selection import Selection


@pytest.mark.parametrize("states", [False, True])
def test_a_stage_is_split_by_what_its_thread_did_for_others(states: bool, tmp_path: Path) -> None:
    """The server's thread 7 takes one op after the other; the last one's way to it is mostly their work. Where its
    states are known, the wait for a CPU before it is seen is told, and only that one.
    """
    run = RunBuilder()
    for begin, taken in ((0, 10), (1, 40), (2, 70)):
        run.op(
            [
                P("sent", begin, tid=begin),
                P("received", taken, tid=7, stage="network", kind="network"),
                P("served", taken + 25, tid=7, stage="serve"),
            ]
        )
    for begin, until in ((6, 11), (36, 39)) if states else ():
        of_thread = {"op_id": 2, "seq": 0, "tid": 7, "state": "runnable"}
        run.rows["states"].append({**of_thread, "begin_ns": begin, "duration_ns": until - begin})
    opened = open_tables(run.write(tmp_path))
    found = measure(opened, Selection().also("o.op_id = 2"), None)
    (network, serve) = found.wide
    assert [(p.what, p.mean_ns) for p in serve.behind] == [("its thread at this op", 25)]
    assert (network.stage, network.mean_ns) == ("network", 68)
    # 2 to 10 nobody knows, 10 to 35 and 40 to 65 it serves the others, 35 to 40 and 65 to 70 lie between them
    unseen = [("before its thread is seen", 8)]
    if states:  # 6 to 10
        unseen = [("before its thread is seen", 4), ("its thread waits for a CPU", 4)]
    others = [("behind serve", 50), ("its thread between others", 10)]
    assert [(p.what, p.mean_ns) for p in network.behind] == [*others, *unseen]


def test_points_of_a_thread_at_one_moment_hide_no_time_after_them(tmp_path: Path) -> None:
    run = RunBuilder()
    other = [P("sent", 0, tid=1), *(P(f"step {n}", 30, tid=7) for n in range(9)), P("served", 60, tid=7)]
    run.op([other[0], P("received", 10, tid=7), *other[1:]])
    run.op([P("sent", 2, tid=2), P("received", 52, tid=7, stage="network", kind="network"), P("served", 58, tid=7)])
    found = measure(open_tables(run.write(tmp_path)), Selection().also("o.op_id = 1"), None)
    (network,) = (stage for stage in found.wide if stage.stage == "network")
    parts = {part.what: part.mean_ns for part in network.behind}
    assert parts.pop("its thread between others") == 22
    assert parts.pop("before its thread is seen") == 8
    assert sum(parts.values()) == 20  # from received to the steps


def served(ops: int = 20) -> RunBuilder:
    """One thread serves all ops, each for 25 ns, later and later after they were sent."""
    run = RunBuilder()
    for n in range(ops):
        begin, taken = 30 * n, 33 * n + 10
        run.op(
            [
                P("sent", begin, tid=1),
                P("received", taken, tid=7, stage="network", kind="network"),
                P("served", taken + 25, tid=7, stage="serve"),
                P("answered", taken + 40, tid=1, stage="back", kind="network"),
            ]
        )
    for row in run.rows["transitions"]:
        row["pid"] = 2 if row["tid"] == 7 else row["pid"]
    return run


def test_ranges_of_ops_give_the_same_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And each holds the points around its own stages, not all points of the threads."""
    opened = open_tables(served().write(tmp_path))
    asked = "SELECT * FROM parts ORDER BY ALL"
    select_counted(opened, Selection(), tainted=False)
    opened.con.execute(
        "CREATE TEMP TABLE client_ops AS SELECT op_id, 1 AS submit_ns, 1 AS reap_ns, 1 AS client_ns FROM ops"
    )
    whole, parts = measure(opened, Selection(), None, with_log=True), opened.rows(asked)
    assert {"network out", "network back"} <= {part for _, part, _ in parts} and len(whole.wide) == 3
    assert any(part.what == "behind serve" for part in whole.wide[0].behind)
    monkeypatch.setattr(stages, "ROWS", 1)
    assert measure(opened, Selection(), None, with_log=True) == whole and opened.rows(asked) == parts


def test_a_range_of_ops_holds_the_points_around_its_own_stages(tmp_path: Path) -> None:
    """Not all points of their threads."""
    opened = open_tables(served().write(tmp_path))
    slots = Slots(opened)
    place, op_id, begin, end, tid = np.array([[0], [9], [270], [307], [7]])  # the stage network of op 9
    points = Points(opened, slots, Waiting(place, op_id, begin, end, slots.threads(tid)))
    (all_points,) = opened.row("SELECT count(*) FROM transitions WHERE tid = 7")
    assert 2 <= len(points) < all_points / 2
    assert sum(points.sums(1)[0].tolist()) == 37


def test_work_for_the_stages_own_op_is_no_work_for_another(tmp_path: Path) -> None:
    """Also where the thread passes further points of the op, at which no stage is cut."""
    run = RunBuilder()
    run.op([P("sent", 0, tid=7), P("step", 10, tid=7), P("half", 20, tid=7), P("served", 60, tid=7, stage="serve")])
    (serve,) = run.rows["stages"] = run.rows["stages"][-1:]
    serve |= {"begin_ns": 0, "duration_ns": 60, "from_point": "sent"}
    run.op([P("other", 30, tid=7), P("done", 45, tid=7)])
    (wide,) = measure(open_tables(run.write(tmp_path)), Selection().also("o.op_id = 0"), None).wide
    parts = {part.what: part.mean_ns for part in wide.behind}
    assert parts == {"its thread at this op": 20, "behind other → done": 15, "its thread between others": 25}


def test_points_of_one_moment_are_in_the_order_of_their_ops(tmp_path: Path) -> None:
    """A table has the ops in the order in which they settled."""
    run = RunBuilder()
    run.op([P("sent", 0, tid=1), P("received", 60, tid=7, stage="network", kind="network")])
    run.op([P("begun", 10, tid=7), P("half", 30, tid=7)])
    run.op([P("begun", 30, tid=7), P("done", 50, tid=7)])
    run.rows["transitions"].reverse()
    (wide,) = measure(open_tables(run.write(tmp_path)), Selection().also("o.op_id = 0"), None).wide
    parts = {part.what: part.mean_ns for part in wide.behind}
    assert parts == {
        "behind begun → half": 20,
        "behind begun → done": 20,
        "before its thread is seen": 10,
        "its thread between others": 10,
    }
