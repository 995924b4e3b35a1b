# SPDX-License-Identifier: MIT
"""How many runs of each side it takes to call a change, and which change so many runs call.

The power is that of the test that is used: Welch's t, whose degrees of freedom are themselves drawn from the runs. Of k
runs of each side with normal logs of SD 1, the sum of both sums of squares is chi-squared with 2 (k - 1) degrees of
freedom, and the part of it that A makes is, independently, Beta((k - 1) / 2, (k - 1) / 2). Given both, the error and
Welch's degrees of freedom are known, and whether the test calls a change is a matter of the normal distribution; the
power is the mean of that over both. With few runs this is far less than what the usual formula (one t of 2 (k - 1)
degrees of freedom) says: the critical t of 2 or 3 runs, corrected for many figures, is in the hundreds when one side
happens to have most of the scatter.

The SD is an estimate, too. `bounded` is the SD that it does not exceed with the probability ASSURANCE: what is planned
with the estimate itself falls short about half of the time.
"""

from __future__ import annotations

import math
from functools import lru_cache

from opline_analyses.compare import student

POWER = 0.8
ASSURANCE = 0.8
_SPLITS, _SUMS = 16, 24  # nodes of the two means: the result is within 1 % of that of ten times as many
_SMALL = 32  # runs of each side; beyond, one t of 2 (k - 1) degrees of freedom is within 1 %


def runs_needed(scatter: float, df: float, limit: float, level: float) -> int:
    """So many runs of each side call a change of ``limit`` in POWER of the comparisons. ``scatter``: the SD of the logs
    of runs of one side, as ``df`` degrees of freedom know it; ``level``: the two-sided level of the test.
    """
    reach = math.log1p(limit) / (bounded(scatter, df) or student.TINY)
    low, high = 1, 2
    while _least(high, level) > reach:
        low, high = high, 2 * high
    while high - low > 1:  # `low` are too few, `high` are enough
        middle = (low + high) // 2
        low, high = (low, middle) if _least(middle, level) <= reach else (middle, high)
    return high


def least_seen(scatter: float, k: float, level: float) -> float:
    """The log ratio that ``k`` > 1 runs of each side call in POWER of the comparisons; ``k`` may be a mean of two."""
    whole = max(2, math.floor(k))
    return scatter * _least(whole, level) * math.sqrt(whole / k)


def least_outside(scatter: float, k: int, level: float) -> float:
    """The log ratio at which a single run is outside of what ``k`` earlier ones span in POWER of the comparisons."""
    df = k - 1.0
    return scatter * math.sqrt(1 + 1 / k) * (student.upper(level / 2, df) + student.upper(1 - POWER, df))


def bounded(scatter: float, df: float) -> float:
    """The SD that the true one does not exceed, with the probability ASSURANCE."""
    return scatter * math.sqrt(df / chi_squared(1 - ASSURANCE, df))


@lru_cache(maxsize=1024)
def _least(k: int, level: float) -> float:
    """The difference of the means, in SDs of a run, that k runs of each side call in POWER of the comparisons."""
    plain = student.upper(level / 2, 2.0 * (k - 1)) + student.upper(1 - POWER, 2.0 * (k - 1))
    plain *= math.sqrt(2 / k)
    if k > _SMALL:
        return plain
    low, high = 0.0, plain
    while power(high, k, level) < POWER:
        low, high = high, 2 * high
    while high - low > 1e-3 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if power(middle, k, level) >= POWER else (middle, high)
    return high


def power(effect: float, k: int, level: float) -> float:
    """How often k runs of each side call a difference of ``effect`` SDs in its direction, at the two-sided level."""
    shift = effect / math.sqrt(2 / k)
    found = 0.0
    for critical, split_weight in _criticals(k, level):
        for ratio, weight in _sums(k):
            # the error that is measured, in true ones
            found += split_weight * weight * _normal(shift - critical * ratio)
    return found


@lru_cache(maxsize=256)
def _criticals(k: int, level: float) -> tuple[tuple[float, float], ...]:
    """The critical t for each split of the squares between the sides, with the split's probability. The part of A is
    sin^2 of an angle whose density goes with (sin cos)^(k - 2).
    """
    middle, spread = math.pi / 4, 1 / (2 * math.sqrt(max(k - 2, 0.1)))
    reach = min(math.pi / 4, 5 * spread)
    found = []
    for n in range(_SPLITS):
        angle = middle - reach + 2 * reach * (n + 0.5) / _SPLITS
        part = math.sin(angle) ** 2
        df = (k - 1) / (part**2 + (1 - part) ** 2)
        found.append((student.upper(level / 2, df), math.sin(2 * angle) ** (k - 2)))
    whole = math.fsum(weight for _, weight in found)
    return tuple((critical, weight / whole) for critical, weight in found)


@lru_cache(maxsize=256)
def _sums(k: int) -> tuple[tuple[float, float], ...]:
    """Measured errors as shares of the true one, with their probabilities: sqrt(chi squared / df), on an even grid of
    its log.
    """
    df = 2 * (k - 1)
    low, high = -9 / math.sqrt(df), 3.5 / math.sqrt(df)
    found = []
    for n in range(_SUMS):
        log = low + (high - low) * (n + 0.5) / _SUMS  # of the share
        found.append((math.exp(log), math.exp(df * log - df / 2 * math.exp(2 * log) + df / 2)))
    whole = math.fsum(weight for _, weight in found)
    return tuple((share, weight / whole) for share, weight in found)


def _normal(z: float) -> float:
    return math.erfc(-z / math.sqrt(2)) / 2


@lru_cache(maxsize=256)
def chi_squared(share: float, df: float) -> float:
    """The value below which ``share`` of chi squared with ``df`` degrees of freedom lies. By halves of P(a, x) = x^a
    e^-x sum x^n / gamma(a + n + 1) (DLMF 8.7.1).
    """
    low, high = 0.0, df
    while _below(high, df) < share:
        low, high = high, 2 * high
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _below(middle, df) < share else (low, middle)
    return high


def _below(value: float, df: float) -> float:
    a, x = df / 2, value / 2
    if x <= 0:
        return 0.0
    term = math.exp(a * math.log(x) - x - math.lgamma(a + 1))
    total, n = term, 0
    while term > 1e-15 * total:
        n += 1
        term *= x / (a + n)
        total += term
    return min(total, 1.0)
