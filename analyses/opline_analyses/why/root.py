# SPDX-License-Identifier: MIT
"""Root, not victim: what ops waited for, charged to what the ops ahead of them were doing.

Takes a run and ops; gives for each of them its latency in pieces, each with its cause. The time of a stage that is no
wait is its own cause. A wait (kind `wait`, or `unknown`: between two threads) ends when a thread takes the op up. As
long as that thread was between two points of another op with nobody's point in between, it was held by that op, and
the wait is charged to the stage in which that op was then. Is that a wait itself, it is followed to the thread which
ended that one, at most DEPTH times. What of a wait no other op explains stays with the wait: its thread was free
(asleep, not yet on a CPU), or no point says what it did.

A block request waits behind others, too (why/device.py): as long as it is not yet issued, its time is charged to the
device stage of the requests that are there; of what it spends there itself those ahead are named.

Waiting for a CPU is a cause of its own, where the sched events cover the stage and all of it is in question.
In integers the pieces of an op sum to its latency.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from opline_analyses.runs.columns import give, queried
from opline_analyses.why.device import Devices

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from opline_analyses.runs.run import Run

    Numbers = np.ndarray[Any, np.dtype[np.int64]]

DEPTH = 3
DEVICE = "D2C"
WAITS = "('wait', 'unknown')"
_FOREVER = np.iinfo(np.int64).max


class Cause(NamedTuple):
    """``stage``: where the time went. ``cpu``: there it waited for a CPU. ``behind``: in another op, not in the one
    that is slow. ``wait``: a wait that nothing explains further. ``ahead``: whose requests were ahead at the device;
    empty: nobody's.
    """

    stage: str
    cpu: bool
    behind: bool
    wait: bool
    ahead: str = ""


class Charges(NamedTuple):
    """Rows (op, cause, ns): ``op`` is a place in ``ops``, ``cause`` one in ``causes``."""

    ops: Numbers
    causes: list[Cause]
    op: Numbers
    cause: Numbers
    ns: Numbers

    def by_cause(self, places: Numbers) -> Numbers:
        """Sums per cause over the ops at these places."""
        wanted = np.zeros(len(self.ops), bool)
        wanted[places] = True
        kept = wanted[self.op]
        sums = np.zeros(len(self.causes), np.int64)
        np.add.at(sums, self.cause[kept], self.ns[kept])
        return sums


def _near(run: Run, begins: Numbers, ends: Numbers) -> None:
    """The temporary table `near`: all ops that are in flight in one of these intervals."""
    ops = queried(run, "SELECT op_id, begin_ns, end_ns FROM all_ops WHERE complete ORDER BY op_id")
    ids, begin = ops["op_id"], np.maximum.accumulate(ops["begin_ns"])
    latest = np.maximum.accumulate(ops["end_ns"])
    first, last = np.searchsorted(latest, begins, "right"), np.searchsorted(begin, ends, "left")
    edges = np.zeros(len(ids) + 1, np.int64)
    kept = first < last
    np.add.at(edges, first[kept], 1)
    np.add.at(edges, last[kept], -1)
    near = ids[np.cumsum(edges[:-1]) > 0]
    give(run, "near", op_id=near)
    run.con.execute("INSERT INTO near SELECT op_id FROM all_ops WHERE NOT complete")


def _holds(run: Run) -> dict[str, Numbers]:
    """The times ``b`` to ``e`` in which a thread was between two points of an op of `near` with nobody's point in
    between, in the order of ``tid`` and ``b``; ``op_id``: the op, or the first of a batch; ``last``: the last of it.
    """
    t = queried(run, "SELECT tid, ts_ns, op_id FROM transitions SEMI JOIN near USING (op_id) WHERE tid IS NOT NULL")
    order = np.lexsort((t["ts_ns"], t["op_id"], t["tid"]))
    tid, op, ts = (t[name][order].astype(np.int64) for name in ("tid", "op_id", "ts_ns"))
    new = np.concatenate(([True], (np.diff(tid) != 0) | (np.diff(op) != 0) | (np.diff(ts) != 0)))[: len(tid)]
    tid, op, ts = tid[new], op[new], ts[new]
    own = np.flatnonzero((np.diff(tid) == 0) & (np.diff(op) == 0))  # the next point is the same op's on the thread
    order = np.lexsort((ts, tid))
    head = np.concatenate(([True], (np.diff(tid[order]) != 0) | (np.diff(ts[order]) != 0)))[: len(tid)]
    stamp = np.zeros(len(tid), np.int64)
    stamp[order] = np.cumsum(head) - 1  # the thread's points at one time are one stamp
    of_thread, at = tid[order][head], ts[order][head]
    own = own[stamp[own + 1] == stamp[own] + 1]
    held, first = np.unique(stamp[own], return_index=True)  # ops ascend in a thread's part
    last = np.zeros(len(at), np.int64)
    np.maximum.at(last, stamp[own], op[own])
    return {"tid": of_thread[held], "b": at[held], "e": at[held + 1], "op_id": op[own[first]], "last": last[held]}


class _Pieces(NamedTuple):
    """Of waits: the piece from ``b`` to ``e`` of the wait ``wait`` lies in which ``holder`` held its thread."""

    wait: Numbers
    holder: Numbers
    b: Numbers
    e: Numbers


def _held(held: dict[str, Numbers], wait: Numbers, op: Numbers, tid: Numbers, b: Numbers, e: Numbers) -> _Pieces:
    """The pieces of these waits in which another op held the thread that ends them; ``held``: of _holds."""
    found: list[list[Numbers]] = [[], [], [], []]
    for thread in np.unique(tid):
        low, high = np.searchsorted(held["tid"], [thread, thread + 1])
        begin, end = held["b"][low:high], held["e"][low:high]
        holder, last = held["op_id"][low:high], held["last"][low:high]
        mine = np.flatnonzero(tid == thread)
        first, after = np.searchsorted(end, b[mine], "right"), np.searchsorted(begin, e[mine], "left")
        number = np.maximum(after - first, 0)
        which = np.repeat(mine, number)
        at = np.repeat(first - np.cumsum(number) + number, number) + np.arange(number.sum())
        others = (holder[at] != op[which]) & (last[at] != op[which])
        which, at = which[others], at[others]
        for column, values in zip(
            found,
            (wait[which], holder[at], np.maximum(begin[at], b[which]), np.minimum(end[at], e[which])),
            strict=True,
        ):
            column.append(values)
    return _Pieces(*(np.concatenate(c) if c else np.zeros(0, np.int64) for c in found))


_CPU = "CASE WHEN {of}stage = 'D2C' THEN 0 ELSE coalesce({of}runnable_ns, 0) END"  # there it waits for the device
_REQUEST = "CASE WHEN {of}kind IN ('block', 'device') THEN coalesce({of}request_id, -1) ELSE -1 END"
_OWN = f"""
    SELECT c.place, s.op_id, s.stage, s.kind IN {WAITS} AND s.tid IS NOT NULL AS wait, coalesce(s.tid, -1) AS tid,
           s.begin_ns AS b, s.duration_ns AS ns, {_CPU.format(of="s.")} AS cpu, {_REQUEST.format(of="s.")} AS request
    FROM stages s JOIN charged c USING (op_id) WHERE s.duration_ns > 0"""
_THEIRS = f"""
    CREATE OR REPLACE TEMP TABLE theirs AS
    SELECT op_id, stage, kind IN {WAITS} AND tid IS NOT NULL AS wait_too, coalesce(tid, -1) AS tid, begin_ns AS b,
           begin_ns + duration_ns AS e, {_CPU.format(of="")} AS cpu, {_REQUEST.format(of="")} AS request
    FROM stages SEMI JOIN near USING (op_id) WHERE duration_ns > 0"""
_OF_HOLDERS = """
    SELECT p.wait, p.holder AS op_id, s.stage, s.wait_too, s.tid, greatest(p.b, s.b) AS b, least(p.e, s.e) AS e,
           s.request, CASE WHEN p.b <= s.b AND p.e >= s.e THEN s.cpu ELSE 0 END AS cpu
    FROM pieces p JOIN theirs s ON s.op_id = p.holder WHERE s.b < p.e AND s.e > p.b"""


class _Book:
    """Collects charges."""

    def __init__(self) -> None:
        self.numbers: dict[Cause, int] = {}
        self.rows: list[tuple[Numbers, Numbers, Numbers]] = []

    def charge(
        self,
        ops: Numbers,
        stages: Sequence[str] | np.ndarray[Any, Any],
        ns: Numbers,
        *,
        cpu: bool,
        behind: bool,
        wait: bool,
        ahead: str = "",
    ) -> None:
        """One row per op, stage and time; those without time aside."""
        names, codes = np.unique(np.asarray(stages, object).astype(str), return_inverse=True)
        numbers = [self.numbers.setdefault(Cause(str(n), cpu, behind, wait, ahead), len(self.numbers)) for n in names]
        kept = ns > 0
        self.rows.append((ops[kept], np.array(numbers, np.int64)[codes[kept]], ns[kept]))

    def charge_requests(
        self, devices: Devices, ops: Numbers, stages: Sequence[str], requests: Numbers, b: Numbers, ns: Numbers,
        *, behind: bool,
    ) -> None:  # fmt: skip
        """The same of times from ``b`` on in which a request (request_id; -1: none) waited or was at the device."""
        of_request = np.flatnonzero(requests >= 0)
        names = np.asarray(stages, object)
        found = devices.shares(requests[of_request], b[of_request], (b + ns)[of_request])
        at, left = of_request[found.piece], ns.copy()
        np.subtract.at(left, at, found.ns)
        self.charge(ops, names, left, cpu=False, behind=behind, wait=False)
        for owner in np.unique(found.owner.astype(str)).tolist():
            for waited in (True, False):
                mine = (found.owner == owner) & (found.waited == waited)
                where = np.full(int(mine.sum()), DEVICE, object) if waited else names[at[mine]]
                self.charge(
                    ops[at[mine]], where, found.ns[mine], cpu=False, behind=behind or waited, wait=False, ahead=owner
                )

    def charges(self, ops: Numbers) -> Charges:
        """All of it."""
        columns = [np.concatenate(c).astype(np.int64) for c in zip(*self.rows, strict=True)]
        return Charges(ops, list(self.numbers), columns[0], columns[1], columns[2])


def charge(run: Run, ops: Numbers) -> Charges:
    """The latency of each of these ops (op_id) by cause."""
    give(run, "charged", op_id=ops, place=np.arange(len(ops)))
    book = _Book()
    rest = queried(run, "SELECT place, unattributed_ns AS ns FROM ops JOIN charged USING (op_id) ORDER BY place")
    book.charge(
        rest["place"], ["unattributed"] * len(rest["ns"]), rest["ns"], cpu=False, behind=False, wait=False
    )  # fmt: skip
    own = queried(run, _OWN)
    stages = np.asarray(own["stage"], object)
    work = ~np.asarray(own["wait"], bool)
    cpu = own["cpu"]
    book.charge(own["place"][work], stages[work], cpu[work], cpu=True, behind=False, wait=False)
    devices = Devices(run)
    book.charge_requests(
        devices, own["place"][work], stages[work], own["request"][work], own["b"][work], (own["ns"] - cpu)[work],
        behind=False,
    )  # fmt: skip
    waits = {name: own[name][~work] for name in ("place", "op_id", "tid", "b", "ns", "cpu")}
    _follow(run, book, devices, waits, stages[~work])
    return book.charges(ops)


def _follow(run: Run, book: _Book, devices: Devices, waits: dict[str, Any], stages: Any) -> None:
    """Charges the waits, and the waits behind them."""
    place, op, tid, b = waits["place"], waits["op_id"], waits["tid"], waits["b"]
    e, cpu, behind = b + waits["ns"], waits["cpu"], False
    if not len(place):
        return
    _near(run, b, e)
    held = _holds(run)
    run.con.execute(_THEIRS)
    for depth in range(DEPTH):
        pieces = _held(held, np.arange(len(place)), op, tid, b, e)
        left = e - b
        if len(pieces.wait):
            give(run, "pieces", **pieces._asdict())
            found = queried(run, _OF_HOLDERS)
            of, ns = found["wait"], found["e"] - found["b"]
            left = left.copy()
            np.subtract.at(left, of, ns)
            names = np.asarray(found["stage"], object)
            again = np.asarray(found["wait_too"], bool) & (found["tid"] != tid[of]) & (depth + 1 < DEPTH)
            final = ~again
            waited = found["cpu"]
            book.charge(place[of][final], names[final], waited[final], cpu=True, behind=True, wait=False)
            book.charge_requests(
                devices, place[of][final], names[final], found["request"][final], found["b"][final],
                (ns - waited)[final], behind=True,
            )  # fmt: skip
        whole = left == e - b  # nobody held its thread: the states are those of this time
        asleep = np.where(whole, np.minimum(cpu, left), 0)
        book.charge(place, stages, asleep, cpu=True, behind=behind, wait=True)
        book.charge(place, stages, left - asleep, cpu=False, behind=behind, wait=True)
        if not len(pieces.wait) or not again.any():
            return
        place, op, tid = place[of][again], found["op_id"][again], found["tid"][again]
        b, e, stages = found["b"][again], found["e"][again], names[again]
        cpu, behind = waited[again], True
