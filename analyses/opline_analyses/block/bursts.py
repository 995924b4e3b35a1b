# SPDX-License-Identifier: MIT
"""Bursts: stretches of intervals far above the average, and whether bursts return regularly.

Takes one number per interval (bytes, I/Os, waited time), also for empty intervals. A burst is a stretch above the mean
whose greatest interval has at least ``PEAK`` times the mean; the shortest part with ``MOST`` of the stretch is
reported, without a quiet begin or a long tail.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from opline.values import Value

if TYPE_CHECKING:
    from collections.abc import Sequence

PEAK = 4.0
MOST = 0.95
GAP = 1  # so many intervals below the mean do not end a stretch
REGULAR = 0.2  # distances with smaller relative differences from their median are a period
FEWEST = 3  # least number of bursts for a period
FEWEST_IOS = 8  # fewer I/Os one after another prove no bursts


class Burst(Value):
    """Intervals ``first`` to ``last``, what they have together, and what the greatest has."""

    first: int
    last: int
    total: int
    peak: int


class Period(Value):
    """Distances between the begins of bursts, in intervals: the median, the least and the greatest."""

    median: float
    least: int
    most: int

    @property
    def regular(self) -> bool:
        """Whether the distances are about equal."""
        return self.most - self.least <= max(1.0, REGULAR * self.median)


def _stretches(values: Sequence[int], mean: float) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for index, value in enumerate(values):
        if value <= mean:
            continue
        if found and index - found[-1][1] <= GAP + 1:
            found[-1] = found[-1][0], index
        else:
            found.append((index, index))
    return found


def _core(values: Sequence[int], first: int, last: int) -> tuple[int, int]:
    """The shortest part of a stretch with MOST of the sum; among two the part with more."""
    wanted = MOST * sum(values[first : last + 1])
    best, begin, inside = (last - first, 0, first), first, 0
    for end in range(first, last + 1):
        inside += values[end]
        while inside - values[begin] >= wanted:
            inside -= values[begin]
            begin += 1
        if inside >= wanted:
            best = min(best, (end - begin, -inside, begin))
    return best[2], best[2] + best[0]


def bursts(values: Sequence[int], counts: Sequence[int] | None = None) -> list[Burst]:
    """In order of time. ``counts``: how many I/Os each interval has; a stretch of few is none."""
    whole = sum(values)
    if not whole:
        return []
    mean = whole / len(values)
    found = []
    for stretch in _stretches(values, mean):
        first, last = _core(values, *stretch)
        peak = max(values[first : last + 1])
        few = counts is not None and sum(counts[first : last + 1]) < FEWEST_IOS
        if peak >= PEAK * mean and not few:
            found.append(Burst(first, last, sum(values[first : last + 1]), peak))
    return found


def period(found: Sequence[Burst]) -> Period | None:
    """The distances between begins; None for too few."""
    if len(found) < FEWEST:
        return None
    apart = sorted(b.first - a.first for a, b in pairwise(found))
    middle = len(apart) // 2
    median = apart[middle] if len(apart) % 2 else (apart[middle - 1] + apart[middle]) / 2
    return Period(float(median), apart[0], apart[-1])
