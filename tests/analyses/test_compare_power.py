# SPDX-License-Identifier: MIT
"""How many runs are said to be needed: so many do call the change, also where the spread is known from a few runs."""

from __future__ import annotations

import math
import random
import statistics

import pytest

from opline_analyses.compare.power import bounded, chi_squared, least_seen, power, runs_needed
from opline_analyses.compare.verdicts import FAMILY, difference


@pytest.mark.parametrize(
    ("df", "share", "value"),
    [(1, 0.05, 0.003932), (2, 0.2, 0.4463), (4, 0.95, 9.488), (8, 0.2, 4.594), (30, 0.5, 29.336), (100, 0.95, 124.342)],
)
def test_quantiles_of_chi_squared_are_those_of_the_tables(df: float, share: float, value: float) -> None:
    assert chi_squared(share, df) == pytest.approx(value, rel=2e-4)


def drawn(k: int, middle: float, sd: float) -> list[float]:
    return [math.exp(random.gauss(middle, sd)) for _ in range(k)]


def is_called(a: list[float], b: list[float], level: float) -> bool:
    d = difference(a, b)
    p = d.p() if d else None
    return d is not None and p is not None and p <= level and d.log_ratio > 0


@pytest.mark.parametrize("k", [2, 3, 5, 12])
@pytest.mark.parametrize("judged", [1, 4, 30])
def test_the_power_is_that_of_the_test_that_is_used(k: int, judged: int) -> None:
    random.seed(k)
    level = FAMILY / judged
    effect = least_seen(0.3, k, level)
    found = sum(is_called(drawn(k, 0, 0.3), drawn(k, effect, 0.3), level) for _ in range(1000))
    assert found / 1000 == pytest.approx(0.8, abs=0.05)  # its SD is 1.3 %
    assert power(effect / 0.3, k, level) == pytest.approx(0.8, abs=0.01)


def test_more_runs_see_less_and_two_see_next_to_nothing() -> None:
    seen = [least_seen(1.0, k, FAMILY / 30) for k in (2, 3, 4, 5, 10, 31, 32, 33, 34, 100)]
    assert seen == sorted(seen, reverse=True)
    assert seen[0] > 50 and seen[3] < 5
    for df in (2, 8, 100):
        k, sd = runs_needed(0.1, df, 0.1, FAMILY), bounded(0.1, df)
        assert least_seen(sd, k, FAMILY) <= math.log(1.1) < least_seen(sd, k - 1, FAMILY)


def test_the_spread_of_a_few_runs_is_taken_for_larger() -> None:
    random.seed(5)
    for k in (2, 3, 5):
        sds = [statistics.pvariance(drawn_logs(k)) * k for _ in range(4000)]
        sums = [a + b for a, b in zip(sds[::2], sds[1::2], strict=True)]
        df = 2 * (k - 1)
        held = sum(bounded(math.sqrt(s / df), df) >= 1.0 for s in sums) / len(sums)
        assert held == pytest.approx(0.8, abs=0.03)
    assert runs_needed(0.1, 2, 0.1, FAMILY) > runs_needed(0.1, 8, 0.1, FAMILY) > runs_needed(0.1, 60, 0.1, FAMILY)


def drawn_logs(k: int) -> list[float]:
    return [random.gauss(0, 1) for _ in range(k)]


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize(("sd", "change"), [(0.05, 0.10), (0.2, 2.0), (0.7, 30.0)])
def test_as_many_runs_as_a_few_ask_for_call_the_change(k: int, sd: float, change: float) -> None:
    """What a user does: compares k runs of each side, records as many as that says, and compares again."""
    random.seed(6)
    level, found = FAMILY / 30, 0
    for _ in range(150):
        d = difference(drawn(k, 0, sd), drawn(k, math.log1p(change), sd))
        assert d is not None and d.scatter is not None and d.scatter_df is not None
        enough = runs_needed(d.scatter, d.scatter_df, change, level)
        found += is_called(drawn(enough, 0, sd), drawn(enough, math.log1p(change), sd), level)
    assert found / 150 >= 0.78
