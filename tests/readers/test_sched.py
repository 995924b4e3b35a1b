# SPDX-License-Identifier: MIT
"""What threads did in the stages: against a simulation nanosecond by nanosecond, and on recorded kernels."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.lib.core_driver import MOST_STATE_PARTS, Driver, check_laws, check_state_parts, plan_of, run
from tests.lib.recorded import RunOf

from opline._core import Core

MODEL = """
[keys]
op = "id"
[points]
begin = { event = "app:begin", role = "begin", key = "op", thread = "enter" }
step = "app:step"
end = { event = "app:end", key = "op", role = "end", thread = "leave" }
"""
ON_CPU, RUNNABLE, IO, BLOCKED = "on_cpu_ns", "runnable_ns", "blocked_io_ns", "blocked_ns"
STATES = (ON_CPU, RUNNABLE, IO, BLOCKED)
SLEEPS = {1: BLOCKED, 2: IO, 4: BLOCKED, 128: BLOCKED}


@st.composite
def schedules(draw: st.DrawFn) -> tuple[list[str], list[str]]:
    """The events of one thread that obeys the scheduler, and what it did in each nanosecond."""
    lines: list[str] = []
    did: list[str] = []
    woken_early = draw(st.lists(st.booleans(), min_size=12, max_size=12))
    state = RUNNABLE
    lines.append("0 sched_wakeup_new tid=5 by=1 by_comm=parent")
    for early in woken_early:
        did += [state] * draw(st.integers(1, 6))
        now = len(did)
        if state == RUNNABLE:
            lines.append(f"{now} sched_switch prev_tid=0 prev_state=0 next_tid=5 by=0 by_comm=swapper/0")
            state = ON_CPU
        elif state == ON_CPU:
            prev = draw(st.sampled_from([0, 256, *SLEEPS]))
            if early and prev in SLEEPS:  # the waker is faster than the switch
                lines.append(f"{now} sched_waking tid=5 by=7 by_comm=w")
            lines.append(f"{now} sched_switch prev_tid=5 prev_state={prev} next_tid=0 by=5 by_comm=t")
            state = SLEEPS.get(prev, RUNNABLE)
        else:
            if not early:
                lines.append(f"{now} sched_waking tid=5 by=7 by_comm=w")
            lines.append(f"{now} sched_wakeup tid=5 by=0 by_comm=swapper/1")
            state = RUNNABLE
    return lines, did


@given(schedules(), st.data())
def test_each_nanosecond_is_in_one_state(schedule: tuple[list[str], list[str]], data: st.DataObject) -> None:
    lines, did = schedule
    begin, step, end = sorted(data.draw(st.lists(st.integers(0, len(did)), min_size=3, max_size=3)))
    mine = [(begin, "app:begin id=1"), (step, "app:step"), (end, "app:end id=1")]
    events = [(int(line.split()[0]), line) for line in lines]
    events += [(at, f"{at} {what} tid=5 pid=5") for at, what in mine]
    driver = run(MODEL, [line for _, line in sorted(events, key=lambda e: e[0])])
    check_laws(driver, len(events))
    stages = driver.tables()["stages"]
    assert [s["duration_ns"] for s in stages] == [step - begin, end - step]
    for s, (a, b) in zip(stages, ((begin, step), (step, end)), strict=True):
        assert {k: s[k] for k in STATES} == {k: did[a:b].count(k) for k in STATES}
        parts = [p for p in driver.tables().get("states", []) if p["seq"] == s["seq"]]
        assert [f"{p['state']}_ns" for p in parts for _ in range(p["duration_ns"])] == did[a:b]
        woken = [t for t in range(a, b) if did[t] == RUNNABLE and (t == 0 or did[t - 1] in (IO, BLOCKED))]
        assert [p["begin_ns"] for p in parts if p["woken_by_tid"] is not None] == woken


KINDS = st.sampled_from(
    ["sched_switch prev_tid={} prev_state={s} next_tid={} by=1 by_comm=x", "sched_waking tid={} by={} by_comm=x",
     "sched_wakeup tid={} by={} by_comm=x", "sched_wakeup_new tid={} by={} by_comm=x"]
)  # fmt: skip


@given(
    st.lists(st.tuples(KINDS, st.integers(0, 3), st.integers(0, 3), st.sampled_from([0, 1, 2, 16, 32, 128, 256]))),
    st.integers(0, 40),
    st.integers(0, 40),
)
def test_any_events_at_all_keep_the_sum(events: list[tuple[str, int, int, int]], begin: int, length: int) -> None:
    """Events that contradict each other: what is said of a stage sums to it all the same, or nothing is said."""
    lines = [(t, f"{t} " + kind.format(a, b, s=s)) for t, (kind, a, b, s) in enumerate(events)]
    lines += [
        (begin, f"{begin} app:begin tid=2 pid=2 id=1"),
        (begin + length, f"{begin + length} app:end tid=2 pid=2 id=1"),
    ]
    check_laws(run(MODEL, [line for _, line in sorted(lines, key=lambda x: x[0])]), len(lines))


def test_a_timeline_is_bounded() -> None:
    """After 65536 changes of a thread its older half is forgotten: an interval that began before has no states."""
    lines = ["5 sched_switch prev_tid=0 prev_state=0 next_tid=5 by=0", "6 sched_waking tid=9 by=0"]
    lines += ["10 app:begin tid=5 pid=5 id=1"]
    for n in range(33_000):
        lines.append(f"{20 + 2 * n} sched_switch prev_tid=5 prev_state=256 next_tid=0 by=5")
        lines.append(f"{21 + 2 * n} sched_switch prev_tid=0 prev_state=0 next_tid=5 by=0")
    lines += ["70000 app:step tid=5 pid=5", "70010 app:end tid=5 pid=5 id=1"]
    driver = run(MODEL, lines)
    check_laws(driver, len(lines))
    first, last = driver.tables()["stages"]
    assert first["on_cpu_ns"] is None
    assert (last["duration_ns"], last["on_cpu_ns"]) == (10, 10)


@pytest.mark.parametrize("preempted", [(MOST_STATE_PARTS - 1) // 2, MOST_STATE_PARTS])
def test_of_a_stage_with_many_changes_the_sums_are_told(preempted: int) -> None:
    lines = ["5 sched_switch prev_tid=0 prev_state=0 next_tid=5 by=0", "6 sched_waking tid=9 by=0"]
    lines += ["10 app:begin tid=5 pid=5 id=1"]
    for n in range(preempted):
        lines.append(f"{20 + 2 * n} sched_switch prev_tid=5 prev_state=256 next_tid=0 by=5")
        lines.append(f"{21 + 2 * n} sched_switch prev_tid=0 prev_state=0 next_tid=5 by=0")
    lines += ["900 app:step tid=5 pid=5", "910 app:end tid=5 pid=5 id=1"]
    driver = run(MODEL, lines)
    check_laws(driver, len(lines))
    assert [s["runnable_ns"] for s in driver.tables()["stages"]] == [preempted, 0]
    told = [p["seq"] for p in driver.tables()["states"]]
    assert told == ([0] * (2 * preempted + 1) if 2 * preempted < MOST_STATE_PARTS else []) + [1]


SCHEDULED = [
    "app-sync-qd4-nvme",
    "app-buf-fsync1-ext4",
    "app-sqpoll-qd16-nvme",
    "fio-libaio-qd16-hdd-bfq",
    "demo-kernel",
]


@pytest.mark.parametrize("name", SCHEDULED)
def test_the_parts_of_a_stage_sum_to_its_states(name: str, run_of: RunOf) -> None:
    run = run_of(name)
    parts: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for part in run.rows("states"):
        parts.setdefault((part["op_id"], part["seq"]), []).append(part)
    assert len(parts) > 0.99 * sum(s["on_cpu_ns"] is not None and s["duration_ns"] > 0 for s in run.rows("stages"))
    for s in run.rows("stages"):
        check_state_parts(s, parts.pop((s["op_id"], s["seq"]), []))
    assert not parts
    woken = {(p["op_id"], p["seq"]): p for p in run.rows("states") if p["woken_by_tid"] is not None}
    assert len(woken) > 100
    for s in run.rows("stages"):
        last = woken.get((s["op_id"], s["seq"]))
        if last and last["begin_ns"] > s["begin_ns"]:
            assert (last["woken_by_tid"], last["woken_by_comm"]) == (s["woken_by_tid"], s["woken_by_comm"])


def test_a_run_without_sched_events_has_no_states(run_of: RunOf) -> None:
    assert run_of("demo-qd4").rows("states") == run_of("demo-qd4").rows("waits") == []


@pytest.mark.parametrize("name", ["app-sync-qd4-nvme", "app-sync-qd4-nvme-6.12", "fio-psync-qd1-nvme"])
def test_the_states_sum_to_the_stage(name: str, run_of: RunOf) -> None:
    run = run_of(name)
    stages = run.rows("stages")
    covered = [s for s in stages if s["on_cpu_ns"] is not None]
    assert all(sum(s[k] for k in STATES) == s["duration_ns"] for s in covered)
    assert all(min(s[k] for k in STATES) >= 0 for s in covered)
    # All but the first intervals of threads that had not been switched yet
    completed = {op["op_id"] for op in run.rows("ops") if op["complete"] and op["end_tid"] is None}
    assert len(covered) >= 0.998 * sum(s["tid"] is not None or s["op_id"] not in completed for s in stages)
    assert all(s["states_tid"] == s["tid"] for s in covered if s["tid"] is not None)
    # A completion (D2C) lets the op's thread go on.
    waited = [s for s in covered if s["tid"] is None]
    begun_by = {op["op_id"]: op["end_tid"] for op in run.rows("ops") if op["class"] == "pwrite64"}
    assert waited
    assert all(s["states_tid"] == begun_by.get(s["op_id"], s["states_tid"]) for s in waited)
    # A direct write sleeps uninterruptibly until the interrupt of its completion.
    reaps = [s for s in covered if s["stage"] == "reap" and s["blocked_io_ns"]]
    assert reaps
    assert all(s["woken_by_tid"] is not None for s in reaps)


def test_discarded_events_end_what_is_known(run_of: RunOf) -> None:
    """No state is taken across an interval in which the kernel's events are missing."""
    run = run_of("discard-tiny-buffers")
    gaps = [(d["begin_ns"], d["end_ns"]) for d in run.rows("discarded") if d["stream"].startswith("kch")]
    assert gaps
    for s in run.rows("stages"):
        if s["on_cpu_ns"] is not None:
            assert not any(a < s["begin_ns"] + s["duration_ns"] and s["begin_ns"] < b for a, b in gaps)


def test_the_view_sums_up(trace: Callable[[str], Path], opline: Callable[..., Any], tmp_path: Path) -> None:
    path = trace("app-sync-qd4-nvme")
    model = Path(__file__).parents[1] / "models" / "lab.toml"
    table = json.loads(opline("stages", path, "--model", model, "--states", "--json").stdout)
    rows = {row["stage"]: row for row in table["stages"]}
    assert all(sum(row[k] for k in STATES) == row["known_ns"] for row in rows.values())
    assert sum(row["known_ns"] for name, row in rows.items() if name != "covered") == rows["covered"]["known_ns"]
    whole = json.loads(opline("stages", path, "--model", model, "--json").stdout)
    totals = {row["stage"]: row["total_ns"] for row in whole["stages"]}
    assert [
        n for n, row in rows.items() if n in totals and row["covered"] == 3000 and row["known_ns"] != totals[n]
    ] == []
    assert (rows["D2C"]["covered"], rows["reap"]["covered"], rows["reap"]["woken_by"]) == (3000, 3000, "swapper")
    assert rows["D2C"]["blocked_io_ns"] > 0.99 * rows["D2C"]["known_ns"]  # four workers write, each waits for its own
    listed = opline("ops", path, "--model", model, "--op", "1500").stdout
    assert "what its threads did:" in listed
    assert "kworker/1:1H:44" in listed.split("what its threads did:")[1]
    nothing = opline("stages", trace("demo-qd4"), "--model", "demo", "--states")
    assert nothing.returncode == 1
    assert "sched_switch" in nothing.stderr


def test_perfs_names_are_known_too() -> None:
    """perf's conversion to CTF: sched:sched_switch, pid for tid, the context as perf_tid."""
    core = Core(plan_of(MODEL))
    stream = core.add_stream("host", True, "perf", 0)
    fields = {
        "sched:sched_switch": ["prev_pid", "prev_state", "next_pid"],
        "sched:sched_waking": ["pid"],
        "app:begin": ["id"],
        "app:end": ["id"],
    }
    context = {"sched:sched_waking": ["perf_tid"], "app:begin": ["tid"], "app:end": ["tid"]}

    def event(at: int, name: str, **values: int) -> None:
        declared = [(f, False) for f in fields[name]] + [(f, True) for f in context.get(name, [])]
        number, wanted, _ = core.add_class(name, True, declared)
        core.event(at, number, stream, 0, tuple(values[declared[i][0]] for i in wanted))

    event(10, "sched:sched_switch", prev_pid=0, prev_state=0, next_pid=5)
    event(20, "app:begin", id=1, tid=5)
    event(25, "sched:sched_switch", prev_pid=5, prev_state=1, next_pid=0)
    event(32, "sched:sched_waking", pid=5, perf_tid=9)
    event(34, "sched:sched_switch", prev_pid=0, prev_state=0, next_pid=5)
    event(40, "app:end", id=1, tid=5)
    driver = Driver.__new__(Driver)
    driver.core, driver._strings, driver._rows = core, [], {}
    driver.finish()
    (stage,) = driver.tables()["stages"]
    assert [stage[k] for k in STATES] == [11, 2, 0, 7]
    assert stage["woken_by_tid"] == 9
