# SPDX-License-Identifier: MIT
"""Clocks of hosts against a known truth: pairing, bounds by cones, steps, wrong pairs, chains and triangles of hosts.

The simulated clock is theta(t) = offset + rate t + wander: a sum of sines whose slopes never exceed the wander.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opline.cluster.network import HostMap, Link, Network
from opline.cluster.pair_clock import ContradictionError, PairClock
from opline.cluster.pairing import Ends, pair

SECOND = 1_000_000_000
Ways = tuple[np.ndarray, np.ndarray]  # sent, received


class Clock:
    """Another host's clock as a function of the first one's."""

    def __init__(
        self, offset_ns: int, ppm: float, wander_ppm: float, seed: int, step: tuple[float, int] = (0, 0)
    ) -> None:
        self.offset_ns, self.ppm, self.wander_ppm, self.step = offset_ns, ppm, wander_ppm, step
        self.phases = np.random.default_rng(seed).uniform(0, 2 * math.pi, 3)

    def theta(self, t_ns: np.ndarray) -> np.ndarray:
        t = t_ns.astype(np.float64)
        out = self.ppm * 1e-6 * t
        for period_s, phase in zip((40.0, 148.0, 13.8), self.phases, strict=True):
            x = 2 * math.pi * t / SECOND / period_s + phase
            out += self.wander_ppm / 3 * 1e-6 * period_s / 2 / math.pi * SECOND * (np.sin(x) - math.sin(phase))
        jump = np.where(t >= self.step[0], self.step[1], 0)
        whole: np.ndarray = np.rint(out).astype(np.int64) + self.offset_ns + jump
        return whole

    def at(self, t_ns: np.ndarray) -> np.ndarray:
        moved: np.ndarray = t_ns + self.theta(t_ns)
        return moved


def messages(
    rng: np.random.Generator, seconds: float, each_way: int, least: tuple[int, int] = (10_000, 7_000)
) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """(sent, received) there and (sent, received) back, all on the first host's clock."""

    def one(fastest: int) -> tuple[np.ndarray, np.ndarray]:
        sent = np.sort(rng.integers(0, int(seconds * SECOND), each_way))
        return sent, sent + fastest + (rng.exponential(80_000, each_way)).astype(np.int64)

    return one(least[0]), one(least[1])


def pair_clock(clock: Clock, there: Ways, back: Ways, limit_ppm: float | None) -> PairClock:
    return PairClock((there[0], clock.at(there[1])), (clock.at(back[0]), back[1]), limit_ppm)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    offset_ns=st.integers(-(10**16), 10**16),
    ppm=st.floats(-100, 100),
    wander_ppm=st.floats(0, 4),
    seconds=st.floats(0.1, 300),
    each_way=st.integers(1, 400),
    least=st.tuples(st.integers(0, 300_000), st.integers(0, 300_000)),
)
def test_the_truth_lies_inside_the_bounds(
    seed: int,
    offset_ns: int,
    ppm: float,
    wander_ppm: float,
    seconds: float,
    each_way: int,
    least: tuple[int, int],
) -> None:
    """Without a fit the limit is 500 ppm, more than any clock here: the truth is inside at every point asked."""
    clock = Clock(offset_ns, ppm, wander_ppm, seed)
    there, back = messages(np.random.default_rng(seed), seconds, each_way, least)
    found = pair_clock(clock, there, back, None)
    assert found.limit_ppm == 500
    assert not found.steps
    assert found.left_out == 0
    asked = np.linspace(-SECOND, (seconds + 1) * SECOND, 400).astype(np.int64)
    low, high = found.at(asked)
    truth = clock.theta(asked) - found.offset_ns
    assert (low - 2 <= truth).all()
    assert (truth <= high + 2).all()


@pytest.mark.parametrize("seed", range(40))
def test_a_fit_is_honest_where_the_limit_holds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    clock = Clock(37 * SECOND, rng.uniform(-50, 50), 0.5, seed)
    seconds = float(rng.choice([0.3, 3, 60]))
    there, back = messages(rng, seconds, int(rng.choice([3, 30, 200, 2000])))
    found = pair_clock(clock, there, back, 10)
    asked = np.linspace(0, seconds * SECOND, 1000).astype(np.int64)
    low, high = found.at(asked)
    truth = clock.theta(asked) - found.offset_ns
    assert (low - 2 <= truth).all()
    assert (truth <= high + 2).all()
    assert not found.raised()


def test_one_way_is_no_alignment() -> None:
    clock = Clock(5, 1, 0, 1)
    there, _ = messages(np.random.default_rng(1), 10, 100)
    nothing = np.empty(0, np.int64)
    assert not PairClock((there[0], clock.at(there[1])), (nothing, nothing)).two_way


@pytest.mark.parametrize("size_ns", [3_000_000, 250_000_000])
def test_a_step_is_found_within_its_interval(size_ns: int) -> None:
    clock = Clock(-SECOND // 4, -48, 0.5, 3, step=(20.5 * SECOND, size_ns))
    there, back = messages(np.random.default_rng(3), 40, 4000)
    found = pair_clock(clock, there, back, 10)
    (step,) = found.steps
    assert step.begin_ns <= 20.5 * SECOND <= step.end_ns
    assert abs(step.size_ns - size_ns) < 100_000
    asked = np.linspace(0, 40 * SECOND, 1000).astype(np.int64)
    asked = asked[(asked < step.begin_ns) | (asked > step.end_ns)]
    low, high = found.at(asked)
    truth = clock.theta(asked) - found.offset_ns
    assert ((low - 2 <= truth) & (truth <= high + 2)).all()


def test_a_slew_raises_the_limit_and_says_so() -> None:
    clock = Clock(0, 10, 0, 3)
    there, back = messages(np.random.default_rng(5), 60, 12_000)

    def slewed(t: np.ndarray) -> np.ndarray:
        moved: np.ndarray = clock.at(t) + (400e-6 * np.clip(t - 30 * SECOND, 0, 5 * SECOND)).astype(np.int64)
        return moved

    found = PairClock((there[0], slewed(there[1])), (slewed(back[0]), back[1]), 10)
    (most,) = [r for r in found.raised() if r.limit_ppm == 500]
    assert most.begin_ns <= 35 * SECOND
    assert most.end_ns >= 30 * SECOND
    asked = np.linspace(0, 60 * SECOND, 1000).astype(np.int64)
    low, high = found.at(asked)
    truth = slewed(asked) - asked - found.offset_ns
    assert ((low - 2 <= truth) & (truth <= high + 2)).all()


def test_wrong_pairs_are_left_out_and_too_many_refused() -> None:
    rng = np.random.default_rng(7)
    clock = Clock(37 * SECOND, 23, 0.5, 7)
    there, back = messages(rng, 30, 6000)
    received = clock.at(there[1])
    few = rng.choice(6000, 9, replace=False)
    received[few] -= 2_000_000
    found = PairClock((there[0], received), (clock.at(back[0]), back[1]), 10)
    assert found.left_out == 9
    assert not found.steps
    many = rng.choice(6000, 200, replace=False)
    received[many] -= 2_000_000
    with pytest.raises(ContradictionError):
        PairClock((there[0], received), (clock.at(back[0]), back[1]), 10)


@pytest.mark.parametrize(("wrap", "lost"), [(65_536, 0.0), (65_536, 0.1), (4096, 0.01), (1024, 0.1)])
def test_recycled_numbers_and_lost_events_make_no_wrong_pair(wrap: int, lost: float) -> None:
    rng = np.random.default_rng(11)
    n = 60_000
    sent = np.sort(rng.integers(0, 10 * SECOND, n))
    clock = Clock(37 * SECOND, 23, 0.5, 11)
    received = clock.at(sent + 10_000 + rng.exponential(100_000, n).astype(np.int64))
    number = (np.arange(n) % wrap).astype(np.uint64)
    s, r = (np.flatnonzero(rng.random(n) >= lost) for _ in range(2))
    r = r[np.argsort(received[r], kind="stable")]
    found = pair(
        Ends(number[s], sent[s], np.zeros(len(s), np.int64)), Ends(number[r], received[r], np.zeros(len(r), np.int64))
    )
    assert (s[found.send] == r[found.receive]).all()
    assert len(found) == len(np.intersect1d(s, r))


def test_no_common_number_is_no_pair() -> None:
    one, other = (Ends(np.arange(k, k + 9, dtype=np.uint64), np.arange(9), np.zeros(9, np.int64)) for k in (0, 100))
    assert len(pair(one, other)) == 0


def link(a: str, b: str, clocks: dict[str, Clock], rng: np.random.Generator, seconds: float, each_way: int) -> Link:
    there, back = messages(rng, seconds, each_way)
    forward = clocks[a].at(there[0]), clocks[b].at(there[1])
    backward = clocks[b].at(back[0]), clocks[a].at(back[1])
    return Link(a, b, forward, backward, PairClock(forward, backward, 10))


def network(edges: list[tuple[str, str]], seed: int, reference: str = "a") -> tuple[Network, dict[str, Clock]]:
    rng = np.random.default_rng(seed)
    clocks = {"a": Clock(0, 0, 0, 0), "b": Clock(37 * SECOND, 23, 0.5, 1), "c": Clock(-9 * SECOND, -40, 0.5, 2)}
    links = [link(x, y, clocks, rng, 20, 3000) for x, y in edges]
    spans = {h: tuple(c.at(np.array([0, 20 * SECOND])).tolist()) for h, c in clocks.items()}
    return Network(list(clocks), links, reference, spans), clocks


@pytest.mark.parametrize(
    "edges", [[("a", "b"), ("b", "c")], [("b", "a"), ("c", "b")], [("a", "b"), ("b", "c"), ("a", "c")]]
)
@pytest.mark.parametrize("seed", [1, 2])
def test_every_pair_of_hosts_keeps_its_order_and_the_bounds_hold(edges: list[tuple[str, str]], seed: int) -> None:
    found, clocks = network(edges, seed)
    for edge in found.links:
        assert not any((early > 0).any() for early in found.early(edge))
    asked = np.linspace(0, 20 * SECOND, 2000).astype(np.int64)
    for host in ("b", "c"):
        mapped = found.maps[host].at(clocks[host].at(asked))
        assert (np.diff(mapped) >= 0).all()
        assert (np.abs(mapped - asked) <= found.maps[host].bound_at(mapped) + 2).all()


def test_more_messages_never_widen_a_bound() -> None:
    chain, _ = network([("a", "b"), ("b", "c")], 1)
    both, _ = network([("a", "b"), ("b", "c"), ("a", "c")], 1)
    assert np.median(both.maps["c"].bound_ns) <= np.median(chain.maps["c"].bound_ns)


def test_a_host_without_messages_stays_apart() -> None:
    found, _ = network([("a", "b")], 1)
    assert found.apart == ["c"]
    assert set(found.maps) == {"a", "b"}


@given(
    st.lists(st.tuples(st.integers(1, 10**9), st.integers(0, 10**9)), min_size=2, max_size=20),
    st.lists(st.integers(-(10**10), 3 * 10**10), min_size=1, max_size=50),
)
def test_the_map_is_monotone_and_that_of_the_core(steps: list[tuple[int, int]], asked: list[int]) -> None:
    own, reference = (np.cumsum([s[k] for s in steps]) for k in (0, 1))
    nothing = np.zeros(len(own), np.int64)
    times = np.sort(np.array(asked))
    mapped = HostMap(own, reference, nothing, nothing).at(times)
    assert (np.diff(mapped) >= 0).all()
    for t, m in zip(times.tolist(), mapped.tolist(), strict=True):
        k = int(np.searchsorted(own, t, "right")) - 1
        if 0 <= k < len(own) - 1:
            run, rise = int(own[k + 1] - own[k]), int(reference[k + 1] - reference[k])
            assert m == int(reference[k]) + (t - int(own[k])) * rise // run
