# SPDX-License-Identifier: MIT
"""What the BPF collector tells of threads: their states, who ran instead, locks, who woke them."""

from __future__ import annotations

from typing import Any

import pytest
from tests.lib.core_driver import Driver, plan_of
from tests.readers.test_sched import MODEL, STATES

from opline._core import Core

FROM_BPF = {
    "sched:off_cpu": ("tid", "off_at", "prev_state", "woken_at", "waker_tid"),
    "sched:ran_instead": ("tid", "ran_tid", "ran_ns", "ran_until"),
    "sched:lock_wait": ("tid", "off_at", "lock", "lock_flags", "holder_tid"),
    "sched:lost": ("until", "count"),
    "block:lost": ("count",),
}


class FromBpf:
    """A core that is given the collector's events, block channel or application's."""

    def __init__(self) -> None:
        self.core = Core(plan_of(MODEL))
        self.streams = {name: self.core.add_stream("host", False, name, 0) for name in ("block", "app")}

    def event(self, at: int, name: str, **values: int) -> None:
        mine = name in FROM_BPF
        fields = ("ktime", *FROM_BPF[name]) if mine else ("id",)
        declared = [(f, False) for f in fields] + ([] if mine else [("vtid", True)])
        values["ktime"] = at
        number, wanted, _ = self.core.add_class(name, False, declared)
        stream = self.streams["block" if mine else "app"]
        self.core.event(at, number, stream, 0, tuple(values[declared[i][0]] for i in wanted))

    def op(self, begin: int, end: int) -> None:
        self.event(begin, "app:begin", id=begin, vtid=5)
        self.ended = (end, begin)

    def end(self) -> None:
        self.event(self.ended[0], "app:end", id=self.ended[1], vtid=5)

    def tables(self) -> dict[str, list[dict[str, Any]]]:
        driver = Driver.__new__(Driver)
        driver.core, driver._strings, driver._rows = self.core, [], {}
        driver.finish()
        return driver.tables()

    def stages(self) -> list[dict[str, Any]]:
        return sorted(self.tables()["stages"], key=lambda s: int(s["begin_ns"]))


@pytest.mark.parametrize(
    ("state", "woken_at", "states"),
    [
        (1, 32, [11, 2, 0, 7]),
        (2, 32, [11, 2, 7, 0]),
        (1, 24, [11, 9, 0, 0]),  # woken while it was about to sleep
        (256, 0, [11, 9, 0, 0]),  # preempted
    ],
)
def test_states_come_from_bpf_too(state: int, woken_at: int, states: list[int]) -> None:
    """The collector's sched:off_cpu says in one event when a thread was taken off, woken, and back."""
    bpf = FromBpf()
    bpf.event(10, "sched:off_cpu", tid=5, off_at=2, prev_state=1, woken_at=4, waker_tid=8)
    bpf.op(20, 40)
    bpf.event(34, "sched:off_cpu", tid=5, off_at=25, prev_state=state, woken_at=woken_at, waker_tid=9)
    bpf.end()
    (stage,) = bpf.stages()
    assert [stage[k] for k in STATES] == states
    assert stage["woken_by_tid"] == (9 if woken_at else None)


@pytest.mark.parametrize(
    ("at", "ran_ns", "begin", "instead"),
    [
        (33, 8, 20, 8),  # of 9 ns
        (33, 5, 20, 8),
        (33, 2, 20, None),  # less than half: another thread may have run longer
        (33, 5, 24, 8),
        (24, 8, 20, None),  # of an earlier wait
        (33, 4, 30, 8),  # the op begins in the wait: of the last 4 ns
    ],
)
def test_bpf_says_who_ran_instead(at: int, ran_ns: int, begin: int, instead: int | None) -> None:
    bpf = FromBpf()
    bpf.event(10, "sched:off_cpu", tid=5, off_at=2, prev_state=1, woken_at=4, waker_tid=9)
    if begin < 25:
        bpf.op(begin, 40)
    bpf.event(at, "sched:ran_instead", tid=5, ran_tid=8, ran_ns=ran_ns, ran_until=0)  # as it was told first
    if begin > 25:
        bpf.op(begin, 40)
    bpf.event(34, "sched:off_cpu", tid=5, off_at=25, prev_state=256, woken_at=0, waker_tid=-1)
    bpf.end()
    (wait,) = bpf.tables()["waits"]
    assert (wait["kind"], wait["instead_tid"]) == ("cpu", instead)


@pytest.mark.parametrize(
    ("runs", "instead"),
    [
        ([(6, 25, 28), (7, 28, 30), (6, 30, 32), (7, 32, 34)], 6),  # two that took turns, for 5 and 4 of 9 ns
        ([(7, 25, 28), (6, 28, 30), (7, 30, 32)], 7),
        ([(6, 20, 27), (7, 29, 33)], 7),  # the first ran before, too
        ([(6, 26, 29), (7, 30, 32)], None),  # nobody is told of 4 ns
    ],
)
def test_who_ran_longest_of_several_is_named(runs: list[tuple[int, int, int]], instead: int | None) -> None:
    bpf = FromBpf()
    bpf.event(10, "sched:off_cpu", tid=5, off_at=2, prev_state=1, woken_at=4, waker_tid=9)
    bpf.op(20, 40)
    for tid, since, until in runs:
        bpf.event(34, "sched:ran_instead", tid=5, ran_tid=tid, ran_ns=until - since, ran_until=until)
    bpf.event(34, "sched:off_cpu", tid=5, off_at=25, prev_state=256, woken_at=0, waker_tid=-1)
    bpf.end()
    (wait,) = bpf.tables()["waits"]
    assert (wait["kind"], wait["instead_tid"]) == ("cpu", instead)


@pytest.mark.parametrize(
    ("flags", "holder", "kind", "told"),
    [
        (32, 8, "mutex", 8),
        (2, 0, "rwsem (to read)", None),
        (4, 8, "rwsem (to write)", 8),
        (2 | 16, 0, "per-CPU rwsem (to read)", None),
        (4 | 16, 0, "per-CPU rwsem (to write)", None),
        (8, 0, "rt_mutex", None),
        (0, 0, "other lock", None),
        (0x8000, 0, "futex", None),  # who woke the thread is known, but not whether that was an interrupt
    ],
)
def test_bpf_says_which_lock_a_thread_slept_for(flags: int, holder: int, kind: str, told: int | None) -> None:
    bpf, address = FromBpf(), 0xFFFF888000001000
    bpf.event(10, "sched:off_cpu", tid=5, off_at=2, prev_state=1, woken_at=4, waker_tid=9)
    bpf.op(20, 40)
    bpf.event(33, "sched:lock_wait", tid=5, off_at=25, lock=address, lock_flags=flags, holder_tid=holder)
    bpf.event(34, "sched:off_cpu", tid=5, off_at=25, prev_state=2, woken_at=34, waker_tid=9)
    bpf.end()
    (wait,) = bpf.tables()["waits"]
    assert (wait["lock_kind"], wait["lock"], wait["holder_tid"]) == (kind, address, told)


@pytest.mark.parametrize("how", ["states given up", "ring full", "discarded", "discarded elsewhere"])
def test_nothing_is_said_across_what_the_collector_lost(how: str) -> None:
    bpf = FromBpf()
    bpf.event(10, "sched:off_cpu", tid=5, off_at=2, prev_state=1, woken_at=4, waker_tid=8)
    bpf.op(20, 60)
    if how == "states given up":
        bpf.event(30, "sched:lost", until=45, count=3)
    elif how == "ring full":
        bpf.event(30, "block:lost", count=3)
    else:
        bpf.core.discarded(bpf.streams["block" if how == "discarded" else "app"], 26, 30, 3, False)
    bpf.event(42, "sched:off_cpu", tid=5, off_at=38, prev_state=1, woken_at=40, waker_tid=9)
    bpf.end()
    (stage,) = bpf.stages()
    assert (stage["on_cpu_ns"] is not None) == (how == "discarded elsewhere")


CONTEXT = {"waker_irq": 0, "waker_cpu": 0, "waker_on_at": 0, "waker_off_at": 0, "waker_woken_at": 0} | {
    "waker_prev_state": 0, "waker_waker_tid": -1, "waker_waker_irq": 65535, "stack": -1, "waker_stack": -1
}  # fmt: skip


def told_by_bpf(monkeypatch: pytest.MonkeyPatch, *before: dict[str, int], **told: int) -> list[tuple[str, int, int]]:
    """The parts (kind, begin, length) of a wait of thread 5 from 25 to 50, which thread 9 ended.

    ``told``: fields of its record; ``before``: waits of other threads.
    """
    monkeypatch.setitem(FROM_BPF, "sched:off_cpu", (*FROM_BPF["sched:off_cpu"], *CONTEXT))
    bpf = FromBpf()
    bpf.event(10, "sched:off_cpu", tid=5, off_at=2, prev_state=1, woken_at=4, waker_tid=8, **CONTEXT)
    bpf.op(20, 60)
    for wait in before:
        bpf.event(wait.pop("at"), "sched:off_cpu", **CONTEXT | wait)
    bpf.event(50, "sched:off_cpu", tid=5, off_at=25, prev_state=1, woken_at=50, waker_tid=9, **CONTEXT | told)
    bpf.end()
    waits = bpf.tables()["waits"]
    return [(w["kind"], w["begin_ns"], w["duration_ns"]) for w in sorted(waits, key=lambda w: int(w["begin_ns"]))]


IRQS = ((0, "thread"), (65535, "thread"), (1, "interrupt"), (2, "timer"), (32, "timer"), (128, "network"))


@pytest.mark.parametrize(("irq", "kind"), [*IRQS, (258, "interrupt")])
def test_the_context_of_a_wake_up_is_told(irq: int, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bits of waker_irq: a hard interrupt, a timer's function; softirqs TIMER, NET_RX, BLOCK."""
    assert told_by_bpf(monkeypatch, waker_irq=irq) == [(kind, 25, 25)]


def test_what_the_waker_waited_for_is_in_the_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thread 9 is not followed: its last wait, which a timer ended, is all that is known of it."""
    waited = {"waker_off_at": 30, "waker_woken_at": 40, "waker_on_at": 44, "waker_prev_state": 1}
    found = told_by_bpf(monkeypatch, **waited, waker_waker_tid=0, waker_waker_irq=2)
    assert found == [("thread", 25, 5), ("timer", 30, 10), ("cpu", 40, 4), ("work", 44, 6)]


def test_a_followed_waker_has_records_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    first = {"at": 24, "tid": 9, "off_at": 21, "prev_state": 1, "woken_at": 23, "waker_tid": 0, "waker_irq": 2}
    second = {"at": 44, "tid": 9, "off_at": 30, "prev_state": 1, "woken_at": 40, "waker_tid": 0, "waker_irq": 2}
    found = told_by_bpf(monkeypatch, first, second, waker_off_at=30, waker_woken_at=40, waker_on_at=44)
    assert found == [("work", 25, 5), ("timer", 30, 10), ("cpu", 40, 4), ("work", 44, 6)]
