# SPDX-License-Identifier: MIT
"""BlueStore as Ceph 19's tracepoints show it, simulated.

Transactions of one sequencer finish their I/O in order, one commit is for all that wait. Threads and their events are
those of a recorded Ceph 19.2.3 (tests/traces, ctf-blue-v2-qd1); what happens only with several transactions in flight
follows Ceph's source.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from tests.ceph.lib.machine import Machine, Steps, next_of

Op = TypeVar("Op")


@dataclass
class Kind:
    """What is unusual about one transaction."""

    foreign: bool = False  # no client's: a background transaction
    traced: bool = True  # by BlueStore's tracepoints: its throttle passes some over
    aios: int = 1
    partial: bool = False  # io_submit takes one of several, and is called again
    deferred: bool = False  # written after the commit; a later commit forgets it


@dataclass(eq=False)
class Transaction(Generic[Op]):
    """One transaction of one OSD, as the simulation knows it. Times in ns."""

    op: Op
    oid: str
    kind: Kind
    store: Store[Op] | None = None
    sequencer: int = 0
    number: int = 0
    stamp_ns: int = 0  # when its state began
    states: dict[int, int] = field(default_factory=dict)  # state → how long
    batch: int = -1
    left: int = 0  # aios on their way
    aio_done: bool = False


class Store(Generic[Op]):
    """The BlueStore of the OSD with process ``pid``; ``committed`` is told of each transaction that is on the disk."""

    def __init__(self, machine: Machine, pid: int, iocbs: int, committed: Callable[[Transaction[Op]], None]) -> None:
        self.machine, self.pid, self.committed = machine, pid, committed
        self.some, self.wake = machine.some, machine.wake
        self.batches: list[int] = []  # members
        self.take_together = 1  # completions
        self.lba = 1000
        self.logged = True
        self.iocbs = [0x9000 + 0x10 * i for i in range(iocbs)]
        self.sequencers: list[deque[Transaction[Op]]] = [deque() for _ in range(4)]
        self.numbers = [100, 200, 300, 400]
        self.aio_events: deque[tuple[int, Transaction[Op] | None]] = deque()
        self.kv_queue: list[Transaction[Op]] = []
        self.stable: list[Transaction[Op]] = []  # deferred writes that are on the disk
        self.finalize: deque[Transaction[Op]] = deque()

    def start(self) -> None:
        for steps in (self.aio_thread(), self.kv_thread(), self.finalizer()):
            self.machine.start(steps)

    def event(self, name: str, tid: int, comm: str, fields: str) -> None:
        self.machine.event(name, self.pid, self.pid * 1000 + tid, comm, fields)

    def told(self, t: Transaction[Op], name: str, tid: int, comm: str, fields: str) -> None:
        if t.kind.traced:
            txc = f"sequencer_id={t.sequencer} :tid={t.number}"
            self.event(f"bluestore:transaction_{name}", tid, comm, f"{txc} {fields}")

    def state(self, t: Transaction[Op], number: int, tid: int, comm: str) -> None:
        """A state ends: Ceph takes the time, then the tracepoint is passed."""
        now = self.machine.now
        t.states[number] = now - t.stamp_ns
        t.stamp_ns = now
        self.told(t, "state_duration", tid, comm, f"state={number} elapsed={t.states[number] / 1e9:.9f}")

    def queue(self, t: Transaction[Op], tid: int, comm: str) -> Steps:
        """On a worker's thread: prepare it, submit its data."""
        t.store = self
        t.sequencer = int(t.oid[3:]) % 4
        t.number = self.numbers[t.sequencer] = self.numbers[t.sequencer] + 1
        self.sequencers[t.sequencer].append(t)
        t.stamp_ns = self.machine.now
        yield self.some(30_000)
        self.told(t, "initial_state", tid, comm, "throttle_time=0.000001")
        self.state(t, 19, tid, comm)
        if t.kind.aios == 0:
            self.state(t, 20, tid, comm)
            self.io_done(t, tid, comm)
            return
        t.left = t.kind.aios
        iocbs = [self.iocbs.pop() for _ in range(t.kind.aios)]
        while iocbs:
            taken = 1 if t.kind.partial else len(iocbs)
            yield from self.submit(t, iocbs, taken, tid, comm)
            iocbs = iocbs[taken:]

    def submit(self, t: Transaction[Op] | None, iocbs: list[int], taken: int, tid: int, comm: str) -> Steps:
        """One io_submit."""
        for i, iocb in enumerate(iocbs):
            self.lba += 1
            fields = f"iocb={iocb} fd=34 op=8 off={self.lba * 4096} len=4096 i={i} nr={len(iocbs)}"
            self.event("cephshim:aio_submit", tid, comm, fields)
        for iocb in iocbs[:taken]:
            self.machine.start(self.device(iocb, t), self.some(80_000))
        yield self.some(10_000)
        self.event("cephshim:aio_submit_exit", tid, comm, f"ret={taken}")

    def device(self, iocb: int, t: Transaction[Op] | None) -> Steps:
        self.aio_events.append((iocb, t))
        self.wake(f"aio{self.pid}")
        return
        yield

    def aio_thread(self) -> Steps:
        tid, comm = 110, "bstore_aio"
        while True:
            if not self.aio_events:
                yield f"aio{self.pid}"
                continue
            taken = [self.aio_events.popleft() for _ in range(min(len(self.aio_events), self.take_together))]
            yield self.some(1_000)
            for iocb, _ in taken:
                self.event("cephshim:aio_complete", tid, comm, f"iocb={iocb} res=4096")
                self.iocbs.append(iocb)
            for _, t in taken:
                if t is None:
                    self.logged = True
                    self.wake(f"kv_aio{self.pid}")
                    continue
                t.left -= 1
                if t.left < 0:
                    self.stable.append(t)
                    self.wake(f"kv{self.pid}")
                elif t.left == 0:
                    yield self.some(500)
                    self.state(t, 20, tid, comm)
                    self.io_done(t, tid, comm)

    def io_done(self, t: Transaction[Op], tid: int, comm: str) -> None:
        """In the sequencer's order."""
        t.aio_done = True
        queue = self.sequencers[t.sequencer]
        while queue and queue[0].aio_done:
            first = queue.popleft()
            self.state(first, 21, tid, comm)
            self.kv_queue.append(first)
            self.wake(f"kv{self.pid}")

    def kv_thread(self) -> Steps:
        tid, comm = 120, "bstore_kv_sync"
        while True:
            if not self.kv_queue and not self.stable:
                yield f"kv{self.pid}"
                continue
            members, self.kv_queue, self.stable = self.kv_queue, [], []
            yield from self.flush(34)
            for t in members:
                self.state(t, 22, tid, comm)
                t.batch = len(self.batches)
                yield self.some(8_000)
                self.told(t, "kv_submit_latency", tid, comm, "sync=0 elapsed=0.000008")
            self.event("cephshim:sysio_pwrite_enter", tid, comm, "fd=47 off=0 len=4096")
            yield self.some(5_000)
            self.event("cephshim:sysio_pwrite_exit", tid, comm, "fd=47 ret=4096")
            self.event("cephshim:sysio_sfr_enter", tid, comm, "fd=47 off=0 len=4096")
            yield self.some(50_000)
            self.event("cephshim:sysio_sfr_exit", tid, comm, "fd=47 ret=0")
            yield from self.flush(46)
            if self.machine.random.random() < 0.5:  # BlueFS has something to log
                self.logged = False
                yield from self.submit(None, [self.iocbs.pop()], 1, tid, comm)
                while not self.logged:
                    yield f"kv_aio{self.pid}"
                yield from self.flush(46)
            for t in members:
                self.told(t, "kv_sync_latency", tid, comm, f"kv_batch_size={len(members)} elapsed=0.0001")
            if members:
                self.batches.append(len(members))
            self.finalize.extend(members)
            self.wake(f"final{self.pid}")

    def flush(self, fd: int) -> Steps:
        self.event("cephshim:sysio_fdatasync_enter", 120, "bstore_kv_sync", f"fd={fd}")
        yield self.some(60_000)
        self.event("cephshim:sysio_fdatasync_exit", 120, "bstore_kv_sync", f"fd={fd} ret=0")

    def finalizer(self) -> Steps:
        """After a commit the writes that it has deferred are submitted."""
        tid, comm = 130, "bstore_kv_final"
        while True:
            t = yield from next_of(self.finalize, f"final{self.pid}")
            yield self.some(2_000)
            self.told(t, "commit_latency", tid, comm, "elapsed=0.001")
            self.committed(t)
            for number in (23, 24, 25, 26):
                self.state(t, number, tid, comm)
            if t.kind.deferred:
                yield from self.submit(t, [self.iocbs.pop()], 1, tid, comm)
