# SPDX-License-Identifier: MIT
"""The simulated Ceph on a bad day: what Ceph 19's BlueStore and OSD do besides what rados bench asks them for.

Work in the placement groups' queues that is no client's, with transactions of its own; transactions that the throttle
does not let be traced (should_trace() in BlueStore.h: two within two microseconds); writes of several aios in one
io_submit, of which the kernel takes some; writes without an aio; deferred writes, which a later commit cleans up after,
with members or without any; completions that the aio thread takes together.
"""

from __future__ import annotations

from tests.ceph.lib.machine import Steps
from tests.ceph.lib.simulation import OSD, Ceph, Client, Truth
from tests.ceph.lib.store import Kind, Transaction

NOBODY = Client(0, 0, [])


class RoughCeph(Ceph):
    """As ``Ceph``, without replicas; ``foreigners`` are the transactions that are no client's."""

    def __init__(self, ops: int, depth: int, seed: int, *, objects: int = 0) -> None:
        super().__init__(ops, depth, seed, objects=objects)
        self.foreigners: list[Transaction[Truth]] = []
        self.stores[0].take_together = 16

    def kind(self) -> Kind:
        r = self.random.random
        aios = self.random.choice((0, 1, 1, 1, 2, 3))
        return Kind(False, r() > 0.05, aios, r() < 0.3, aios == 0 and r() < 0.5)

    def before(self, tid: int, comm: str) -> Steps:
        if self.random.random() >= 0.05:
            return
        oid = f"obj{self.random.randrange(9)}"
        t = Transaction(Truth(NOBODY, oid, 0, 0), oid, Kind(True, aios=self.random.randrange(2)))
        self.foreigners.append(t)
        reqid = "type=0 num=0 :tid=0 inc=0"
        self.event("osd:opwq_process_start", OSD, tid, comm, reqid)
        yield from self.stores[0].queue(t, tid % 1000, comm)
        self.event("osd:opwq_process_finish", OSD, tid, comm, reqid)
