# SPDX-License-Identifier: MIT
"""The engine of all counts over time: rows fall into intervals, groups and buckets.

Rows come in batches, in any order, from a run's tables or from any source of settled I/Os: for each row the end, the
measured value (a latency, a size), a weight in bytes, and a group. A row is counted once, in the interval of its end.
The sum over all cells is always the number of rows. An interval without ended rows is there, too, without cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from opline.errors import UsageError
from opline.values import Value
from opline_analyses.base.text import duration

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from opline_analyses.intervals.buckets import Buckets, Numbers


MOST_INTERVALS = 1_000_000


def number_of_intervals(length_ns: int, step_ns: int, count: int | None = None) -> int:
    """The number of intervals in a length: at least one, at most ``count``. Raises UsageError above a million."""
    number = max(1, -(-length_ns // step_ns))
    number = number if count is None else min(number, count)
    if number > MOST_INTERVALS:
        raise UsageError(
            f"An interval of {duration(step_ns)} makes {number} intervals of {duration(length_ns)}: "
            "choose a longer one, or a --window."
        )
    return number


class Grid(Value):
    """Intervals of ``step_ns`` from ``zero_ns`` on: interval i is [zero + i step, zero + (i + 1) step)."""

    zero_ns: int
    step_ns: int

    def index(self, at_ns: int) -> int:
        """The interval of a time."""
        return (at_ns - self.zero_ns) // self.step_ns

    def begin_ns(self, index: int) -> int:
        """Where an interval begins."""
        return self.zero_ns + index * self.step_ns


@dataclass(slots=True)
class Cell:
    """Rows in one place: their number; sum, least and greatest of the measured values; and their bytes."""

    count: int = 0
    total: int = 0
    least: int | None = None
    most: int | None = None
    size: int = 0

    def add(self, other: Cell) -> None:
        """The rows of both."""
        self.count += other.count
        self.total += other.total
        self.size += other.size
        if other.least is not None:
            self.least = other.least if self.least is None else min(self.least, other.least)
        if other.most is not None:
            self.most = other.most if self.most is None else max(self.most, other.most)

    @property
    def mean(self) -> float | None:
        """Of the measured values; None without a row."""
        return self.total / self.count if self.count else None


Place = tuple[str, int]  # group, bucket
Cells = dict[Place, Cell]


@dataclass(slots=True)
class Batch:
    """Rows: ends, measured values, bytes, and groups as indices into ``names``."""

    at_ns: Numbers
    values: Numbers
    sizes: Numbers
    groups: Numbers
    names: list[str]
    begin_ns: Numbers | None = None

    def __len__(self) -> int:
        return len(self.at_ns)


def _runs(*keys: Any) -> tuple[Any, Any]:
    """An order with equal keys as neighbours, and the begins of the runs of equal keys."""
    order = np.lexsort(keys)
    changed = np.zeros(len(order), bool)
    changed[:1] = True
    for key in keys:
        ordered = key[order]
        changed[1:] |= ordered[1:] != ordered[:-1]
    return order, np.flatnonzero(changed)


def _sums(values: Any, begins: Any) -> Any:
    """The sum of each run of values, exact also beyond 64 bits."""
    most = max(abs(int(values.min())), abs(int(values.max())))
    return np.add.reduceat(values if most * len(values) < 2**63 else values.astype(object), begins)


class Tally:
    """Counts rows by interval, group and bucket. Without ``buckets`` all of a group are in bucket 0."""

    def __init__(self, grid: Grid, buckets: Buckets | None = None) -> None:
        self.grid = grid
        self.buckets = buckets
        self.rows = 0
        self.late = 0  # rows of an interval already taken: counted in the next open interval
        self._intervals: dict[int, Cells] = {}
        self._open: int | None = None  # the first open interval, after the first was taken

    def add(self, batch: Batch) -> None:
        """Count the rows of a batch. The work is one sort, and one step per touched cell."""
        if not len(batch):
            return
        self.rows += len(batch)
        intervals = (batch.at_ns - self.grid.zero_ns) // self.grid.step_ns
        if self._open is not None:
            late = intervals < self._open
            self.late += int(late.sum())
            intervals = np.where(late, self._open, intervals)
        buckets = np.zeros(len(batch), np.int64) if self.buckets is None else self.buckets.index(batch.values)
        order, begins = _runs(buckets, batch.groups, intervals)
        values, sizes = batch.values[order], batch.sizes[order]
        counts = np.diff(np.append(begins, len(order)))
        columns = (
            intervals[order][begins], batch.groups[order][begins], buckets[order][begins], counts,
            _sums(values, begins), np.minimum.reduceat(values, begins),
            np.maximum.reduceat(values, begins), _sums(sizes, begins),
        )  # fmt: skip
        for interval, group, bucket, count, total, least, most, size in zip(
            *(column.tolist() for column in columns), strict=True
        ):
            cells = self._intervals.setdefault(interval, {})
            cells.setdefault((batch.names[group], bucket), Cell()).add(Cell(count, total, least, most, size))

    def intervals(self, first: int | None = None, last: int | None = None) -> Iterator[tuple[int, Cells]]:
        """All intervals in order, empty intervals too, from the first with a row (or ``first``) to the last (or
        ``last``).
        """
        known = sorted(self._intervals)
        begin = min([*known[:1], *([] if first is None else [first])], default=0)
        end = max([*known[-1:], *([] if last is None else [last])], default=begin - 1)
        for index in range(begin, end + 1):
            yield index, self._intervals.get(index, {})

    def coarser(self) -> Tally:
        """The same rows in intervals of twice the length."""
        found = Tally(Grid(self.grid.zero_ns, 2 * self.grid.step_ns), self.buckets)
        found.rows, found.late = self.rows, self.late
        for index, cells in self._intervals.items():
            into = found._intervals.setdefault(index // 2, {})
            for place, cell in cells.items():
                into.setdefault(place, Cell()).add(cell)
        return found

    def take(self, until_ns: int) -> list[tuple[int, Cells]]:
        """Takes out the intervals that end at ``until_ns`` or before, empty intervals too: for rows that continue to
        come. A late row is counted in the first open interval, and in ``late``.
        """
        end = self.grid.index(until_ns)
        begin = self._open if self._open is not None else min(self._intervals, default=end)
        taken = [(index, self._intervals.pop(index, {})) for index in range(begin, end)]
        self._open = max(begin, end)
        return taken


def merged(cells: Cells) -> Cell:
    """All rows of an interval."""
    whole = Cell()
    for cell in cells.values():
        whole.add(cell)
    return whole


def by_group(cells: Cells) -> dict[str, dict[int, Cell]]:
    """The buckets of each group."""
    found: dict[str, dict[int, Cell]] = {}
    for (group, bucket), cell in cells.items():
        found.setdefault(group, {})[bucket] = cell
    return found


class Occupancy:
    """Per interval, the number of concurrent I/Os and the time with at least one: rows have a begin and an end, and
    belong to every touched interval. Holds 16 bytes per row, until a call tells which rows can be summed.
    """

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        self.held = 0  # rows
        self._spans: dict[str, list[Numbers]] = {}
        self._summed: dict[tuple[str, int], tuple[int, int]] = {}  # area and busy before, by group and interval
        self._summed_ns: int | None = None  # until there

    def add(self, batch: Batch) -> None:
        """Take in a batch with begins."""
        if batch.begin_ns is None:
            raise ValueError("a batch without begins")
        for group in np.unique(batch.groups).tolist():
            mine = batch.groups == group
            spans = np.stack((batch.begin_ns[mine], batch.at_ns[mine]))
            if self._summed_ns is not None:  # the time before is in the sums
                spans = np.maximum(spans, self._summed_ns)
            self._spans.setdefault(batch.names[group], []).append(spans)
        self.held += len(batch)

    def with_more(self, batches: Iterable[Batch]) -> Occupancy:
        """The same with these further rows, which are not kept here."""
        both = Occupancy(self.grid)
        both._spans = {group: list(parts) for group, parts in self._spans.items()}
        both._summed, both._summed_ns, both.held = self._summed, self._summed_ns, self.held
        for batch in batches:
            both.add(batch)
        return both

    def sum_until(self, at_ns: int, others: Iterable[Batch]) -> None:
        """Every row begun before ``at_ns`` has been added, or is in ``others``; rows in ``others`` are added at their
        end. Only sums are kept of the time before.
        """
        if self._summed_ns is not None and at_ns <= self._summed_ns:
            return
        whole = self.with_more(others)
        for group, parts in whole._spans.items():
            until = np.minimum(np.concatenate(parts, axis=1), at_ns)
            whole._spans[group] = [until]
            first, last = self.grid.index(int(until[0].min())), self.grid.index(at_ns)
            found = whole.area_and_busy_ns(group, first, last)
            for index, both in enumerate(zip(*found, strict=True), first):
                self._summed[group, index] = both
        self._summed_ns = at_ns
        self._keep_after(at_ns)

    def forget_before(self, at_ns: int) -> None:
        """Rows ended by ``at_ns``, the end of an interval, are no longer needed."""
        self._keep_after(at_ns)
        index = self.grid.index(at_ns)
        self._summed = {place: both for place, both in self._summed.items() if place[1] >= index}

    def _keep_after(self, at_ns: int) -> None:
        kept = {}
        self.held = 0
        for group, parts in self._spans.items():
            spans = np.concatenate(parts, axis=1)
            spans = spans[:, spans[1] > at_ns]
            if self._summed_ns is not None:
                spans = np.maximum(spans, self._summed_ns)
            if spans.size:
                kept[group] = [spans]
                self.held += spans.shape[1]
        self._spans = kept

    def groups(self) -> list[str]:
        """The groups of the rows."""
        return list(dict.fromkeys([*self._spans, *(group for group, _ in self._summed)]))

    def area_and_busy_ns(self, group: str, first: int, last: int) -> tuple[list[int], list[int]]:
        """Per interval from ``first`` to ``last`` the sum of the rows' times in the interval, and the length of their
        union. Exact: the areas of all intervals sum to the rows' durations inside the intervals.
        """
        edges = self.grid.zero_ns + np.arange(first, last + 2, dtype=np.int64) * self.grid.step_ns
        before = [self._summed.get((group, index), (0, 0)) for index in range(first, last + 1)]
        parts = self._spans.get(group)
        if not parts:
            return [area for area, _ in before], [busy for _, busy in before]
        begins, ends = np.concatenate(parts, axis=1)
        area = time_within(begins, ends, edges)
        order = np.argsort(begins, kind="stable")
        begins, reach = begins[order], np.maximum.accumulate(ends[order])
        fresh = np.append(True, begins[1:] > reach[:-1])  # nothing was there just before
        starts = begins[fresh]
        stops = np.append(reach[:-1][fresh[1:]], reach[-1])
        busy = np.diff(_before(starts, edges) - _before(stops, edges))
        return (
            [summed + more for (summed, _), more in zip(before, area.tolist(), strict=True)],
            [summed + more for (_, summed), more in zip(before, busy.tolist(), strict=True)],
        )


def time_within(begins: Numbers, ends: Numbers, edges: Numbers) -> Numbers:
    """Between each two neighbouring edges the time from begin to end, summed over all rows, in any order. Exact."""
    return np.diff(_before(np.sort(begins), edges) - _before(np.sort(ends), edges))


def _before(times: Numbers, edges: Numbers) -> Numbers:
    """For each edge the sum of (edge - t) over the sorted times t before the edge."""
    origin = times[0] if len(times) else 0
    sums = np.append(0, np.cumsum(times - origin))
    count = np.searchsorted(times, edges, side="right")
    return count * (edges - origin) - sums[count]
