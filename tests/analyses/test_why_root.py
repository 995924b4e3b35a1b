# SPDX-License-Identifier: MIT
"""`opline why`: waits are charged to what the ops ahead were doing, and the tail to its causes."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from tests.lib.build_run import P, RunBuilder
from tests.lib.recorded import RunOf

from opline_analyses.base.result_table import rendered
from opline_analyses.commands.why import NAME
from opline_analyses.runs.run import Run, open_tables
from opline_analyses.runs.selection import Selection
from opline_analyses.why.root import Cause, charge
from opline_analyses.why.sets import choose, slowest_rule
from opline_analyses.why.tail import Tail, tail_blame
from opline_analyses.why.tail_text import cause_lines, caused_sentence, percentile_lines

WORKER, COMMIT = 200, 300


def through_worker(run: RunBuilder, begin: int, taken: int, done: int, reply: int, **of_op: str) -> int:
    """An op that one worker takes up at ``taken`` and leaves at ``done``; then it sends the reply."""
    return run.op(
        [
            P("begin", begin),
            P("taken", taken, tid=WORKER, stage="queue", kind="wait"),
            P("done", done, tid=WORKER, stage="work"),
            P("end", reply, tid=WORKER, stage="reply"),
        ],
        **of_op,  # type: ignore[arg-type]
    )


def causes_of(path: Path, *ops: int) -> dict[Cause, int]:
    run = open_tables(path)
    c = charge(run, np.array(ops))
    found = {cause: int(ns) for cause, ns in zip(c.causes, c.by_cause(np.arange(len(ops))), strict=True) if ns}
    (whole,) = run.row(f"SELECT sum(latency_ns) FROM ops WHERE op_id IN ({', '.join(map(str, ops))})")
    assert sum(found.values()) == whole
    return found


def own(stage: str, *, wait: bool = False, cpu: bool = False) -> Cause:
    return Cause(stage, cpu, False, wait)


def behind(stage: str, *, wait: bool = False, cpu: bool = False) -> Cause:
    return Cause(stage, cpu, True, wait)


def test_a_wait_is_the_work_of_the_ops_ahead(tmp_path: Path) -> None:
    run = RunBuilder()
    through_worker(run, 0, 10, 5_010, 5_030)
    through_worker(run, 5, 5_100, 5_200, 5_210)
    victim = through_worker(run, 20, 5_250, 5_300, 5_310)
    assert causes_of(run.write(tmp_path), victim) == {
        behind("work"): (5_010 - 20) + 100,
        behind("reply"): 20 + 10,
        own("queue", wait=True): 70 + 40,  # the worker was between two ops
        own("work"): 50,
        own("reply"): 10,
    }


def test_a_wait_behind_a_wait_is_followed(tmp_path: Path) -> None:
    """The worker hands over to a commit thread, and waits there for its turn behind somebody else's sync."""
    run = RunBuilder()
    run.op(
        [
            P("begin", 0),
            P("sync", 100, tid=COMMIT, stage="c queue", kind="wait"),
            P("end", 900, tid=COMMIT, stage="sync"),
        ]
    )
    holder = run.op(
        [
            P("begin", 5),
            P("taken", 50, tid=WORKER, stage="queue", kind="wait"),
            P("turn", 950, tid=COMMIT, stage="turn", kind="wait"),
            P("ended", 960, tid=COMMIT, stage="flush"),
            P("back", 970, tid=WORKER, stage="back"),
            P("end", 990, tid=WORKER, stage="reply"),
        ]
    )  # fmt: skip
    victim = through_worker(run, 200, 1_000, 1_010, 1_020)
    # the worker has no other op's point between 50 and 970: the holder's stages are what it did
    assert causes_of(run.write(tmp_path), victim) == {
        behind("sync"): 700,
        behind("turn", wait=True): 50,
        behind("flush"): 10,
        behind("back"): 10,
        behind("reply"): 20,
        own("queue", wait=True): 10,
        own("work"): 10,
        own("reply"): 10,
    }
    assert causes_of(tmp_path, holder)[behind("sync")] == 800


def test_shared_work_is_one_hold(tmp_path: Path) -> None:
    """Points of a batch are on the list of each member, at one time: the thread is at them all the while."""
    run = RunBuilder()
    for n in range(3):
        run.op(
            [
                P("begin", n),
                P("open", 100, tid=COMMIT, stage="c queue", kind="wait"),
                P("synced", 600, tid=COMMIT, stage="sync", kind="device"),
                P("end", 700 + n, tid=COMMIT, stage="finish"),
            ]
        )
    victim = run.op(
        [P("begin", 150), P("open", 800, tid=COMMIT, stage="c queue", kind="wait"), P("end", 810, tid=COMMIT)]
    )
    found = causes_of(run.write(tmp_path), victim)
    assert found[behind("sync")] == 450
    assert found[behind("finish")] == 100  # the others' ends come while they are held up by the first one's
    assert found[own("c queue", wait=True)] == 100


def test_a_free_thread_that_has_no_cpu_is_told(tmp_path: Path) -> None:
    run = RunBuilder()
    op = through_worker(run, 0, 1_000, 1_100, 1_110)
    for s in run.rows["stages"]:
        s |= {"on_cpu_ns": 0, "runnable_ns": s["duration_ns"] - 5, "blocked_io_ns": 0, "blocked_ns": 5}
    assert causes_of(run.write(tmp_path), op) == {
        own("queue", wait=True, cpu=True): 995,
        own("queue", wait=True): 5,
        own("work", cpu=True): 95,
        own("work"): 5,
        own("reply", cpu=True): 5,
        own("reply"): 5,
    }


def brute(run: Run, ops: list[int]) -> Counter[tuple[str, bool]]:
    """(stage, behind): the same by looking at every point of the run, without following further."""
    points: defaultdict[int, defaultdict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    for op, tid, ts in run.rows("SELECT op_id, tid, ts_ns FROM transitions WHERE tid IS NOT NULL"):
        points[tid][ts].add(op)
    stages = defaultdict(list)
    for op, *stage in run.rows("SELECT op_id, stage, kind, tid, begin_ns, duration_ns FROM stages ORDER BY op_id, seq"):
        stages[op].append(stage)
    found: Counter[tuple[str, bool]] = Counter()
    for op in ops:
        for stage, kind, tid, begin, duration in stages[op]:
            found[stage, False] += duration
            if kind not in ("wait", "unknown"):
                continue
            for (t0, at0), (t1, at1) in pairwise(sorted(points[tid].items())):
                holders = at0 & at1
                if not holders or op in holders or t1 <= begin or t0 >= begin + duration:
                    continue
                low, high = max(t0, begin), min(t1, begin + duration)
                for name, _, _, b, ns in stages[min(holders)]:
                    if (part := min(high, b + ns) - max(low, b)) > 0:
                        found[name, True] += part
                        found[stage, False] -= part
    return found


def test_it_agrees_with_a_look_at_every_point(run_of: RunOf) -> None:
    run = open_tables(run_of("demo-qd4").path)
    ops = [op for (op,) in run.rows("SELECT op_id FROM ops WHERE complete ORDER BY latency_ns DESC, op_id LIMIT 60")]
    c = charge(run, np.array(ops))
    found: Counter[tuple[str, bool]] = Counter()
    for cause, ns in zip(c.causes, c.by_cause(np.arange(len(ops))), strict=True):
        found[cause.stage, cause.behind] += int(ns)
    points = brute(run, ops)
    # before D a request waits behind others, which is charged to D2C (tests/analyses/test_why_device.py)
    at_device = {
        ("D2C", True),
        *((stage, b) for stage in ("D2C", "Q2G", "G2I", "I2D", "G2D", "Q2D") for b in (False, True)),
    }
    assert sum(found.pop(key, 0) for key in at_device) == sum(points.pop(key, 0) for key in at_device)
    assert found == +points
    assert sum(ns for (_, other), ns in found.items() if other) > 1_000_000


def one_worker(ops: int, slow: set[int]) -> RunBuilder:
    """One op each 20 us, 10 us of work each, one worker; the slow ones work for 900 us, and the queue empties after."""
    run = RunBuilder()
    free = 0
    for n in range(ops):
        begin = n * 20_000
        taken = max(begin + 1_000, free + 10)
        done = taken + 10_000 + (900_000 if n in slow else 0)
        free = done + 100
        through_worker(run, begin, taken, done, free)
    return run


def blamed(run: RunBuilder, path: Path, rule: str = "1%") -> Tail:
    opened = open_tables(run.write(path))
    return tail_blame(opened, choose(opened, Selection(), slowest_rule(rule)))


def test_the_root_is_named_where_the_victims_wait(tmp_path: Path) -> None:
    """40 of 4000 are slow by themselves or by the one ahead: one worker, and 4 ops that hold it."""
    tail = blamed(one_worker(4000, {500, 1500, 2500, 3500}), tmp_path)
    lead = tail.causes[0]
    assert (NAME, tail.slow, tail.step, tail.sums) == ("why", 40, 1, True)
    assert (lead.stage, lead.wait) == ("work", False)
    assert tail.typical_step == 2 and tail.typical in (990, 991)
    text = list(rendered(cause_lines(tail)))
    assert any(line.startswith(f"charged: {tail.typical} typical ops, one in 2, ") for line in text)
    assert not any("slow op" in line for line in text)
    assert lead.behind_ns > 30 * 500_000
    said = caused_sentence(tail)
    assert said is not None
    assert "behind other ops" in said
    assert "`work`" in said
    (p99,) = tail.percentiles
    assert p99.parts[0].stage == "work"
    # p99 by nearest rank, and all slow ops' excess is work: without it, it is what the others have
    rank = sorted(v for (v,) in open_tables(tmp_path).rows("SELECT latency_ns FROM ops"))[3959]
    assert p99.value_ns == rank
    assert p99.parts[0].without_ns is None or p99.parts[0].without_ns < 0.1 * rank
    assert sum(p.contributes_ns for p in p99.parts) == pytest.approx(
        float(np.mean(sorted(v for (v,) in open_tables(tmp_path).rows("SELECT latency_ns FROM ops"))[3940:3980]))
        - tail.typical_ns / tail.typical
    )
    assert all(len(line) <= 80 for line in (*cause_lines(tail), *percentile_lines(tail)))


def test_few_ops_have_no_percentile_to_blame(tmp_path: Path) -> None:
    tail = blamed(one_worker(400, {100}), tmp_path)
    assert tail.percentiles == []
    assert list(percentile_lines(tail)) == ["p99 is not blamed on anything: that takes 2000 ops"]


def test_without_waits_behind_others_there_is_no_second_table(tmp_path: Path) -> None:
    run = RunBuilder()
    for n in range(100):
        run.op([P("begin", n * 1_000_000), P("end", n * 1_000_000 + 1_000 * (n + 1), stage="work")])
    tail = blamed(run, tmp_path)
    assert caused_sentence(tail) is None
    assert len(list(cause_lines(tail))) == 1
