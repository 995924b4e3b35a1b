# SPDX-License-Identifier: MIT
"""The simulated Ceph on a bad day: what Ceph 19's BlueStore and OSD do besides what rados bench asks them for.

Work in the placement groups' queues that is no client's, with transactions of its own; transactions that the throttle
does not let be traced (should_trace() in BlueStore.h: two within two microseconds); writes of several aios in one
io_submit, of which the kernel takes some; writes without an aio; deferred writes, which a later commit cleans up after,
with members or without any; completions that the aio thread takes together.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from tests.ceph_simulation import OSD, Ceph, Steps, Truth


@dataclass
class Kind:
    """What is unusual about one operation."""

    foreign: bool = False  # no client's: a background transaction
    traced: bool = True
    aios: int = 1
    partial: bool = False  # io_submit takes one of several, and is called again
    deferred: bool = False
    left: int = 0  # aios on their way


class RoughCeph(Ceph):
    """As ``Ceph``; ``kind(op)`` says what each one was."""

    def __init__(self, ops: int, depth: int, seed: int, *, objects: int = 0) -> None:
        super().__init__(ops, depth, seed, objects=objects)
        self.kinds: dict[int, Kind] = {}  # by id() of the Truth
        self.foreigners: list[Truth] = []
        self.deferred: deque[Truth] = deque()
        self.lba = 1000
        self.iocbs += [0x10000 + 0x10 * i for i in range(8 * depth)]

    def kind(self, op: Truth) -> Kind:
        if id(op) not in self.kinds:
            r = self.random.random
            aios = self.random.choice((0, 1, 1, 1, 2, 3))
            self.kinds[id(op)] = Kind(False, r() > 0.05, aios, r() < 0.3, aios == 0 and r() < 0.5)
        return self.kinds[id(op)]

    def is_traced(self, op: Truth) -> bool:
        return self.kind(op).traced

    def reqid(self, op: Truth) -> str:
        return "type=0 num=0 :tid=0 inc=0" if self.kind(op).foreign else super().reqid(op)

    def worker(self, shard: int) -> Steps:
        tid, comm = 100 + shard, "tp_osd_tp"
        while True:
            if not self.shards[shard]:
                yield self.signals[f"shard{shard}"]
                continue
            what, op = self.shards[shard].popleft()
            if what == "commit":
                if self.kind(op).deferred:
                    self.deferred.append(op)
                if self.kind(op).foreign:
                    continue
                yield self.some(2_000)
                self.to_reply.append(op)
                self.wake("reply")
                yield self.some(4_000)
                self.flag(op, tid, comm, "commit_sent")
                continue
            if self.random.random() < 0.05:
                other = Truth(f"obj{self.random.randrange(9)}")
                self.foreigners.append(other)
                self.kinds[id(other)] = Kind(True, aios=self.random.randrange(2))
                yield from self.process(other, tid, comm)
            yield from self.process(op, tid, comm)

    def process(self, op: Truth, tid: int, comm: str) -> Steps:
        kind = self.kind(op)
        self.event("osd:opwq_process_start", OSD, tid, comm, self.reqid(op))
        if not kind.foreign:
            self.flag(op, tid, comm, "reached_pg")
            yield self.some(20_000)
            self.flag(op, tid, comm, "started")
            self.event("osd:prepare_tx_enter", OSD, tid, comm, self.reqid(op))
            self.event("osd:do_osd_op_pre", OSD, tid, comm, f"oid={op.oid} opname=write")
            self.event("osd:do_osd_op_pre_write", OSD, tid, comm, f"oid={op.oid} offset=0 length=4096")
            self.event("osd:do_osd_op_post", OSD, tid, comm, f"oid={op.oid} opname=write")
            self.event("osd:prepare_tx_exit", OSD, tid, comm, self.reqid(op))
        op.sequencer = int(op.oid[3:]) % 4
        op.txc = self.sequence[op.sequencer] = self.sequence[op.sequencer] + 1
        self.sequencers[op.sequencer].append(op)
        op.stamp_ns = self.now
        yield self.some(30_000)
        self.store(op, "initial_state", tid, comm, "throttle_time=0.000001")
        self.state(op, 19, tid, comm)
        if kind.aios == 0:
            self.state(op, 20, tid, comm)
            self.io_done(op, tid, comm)
        else:
            yield from self.submit_aios(op, tid, comm)
        self.event("osd:opwq_process_finish", OSD, tid, comm, self.reqid(op))

    def submit_aios(self, op: Truth, tid: int, comm: str) -> Steps:
        kind = self.kind(op)
        kind.left = kind.aios
        iocbs = [self.iocbs.pop() for _ in range(kind.aios)]
        while iocbs:
            for i, iocb in enumerate(iocbs):
                self.lba += 1
                fields = f"iocb={iocb} fd=34 op=8 off={self.lba * 4096} len=4096 i={i} nr={len(iocbs)}"
                self.event("cephshim:aio_submit", OSD, tid, comm, fields)
            taken = 1 if kind.partial else len(iocbs)
            for iocb in iocbs[:taken]:
                self.start(self.device(iocb, op, "aio"), self.some(80_000))
            yield self.some(10_000)
            self.event("cephshim:aio_submit_exit", OSD, tid, comm, f"ret={taken}")
            iocbs = iocbs[taken:]

    def aio_thread(self) -> Steps:
        while True:
            if not self.aio_events:
                yield self.signals["aio"]
                continue
            taken = [self.aio_events.popleft() for _ in range(min(len(self.aio_events), 16))]
            yield self.some(1_000)
            for iocb, _ in taken:
                self.event("cephshim:aio_complete", OSD, 110, "bstore_aio", f"iocb={iocb} res=4096")
                self.iocbs.append(iocb)
            for _, op in taken:
                if op is None:
                    self.wake("kv_aio")
                    continue
                kind = self.kind(op)
                kind.left -= 1
                if kind.left < 0:  # a deferred write is on the disk: a later commit forgets it
                    self.stable.append(op)
                    self.wake("kv")
                elif kind.left == 0:
                    yield self.some(500)
                    self.state(op, 20, 110, "bstore_aio")
                    self.io_done(op, 110, "bstore_aio")

    def finalizer(self) -> Steps:
        """After a commit the writes that it has deferred are submitted."""
        for steps in super().finalizer():
            yield steps
            while self.deferred:
                iocb = self.iocbs.pop()
                fields = f"iocb={iocb} fd=34 op=8 off=0 len=4096 i=0 nr=1"
                self.event("cephshim:aio_submit", OSD, 130, "bstore_kv_final", fields)
                self.start(self.device(iocb, self.deferred.popleft(), "aio"), self.some(80_000))
