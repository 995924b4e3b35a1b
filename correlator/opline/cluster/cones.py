# SPDX-License-Identifier: MIT
"""Bounds of one clock against another: each message is a bound, which widens with time by an assumed limit of the
relative rate (set membership; docs/internals/hosts.md).

theta(t) is the clock of host B minus that of host A, at A's time t. Times are counted from an origin, so that doubles
are exact below 2**52 ns (52 days); what leaves this file is rounded outwards to integers.
"""

from __future__ import annotations

import numpy as np

from opline.values import Value

BLOCK_NS = 5_000_000_000  # the limit is raised for so long
LADDER_PPM = (20.0, 100.0, 500.0)
FITTED_LIMIT_PPM, PLAIN_LIMIT_PPM = 10.0, 500.0


class Points(Value):
    """Bounds of theta, ordered by time: arrays of times and of values, in ns from an origin."""

    t: np.ndarray
    v: np.ndarray

    def __len__(self) -> int:
        return len(self.t)

    def only(self, which: np.ndarray) -> Points:
        return Points(self.t[which], self.v[which])


class RateLimit:
    """The assumed limit over time: a number of ppm for each block of 5 s."""

    def __init__(self, begin: float, end: float, ppm: float) -> None:
        self.begin, self.base_ppm = begin, ppm
        self.ppm = np.full(int((end - begin) // BLOCK_NS) + 1, ppm)
        self._widened = np.empty(0)
        self._sum()

    def _sum(self) -> None:
        self._widened = np.r_[0.0, np.cumsum(self.ppm * 1e-6 * BLOCK_NS)]

    def block(self, t: np.ndarray) -> np.ndarray:
        """The block of each time; times outside belong to the first or the last one."""
        return np.clip(((t - self.begin) // BLOCK_NS).astype(np.int64), 0, len(self.ppm) - 1)

    def raise_to(self, blocks: np.ndarray, ppm: float) -> None:
        self.ppm[blocks] = np.maximum(self.ppm[blocks], ppm)
        self._sum()

    def widened(self, t: np.ndarray) -> np.ndarray:
        """By how much a bound of the begin has widened at each time."""
        block = self.block(t)
        out: np.ndarray = self._widened[block] + (t - self.begin - block * BLOCK_NS) * self.ppm[block] * 1e-6
        return out


class Envelope:
    """The tightest of one side's cones at any time. ``sign`` 1: upper bounds, −1: lower ones."""

    def __init__(self, points: Points, rate: float, limit: RateLimit, sign: int) -> None:
        self.points, self.rate, self.limit, self.sign = points, rate, limit, sign
        level = (points.v - rate * points.t) * sign
        wide = limit.widened(points.t)
        self._past = np.minimum.accumulate(level - wide)
        self._future = np.minimum.accumulate((level + wide)[::-1])[::-1]
        self._level_past, self._level_future = level - wide, level + wide

    def at(self, t: np.ndarray, past: bool = True, future: bool = True) -> np.ndarray:
        """The bound at each time, infinite where there is none; of earlier messages, of later ones, or of both."""
        times = self.points.t
        wide = self.limit.widened(t)
        out = np.full(len(t), np.inf)
        if past and len(times):
            i = np.searchsorted(times, t, "right") - 1
            out = np.where(i >= 0, self._past[np.maximum(i, 0)] + wide, np.inf)
        if future and len(times):
            j = np.searchsorted(times, t, "left")
            out = np.minimum(out, np.where(j < len(times), self._future[np.minimum(j, len(times) - 1)] - wide, np.inf))
        return self.sign * out + self.rate * t

    def tightest(self, t: float) -> int:
        """The index of the message that bounds theta at that time."""
        times, wide = self.points.t, float(self.limit.widened(np.array([t]))[0])
        i, j = int(np.searchsorted(times, t, "right")), int(np.searchsorted(times, t, "left"))
        past = int(self._level_past[:i].argmin()) if i else -1
        future = j + int(self._level_future[j:].argmin()) if j < len(times) else -1
        if past < 0 or future < 0:
            return max(past, future)
        return past if self._level_past[past] + wide <= self._level_future[future] - wide else future


class Bounds:
    """Upper and lower bounds of theta under a limit of its rate."""

    def __init__(self, upper: Points, lower: Points, rate: float, limit: RateLimit) -> None:
        self.upper = Envelope(upper, rate, limit, 1)
        self.lower = Envelope(lower, rate, limit, -1)
        self.limit = limit
        self.rate = rate

    def at(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(lower, upper) at each time."""
        return self.lower.at(t), self.upper.at(t)

    def mean_rate(self, times: np.ndarray) -> tuple[float, float]:
        """(least, most) rate of theta from a moment in the first quarter of the times to one in the last quarter, each
        where the bounds are tightest.
        """
        low, high = self.at(times)
        quarter = (times[-1] - times[0]) / 4
        early, late = times <= times[0] + quarter, times >= times[-1] - quarter
        width = high - low
        a = int(np.where(early, width, np.inf).argmin())
        b = int(np.where(late, width, np.inf).argmin())
        apart = max(float(times[b] - times[a]), 1.0)
        return float(low[b] - high[a]) / apart, float(high[b] - low[a]) / apart

    def crossed(self, t: np.ndarray, past: bool = True, future: bool = True) -> np.ndarray:
        """By how much the lower bound is above the upper one, at each time; at most 0 where they agree."""
        out: np.ndarray = self.lower.at(t, past, future) - self.upper.at(t, past, future)
        return out


def message_times(upper: Points, lower: Points) -> np.ndarray:
    """All times at which something is known."""
    return np.union1d(upper.t, lower.t)


TOLERANCE_NS = 0.01  # of doubles at 52 days


def _blocks(limit: RateLimit, times: np.ndarray, crossed: np.ndarray) -> np.ndarray:
    """The blocks of crossed times, and those between two that follow each other: there may be no message in them."""
    block = limit.block(times)
    bad = np.zeros(len(limit.ppm) + 1, np.int64)
    both = np.flatnonzero(crossed[:-1] & crossed[1:])
    for begin, end in ((block[crossed], block[crossed]), (block[both], block[both + 1])):
        np.add.at(bad, begin, 1)
        np.add.at(bad, end + 1, -1)
    return np.flatnonzero(np.cumsum(bad[:-1]))


def raised(upper: Points, lower: Points, rate: float, ppm: float) -> Bounds:
    """Bounds with the limit raised in the blocks where messages contradict each other, up to 500 ppm: what contradicts
    then still does.
    """
    times = message_times(upper, lower)
    limit = RateLimit(float(times[0]), float(times[-1]), ppm)
    for step in (ppm, *(p for p in LADDER_PPM if p > ppm)):
        while True:
            found = Bounds(upper, lower, rate, limit)
            bad = _blocks(limit, times, found.crossed(times) > TOLERANCE_NS)
            if not len(bad):
                return found
            low = bad[limit.ppm[bad] < step]
            if not len(low):
                break
            limit.raise_to(low, step)
    return Bounds(upper, lower, rate, limit)
