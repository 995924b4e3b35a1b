# SPDX-License-Identifier: MIT
"""Who held the slow ops up, and what the tail would be without it.

Takes a run with the temporary tables `ranked` and `sides` (why_sets.py), and why_root's charges; gives, for each cause,
its mean in the slow ops and in the typical ones (they sum to the latency, in integers per set), and for p99 and p99.9:

* what the cause *contributes*: its mean in the ops around the percentile (p98.5 to p99.5, p99.85 to p99.95) minus that
  in typical ops. It sums to their difference in latency;
* what the percentile would be *without* it: if in no op the cause took longer than its mean in typical ones. An upper
  bound for the store's own gain: what a closed loop would do with the time is left out.

Of more than MOST ops of the tail evenly spread ones are charged: each ``step``-th by latency; of the typical ones
MOST_TYPICAL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from opline_analyses.runs.columns import queried
from opline_analyses.why.root import charge

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opline_analyses.runs.run import Run
    from opline_analyses.why.root import Charges, Numbers
    from opline_analyses.why.sets import Sets

MOST = 4000
MOST_TYPICAL = 1000  # for their mean alone
TAIL = 20  # one of so many ops is charged: what is below may come up when the tail gets shorter
QUANTILES = (("p99", 100), ("p99.9", 1000))  # one op of so many is above
MUCH = 0.1  # of the difference
BAND_OPS = 20  # fewer around a percentile say nothing about it


class Ahead(NamedTuple):
    """Whose requests were ahead at the device, and for how long: sums over the slow and the typical ops, ns."""

    owner: str
    slow_ns: int
    typical_ns: int


class Caused(NamedTuple):
    """A cause: sums over the slow ops (in the op itself, behind others) and over the typical ones, ns. ``ahead``: of
    its time at the device what requests ahead had, the largest first.
    """

    stage: str
    cpu: bool  # it waited for a CPU in that stage
    wait: bool  # a wait that no other op explains
    own_ns: int
    behind_ns: int
    typical_ns: int
    ahead: list[Ahead]


class Part(NamedTuple):
    """A cause at a percentile. ``without_ns``: None below what was charged, so it is at most ``Tail.cut_ns``."""

    stage: str
    cpu: bool
    wait: bool
    contributes_ns: float
    without_ns: int | None


class Percentile(NamedTuple):
    """One of QUANTILES: its value, and how many charged ops lie around it."""

    name: str
    value_ns: int
    around: int
    parts: list[Part]


class Tail(NamedTuple):
    """The causes, the largest difference first. ``slow`` and ``typical`` ops were charged: each ``step``-th of the slow
    ones, each ``typical_step``-th of the others.
    """

    slow: int
    typical: int
    step: int
    typical_step: int
    slow_ns: int
    typical_ns: int
    causes: list[Caused]
    percentiles: list[Percentile]
    cut_ns: int

    def more_ns(self, c: Caused) -> float:
        """How much more of it there is in a slow op than in a typical one."""
        return (c.own_ns + c.behind_ns) / self.slow - c.typical_ns / self.typical

    def more_ahead_ns(self, a: Ahead) -> float:
        """The same of those ahead at the device."""
        return a.slow_ns / self.slow - a.typical_ns / self.typical

    @property
    def sums(self) -> bool:
        """The causes sum to the latencies."""
        slow, typical = (sum(c.own_ns + c.behind_ns for c in self.causes), sum(c.typical_ns for c in self.causes))
        return (slow, typical) == (self.slow_ns, self.typical_ns)


_Key = tuple[str, bool, bool]  # stage, cpu, wait


def ahead_of_them(tail: Tail) -> list[str]:
    """Whose requests at the device have a tenth of the difference or more, the most first."""
    more: dict[str, float] = {}
    for cause in tail.causes:
        for a in cause.ahead:
            more[a.owner] = more.get(a.owner, 0.0) + tail.more_ahead_ns(a)
    whole = tail.slow_ns / tail.slow - tail.typical_ns / tail.typical
    return sorted((o for o, ns in more.items() if ns >= MUCH * whole > 0), key=lambda o: -more[o])


class _Sample(NamedTuple):
    """The ops that are charged: the tail's, the slowest first, then typical ones."""

    charges: Charges
    latency: Numbers
    rank: Numbers
    tail: int  # so many are of the tail
    step: int
    typical_step: int


def _sample(run: Run, sets: Sets) -> _Sample:
    wanted = max(sets.slow, -(-sets.ops // TAIL))
    step = -(-wanted // MOST)
    every = -(-sets.typical // MOST_TYPICAL)
    found = [
        queried(
            run,
            f"SELECT op_id, latency_ns, rank FROM ranked WHERE rank > ? AND (? - rank) % {step} = 0 ORDER BY rank DESC",
            [sets.ops - wanted, sets.ops],
        ),
        queried(
            run,
            f"""SELECT op_id, latency_ns, rank FROM ranked JOIN sides USING (op_id)
                WHERE NOT slow AND rank % {every} = 0 ORDER BY rank DESC""",
        ),
    ]
    columns = [np.concatenate([f[c] for f in found]) for c in ("op_id", "latency_ns", "rank")]
    ids, back = np.unique(columns[0], return_inverse=True)  # an op may be both: typical, and in a tail of few ops
    charges = charge(run, ids)
    rows = _matrix(charges)[:, back]
    op, cause = np.nonzero(rows.T)
    again = charges._replace(ops=columns[0], op=op, cause=cause, ns=rows[cause, op])
    return _Sample(again, columns[1], columns[2], len(found[0]["op_id"]), step, every)


def _matrix(charges: Charges) -> Numbers:
    """ns by cause and op."""
    found = np.zeros((len(charges.causes), len(charges.ops)), np.int64)
    np.add.at(found, (charges.cause, charges.op), charges.ns)
    return found


def _percentiles(s: _Sample, sets: Sets, total: dict[_Key, Numbers], cut_ns: int) -> Iterator[Percentile]:
    tail, latency = s.rank[: s.tail], s.latency[: s.tail]
    for name, one_of in QUANTILES:
        above = sets.ops // one_of  # ops beyond the percentile by nearest rank
        if above < BAND_OPS:
            continue
        low, high = sets.ops - above - above // 2, sets.ops - above + above // 2
        around = np.flatnonzero((tail > low) & (tail <= high))
        (value,) = latency[above // s.step : above // s.step + 1].tolist()
        parts = []
        for key, ns in total.items():
            usual = ns[s.tail :].mean()
            shorter = np.sort(latency - np.maximum(ns[: s.tail] - usual, 0).astype(np.int64))[::-1]
            without = int(shorter[above // s.step])
            contributes = float(ns[: s.tail][around].mean() - usual) if len(around) >= BAND_OPS else 0.0
            parts.append(Part(*key, contributes, without if without >= cut_ns else None))
        yield Percentile(name, value, len(around), sorted(parts, key=lambda p: (-p.contributes_ns, p[:3])))


def tail_blame(run: Run, sets: Sets) -> Tail:
    """The causes of the slow ops' time, and of the percentiles'."""
    s = _sample(run, sets)
    matrix = _matrix(s.charges)
    slow = np.flatnonzero(s.rank[: s.tail] > sets.ops - sets.slow)
    total: dict[_Key, Numbers] = {}
    behind: dict[_Key, int] = {}
    ahead: dict[_Key, dict[str, list[int]]] = {}
    for cause, ns in zip(s.charges.causes, matrix, strict=True):
        key = (cause.stage, cause.cpu, cause.wait)
        total[key] = total.get(key, np.zeros(len(ns), np.int64)) + ns
        behind[key] = behind.get(key, 0) + (int(ns[slow].sum()) if cause.behind else 0)
        if cause.ahead:
            sums = ahead.setdefault(key, {}).setdefault(cause.ahead, [0, 0])
            sums[0] += int(ns[slow].sum())
            sums[1] += int(ns[s.tail :].sum())
    typical = len(s.latency) - s.tail
    causes = [
        Caused(
            *key, int(ns[slow].sum()) - behind[key], behind[key], int(ns[s.tail :].sum()),
            sorted((Ahead(owner, *sums) for owner, sums in ahead.get(key, {}).items()), key=lambda a: (-a.slow_ns, a)),
        )
        for key, ns in total.items()
    ]  # fmt: skip
    cut = int(s.latency[s.tail - 1])
    found = Tail(
        len(slow), typical, s.step, s.typical_step, int(s.latency[slow].sum()), int(s.latency[s.tail :].sum()), causes,
        list(_percentiles(s, sets, total, cut)), cut,
    )  # fmt: skip
    found.causes.sort(key=lambda c: (-found.more_ns(c), c[:3]))
    return found
