# SPDX-License-Identifier: MIT
"""A series of another tool's histograms for the views: by interval, group and bucket."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from opline.errors import OplineError
from opline.talk import talk
from opline_analyses.base.quantities import DURATIONS
from opline_analyses.base.text import count_of
from opline_analyses.counts.snapshot import Interval, about, closed_end, edges_of, intervals, whole_of_one
from opline_analyses.intervals.intervals import Cell, Cells, number_of_intervals

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from opline_analyses.counts.snapshot import Snapshot
    from opline_analyses.intervals.buckets import Numbers

UNEVEN = 1.5  # intervals with lengths different by this factor are reported


class Edged:
    """A tool's buckets: ordinals and edges."""

    def __init__(self, edges: Sequence[tuple[int, int]]) -> None:
        self.all = list(edges)
        self.place = {low: index for index, (low, _) in enumerate(self.all)}

    def index(self, values: Numbers) -> Numbers:
        """Not for single values: there are none."""
        raise TypeError("counts have no single values")

    def edges(self, index: int) -> tuple[int, int]:
        """Where the bucket begins and ends."""
        return self.all[index]


@dataclass(slots=True)
class Collected:
    """All intervals, and the buckets used in any interval."""

    intervals: list[Interval]
    buckets: Edged
    where: str

    @property
    def groups(self) -> list[str]:
        """The groups' names, in order."""
        return sorted({group for interval in self.intervals for group in interval.groups}) or [""]

    @property
    def unit(self) -> str:
        """Of the tool's buckets."""
        return self.intervals[0].snapshot.unit

    @property
    def label(self) -> str:
        """The tool's description of its measurement."""
        return self.intervals[-1].snapshot.label

    def cells(self, interval: Interval) -> Cells:
        """By group and bucket; a cell's total is approximately the waited time. Empty buckets are left out."""
        found: Cells = {}
        for group, counts in interval.groups.items():
            for bucket, count in counts.items():
                if count:
                    cell = found.setdefault((group, self.buckets.place[bucket[0]]), Cell())
                    cell.add(Cell(count, about(bucket, count)))
        return found

    def powers(self, interval: Interval, unit: str) -> Cells:
        """The same with buckets of powers of two of ``unit``: each bucket goes into the bucket with its upper end."""
        found: Cells = {}
        for group, counts in interval.groups.items():
            for bucket, count in counts.items():
                if count:
                    place = power_of(bucket, DURATIONS[unit])
                    found.setdefault((group, place), Cell()).add(Cell(count, about(bucket, count)))
        return found


def power_of(bucket: tuple[int, int | None], unit_ns: int) -> int:
    """The ordinal (of PowerOfTwo) of the least power of two at or above a bucket's upper end."""
    return (-(-closed_end(bucket) // unit_ns) - 1).bit_length()


def collect(snapshots: Iterable[Snapshot], where: str) -> Collected:
    """The whole input. Oddities are reported on stderr. Raises OplineError for an empty input."""
    kept = list(snapshots)
    found = list(intervals(kept))
    if not kept:
        raise OplineError(f"{where} has no complete histogram.")
    if not found:
        talk(f"{where} has one histogram of counts that grow: shown is all since its tool began to count.")
        found = [whole_of_one(kept[0])]
    elif kept[0].cumulative:
        talk(f"{where}: the counts grow from histogram to histogram; shown are the differences, from the second on.")
    restarts = [interval for interval in found if interval.restarted]
    for interval in restarts[:3]:
        talk(f"{where}, line {interval.snapshot.line}: counts are below those before them: the tool began again here.")
    if not all(interval.timed for interval in found) and len(found) > 1:
        talk(f"{where} has no times that rise: each histogram is taken for one second.")
    lengths = [interval.end_us - interval.begin_us for interval in found]
    if max(lengths) > UNEVEN * min(lengths):
        talk(f"{where}: {count_of(len(found), 'interval')} of {min(lengths) / 1e6:g} to {max(lengths) / 1e6:g} s.")
    open_ones = sum(
        count for interval in found for counts in interval.groups.values() for (_, high), count in counts.items()
        if high is None
    )  # fmt: skip
    if open_ones:
        talk(f"{where}: {open_ones} are in a bucket without an upper end: shown as if it ended at twice its begin.")
    return Collected(found, Edged(edges_of(found, where)), where)


def grouped(found: Collected, step_us: int | None, most: int | None = None) -> list[Interval]:
    """The intervals put together: all of them, or the intervals that end in the same ``step_us`` from the first's
    begin; only the first ``most``. Raises UsageError for too many.
    """
    zero = found.intervals[0].begin_us
    together: dict[int, Interval] = {}
    for interval in found.intervals:
        place = 0 if step_us is None else max(0, interval.end_us - zero - 1) // step_us
        one = together.get(place)
        if one is None:
            begin = interval.begin_us if step_us is None else zero + place * step_us
            end = interval.end_us if step_us is None else begin + step_us
            together[place] = Interval(begin, end, _copied(interval), interval.snapshot, interval.restarted)
            continue
        one.end_us = max(one.end_us, interval.end_us)
        one.restarted |= interval.restarted
        for group, counts in interval.groups.items():
            mine = one.groups.setdefault(group, {})
            for bucket, count in counts.items():
                mine[bucket] = mine.get(bucket, 0) + count
    if step_us is None:
        return list(together.values())
    last = found.intervals[0].snapshot
    number = number_of_intervals((max(together) + 1) * step_us * 1000, step_us * 1000, most)
    return [together.get(p, Interval(zero + p * step_us, zero + (p + 1) * step_us, {}, last)) for p in range(number)]


def _copied(interval: Interval) -> dict[str, dict[tuple[int, int | None], int]]:
    return {group: dict(counts) for group, counts in interval.groups.items()}
