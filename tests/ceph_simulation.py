# SPDX-License-Identifier: MIT
"""Ceph as its tracepoints show it, simulated: a client with several ops in flight, messengers, an OSD, BlueStore.

Threads, their order of events and the events' fields are those of a recorded Ceph 19.2.3 (tests/traces,
ctf-blue-v2-qd1); what happens only with several operations in flight follows Ceph's source: one sendmsg for several
messages, one recv for several frames, several operations one after the other on a thread, transactions of one sequencer
that finish their I/O in order, one commit for all transactions that wait, callbacks on two threads. Gives the events
and, from the simulation itself, what a correlator should say of them.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Generator
from dataclasses import dataclass, field

CLIENT, OSD = 500, 900  # processes
Steps = Generator["int | Signal", None, None]


class Signal:
    """What a thread sleeps on until somebody calls ``wake``."""

    def __init__(self) -> None:
        self.sleeping: list[Steps] = []


@dataclass
class Truth:
    """One operation, as the simulation knows it. Times in ns."""

    oid: str
    tid: int = 0  # the message's number
    submit_ns: int = 0
    reap_ns: int = 0
    completion: int = 0
    sequencer: int = 0
    txc: int = 0
    stamp_ns: int = 0  # when its transaction's state began
    states: dict[int, int] = field(default_factory=dict)  # state → how long
    batch: int = -1
    aio_done: bool = False
    done: bool = False
    lba: int = 0
    queued_ns: int = 0  # its transaction waits for a commit
    synced_ns: int = 0


class Ceph:
    """``run()`` gives the lines of events, sorted; ``ops`` and ``batches`` (sizes) are the truth."""

    def __init__(self, ops: int, depth: int, seed: int, *, objects: int = 0, tracepoints: bool = True) -> None:
        self.random = random.Random(seed)
        self.depth, self.total, self.objects, self.tracepoints = depth, ops, objects, tracepoints
        self.now = 1_000_000
        self.lines: list[tuple[int, int, str]] = []
        self.ops: list[Truth] = []
        self.batches: list[int] = []
        self.agenda: list[tuple[int, int, Steps]] = []
        self.count = 0
        self.completions = [0x5000 + 0x40 * i for i in range(depth)]
        self.iocbs = [0x9000 + 0x10 * i for i in range(depth + 4)]
        self.to_send: deque[Truth] = deque()
        self.to_reply: deque[Truth] = deque()
        self.wire: deque[Truth] = deque()
        self.wire_back: deque[Truth] = deque()
        self.shards: list[deque[tuple[str, Truth]]] = [deque() for _ in range(3)]
        self.sequencers: list[deque[Truth]] = [deque() for _ in range(4)]
        self.sequence = [100, 200, 300, 400]
        self.aio_events: deque[tuple[int, Truth | None]] = deque()
        self.kv_queue: list[Truth] = []
        self.stable: list[Truth] = []  # deferred writes that are on the disk: the next commit forgets them
        self.finalize: deque[Truth] = deque()
        self.callbacks: deque[Truth] = deque()
        names = ("send", "reply", "wire", "back", "aio", "kv", "final", "callback", "client", "kv_aio")
        self.signals = {name: Signal() for name in names} | {f"shard{i}": Signal() for i in range(3)}

    # -- the machine ---------------------------------------------------------------------------------------------------

    def start(self, steps: Steps, after_ns: int = 0) -> None:
        self.count += 1
        heapq.heappush(self.agenda, (self.now + after_ns, self.count, steps))

    def wake(self, name: str) -> None:
        signal = self.signals[name]
        for steps in signal.sleeping:
            self.start(steps, self.random.randint(2_000, 20_000))
        signal.sleeping = []

    def run(self) -> list[str]:
        self.start(self.client())
        for steps in (self.client_messenger(), self.client_receiver(), self.osd_messenger(), self.osd_sender()):
            self.start(steps)
        for steps in (self.aio_thread(), self.kv_thread(), self.finalizer(), self.callback(70), self.callback(71)):
            self.start(steps)
        for shard in range(3):
            self.start(self.worker(shard))
        while self.agenda:
            due, _, steps = heapq.heappop(self.agenda)
            self.now = max(self.now, due)
            try:
                wanted = next(steps)
            except StopIteration:
                continue
            if isinstance(wanted, Signal):
                wanted.sleeping.append(steps)
            else:
                self.start(steps, wanted)
        return [text for _, _, text in sorted(self.lines)]

    def event(self, name: str, pid: int, tid: int, comm: str, fields: str) -> None:
        if not self.tracepoints and not name.startswith("cephshim"):
            return
        self.now += 300  # no two events at one time
        text = f"{self.now} {name} tid={tid} pid={pid} comm={comm} {fields}"
        self.lines.append((self.now, len(self.lines), text))

    def some(self, mean_ns: int) -> int:
        return max(500, int(self.random.expovariate(1 / mean_ns)))

    # -- client --------------------------------------------------------------------------------------------------------

    def submit(self) -> Truth:
        n = len(self.ops)
        op = Truth(f"obj{n % self.objects if self.objects else n}", tid=n + 1)
        op.completion = self.completions.pop()
        self.ops.append(op)
        self.event(
            "cephshim:radoscxx_aio_operate_enter", CLIENT, 50, "rados", f"oid={op.oid} completion={op.completion}"
        )
        op.submit_ns = self.now
        self.to_send.append(op)
        self.wake("send")
        return op

    def client(self) -> Steps:
        self.event("cephshim:msgr_connect", CLIENT, 60, "msgr-worker-2", "fd=28 dir=0 lport=59396 rport=6800")
        self.event("cephshim:msgr_connect", OSD, 90, "msgr-worker-2", "fd=69 dir=0 lport=6800 rport=59396")
        flying: list[Truth] = []
        while flying or len(self.ops) < self.total:
            while len(flying) < self.depth and len(self.ops) < self.total:
                op = self.submit()
                flying.append(op)
                yield self.some(4_000)
                done = f"completion={op.completion} ret=0"
                self.event("cephshim:radoscxx_aio_operate_exit", CLIENT, 50, "rados", done)
            ready = next((op for op in flying if op.done), None)
            if ready is None:
                yield self.signals["client"]
                continue
            flying.remove(ready)
            key = f"completion={ready.completion}"
            self.event("cephshim:radoscxx_wait_enter", CLIENT, 50, "rados", key)
            self.event("cephshim:radoscxx_wait_exit", CLIENT, 50, "rados", key)
            self.event("cephshim:radoscxx_get_return_value", CLIENT, 50, "rados", key + " ret=0")
            ready.reap_ns = self.now
            self.completions.append(ready.completion)
            yield self.some(3_000)

    def frames(self, ops: list[Truth], kind: int, pid: int, tid: int, fd: int) -> Steps:
        """One sendmsg; what it sent is known when it has returned, and the other side may be quicker."""
        fields = f"fd={fd} bytes=1 mtype=0 :tid=0 seq=0 nmsg=0"
        self.event("cephshim:msgr_send_enter", pid, tid, "msgr-worker-2", fields)
        there, name = (self.wire, "wire") if kind == 42 else (self.wire_back, "back")
        there.extend(ops)
        self.wake(name)
        yield self.some(20_000)
        for op in ops:
            for whole in (0, 1):
                fields = f"fd={fd} mtype={kind} seq={op.tid} flen=4471 whole={whole} :tid={op.tid}"
                self.event("cephshim:msgr_tx_msg", pid, tid, "msgr-worker-2", fields)
        self.event("cephshim:msgr_send_exit", pid, tid, "msgr-worker-2", f"fd={fd} ret=1")

    def client_messenger(self) -> Steps:
        while True:
            if not self.to_send:
                yield self.signals["send"]
                continue
            ops = [self.to_send.popleft() for _ in range(min(len(self.to_send), 3))]
            yield from self.frames(ops, 42, CLIENT, 60, 28)

    def client_receiver(self) -> Steps:
        while True:
            if not self.wire_back:
                yield self.signals["back"]
                continue
            for op in [self.wire_back.popleft() for _ in range(len(self.wire_back))]:
                fields = f"fd=28 mtype=43 seq={op.tid} flen=307 whole=1 :tid={op.tid}"
                self.event("cephshim:msgr_rx_msg", CLIENT, 61, "msgr-worker-2", fields)
                self.callbacks.append(op)
            self.wake("callback")
            yield self.some(3_000)

    def callback(self, tid: int) -> Steps:
        while True:
            if not self.callbacks:
                yield self.signals["callback"]
                continue
            op = self.callbacks.popleft()
            yield self.some(5_000)
            self.event("cephshim:radoscxx_completion_cb", CLIENT, tid, "io_context_pool", "arg=1234")
            op.done = True
            self.wake("client")

    # -- OSD -----------------------------------------------------------------------------------------------------------

    def osd_messenger(self) -> Steps:
        while True:
            if not self.wire:
                yield self.signals["wire"]
                continue
            ops = [self.wire.popleft() for _ in range(min(len(self.wire), 2))]
            for op in ops:
                for whole in (0, 1) if self.random.random() < 0.5 else (1,):
                    fields = f"fd=69 mtype=42 seq={op.tid} flen=4471 whole={whole} :tid={op.tid}"
                    self.event("cephshim:msgr_rx_msg", OSD, 90, "msgr-worker-2", fields)
            for op in ops:
                yield self.some(2_000)
                self.event("osd:ms_fast_dispatch", OSD, 90, "msgr-worker-2", self.reqid(op))
                self.flag(op, 90, "msgr-worker-2", "queued_for_pg")
                shard = int(op.oid[3:]) % 3
                self.shards[shard].append(("op", op))
                self.wake(f"shard{shard}")

    def reqid(self, op: Truth) -> str:
        return f"type=8 num=4152 :tid={op.tid} inc=0"

    def flag(self, op: Truth, tid: int, comm: str, msg: str) -> None:
        self.event("oprequest:mark_flag_point", OSD, tid, comm, f"{self.reqid(op)} msg={msg}")

    def state(self, op: Truth, number: int, tid: int, comm: str) -> None:
        """A state ends: Ceph takes the time, then the tracepoint is passed."""
        op.states[number] = self.now - op.stamp_ns
        op.stamp_ns = self.now
        self.store(op, "state_duration", tid, comm, f"state={number} elapsed={op.states[number] / 1e9:.9f}")

    def is_traced(self, op: Truth) -> bool:
        """Whether BlueStore's tracepoints tell of it."""
        return self.tracepoints

    def store(self, op: Truth, name: str, tid: int, comm: str, fields: str) -> None:
        if self.is_traced(op):
            txc = f"sequencer_id={op.sequencer} :tid={op.txc}"
            self.event(f"bluestore:transaction_{name}", OSD, tid, comm, f"{txc} {fields}")

    def worker(self, shard: int) -> Steps:
        tid, comm = 100 + shard, "tp_osd_tp"
        while True:
            if not self.shards[shard]:
                yield self.signals[f"shard{shard}"]
                continue
            what, op = self.shards[shard].popleft()
            if what == "commit":
                yield self.some(2_000)
                self.to_reply.append(op)
                self.wake("reply")
                yield self.some(4_000)
                self.flag(op, tid, comm, "commit_sent")
                continue
            self.event("osd:opwq_process_start", OSD, tid, comm, self.reqid(op))
            self.flag(op, tid, comm, "reached_pg")
            yield self.some(20_000)
            self.flag(op, tid, comm, "started")
            self.event("osd:prepare_tx_enter", OSD, tid, comm, self.reqid(op))
            for opname, more in (("set-alloc-hint", "setallochint"), ("write", "write")):
                self.event("osd:do_osd_op_pre", OSD, tid, comm, f"oid={op.oid} opname={opname}")
                span = " offset=0 length=4096" if more == "write" else ""
                self.event(f"osd:do_osd_op_pre_{more}", OSD, tid, comm, f"oid={op.oid}{span}")
                yield self.some(3_000)
                self.event("osd:do_osd_op_post", OSD, tid, comm, f"oid={op.oid} opname={opname}")
            self.event("osd:prepare_tx_exit", OSD, tid, comm, self.reqid(op))
            op.sequencer = int(op.oid[3:]) % 4
            op.txc = self.sequence[op.sequencer] = self.sequence[op.sequencer] + 1
            self.sequencers[op.sequencer].append(op)
            op.stamp_ns = self.now
            yield self.some(30_000)
            self.store(op, "initial_state", tid, comm, "throttle_time=0.000001")
            self.state(op, 19, tid, comm)
            iocb = self.iocbs.pop()
            op.lba = self.count
            fields = f"iocb={iocb} fd=34 op=8 off={op.lba * 4096} len=4096 i=0 nr=1"
            self.event("cephshim:aio_submit", OSD, tid, comm, fields)
            self.start(self.device(iocb, op, "aio"), self.some(80_000))
            yield self.some(10_000)
            self.event("cephshim:aio_submit_exit", OSD, tid, comm, "ret=1")
            self.event("osd:opwq_process_finish", OSD, tid, comm, self.reqid(op))

    def device(self, iocb: int, op: Truth | None, name: str) -> Steps:
        self.aio_events.append((iocb, op))
        self.wake(name)
        return
        yield

    def aio_thread(self) -> Steps:
        while True:
            if not self.aio_events:
                yield self.signals["aio"]
                continue
            iocb, op = self.aio_events.popleft()
            yield self.some(1_000)
            self.event("cephshim:aio_complete", OSD, 110, "bstore_aio", f"iocb={iocb} res=4096")
            self.iocbs.append(iocb)
            if op is None:
                self.wake("kv_aio")
                continue
            self.state(op, 20, 110, "bstore_aio")
            self.io_done(op, 110, "bstore_aio")

    def io_done(self, op: Truth, tid: int, comm: str) -> None:
        """In the sequencer's order."""
        op.aio_done = True
        queue = self.sequencers[op.sequencer]
        while queue and queue[0].aio_done:
            first = queue.popleft()
            self.state(first, 21, tid, comm)
            first.queued_ns = self.now
            self.kv_queue.append(first)
            self.wake("kv")

    def kv_thread(self) -> Steps:
        tid, comm = 120, "bstore_kv_sync"
        while True:
            if not self.kv_queue and not self.stable:
                yield self.signals["kv"]
                continue
            ops, self.kv_queue, self.stable = self.kv_queue, [], []
            yield from self.flush(34)
            for op in ops:
                self.state(op, 22, tid, comm)
                op.batch = len(self.batches)
                yield self.some(8_000)
                self.store(op, "kv_submit_latency", tid, comm, "sync=0 elapsed=0.000008")
            self.event("cephshim:sysio_pwrite_enter", OSD, tid, comm, "fd=47 off=0 len=4096")
            yield self.some(5_000)
            self.event("cephshim:sysio_pwrite_exit", OSD, tid, comm, "fd=47 ret=4096")
            self.event("cephshim:sysio_sfr_enter", OSD, tid, comm, "fd=47 off=0 len=4096")
            yield self.some(50_000)
            self.event("cephshim:sysio_sfr_exit", OSD, tid, comm, "fd=47 ret=0")
            yield from self.flush(46)
            if self.random.random() < 0.5:  # BlueFS has something to log
                iocb = self.iocbs.pop()
                self.event("cephshim:aio_submit", OSD, tid, comm, f"iocb={iocb} fd=46 op=8 off=0 len=4096 i=0 nr=1")
                self.start(self.device(iocb, None, "aio"), self.some(50_000))
                self.event("cephshim:aio_submit_exit", OSD, tid, comm, "ret=1")
                yield self.signals["kv_aio"]
                yield from self.flush(46)
            for op in ops:
                self.store(op, "kv_sync_latency", tid, comm, f"kv_batch_size={len(ops)} elapsed=0.0001")
                op.synced_ns = self.now
            if ops:
                self.batches.append(len(ops))
            self.finalize.extend(ops)
            self.wake("final")

    def flush(self, fd: int) -> Steps:
        self.event("cephshim:sysio_fdatasync_enter", OSD, 120, "bstore_kv_sync", f"fd={fd}")
        yield self.some(60_000)
        self.event("cephshim:sysio_fdatasync_exit", OSD, 120, "bstore_kv_sync", f"fd={fd} ret=0")

    def finalizer(self) -> Steps:
        while True:
            if not self.finalize:
                yield self.signals["final"]
                continue
            op = self.finalize.popleft()
            yield self.some(2_000)
            self.store(op, "commit_latency", 130, "bstore_kv_final", "elapsed=0.001")
            shard = int(op.oid[3:]) % 3
            self.shards[shard].append(("commit", op))
            self.wake(f"shard{shard}")
            for number in (23, 24, 25, 26):
                self.state(op, number, 130, "bstore_kv_final")

    def osd_sender(self) -> Steps:
        while True:
            if not self.to_reply:
                yield self.signals["reply"]
                continue
            ops = [self.to_reply.popleft() for _ in range(len(self.to_reply))]
            yield from self.frames(ops, 43, OSD, 91, 69)
