# SPDX-License-Identifier: MIT
"""Over more than 200 simulated pairs of clocks the truth lies inside the printed bound at every point asked, wherever
the stated limit of the rate holds; where it does not hold and messages can show that, it is told.

Every host's clock is a function of a true time: pieces of constant rates, and jumps forward, because no recorded clock
runs backwards. Rates alternate between the two ends of what the limit allows, which is the worst that a clock can do.
"""

from __future__ import annotations

import numpy as np
import pytest

from opline.cluster.network import Link, Network
from opline.cluster.pair_clock import ContradictionError, PairClock
from opline.cluster.pairing import Ends, pair

SECOND = 1_000_000_000
MILLISECOND = 1_000_000
SEEDS = range(20)
Ways = tuple[np.ndarray, np.ndarray]  # sent, received


class Clock:
    """``ppm``: the rate from each of ``edges_s`` on; ``jumps``: (true time in s, size in ns)."""

    def __init__(
        self, offset_ns: int, edges_s: np.ndarray, ppm: np.ndarray, jumps: tuple[tuple[float, int], ...] = ()
    ) -> None:
        self.offset_ns, self.edges, self.ppm, self.jumps = offset_ns, edges_s * SECOND, ppm, jumps
        self.gained = np.r_[0, np.cumsum(np.diff(self.edges) * ppm[:-1] * 1e-6)]

    def at(self, true_ns: np.ndarray) -> np.ndarray:
        k = np.clip(np.searchsorted(self.edges, true_ns, "right") - 1, 0, len(self.edges) - 1)
        gained = self.gained[k] + (true_ns - self.edges[k]) * self.ppm[k] * 1e-6
        jumped = sum(np.where(true_ns >= at_s * SECOND, size_ns, 0) for at_s, size_ns in self.jumps)
        own: np.ndarray = true_ns + np.rint(gained).astype(np.int64) + self.offset_ns + jumped
        return own


def steady(rng: np.random.Generator) -> Clock:
    return Clock(int(rng.integers(-(10**16), 10**16)), np.zeros(1), np.zeros(1))


def wandering(rng: np.random.Generator, seconds: float, width_ppm: float) -> Clock:
    """Its rate changes by that much, at random times, around some rate."""
    edges = np.r_[0, np.sort(rng.uniform(0, seconds, int(rng.integers(1, 30))))]
    way = rng.choice([-0.5, 0.5], len(edges)) if rng.random() < 0.5 else rng.uniform(-0.5, 0.5, len(edges))
    return Clock(int(rng.integers(-(10**16), 10**16)), edges, rng.uniform(-80, 80) + width_ppm * way)


def slewed(rng: np.random.Generator, begin_s: float, end_s: float, ppm: float) -> Clock:
    base = rng.uniform(-80, 80)
    return Clock(0, np.array([0, begin_s, end_s]), np.array([base, base + ppm, base]))


def messages(
    rng: np.random.Generator, seconds: float, per_second: float, a: Clock, b: Clock, lost: float = 0, late_ns: int = 0
) -> Ways:
    """The messages from one host to another that are paired, on the clocks of both."""
    number = max(3, int(seconds * per_second))
    sent = np.sort(rng.integers(0, int(seconds * SECOND), number))
    received = sent + int(rng.integers(0, 20_000)) + late_ns + rng.exponential(80_000, number).astype(np.int64)
    s, r = (np.flatnonzero(rng.random(number) >= lost) for _ in range(2))
    r = r[np.argsort(received[r], kind="stable")]
    identity, point = (np.arange(number) % 65_536).astype(np.uint64), np.zeros(number, np.int64)
    sent, received = a.at(sent), b.at(received)
    found = pair(Ends(identity[s], sent[s], point[s]), Ends(identity[r], received[r], point[r]))
    assert (s[found.send] == r[found.receive]).all()
    return sent[s][found.send], received[r][found.receive]


class Outcome:
    """What was found of two clocks, and how the maps compare with the truth."""

    def __init__(
        self, seed: int, seconds: float, a: Clock, b: Clock, ways: tuple[Ways, Ways], limit_ppm: float | None = 10
    ) -> None:
        forward, backward = ways
        self.refused = False
        try:
            self.found = PairClock(forward, backward, limit_ppm)
        except ContradictionError:
            self.refused = True
            return
        link = Link("a", "b", forward, backward, self.found)
        edges = np.array([0, int(seconds * SECOND)])
        spans = {name: (int(c.at(edges)[0]), int(c.at(edges)[1])) for name, c in (("a", a), ("b", b))}
        reference, other = ("a", "b") if seed % 2 else ("b", "a")
        network = Network(["a", "b"], [link], reference, spans)
        self.early = [int((early > 0).sum()) for early in network.early(link)]
        true_ns = np.linspace(0, seconds * SECOND, 1500).astype(np.int64)
        for clock in (a, b):
            at_jumps = [int(at_s * SECOND) + k for at_s, _ in clock.jumps for k in (-1000, -1, 0, 1000)]
            true_ns = np.r_[true_ns, np.array(at_jumps, np.int64)]
        own, reference_ns = (b.at(true_ns), a.at(true_ns)) if seed % 2 else (a.at(true_ns), b.at(true_ns))
        mapped = network.maps[other].at(own)
        # 2 ns: the simulation and the map round to whole ns
        self.outside = np.abs(mapped - reference_ns) > network.maps[other].bound_at(mapped) + 2
        self.bound_ns = np.median(network.maps[other].bound_ns)

    @property
    def told(self) -> bool:
        return self.refused or bool(self.found.steps or self.found.raised() or self.found.left_out)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("way", ["steady", "wandering", "asymmetric", "lost", "silent", "one tight"])
def test_where_the_limit_holds_the_truth_is_inside_and_nothing_is_told(way: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    seconds, limit_ppm = float(rng.choice([2, 20, 60])), float(rng.choice([1, 10, 100, 500]))
    per_second = float(rng.choice([0.1, 1, 10, 100]))
    a, b = steady(rng), wandering(rng, seconds, 0 if way == "steady" else limit_ppm)
    lost = 0.1 if way == "lost" else 0
    late_ns = {"asymmetric": 200_000, "one tight": 40 * MILLISECOND}.get(way, 0)
    forward = messages(rng, seconds, per_second, a, b, lost)
    backward = messages(rng, seconds, per_second, b, a, lost, late_ns)
    if way == "silent":
        kept = [(w[0] < np.quantile(w[0], 0.3)) | (w[0] > np.quantile(w[0], 0.9)) for w in (forward, backward)]
        forward, backward = ((w[0][k], w[1][k]) for w, k in zip((forward, backward), kept, strict=True))
    if way == "one tight":  # the truth lies at the edge of the bounds
        forward = forward[0], b.at(forward[0] - a.offset_ns)
    found = Outcome(seed, seconds, a, b, (forward, backward), limit_ppm)
    assert not found.told
    assert not found.outside.any()
    assert found.early == [0, 0]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_jump_of_a_clock_is_told_and_the_truth_is_inside_before_in_and_behind_it(seed: int) -> None:
    rng = np.random.default_rng(seed)
    jump = (float(rng.uniform(4, 16)), int(rng.choice([3, 30, 250, 40_000])) * MILLISECOND)
    clocks = [steady(rng), wandering(rng, 20, 10)]
    which = int(rng.integers(2))
    clocks[which] = Clock(clocks[which].offset_ns, clocks[which].edges / SECOND, clocks[which].ppm, (jump,))
    a, b = clocks
    ways = (messages(rng, 20, 100, a, b), messages(rng, 20, 100, b, a))
    found = Outcome(seed, 20, a, b, ways)
    assert len(found.found.steps) == 1
    assert not found.outside.any()
    assert found.early == [0, 0]


@pytest.mark.parametrize("seed", SEEDS)
def test_two_jumps_of_both_clocks_are_told(seed: int) -> None:
    rng = np.random.default_rng(seed)
    jumps = [(float(rng.uniform(2, 9)), 50 * MILLISECOND), (float(rng.uniform(11, 18)), 2 * SECOND)]
    a, b = (Clock(0, np.zeros(1), np.full(1, ppm), (jump,)) for ppm, jump in zip((0, 30), jumps, strict=True))
    ways = (messages(rng, 20, 200, a, b), messages(rng, 20, 200, b, a))
    found = Outcome(seed, 20, a, b, ways)
    assert len(found.found.steps) == 2
    assert not found.outside.any()
    assert found.early == [0, 0]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_slew_beyond_the_limit_is_told_and_the_truth_is_inside(seed: int) -> None:
    """By less than the loosest limit, as NTP slews a clock."""
    rng = np.random.default_rng(seed)
    begin_s = float(rng.uniform(3, 12))
    a, b = steady(rng), slewed(rng, begin_s, begin_s + 5, float(rng.choice([-1, 1]) * rng.uniform(150, 400)))
    found = Outcome(seed, 20, a, b, (messages(rng, 20, 200, a, b), messages(rng, 20, 200, b, a)))
    assert found.told
    assert found.found.raised()
    assert not found.outside.any()
    assert found.early == [0, 0]


@pytest.mark.parametrize("seed", SEEDS)
def test_what_no_limit_explains_is_told_or_refused(seed: int) -> None:
    rng = np.random.default_rng(seed)
    begin_s = float(rng.uniform(3, 12))
    a, b = steady(rng), slewed(rng, begin_s, begin_s + 2, float(rng.choice([-1, 1]) * rng.choice([2000, 50_000])))
    found = Outcome(seed, 20, a, b, (messages(rng, 20, 100, a, b), messages(rng, 20, 100, b, a)))
    assert found.refused or found.found.steps


@pytest.mark.parametrize("reference", ["a", "b", "c"])
def test_a_jump_on_the_way_of_a_chain_is_told_for_all_behind_it(reference: str) -> None:
    """In the jump itself nothing is known, so messages may cross there: the ops are tainted."""
    rng = np.random.default_rng(5)
    jump = (7.25, 900 * MILLISECOND)
    jumping = Clock(-SECOND, np.zeros(1), np.full(1, 20.0), (jump,))
    clocks = {"a": wandering(rng, 20, 5), "b": jumping, "c": steady(rng)}
    links = []
    for x, y in (("a", "b"), ("b", "c")):
        one, other = clocks[x], clocks[y]
        ways = messages(rng, 20, 300, one, other), messages(rng, 20, 300, other, one)
        links.append(Link(x, y, *ways, PairClock(*ways, 10)))
    edges = np.array([0, 20 * SECOND])
    spans = {name: (int(c.at(edges)[0]), int(c.at(edges)[1])) for name, c in clocks.items()}
    network = Network(list(clocks), links, reference, spans)
    of_gap = clocks[reference].at(np.array([7.24 * SECOND, 7.26 * SECOND]).astype(np.int64))
    for edge in links:
        senders = (edge.a, edge.forward[0]), (edge.b, edge.backward[0])
        for (host, sent_ns), early in zip(senders, network.early(edge), strict=True):
            at = network.maps[host].at(sent_ns[early > 0])
            assert ((of_gap[0] <= at) & (at <= of_gap[1] + jump[1])).all()
    near = int(7.25 * SECOND) + np.array([-1000, -1, 0, 1000])
    true_ns = np.r_[np.linspace(0, 20 * SECOND, 2000).astype(np.int64), near]
    for host in clocks:
        if host != reference:
            mapped = network.maps[host].at(clocks[host].at(true_ns))
            away = np.abs(mapped - clocks[reference].at(true_ns))
            assert (away <= network.maps[host].bound_at(mapped) + 2).all()
            assert network.maps[host].segment[-1] == 1
