# SPDX-License-Identifier: MIT
"""Where the next tracepoint would explain most: the intervals that no event splits, ranked.

Takes a run with the temporary table `counted`; gives the intervals between two points that are work, on a network, or
unknown. Two shares say what a tracepoint in one of them would explain:

    share    of the mean latency
    spread   of the latencies' variance: cov(interval, latency) / var(latency), an op without the interval counting 0.
             Over all intervals of all kinds, waits for a CPU and unattributed time it sums to 1.

Time that the thread could have run and waited for a CPU is in neither, where the sched events say it: no tracepoint
would explain it. Devices, steps of the block layer and waits that the model declares are not among them. The rank is by
the larger of the two shares.
"""

from __future__ import annotations

import shlex
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from opline_analyses.base.result_table import ResultTable, label, share, time
from opline_analyses.base.text import percent
from opline_analyses.ops import stage_sums
from opline_analyses.ops.behind import base_name
from opline_analyses.ops.stages import STAGE_SUMS, counted_ranges

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opline_analyses.base.result_table import Part
    from opline_analyses.runs.run import Run

LEAST = 0.01  # of the mean or of the variance
MOST = 5  # intervals
EVENTS = 4  # of the trace's events without a point
ASIDES = 3  # of an interval, at most
OFTEN = 0.5  # share of the intervals with an aside; then the aside is named


class Interval(NamedTuple):
    """Sums over ``number`` intervals, ns, without the wait for a CPU. ``on_cpu_ns``, ``blocked_ns`` and
    ``blocked_io_ns``: what the thread did in it, as far as the sched events say. ``woken_by``: the name of the thread
    that ended most of the blocked time.
    """

    stage: str
    from_point: str
    to_point: str
    kind: str
    number: int
    total_ns: int
    share: float
    spread: float
    on_cpu_ns: int
    blocked_ns: int
    blocked_io_ns: int
    woken_by: str | None
    asides: list[str]  # points passed in half of the intervals, without a cut of a stage
    op_id: int  # of the longest interval
    begin_ns: int
    end_ns: int

    @property
    def ends(self) -> str:
        """The two points."""
        return f"{self.from_point} → {self.to_point}"

    def meanwhile(self) -> str:
        """Known states of the thread in the interval."""
        known = (("on a CPU", self.on_cpu_ns), ("blocked", self.blocked_ns), ("blocked on I/O", self.blocked_io_ns))
        told = [f"{what} {percent(ns, self.total_ns, 0)} %" for what, ns in known if ns >= 0.01 * self.total_ns]
        if self.woken_by and self.blocked_ns >= 0.1 * self.total_ns:
            told.append(f"woken by {self.woken_by}")
        if self.asides:
            told.append(f"passes {', '.join(self.asides)}")
        return ", ".join(told) or "what its thread did is not in the trace"


class Unsplit(NamedTuple):
    """``events``: events of the trace without a point, with their numbers, the most frequent first."""

    ops: int
    intervals: list[Interval]
    events: list[tuple[str, int]]


_WHOLE = """
    SELECT count(*), coalesce(sum(latency_ns), 0), coalesce(sum(latency_ns::HUGEINT * latency_ns), 0)
    FROM ops SEMI JOIN counted USING (op_id)"""
_INTERVALS = f"""
    SELECT stage, from_point, to_point, min(kind), sum(number), sum(total_ns) - sum(runnable_ns), sum(products),
           sum(on_cpu_ns), sum(blocked_ns), sum(blocked_io_ns), max(longest_ns)
    FROM {STAGE_SUMS} WHERE kind IN ('work', 'network', 'unknown') AND number > 0
    GROUP BY stage, from_point, to_point"""
_OF_ONE = """stages SEMI JOIN counted USING (op_id)
    WHERE stage = ? AND list_contains(?, from_point) AND list_contains(?, to_point) AND duration_ns > 0"""
_LONGEST = f"SELECT op_id, begin_ns FROM {_OF_ONE} AND duration_ns = ? ORDER BY op_id, begin_ns LIMIT 1"
_WOKEN = f"""
    SELECT woken_by_comm FROM {_OF_ONE} AND woken_by_comm IS NOT NULL
    GROUP BY ALL ORDER BY sum(blocked_ns) DESC, 1 LIMIT 1"""
_ASIDES = f"""
    WITH i AS (SELECT op_id, begin_ns AS b, begin_ns::HUGEINT + duration_ns AS e FROM {_OF_ONE}
               AND op_id BETWEEN ? AND ?),
         a AS (SELECT op_id, point, ts_ns FROM transitions WHERE aside AND op_id BETWEEN ? AND ?)
    SELECT op_id, point FROM i JOIN a USING (op_id) WHERE ts_ns BETWEEN b AND e"""


class _Sums(NamedTuple):
    """Of all intervals between two points. ``products``: sum of time * latency of the op; ``begins``, ``ends``: the
    points with the numbers of their recurrences.
    """

    kind: str
    number: int
    total_ns: int
    products: int
    on_cpu_ns: int
    blocked_ns: int
    blocked_io_ns: int
    longest_ns: int
    begins: list[str]
    ends: list[str]

    def with_more(self, more: _Sums) -> _Sums:
        """Adds sums of the same points with other recurrence numbers."""
        number, total, products, cpu, blocked, io = (a + b for a, b in zip(self[1:-3], more[1:-3], strict=True))
        longest = max(self.longest_ns, more.longest_ns)
        begins, ends = self.begins + more.begins, self.ends + more.ends
        return _Sums(min(self.kind, more.kind), number, total, products, cpu, blocked, io, longest, begins, ends)


def _sums(run: Run) -> dict[tuple[str, str, str], _Sums]:
    """By stage and points, without the numbers of recurrences. Integers: the order of rows does not matter."""
    stage_sums.make(run)
    found: dict[tuple[str, str, str], _Sums] = {}
    for stage, f, t, kind, *numbers in run.rows(_INTERVALS):
        key = stage, base_name(f), base_name(t)
        number, total, products, cpu, blocked, io, longest = map(int, numbers)
        sums = _Sums(kind, number, total, products, cpu, blocked, io, longest, [f], [t])
        found[key] = found[key].with_more(sums) if key in found else sums
    return found


def _asides(run: Run, these: Sequence[object], least: float) -> list[str]:
    """The most frequent points aside in the intervals of a stage, passed there by at least OFTEN of the ops."""
    import numpy as np

    from opline.store.arrays import gathered

    times, ops = Counter[str](), Counter[str]()
    for first, last in counted_ranges(run, table="transitions"):
        found = gathered(run.con.sql(_ASIDES, (*these, first, last, first, last)))
        if not len(found):
            continue
        op, points = found.array("op_id"), found.codes("point")
        names = [base_name(point) for point in points.texts]
        for name in set(names):
            of = op[np.isin(points.codes, [code for code, its in enumerate(names) if its == name])]
            times[name] += len(of)
            ops[name] += len(np.unique(of))
    return sorted((name for name in times if ops[name] >= least), key=lambda name: (-times[name], name))[:ASIDES]


def unsplit(run: Run) -> Unsplit:
    """Of the counted ops."""
    ops, whole, squares = map(int, run.row(_WHOLE))
    variance = ops * squares - whole * whole  # as `spread`, times the number of ops squared
    ranked = []
    for key, sums in _sums(run).items():
        part = sums.total_ns / whole if whole else 0.0
        spread = (ops * sums.products - whole * sums.total_ns) / variance if variance else 0.0
        if max(part, spread) >= LEAST:
            ranked.append((-max(part, spread), key, part, spread, sums))
    found = []
    (aside,) = run.row("SELECT count(*) FROM transitions WHERE aside")
    for _, (stage, f, t), part, spread, sums in sorted(ranked)[:MOST]:
        these = (stage, sums.begins, sums.ends)
        op_id, begin = run.row(_LONGEST, (*these, sums.longest_ns))
        woken = next((str(comm) for (comm,) in run.rows(_WOKEN, these)), None)
        asides = _asides(run, these, OFTEN * sums.number) if aside else []
        found.append(
            Interval(
                stage, f, t, sums.kind, sums.number, sums.total_ns, part, spread, sums.on_cpu_ns, sums.blocked_ns,
                sums.blocked_io_ns, woken, asides, op_id, begin, begin + sums.longest_ns,
            )
        )  # fmt: skip
    events = run.rows(
        "SELECT event, count FROM fates WHERE fate = 'ignored' ORDER BY count DESC, event LIMIT ?", (EVENTS,)
    )
    return Unsplit(ops, found, [(str(name), int(n)) for name, n in events])


def _trace_of(run: Run) -> str | None:
    """Where `opline events` finds it: as it was given, where that is a recording."""
    beside, noted = run.given / "trace", run.manifest.get("trace")
    if beside.is_dir():
        return str(beside)
    return str(noted) if noted and Path(noted).exists() else None


COLUMNS = (
    label("interval", "where a tracepoint would explain most"), time("mean_ns", "us"), share(),
    share("spread", "spread%"),
)  # fmt: skip


def unsplit_lines(found: Unsplit, run: Run) -> Iterator[Part]:
    """The table, the events that no point uses yet, and how to look into the first interval."""
    if not found.intervals:
        yield f"no interval that a tracepoint could split has {LEAST:.0%} of the mean or of the spread"
        return
    rows = [
        (f"{i.stage}, {i.ends}" if i.stage != i.ends else i.stage, i.total_ns / found.ops, i.share, i.spread)
        for i in found.intervals
    ]
    yield ResultTable(COLUMNS, rows, below=lambda n: f"    {found.intervals[n].meanwhile()}")
    if found.events:
        yield f"in the trace, but no point: {', '.join(f'{name} ({n})' for name, n in found.events)}"
    if trace := _trace_of(run):
        first = found.intervals[0]
        command = ["opline", "events", trace, "--since", str(first.begin_ns), "--until", str(first.end_ns)]
        yield f"the longest `{first.stage}` is of op {first.op_id}; all that was recorded in its time:"
        yield f"  {shlex.join(command)}"
