# SPDX-License-Identifier: MIT
"""Counts, sums, least and greatest values in fixed buckets: as JSON, and added."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opline.values import Value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, TypeAlias

    from opline_analyses.intervals.intervals import Cell, Cells

    Numbers: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]


def cell(found: Cell) -> list[int | None]:
    """A cell as JSON."""
    return [found.count, found.total, found.least, found.most, found.size]


def cells(found: Cells) -> list[list[Any]]:
    """Cells as JSON, in an order that depends only on the contents."""
    return [[group, bucket, *cell(one)] for (group, bucket), one in sorted(found.items())]


class Buckets(Value):
    """One group's values, by bucket, ascending (StageStatistics::sums): number, sum, least, most."""

    bucket: Numbers
    count: Numbers
    total: Numbers
    least: Numbers
    most: Numbers

    @property
    def values(self) -> int:
        """How many there are."""
        return int(self.count.sum())

    @property
    def is_exact(self) -> bool:
        """No bucket has different values."""
        return bool((self.least == self.most).all())

    def place(self, rank: int) -> int:
        """The index of the bucket with the value of this rank, from 1."""
        return int(np.searchsorted(np.cumsum(self.count), rank))


def buckets_of(columns: Sequence[Sequence[int]]) -> Buckets:
    """Of the five lists in a summary."""
    return Buckets(*(np.array(column, np.int64) for column in columns))


NONE = buckets_of([[]] * 5)


def by_group(cells: Mapping[str, Sequence[Sequence[int]]]) -> dict[str, Buckets]:
    """The groups of one summary."""
    return {group: buckets_of(columns) for group, columns in cells.items()}


def added(of_runs: Sequence[Buckets]) -> Buckets:
    """The values of all runs. No sum of a bucket exceeds 64 bits, or 292 years."""
    if not (found := [one for one in of_runs if len(one.bucket)]):
        return NONE
    columns = zip(*((one.bucket, one.count, one.total, one.least, one.most) for one in found), strict=True)
    bucket, count, total, least, most = map(np.concatenate, columns)
    order = np.argsort(bucket, kind="stable")
    bucket = bucket[order]
    starts = np.flatnonzero(np.diff(bucket, prepend=-1))
    return Buckets(
        bucket[starts],
        np.add.reduceat(count[order], starts), np.add.reduceat(total[order], starts),
        np.minimum.reduceat(least[order], starts), np.maximum.reduceat(most[order], starts),
    )  # fmt: skip
