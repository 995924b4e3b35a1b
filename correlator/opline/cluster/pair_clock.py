# SPDX-License-Identifier: MIT
"""The clock of one host against that of another, from the messages between both: segments with bounds, steps between
them, and the messages that contradict the others.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from opline.cluster.cones import (
    FITTED_LIMIT_PPM,
    LADDER_PPM,
    PLAIN_LIMIT_PPM,
    TOLERANCE_NS,
    Bounds,
    Points,
    RateLimit,
    message_times,
    raised,
)
from opline.values import Value

MOST_LEFT_OUT = 0.001  # of the messages
MOST_STEPS = 20
ROUNDS = 3  # of a time that is looked for: each adds three digits
NEVER_NS = 1 << 62


class Step(Value):
    """A moment at which theta jumped: it lies between two messages. Times are of the first host's clock, in ns."""

    begin_ns: int
    end_ns: int
    size_ns: int


class Raised(Value):
    """A period in which the limit had to be raised."""

    begin_ns: int
    end_ns: int
    limit_ppm: float


class ContradictionError(Exception):
    """No map fits: more messages contradict others than may be left out, and no step explains it."""


class Segment(Value):
    """A period without a step: bounds that are valid in [begin, end], from the origin."""

    begin: float
    end: float
    bounds: Bounds


class PairClock:
    """theta of host B against host A over A's time. Raises ContradictionError."""

    def __init__(
        self,
        forward: tuple[np.ndarray, np.ndarray],
        backward: tuple[np.ndarray, np.ndarray],
        limit_ppm: float | None = None,
        deviation_ppm: float | None = None,
    ) -> None:
        """``forward``: (sent by A, received by B) of the messages from A to B; ``backward``: (sent by B, received by
        A); each in ns of its own host. ``limit_ppm``: the assumed limit. By default 10 ppm around the fitted rate, and
        what both clocks deviated from a steady rate (``deviation_ppm``); if that is None, 500 ppm around 0. What the
        messages leave open of the fitted rate comes on top.
        """
        sent_a, received_b = forward
        sent_b, received_a = backward
        self.messages = len(sent_a) + len(sent_b)
        times = np.concatenate([sent_a, received_a])
        values = np.concatenate([received_b - sent_a, sent_b - received_a])
        self.origin_ns = int(times.min()) if len(times) else 0
        self.offset_ns = int(np.median(values)) if len(values) else 0
        upper, lower = self._points(sent_a, received_b - sent_a), self._points(received_a, sent_b - received_a)
        self.two_way = bool(len(upper) and len(lower))
        self._may_fit = limit_ppm is not None or deviation_ppm is not None
        fitted_ppm = min(FITTED_LIMIT_PPM + math.ceil(deviation_ppm or 0), PLAIN_LIMIT_PPM)
        plain_ppm = PLAIN_LIMIT_PPM if deviation_ppm is None else fitted_ppm
        self.limit_ppm = plain_ppm if limit_ppm is None else limit_ppm
        self.left_out = 0
        self.steps: list[Step] = []
        self.segments: list[Segment] = []
        if self.two_way:
            self._divide(upper, lower)

    def _points(self, t: np.ndarray, v: np.ndarray) -> Points:
        order = np.argsort(t, kind="stable")
        return Points((t[order] - self.origin_ns).astype(np.float64), (v[order] - self.offset_ns).astype(np.float64))

    def at(self, t_ns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(lower, upper) bounds of theta − offset_ns in whole ns, at times of A's clock, as doubles that hold integers;
        infinite where nothing bounds it: in a step.
        """
        t = (t_ns - self.origin_ns).astype(np.float64)
        low, high = np.full(len(t), -np.inf), np.full(len(t), np.inf)
        for i, segment in enumerate(self.segments):
            mine = np.ones(len(t), bool)
            if i > 0:
                mine &= t >= segment.begin
            if i + 1 < len(self.segments):
                mine &= t <= segment.end
            low[mine], high[mine] = segment.bounds.at(t[mine])
        return np.ceil(low - TOLERANCE_NS), np.floor(high + TOLERANCE_NS)

    def limit_at(self, t_ns: np.ndarray) -> np.ndarray:
        """The assumed limit at times of A's clock, in ppm."""
        t = (t_ns - self.origin_ns).astype(np.float64)
        out = np.full(len(t), self.limit_ppm)
        for segment in self.segments:
            mine = (t >= segment.begin) & (t <= segment.end)
            limit = segment.bounds.limit
            out[mine] = limit.ppm[limit.block(t[mine])]
        return out

    def middle(self, t_ns: np.ndarray) -> np.ndarray:
        """theta − offset_ns in the middle of its bounds at times of A's clock, which are in order; in a step between
        what it is before and behind.
        """
        asked = np.union1d(t_ns, self._edges())
        low, high = self.at(asked)
        known = np.isfinite(low) & np.isfinite(high)
        at = asked[known].astype(np.float64)
        middle = np.interp(t_ns.astype(np.float64), at, (low[known] + high[known]) / 2)
        whole: np.ndarray = np.rint(middle).astype(np.int64)
        return whole

    def first_at(self, other_ns: np.ndarray) -> np.ndarray:
        """The times of A's clock at times of B's clock, which are in order; in a step as ``middle`` has it."""
        edges = self._edges()
        at_edges = self.middle(edges) if len(edges) else edges
        of_other = np.maximum.accumulate(edges + self.offset_ns + at_edges)
        k = np.searchsorted(of_other, other_ns, "right")
        least, most = np.r_[-NEVER_NS, edges][k], np.r_[edges, NEVER_NS][k]
        found: np.ndarray = other_ns - np.r_[self.offset_ns, of_other - edges][k]
        for _ in range(ROUNDS):
            found = np.clip(other_ns - self.offset_ns - self.middle(np.clip(found, least, most)), least, most)
        stepped = k % 2 == 1
        last = k[stepped]
        part = (other_ns[stepped] - of_other[last - 1]) / (of_other[last] - of_other[last - 1])
        found[stepped] = edges[last - 1] + np.rint(part * (edges[last] - edges[last - 1])).astype(np.int64)
        return found

    def _edges(self) -> np.ndarray:
        return np.array([ns for step in self.steps for ns in (step.begin_ns, step.end_ns)], np.int64)

    def raised(self) -> list[Raised]:
        """Where the limit was raised, neighbouring blocks with one limit together."""
        out: list[Raised] = []
        for segment in self.segments:
            limit = segment.bounds.limit
            edges = np.flatnonzero(np.diff(np.r_[limit.base_ppm, limit.ppm, limit.base_ppm]) != 0)
            for first, past in itertools.pairwise(edges):
                if limit.ppm[first] > limit.base_ppm:
                    begin, end = (self.origin_ns + int(limit.begin) + int(k) * 5_000_000_000 for k in (first, past))
                    out.append(Raised(begin, end, float(limit.ppm[first])))
        return out

    def _divide(self, upper: Points, lower: Points) -> None:
        """Makes the segments."""
        begin = -math.inf
        while True:
            found = self._agreeing(upper, lower)
            if found is not None:
                self.segments.append(Segment(begin, math.inf, found))
                return
            if fewer := self._without_contradicting(upper, lower):
                upper, lower = fewer
                continue
            first, last = self._step(upper, lower)
            if len(self.steps) >= MOST_STEPS:
                raise ContradictionError
            left = self._agreeing(upper.only(upper.t <= first), lower.only(lower.t <= first))
            upper, lower = upper.only(upper.t >= last), lower.only(lower.t >= last)
            if left is None or not len(upper) or not len(lower):
                raise ContradictionError
            self.segments.append(Segment(begin, first, left))
            before, behind = left.at(np.array([first])), self._loose(upper, lower).at(np.array([last]))
            size = (behind[0][0] + behind[1][0] - before[0][0] - before[1][0]) / 2
            self.steps.append(Step(self.origin_ns + int(first), self.origin_ns + int(last), round(float(size))))
            begin = last

    def _agreeing(self, upper: Points, lower: Points) -> Bounds | None:
        """The bounds of one segment, if its messages agree."""
        if not len(upper) or not len(lower):
            return None
        loose = self._loose(upper, lower)
        times = message_times(upper, lower)
        if (loose.crossed(times) > TOLERANCE_NS).any():
            return None
        least, most = loose.mean_rate(times)
        limit_ppm = self.limit_ppm + (most - least) / 2 * 1e6
        if not self._may_fit or limit_ppm >= loose.limit.base_ppm:  # too few messages, or too short
            self.limit_ppm = loose.limit.base_ppm
            return loose
        found = raised(upper, lower, (least + most) / 2, limit_ppm)
        return loose if (found.crossed(times) > TOLERANCE_NS).any() else found

    def _loose(self, upper: Points, lower: Points) -> Bounds:
        """Bounds with the loosest limit, which are crossed only by wrong messages and steps."""
        times = message_times(upper, lower)
        ppm = max(self.limit_ppm, LADDER_PPM[-1])
        return Bounds(upper, lower, 0.0, RateLimit(float(times[0]), float(times[-1]), ppm))

    def _without_contradicting(self, upper: Points, lower: Points) -> tuple[Points, Points] | None:
        """The messages without the fewest that contradict most others, if these are few enough; else None."""
        most = max(2, math.ceil(MOST_LEFT_OUT * (len(upper) + len(lower)))) - self.left_out
        removed = 0
        while removed <= most:
            found = self._loose(upper, lower)
            times = message_times(upper, lower)
            over = found.crossed(times)
            bad = over > TOLERANCE_NS
            if not bad.any():
                self.left_out += removed
                return (upper, lower) if removed else None
            edges = np.flatnonzero(np.diff(np.r_[False, bad, False]))
            out: tuple[set[int], set[int]] = (set(), set())
            for begin, past in zip(edges[::2], edges[1::2], strict=True):
                worst = float(times[begin + int(over[begin:past].argmax())])
                u, low = found.upper.tightest(worst), found.lower.tightest(worst)
                by_upper = _contradicted(upper.t[u], upper.v[u], lower, found, 1)
                by_lower = _contradicted(lower.t[low], lower.v[low], upper, found, -1)
                if by_upper >= by_lower:
                    out[0].add(u)
                if by_lower >= by_upper:
                    out[1].add(low)
                if len(out[0]) + len(out[1]) + removed > most:
                    return None
            removed += len(out[0]) + len(out[1])
            upper = upper.only(np.setdiff1d(np.arange(len(upper)), sorted(out[0])))
            lower = lower.only(np.setdiff1d(np.arange(len(lower)), sorted(out[1])))
            if not len(upper) or not len(lower):
                return None
        return None

    def _step(self, upper: Points, lower: Points) -> tuple[float, float]:
        """The first step: the last message before it and the first one behind it. Raises ContradictionError."""
        times = message_times(upper, lower)
        found = self._loose(upper, lower)
        late = times[found.crossed(times, future=False) > TOLERANCE_NS]
        if not len(late):
            raise ContradictionError
        seen = float(late[0])  # what came before agrees
        upper, lower = upper.only(upper.t <= seen), lower.only(lower.t <= seen)
        times = message_times(upper, lower)
        early = times[self._loose(upper, lower).crossed(times, past=False) > TOLERANCE_NS]
        if not len(early):
            raise ContradictionError
        between = times[(times >= early[-1]) & (times <= seen)]
        return float(between[0]), float(between[-1])


class ExactClock(PairClock):
    """theta of two time namespaces of one boot: a constant that the kernel tells."""

    def __init__(self, offset_ns: int, messages: int) -> None:
        self.messages, self.offset_ns, self.origin_ns = messages, offset_ns, 0
        self.two_way, self.limit_ppm, self.left_out = True, 0.0, 0
        self.steps, self.segments = [], []

    def at(self, t_ns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros(len(t_ns)), np.zeros(len(t_ns))

    def limit_at(self, t_ns: np.ndarray) -> np.ndarray:
        return np.zeros(len(t_ns))


def _contradicted(t: float, v: float, others: Points, bounds: Bounds, sign: int) -> int:
    """How many of the other side's messages contradict one message."""
    wide = bounds.limit.widened(others.t)
    here = float(bounds.limit.widened(np.array([t]))[0])
    bound = v + bounds.rate * (others.t - t) + sign * np.abs(wide - here)
    return int(((others.v - bound) * sign > TOLERANCE_NS).sum())
