# SPDX-License-Identifier: MIT
"""Ceph as its tracepoints and the shim show it, simulated: clients with several ops in flight, messengers, OSDs.

Threads, their order of events and the events' fields are those of a recorded Ceph 19.2.3 (tests/traces,
ctf-blue-v2-qd1); what happens only with several operations in flight follows Ceph's source: one sendmsg for several
messages, one recv for several frames, several operations one after the other on a thread, callbacks on two threads.

- Clients count their messages from 1 each, and name their objects alike; so do the addresses of their completions.
- A connection that is reset loses what is on its way. The client connects anew and sends again, with the same number,
  what it has no answer to (Objecter). The OSD throws away what came by a dead connection and has not begun
  (``can_discard_op``), answers at once what it has done already (``already_complete``), and lets wait what it is doing.
- Replicas: the primary asks with a number of its own (ReplicatedBackend), and answers when all have committed.

Gives the events and, from the simulation itself, what a correlator should say of them.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from tests.ceph.lib.machine import Machine, Steps, next_of
from tests.ceph.lib.store import Kind, Store, Transaction

OSD = 900  # the primary's process; its replicas' are the next
MESSENGER = "msgr-worker-2"


@dataclass(eq=False)
class Truth:
    """One operation, as the simulation knows it. Times in ns."""

    client: Client
    oid: str
    tid: int  # the message's number
    completion: int
    submit_ns: int = 0
    reap_ns: int = 0
    answered: bool = False
    done: bool = False
    sent: list[int] = field(default_factory=list)  # when; again after a reset
    transactions: list[Transaction[Truth]] = field(default_factory=list)  # of the primary first
    missing: int = 0  # commits
    asked: int = 0  # the primary's own number, in its messages to replicas
    committed: bool = False
    links: list[Link] = field(default_factory=list)  # that it came by

    @property
    def reqid(self) -> str:
        return f"type=8 num={self.client.number} :tid={self.tid} inc=0"


@dataclass(eq=False)
class Link:
    """A connection of a client's, or of the primary's to a replica."""

    number: int
    here: int  # descriptors
    there: int
    alive: bool = True
    out: deque[Truth] = field(default_factory=deque)
    back: deque[Truth] = field(default_factory=deque)


@dataclass(eq=False)
class Client:
    """A process."""

    number: int  # global id
    pid: int
    completions: list[int]
    ops: list[Truth] = field(default_factory=list)
    to_send: deque[Truth] = field(default_factory=deque)
    callbacks: deque[Truth] = field(default_factory=deque)
    link: Link | None = None


class Ceph(Machine):
    """``run()`` gives the lines of events, sorted; ``ops`` and the stores' ``batches`` (sizes) are the truth.

    ``objects``: so many names, 0: each op has its own. ``names``: the shim tells objects' names and of which client a
    message is, before it is sent; the first shim did not.
    """

    def __init__(
        self, ops: int, depth: int, seed: int, *, objects: int = 0, tracepoints: bool = True, names: bool = False,
        clients: int = 1, resets: int = 0, replicas: int = 0,
    ) -> None:  # fmt: skip
        super().__init__(seed)
        self.depth, self.total, self.objects, self.tracepoints = depth, ops, objects, tracepoints
        self.resets, self.names = resets, names
        self.ops: list[Truth] = []
        addresses = [0x5000 + 0x40 * i for i in range(depth)]
        self.clients = [Client(4152 + 9 * i, 500 + 20 * i, list(addresses)) for i in range(clients)]
        self.stores = [Store(self, OSD + i, 9 * depth * clients, self.committed) for i in range(1 + replicas)]
        self.peers = [Link(50 + i, 80 + i, 40) for i in range(replicas)]
        self.shards: list[list[deque[tuple[str, Truth, Link | None]]]] = [
            [deque() for _ in range(3)] for _ in self.stores
        ]
        self.to_reply: deque[tuple[Link, Truth]] = deque()
        self.link_count = self.asked = 0

    def run(self) -> list[str]:
        for client in self.clients:
            self.connect(client)
            for steps in (
                self.client(client),
                self.client_messenger(client),
                *map(self.callback, [client] * 2, (7, 8)),
            ):
                self.start(steps)
            for _ in range(self.resets):
                self.start(self.reset(client), self.random.randrange(self.total * 400_000 // self.depth))
        self.start(self.osd_sender())
        for number, store in enumerate(self.stores):
            store.start()
            for shard in range(3):
                self.start(self.worker(number, shard))
        for link in self.peers:
            self.connected(link, OSD, OSD + 1 + link.number - 50, 6900 + link.number, 6800)
        return super().run()

    def event(self, name: str, pid: int, tid: int, comm: str, fields: str) -> None:
        if self.tracepoints or name.startswith("cephshim"):
            super().event(name, pid, tid, comm, fields)

    # -- connections ---------------------------------------------------------------------------------------------------

    def connected(self, link: Link, here: int, there: int, port: int, well_known: int) -> None:
        ports = f"lport={port} rport={well_known}", f"lport={well_known} rport={port}"
        self.event("cephshim:msgr_connect", here, here * 1000 + 60, MESSENGER, f"fd={link.here} dir=0 {ports[0]}")
        self.event("cephshim:msgr_connect", there, there * 1000 + 90, MESSENGER, f"fd={link.there} dir=0 {ports[1]}")

    def connect(self, client: Client) -> None:
        self.link_count += 1
        here, there = 28 + self.random.randrange(2), 100 + self.link_count  # the client's is often given again
        client.link = Link(self.link_count, here, there)
        self.connected(client.link, client.pid, OSD, 59000 + self.link_count, 6800)
        self.start(self.osd_messenger(client.link))
        self.start(self.client_receiver(client, client.link))

    def reset(self, client: Client) -> Steps:
        link = client.link
        if link is None or (client.ops and all(op.answered for op in client.ops)):
            return
        link.alive, client.link = False, None
        link.out.clear()
        link.back.clear()
        self.wake(f"wire{link.number}")
        self.wake(f"back{link.number}")
        yield self.some(200_000)
        self.connect(client)
        waiting = [op for op in client.ops if not op.answered]
        client.to_send = deque(waiting)
        self.wake(f"send{client.pid}")

    def message(self, op: Truth, kind: int, fd: int, number: int, whole: int) -> str:
        fields = f"fd={fd} mtype={kind} seq={op.tid} flen=4471 whole={whole} :tid={number}"
        if self.names:
            oid = op.oid if kind == 42 else "-"
            fields += f" num={op.client.number} op=8705 off=0 len=4096 oid={oid} ctid={op.tid}"
        return fields

    def frames(self, link: Link, ops: list[Truth], kind: int, pid: int, tid: int) -> Steps:
        """One sendmsg; the first shim knows what it sent when it has returned, and the other side may be quicker."""
        out = kind in (42, 112)
        fd = link.here if out else link.there
        now = self.now

        def tell(whole: int) -> None:
            for op in ops:
                text = self.message(op, kind, fd, op.tid if kind in (42, 43) else op.asked, whole)
                self.event("cephshim:msgr_tx_msg", pid, tid, MESSENGER, text)

        if self.names:
            tell(0)
        else:
            self.event("cephshim:msgr_send_enter", pid, tid, MESSENGER, f"fd={fd} bytes=1 mtype=0 :tid=0 seq=0 nmsg=0")
        if kind == 42:
            for op in ops:
                op.sent.append(now)
        if link.alive:
            (link.out if out else link.back).extend(ops)
            self.wake(f"{'wire' if out else 'back'}{link.number}")
        yield self.some(20_000)
        if not self.names:
            tell(0)
            tell(1)
            self.event("cephshim:msgr_send_exit", pid, tid, MESSENGER, f"fd={fd} ret=1")

    # -- client --------------------------------------------------------------------------------------------------------

    def submit(self, client: Client) -> Truth:
        n = len(client.ops)
        oid = f"obj{n % self.objects if self.objects else n}"
        op = Truth(client, oid, n + 1, client.completions.pop())
        self.ops.append(op)
        client.ops.append(op)
        fields = f"oid={op.oid} completion={op.completion}"
        self.event("cephshim:radoscxx_aio_operate_enter", client.pid, client.pid + 5, "rados", fields)
        op.submit_ns = self.now
        client.to_send.append(op)
        self.wake(f"send{client.pid}")
        return op

    def client(self, client: Client) -> Steps:
        me, flying = (client.pid, client.pid + 5, "rados"), list[Truth]()
        while flying or len(client.ops) < self.total:
            while len(flying) < self.depth and len(client.ops) < self.total:
                op = self.submit(client)
                flying.append(op)
                yield self.some(4_000)
                self.event("cephshim:radoscxx_aio_operate_exit", *me, f"completion={op.completion} ret=0")
            ready = next((op for op in flying if op.done), None)
            if ready is None:
                yield f"client{client.pid}"
                continue
            flying.remove(ready)
            key = f"completion={ready.completion}"
            self.event("cephshim:radoscxx_wait_enter", *me, key)
            self.event("cephshim:radoscxx_wait_exit", *me, key)
            self.event("cephshim:radoscxx_get_return_value", *me, key + " ret=0")
            ready.reap_ns = self.now
            client.completions.append(ready.completion)
            yield self.some(3_000)

    def client_messenger(self, client: Client) -> Steps:
        while True:
            if client.link is None or not client.to_send:
                yield f"send{client.pid}"
                continue
            ops = [client.to_send.popleft() for _ in range(min(len(client.to_send), 3))]
            yield from self.frames(client.link, ops, 42, client.pid, client.pid + 6)

    def client_receiver(self, client: Client, link: Link) -> Steps:
        while link.alive:
            if not link.back:
                yield f"back{link.number}"
                continue
            for op in [link.back.popleft() for _ in range(len(link.back))]:
                fields = self.message(op, 43, link.here, op.tid, 1)
                self.event("cephshim:msgr_rx_msg", client.pid, client.pid + 6, MESSENGER, fields)
                op.answered = True
                client.callbacks.append(op)
            self.wake(f"callback{client.pid}")
            yield self.some(3_000)

    def callback(self, client: Client, thread: int) -> Steps:
        while True:
            op = yield from next_of(client.callbacks, f"callback{client.pid}")
            yield self.some(5_000)
            fields = "arg=1234" + (f" completion={op.completion}" if self.names else "")
            self.event("cephshim:radoscxx_completion_cb", client.pid, client.pid + thread, "io_context_pool", fields)
            op.done = True
            self.wake(f"client{client.pid}")

    # -- OSD -----------------------------------------------------------------------------------------------------------

    def queue(self, osd: int, what: str, op: Truth, link: Link | None = None) -> None:
        shard = int(op.oid[3:]) % 3
        self.shards[osd][shard].append((what, op, link))
        self.wake(f"shard{osd}.{shard}")

    def dispatch(self, osd: int, tid: int, what: str, op: Truth, link: Link | None = None) -> None:
        self.event("osd:ms_fast_dispatch", OSD + osd, tid, MESSENGER, op.reqid)
        self.flag(op, osd, tid, MESSENGER, "queued_for_pg")
        self.queue(osd, what, op, link)

    def osd_messenger(self, link: Link) -> Steps:
        tid = OSD * 1000 + 600 + link.number
        while link.alive:
            if not link.out:
                yield f"wire{link.number}"
                continue
            ops = [link.out.popleft() for _ in range(min(len(link.out), 2))]
            for op in ops:
                for whole in (0, 1) if self.random.random() < 0.5 else (1,):
                    fields = self.message(op, 42, link.there, op.tid, whole)
                    self.event("cephshim:msgr_rx_msg", OSD, tid, MESSENGER, fields)
            for op in ops:
                yield self.some(2_000)
                self.dispatch(0, tid, "op", op, link)

    def flag(self, op: Truth, osd: int, tid: int, comm: str, msg: str) -> None:
        self.event("oprequest:mark_flag_point", OSD + osd, tid, comm, f"{op.reqid} msg={msg}")

    def kind(self) -> Kind:
        """Of the next transaction."""
        return Kind(traced=self.tracepoints)

    def worker(self, osd: int, shard: int) -> Steps:
        pid, tid, comm = OSD + osd, (OSD + osd) * 1000 + shard, "tp_osd_tp"
        queue = self.shards[osd][shard]
        while True:
            what, op, link = yield from next_of(queue, f"shard{osd}.{shard}")
            if what == "op":
                yield from self.before(tid, comm)
            if what == "commit":
                yield self.some(2_000)
                yield from self.commit(op, osd, tid, comm)
                continue
            self.event("osd:opwq_process_start", pid, tid, comm, op.reqid)
            if what == "replied":
                yield from self.commit(op, osd, tid, comm)
            else:
                self.flag(op, osd, tid, comm, "reached_pg")
                yield self.some(20_000)
                if what == "replica":
                    self.flag(op, osd, tid, comm, "started")
                    yield from self.write(op, osd, tid, comm)
                elif link is not None and link.alive:
                    yield from self.operate(op, link, tid, comm)
            self.event("osd:opwq_process_finish", pid, tid, comm, op.reqid)

    def before(self, tid: int, comm: str) -> Steps:
        """What a worker of the primary does before it takes a client's operation."""
        return
        yield

    def operate(self, op: Truth, link: Link, tid: int, comm: str) -> Steps:
        op.links.append(link)
        if len(op.links) > 1:
            if op.committed:
                self.to_reply.append((link, op))
                self.wake("reply")
            else:
                self.flag(op, 0, tid, comm, "waiting_for_ondisk")
            return
        self.flag(op, 0, tid, comm, "started")
        self.event("osd:prepare_tx_enter", OSD, tid, comm, op.reqid)
        for opname, more in (("set-alloc-hint", "setallochint"), ("write", "write")):
            self.event("osd:do_osd_op_pre", OSD, tid, comm, f"oid={op.oid} opname={opname}")
            span = " offset=0 length=4096" if more == "write" else ""
            self.event(f"osd:do_osd_op_pre_{more}", OSD, tid, comm, f"oid={op.oid}{span}")
            yield self.some(3_000)
            self.event("osd:do_osd_op_post", OSD, tid, comm, f"oid={op.oid} opname={opname}")
        self.event("osd:prepare_tx_exit", OSD, tid, comm, op.reqid)
        op.missing = len(self.stores)
        yield from self.write(op, 0, tid, comm)

    def write(self, op: Truth, osd: int, tid: int, comm: str) -> Steps:
        t = Transaction(op, op.oid, self.kind())
        op.transactions.append(t)
        steps = self.stores[osd].queue(t, tid % 1000, comm)
        first = next(steps)  # it has its number
        if osd == 0:
            self.asked += 1
            op.asked = self.asked
            for number, link in enumerate(self.peers, 1):
                self.start(self.ask(op, number, link), self.some(10_000))
        yield first
        yield from steps

    def ask(self, op: Truth, osd: int, link: Link) -> Steps:
        yield from self.frames(link, [op], 112, OSD, OSD * 1000 + 700 + osd)
        tid, there = (OSD + osd) * 1000 + 90, self.message(op, 112, link.there, op.asked, 1)
        self.event("cephshim:msgr_rx_msg", OSD + osd, tid, MESSENGER, there)
        self.dispatch(osd, tid, "replica", op)

    def answer(self, op: Truth, osd: int, link: Link) -> Steps:
        yield from self.frames(link, [op], 113, OSD + osd, (OSD + osd) * 1000 + 91)
        tid = OSD * 1000 + 700 + osd
        self.event("cephshim:msgr_rx_msg", OSD, tid, MESSENGER, self.message(op, 113, link.here, op.asked, 1))
        self.dispatch(0, tid, "replied", op)

    def committed(self, t: Transaction[Truth]) -> None:
        """BlueStore's finisher hands over to the placement group's queue."""
        if not t.kind.foreign:
            osd = next(i for i, store in enumerate(self.stores) if t.store is store)
            self.queue(osd, "commit", t.op)

    def commit(self, op: Truth, osd: int, tid: int, comm: str) -> Steps:
        if osd > 0:
            self.flag(op, osd, tid, comm, "commit_sent")
            self.start(self.answer(op, osd, self.peers[osd - 1]), self.some(5_000))
            return
        op.missing -= 1
        if op.missing:
            return
        op.committed = True
        self.to_reply.extend((link, op) for link in op.links)
        self.wake("reply")
        yield self.some(4_000)
        self.flag(op, 0, tid, comm, "commit_sent")

    def osd_sender(self) -> Steps:
        while True:
            replies = [(link, op) for link, op in self.to_reply if link.alive]
            self.to_reply.clear()
            for link in dict.fromkeys(link for link, _ in replies):
                ops = [op for to, op in replies if to is link]
                yield from self.frames(link, ops, 43, OSD, OSD * 1000 + 91)
            if not self.to_reply:
                yield "reply"
