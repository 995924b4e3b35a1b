# SPDX-License-Identifier: MIT
"""A histogram of another tool, and a series of histograms: the counts between each two.

Buckets are [low, high) in ns; ``high`` is None for a tool's open last bucket. Oracle's and NetApp's buckets have the
name of their upper end: B holds B/2 to B. SystemTap's, DTrace's and BPF's have the name of the lower end: B holds B to
2 B.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from opline.errors import OplineError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Bucket = tuple[int, int | None]
Counts = dict[Bucket, int]
SECOND_US = 1_000_000


@dataclass(slots=True)
class Snapshot:
    """A tool's output at one time: a histogram, or one for each group (a disk, a set of flags, a key)."""

    unit: str  # of the buckets: ns, us, ms, s
    line: int  # first line
    at_us: int | None = None  # of the tool's clock, any clock
    length_us: int | None = None  # length of the counting, if told
    cumulative: bool = False  # counts since the tool began
    label: str = ""
    date: str = ""
    upper: bool = False  # buckets have the names of their upper ends
    groups: dict[str, Counts] = field(default_factory=dict)

    def add(self, group: str, bucket: Bucket, count: int) -> None:
        """Equal buckets are summed: each instance of a cluster has a separate row."""
        counts = self.groups.setdefault(group, {})
        counts[bucket] = counts.get(bucket, 0) + count


@dataclass(slots=True)
class Interval:
    """The counts from one snapshot to the next. ``restarted``: the tool had begun again, and the counts are since then.
    ``timed``: with the tool's own times.
    """

    begin_us: int
    end_us: int
    groups: dict[str, Counts]
    snapshot: Snapshot
    restarted: bool = False
    timed: bool = True

    @property
    def total(self) -> int:
        """All groups' counts."""
        return sum(sum(counts.values()) for counts in self.groups.values())


def intervals(snapshots: Iterable[Snapshot]) -> Iterator[Interval]:
    """For cumulative snapshots the differences, where the first snapshot only begins the counting; other snapshots
    unchanged. A snapshot without a time and a length is one second after the snapshot before.
    """
    before: Snapshot | None = None
    at_us = 0
    for snapshot in snapshots:
        length = snapshot.length_us or SECOND_US
        timed = snapshot.at_us is not None or snapshot.length_us is not None
        last_us, at_us = at_us, snapshot.at_us if snapshot.at_us is not None else at_us + length
        if not snapshot.cumulative:
            begin = at_us - snapshot.length_us if snapshot.length_us else last_us
            if before is None and not snapshot.length_us:
                begin = at_us - SECOND_US
            yield Interval(min(begin, at_us - 1), at_us, snapshot.groups, snapshot, timed=timed)
        elif before is not None:
            changed = {
                group: _difference(counts, before.groups.get(group, {})) for group, counts in snapshot.groups.items()
            }
            gone = any(n and g not in snapshot.groups for g, c in before.groups.items() for n in c.values())
            restarted = gone or any(n < 0 for counts in changed.values() for n in counts.values())
            backwards = at_us <= last_us
            groups = snapshot.groups if restarted else changed
            yield Interval(
                at_us - SECOND_US if backwards else last_us, at_us, groups, snapshot, restarted, timed and not backwards
            )
        before = snapshot


def whole_of_one(snapshot: Snapshot) -> Interval:
    """A single cumulative snapshot: all counts since the tool's begin, at an unknown time."""
    at_us = snapshot.at_us or SECOND_US
    return Interval(at_us - SECOND_US, at_us, snapshot.groups, snapshot, timed=False)


def _difference(counts: Counts, before: Counts) -> Counts:
    return {bucket: counts.get(bucket, 0) - before.get(bucket, 0) for bucket in counts.keys() | before.keys()}


def edges_of(found: Iterable[Interval], where: str) -> list[tuple[int, int]]:
    """All buckets, in order, without a hole between the first and the last nonempty bucket; an open bucket ends at
    twice its begin. Raises OplineError if buckets overlap.
    """
    used: set[Bucket] = set()
    empty: set[Bucket] = set()
    for interval in found:
        for counts in interval.groups.values():
            for bucket, count in counts.items():
                (used if count else empty).add(bucket)
    if not used:
        return []
    least, most = min(low for low, _ in used), max(low for low, _ in used)
    closed = sorted({(bucket[0], closed_end(bucket)) for bucket in used | {b for b in empty if least < b[0] < most}})
    edges = closed[:1]
    for (low, high), (next_low, next_high) in pairwise(closed):
        if next_low < high:
            raise OplineError(
                f"{where}: the buckets {low} to {high} ns and {next_low} to {next_high} ns overlap: tables of several "
                "units or tools go into files of their own."
            )
        at = high
        while at < next_low:  # buckets left out by the tool as empty: as powers of two, or as one bucket
            end = 2 * at if at and 2 * at <= next_low else next_low
            edges.append((at, end))
            at = end
        edges.append((next_low, next_high))
    return edges


def closed_end(bucket: Bucket) -> int:
    """The end of a bucket; an open bucket is shown with the end at twice its begin."""
    low, high = bucket
    return max(1, 2 * low) if high is None else high


def about(bucket: Bucket, count: int) -> int:
    """The waited time in a bucket, with the bucket's middle for each: 0.75 B with B as the upper end, 1.5 B with B as
    the lower end; for an open bucket the begin.
    """
    low, high = bucket
    return count * low if high is None else count * (low + high) // 2
