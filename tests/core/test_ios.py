# SPDX-License-Identifier: MIT
"""I/Os that outlive their call, against a simulation of the queue that the kernel keeps for them."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st
from tests.lib.core_driver import Driver, check_laws, parse_line, plan_of, run

MODEL = """
[keys]
aio = "ctx_id"
[points.io_submit]
event = "syscall_entry_io_submit"
role = "begin"
thread = "switch"
class = "io_submit"
ios = { submit = "aio", count = "nr" }
[points]
submitted = { event = "syscall_exit_io_submit", thread = "leave", aside = true, ios = { submitted = "ret" } }
io_getevents = { event = "syscall_entry_io_getevents", ios = { wait = "aio" } }
"io_getevents returned" = { event = "syscall_exit_io_getevents", ios = { reaped = "ret" } }
"""
NAMED = MODEL.replace('count = "nr"', 'count = "nr", names = "iocbs"').replace(
    'reaped = "ret"', 'reaped = "ret", names = "iocbs"'
)


@dataclass
class Kernel:
    """One context per process; what each I/O went through, by its sector. Named: calls say which I/Os they are about,
    and the last one done is taken first; a name is used again once its I/O was taken.
    """

    named: bool = False
    now: int = 100
    lines: list[str] = field(default_factory=list)
    sector: int = 0
    in_flight: list[tuple[int, int]] = field(default_factory=list)  # (pid, sector)
    done: dict[int, deque[int]] = field(default_factory=lambda: defaultdict(deque))
    begun: dict[int, int] = field(default_factory=dict)
    ended: dict[int, int] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)  # of sectors that nobody has taken

    def say(self, text: str) -> int:
        self.now += 1
        self.lines.append(f"{self.now} {text}")
        return self.now

    def said(self, sectors: list[int]) -> str:
        return " iocbs=" + ",".join(self.names[s] for s in sectors) if self.named else ""

    def submit(self, pid: int, count: int) -> None:
        sectors = [self.sector + 16 * (k + 1) for k in range(count)]
        for sector in sectors if self.named else ():
            used = set(self.names.values())
            self.names[sector] = next(name for n in range(999) if (name := f"ab{n:03}f0") not in used)
        begin = self.say(f"syscall_entry_io_submit tid={pid} pid={pid} ctx_id=0x7f00 nr={count}" + self.said(sectors))
        for self.sector in sectors:
            self.begun[self.sector] = begin
            self.in_flight.append((pid, self.sector))
            extent = f"tid={pid} comm=w dev=8388608 sector={self.sector} nr_sector=8 rwbs=33"
            for step in ("bio_queue", "getrq"):
                self.say(f"block_{step} {extent}")
            self.say(f"block_rq_issue {extent} bytes=4096")
        self.say(f"syscall_exit_io_submit tid={pid} pid={pid} ret={count}")

    def complete(self, which: int) -> None:
        if self.in_flight:
            pid, sector = self.in_flight.pop(which % len(self.in_flight))
            self.say(f"block_rq_complete dev=8388608 sector={sector} nr_sector=8 error=0 rwbs=33")
            self.done[pid].append(sector)

    def reap(self, pid: int, most: int) -> None:
        tid = pid + 1000
        self.say(f"syscall_entry_io_getevents tid={tid} pid={pid} ctx_id=0x7f00 min_nr=0 nr={most}")
        queue = self.done[pid]
        taken = [queue.pop() if self.named else queue.popleft() for _ in range(min(most, len(queue)))]
        at = self.say(f"syscall_exit_io_getevents tid={tid} pid={pid} ret={len(taken)}" + self.said(taken))
        for sector in taken:
            self.names.pop(sector, None)
        self.ended.update(dict.fromkeys(taken, at))


PIDS = st.sampled_from([10, 20])
ACTIONS = st.one_of(
    st.tuples(st.just("submit"), PIDS, st.integers(1, 4)),
    st.tuples(st.just("complete"), st.integers(0, 9), st.just(0)),
    st.tuples(st.just("reap"), PIDS, st.integers(0, 3)),
)


def played(actions: list[tuple[str, int, int]], named: bool = False) -> Kernel:
    kernel = Kernel(named)
    for name, a, b in actions:
        if name == "submit":
            kernel.submit(a, b)
        elif name == "complete":
            kernel.complete(a)
        else:
            kernel.reap(a, b)
    return kernel


@given(st.lists(ACTIONS, max_size=30), st.booleans())
def test_an_op_per_io_from_its_call_to_the_call_that_took_it(actions: list[tuple[str, int, int]], named: bool) -> None:
    kernel = played(actions, named)
    driver = run(NAMED if named else MODEL, kernel.lines)
    check_laws(driver, len(kernel.lines))
    tables = driver.tables()
    sectors = {b["op_id"]: b["sector"] for b in tables.get("bios", [])}
    ops = {sectors[op["op_id"]]: op for op in tables.get("ops", [])}
    assert {s: op["begin_ns"] for s, op in ops.items()} == kernel.begun
    last = {t["op_id"]: t["point"] for t in tables.get("transitions", []) if not t["late"]}
    reaped = {s: op["end_ns"] for s, op in ops.items() if last[op["op_id"]] == "reaped"}
    assert reaped == kernel.ended
    # The others were done and nobody took them, or never completed.
    assert {s for s, op in ops.items() if not op["complete"]} == {s for _, s in kernel.in_flight}


@given(st.lists(ACTIONS, max_size=12), st.integers(0, 200), st.booleans())
def test_a_lost_event_breaks_no_law(actions: list[tuple[str, int, int]], lost: int, named: bool) -> None:
    lines = played(actions, named).lines
    if lines:
        del lines[lost % len(lines)]
    check_laws(run(NAMED if named else MODEL, lines), len(lines))


def test_ios_that_nobody_takes_do_not_stay_in_memory() -> None:
    """Of a trace that shows no reap the ops are written while it is read, ended by their completion."""
    kernel = Kernel()
    driver = Driver(plan_of(MODEL))
    for _ in range(6000):
        kernel.submit(10, 1)
        kernel.complete(0)
        kernel.now += 100_000  # 0.6 s in all: ops settle 100 ms after their end
    for text in kernel.lines:
        driver.push(parse_line(text))
    driver.drain()
    early = driver.tables()["ops"]
    assert len(early) > 4096
    assert all(op["complete"] for op in early)
    driver.finish()
    assert len(driver.tables()["ops"]) == 6000
    assert driver.summary()["losses"]["reaps_unseen"] == 6000


RING = """
[keys]
ring = "fd"
[points.enter]
event = "enter"
role = "begin"
thread = "switch"
ios = { submit = "ring", count = "n", ring = true }
[points]
left = { event = "left", thread = "leave", aside = true, ios = { submitted = "ret", reaped = "*" } }
"""
TOLD = """
[keys]
request = "req"
[points]
request = { event = "request", role = "begin", key = "request", class = "read", ios = { told = "begin" } }
done = { event = "done", key = "request", ios = { told = "end" } }
"""


def test_ios_of_which_nothing_says_when_they_end_do_not_stay_in_memory() -> None:
    """A ring whose I/Os other threads execute: each is written while the trace is read, without a latency."""
    driver = Driver(plan_of(RING))
    for n in range(3000):
        driver.push(parse_line(f"{n * 200_000 + 1} enter tid=1 pid=1 fd=3 n=1"))
        driver.push(parse_line(f"{n * 200_000 + 2} left tid=1 pid=1 ret=1"))
    driver.drain()
    early = driver.tables()["ops"]
    assert len(early) > 1000
    assert {(op["complete"], op["latency_ns"], op["end_ns"], op["reason"]) for op in early} == {
        (False, None, None, "end_untold")
    }
    driver.finish()
    assert driver.summary()["losses"]["ends_untold"] == len(driver.tables()["ops"]) == 3000


def test_what_the_polling_thread_submits_has_the_name_of_the_program_that_made_the_ring() -> None:
    """Its own name stays where no program is known, and a thread of the program keeps its name."""
    lines = ["100 sched:process_exec :pid=10 :comm=fio"]
    for n, (tid, pid, comm) in enumerate([(12, 10, "iou-sqp-10"), (13, 10, "worker"), (99, 98, "iou-sqp-98")]):
        lines += [f"{200 + n} request tid={tid} pid={pid} comm={comm} req={n}", f"{300 + n} done pid={pid} req={n}"]
    ops = run(TOLD, sorted(lines, key=lambda text: int(text.split()[0]))).tables()["ops"]
    assert [op["comm"] for op in ops] == ["fio", "worker", "iou-sqp-98"]
