# SPDX-License-Identifier: MIT
"""All hosts on the clock of one: the tightest bounds over all pairs with messages, and one monotone map per host."""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING

import numpy as np

from opline.cluster.pair_clock import PairClock
from opline.values import Value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

KNOT_NS = 100_000_000
SLACK_NS = 1_000  # what a bound may grow between two knots
MOST_KNOTS = 2_000_000
MOST_PRODUCT = 2**62  # of 64 bits
ROUNDS = 20  # of more knots where messages need them


class Link(Value):
    """Two hosts with messages in both directions. The clock is that of ``b`` against ``a``. Pairs of times, each in ns
    of its own host: ``forward`` sent by a, received by b; ``backward`` sent by b, received by a.
    """

    a: str
    b: str
    forward: tuple[np.ndarray, np.ndarray]
    backward: tuple[np.ndarray, np.ndarray]
    clock: PairClock


class HostMap:
    """From a host's own clock to the reference's: knots, straight lines between them, integers, rounded down (the same
    in native/src/event/clock_map.hpp). ``bound_ns``: from each knot to the next.
    """

    def __init__(self, own_ns: np.ndarray, reference_ns: np.ndarray, low: np.ndarray, high: np.ndarray) -> None:
        """``low`` and ``high``: bounds of own − reference at the knots."""
        self.own_ns, self.reference_ns, self.low_ns, self.high_ns = own_ns, reference_ns, low, high
        self.bound_ns = np.zeros(len(own_ns), np.int64)
        self.segment = np.zeros(len(own_ns), np.int64)

    def __len__(self) -> int:
        return len(self.own_ns)

    @property
    def steady(self) -> np.ndarray:
        """Whether no step lies between each knot and the next."""
        steady: np.ndarray = np.diff(self.segment, append=self.segment[-1:]) == 0
        return steady

    def at(self, own_ns: np.ndarray) -> np.ndarray:
        """The reference's time of the host's own times. Before the first knot and behind the last one the offset is
        constant.
        """
        if not len(self):
            return own_ns
        own, reference = self.own_ns, self.reference_ns
        k = np.searchsorted(own, own_ns, "right") - 1
        inside = (k >= 0) & (k < len(own) - 1)
        k = np.clip(k, 0, max(0, len(own) - 2))
        nearest = np.where(own_ns < own[0], 0, len(own) - 1)
        moved: np.ndarray = own_ns - own[nearest] + reference[nearest]
        if len(own) == 1:
            return moved
        passed = np.where(inside, own_ns - own[k], 0)
        run = own[k + 1] - own[k]
        gained = reference[k + 1] - reference[k] - run
        if float(np.abs(passed).max(initial=0)) * float(np.abs(gained).max(initial=0)) > MOST_PRODUCT:
            passed, gained = passed.astype(object), gained.astype(object)  # a step in a long silence
        mapped: np.ndarray = np.where(inside, reference[k] + passed + passed * gained // run, moved).astype(np.int64)
        return mapped

    def bound_at(self, reference_ns: np.ndarray) -> np.ndarray:
        """How far a mapped time may be from the truth, if the limits hold."""
        if not len(self):
            return np.zeros(len(reference_ns), np.int64)
        k = np.clip(np.searchsorted(self.reference_ns, reference_ns, "right") - 1, 0, len(self) - 1)
        return self.bound_ns[k]


class Network:
    """Hosts as nodes, pairs with messages as edges. ``maps`` has the hosts that messages connect with the reference;
    the others are in ``apart``.
    """

    def __init__(
        self, hosts: Sequence[str], links: Sequence[Link], reference: str, spans: Mapping[str, tuple[int, int]]
    ) -> None:
        """``spans``: the first and last time of each host, in ns of its own clock."""
        self.reference = reference
        self.links = links
        self._parents: dict[str, tuple[str, Link]] = {}
        self._base = {reference: 0}  # own − reference, roughly
        self._walk()
        self.hosts = [h for h in hosts if h in self._base]
        self.apart = [h for h in hosts if h not in self._base]
        begin = min(spans[h][0] - self._base[h] for h in self.hosts)
        end = max(spans[h][1] - self._base[h] for h in self.hosts)
        loosest = max([float(link.clock.limit_ppm) for link in links], default=0.0) or 1.0
        spacing = int(min(KNOT_NS, max(SLACK_NS * 2e6 / loosest, (end - begin) / MOST_KNOTS)))
        self._grid = np.unique(np.r_[np.arange(begin, end, max(spacing, 1), dtype=np.int64), begin, end, self._edges()])
        self.maps = self._maps()
        self._keep_order()

    def _walk(self) -> None:
        """The shortest tree of hosts from the reference, and rough offsets."""
        waiting = deque([self.reference])
        while waiting:
            here = waiting.popleft()
            for link in self.links:
                for known, other, sign in ((link.a, link.b, 1), (link.b, link.a, -1)):
                    if known == here and other not in self._base:
                        self._base[other] = self._base[here] + sign * link.clock.offset_ns
                        self._parents[other] = here, link
                        waiting.append(other)

    def _rough(self) -> dict[str, np.ndarray]:
        """Own times of each host at the grid, along the tree."""
        own = {self.reference: self._grid}
        for host, (parent, link) in self._parents.items():
            if host == link.b:
                own[host] = own[parent] + link.clock.offset_ns + link.clock.middle(own[parent])
                continue
            own[host] = link.clock.first_at(own[parent])
        return own

    def _maps(self) -> dict[str, HostMap]:
        grid, own = self._grid, self._rough()
        low = {h: np.full(len(grid), -np.inf) for h in self.hosts}
        high = {h: np.full(len(grid), np.inf) for h in self.hosts}
        low[self.reference], high[self.reference] = np.zeros(len(grid)), np.zeros(len(grid))
        edges = []
        for link in self.links:
            if link.a in own:
                shift = link.clock.offset_ns - (self._base[link.b] - self._base[link.a])
                least, most = link.clock.at(own[link.a])
                edges.append((link.a, link.b, least + shift, most + shift))
        for _ in self.hosts:  # the paths from the reference are no longer
            before = [array.copy() for array in (*low.values(), *high.values())] if len(edges) > 1 else []
            for a, b, least, most in edges:
                high[b] = np.minimum(high[b], high[a] + most)
                low[b] = np.maximum(low[b], low[a] + least)
                high[a] = np.minimum(high[a], high[b] - least)
                low[a] = np.maximum(low[a], low[b] - most)
            if not before or all(map(np.array_equal, before, (*low.values(), *high.values()))):
                break
        return {h: self._map(h, low[h], high[h], own) for h in self.hosts}

    def _map(self, host: str, low: np.ndarray, high: np.ndarray, own: Mapping[str, np.ndarray]) -> HostMap:
        if host == self.reference:
            nothing = np.empty(0, np.int64)
            return HostMap(nothing, nothing, nothing, nothing)
        known = np.isfinite(low) & np.isfinite(high)
        least, most = low[known].astype(np.int64), high[known].astype(np.int64)
        grid = self._grid[known]
        middle = (least + most) // 2
        knots = grid + self._base[host] + middle
        rises = np.r_[True, knots[1:] > np.maximum.accumulate(knots)[:-1]]
        base = self._base[host]
        made = HostMap(knots[rises], grid[rises], (base + least)[rises], (base + most)[rises])
        made.segment = _runs(known)[rises]
        made.bound_ns = _bound(
            made, np.maximum(most - middle, middle - least)[rises], self._limit(host, own)[known][rises]
        )
        return made

    def _limit(self, host: str, own: Mapping[str, np.ndarray]) -> np.ndarray:
        """The limit of the host's rate against the reference: the sum along the tree, in ppm."""
        out = np.zeros(len(self._grid))
        while host != self.reference:
            parent, link = self._parents[host]
            out += link.clock.limit_at(own[link.a])
            host = parent
        return out

    def early(self, link: Link) -> tuple[np.ndarray, np.ndarray]:
        """By how much each message arrives before it was sent on the reference's clock, forward and backward; positive
        where it does.
        """
        a, b = self.maps[link.a], self.maps[link.b]
        forward = a.at(link.forward[0]) - b.at(link.forward[1])
        return forward, b.at(link.backward[0]) - a.at(link.backward[1])

    def _keep_order(self) -> None:
        """More knots, until no message arrives before it was sent. Messages that contradict stay where they are."""
        for _ in range(ROUNDS):
            times = [np.empty(0, np.int64)]
            for link in self.links:
                if link.a not in self.maps or link.b not in self.maps:
                    continue
                forward, backward = self.early(link)
                at_a = np.concatenate([link.forward[0][forward > 0], link.backward[1][backward > 0]])
                times.append(self.maps[link.a].at(at_a))
            grid = np.union1d(self._grid, np.concatenate(times))
            if len(grid) == len(self._grid):
                return
            self._grid = grid
            self.maps = self._maps()

    def _edges(self) -> np.ndarray:
        """The reference's times of both edges and the middle of each step."""
        found = [np.empty(0, np.int64)]
        for link in self.links:
            if link.clock.steps and link.a in self._base:
                edges = [(s.begin_ns, (s.begin_ns + s.end_ns) // 2, s.end_ns) for s in link.clock.steps]
                found.append(self._reference_at(link.a, np.array(edges, np.int64).ravel()))
        return np.concatenate(found)

    def _reference_at(self, host: str, own_ns: np.ndarray) -> np.ndarray:
        """The reference's times of a host's own times, which are in order, along the tree."""
        while host != self.reference:
            host, link = self._parents[host]
            if host == link.a:
                own_ns = link.clock.first_at(own_ns)
            else:
                own_ns = own_ns + link.clock.offset_ns + link.clock.middle(own_ns)
        return own_ns


def _runs(known: np.ndarray) -> np.ndarray:
    """For each known point how many runs of unknown ones are before it."""
    begins = known & np.r_[False, ~known[:-1]]
    numbers: np.ndarray = np.cumsum(begins)[known]
    return numbers


def _bound(made: HostMap, away: np.ndarray, limit_ppm: np.ndarray) -> np.ndarray:
    """The bounds from each knot to the next. ``away``: how far the offset may be from the truth at each knot;
    ``limit_ppm``: of its rate.

    An offset is known at a time of one clock, and asked at a time of another, which is as far away: so the rate of the
    offset counts. Between two knots a bound widens by the limit. In a step the truth lies somewhere between the knots.
    """
    if len(made) < 2:
        return away
    run = np.diff(made.reference_ns).astype(np.float64)
    stepped = np.diff(made.segment) > 0
    limit = np.maximum(limit_ppm[:-1], limit_ppm[1:]) * 1e-6
    rate = np.where(stepped, 0.0, np.abs(np.diff(made.own_ns) / run - 1)) + limit
    most = np.maximum(away[:-1], away[1:]) * (1 + 2 * np.minimum(rate, 1.0))
    out: np.ndarray = np.ceil(most + np.where(stepped, run, run * limit / 2)).astype(np.int64)
    last = out[-1] if not stepped[-1] else math.ceil(away[-1] * (1 + 2 * limit[-1]))
    return np.append(out, last)
