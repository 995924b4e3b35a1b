# SPDX-License-Identifier: MIT
"""Student's t distribution: how likely a value beyond t is, and the t beyond which a share lies.

Takes and gives floats; the degrees of freedom need not be whole (Welch's are not). By the regularised incomplete beta
function I, sf(t) = I(df / (df + t^2); df / 2, 1 / 2) / 2 for t >= 0 (DLMF 8.17, https://dlmf.nist.gov/8.17), which is
its continued fraction 8.17.22 evaluated by Lentz's method.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

TINY = 1e-300
EXACT = 1e-15


def survival(t: float, df: float) -> float:
    """The probability of a value above ``t``. ``df`` > 0."""
    if t < 0:
        return 1.0 - survival(-t, df)
    if math.isinf(t):
        return 0.0
    return _beta(df / (df + t * t), df / 2, 0.5) / 2


def two_sided(t: float, df: float) -> float:
    """The probability of a value as far from 0 as ``t``."""
    return 2 * survival(abs(t), df)


@lru_cache(maxsize=1024)
def upper(share: float, df: float) -> float:
    """The t above which ``share`` (0 < share < 0.5) lies. By Newton's method from the normal distribution's, which is
    less: the tail is convex, so that each step stays below t and comes nearer.
    """
    t = -NormalDist().inv_cdf(share)
    for _ in range(1000):
        step = (survival(t, df) - share) / _density(t, df)
        t += step
        if abs(step) <= 1e-13 * t:
            break
    return t


def _density(t: float, df: float) -> float:
    constant = math.lgamma((df + 1) / 2) - math.lgamma(df / 2) - math.log(df * math.pi) / 2
    return math.exp(constant - (df + 1) / 2 * math.log1p(t * t / df))


def _beta(x: float, a: float, b: float) -> float:
    """I(x; a, b), regularised."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):  # the fraction converges fast below
        return 1.0 - _beta(1 - x, b, a)
    front = a * math.log(x) + b * math.log1p(-x) + math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    return math.exp(front) / a / _fraction(x, a, b)


def _fraction(x: float, a: float, b: float) -> float:
    """1 + d1 / (1 + d2 / (1 + ...)) of DLMF 8.17.22."""
    value = c = 1.0
    d = 0.0
    for n in range(1, 10_000):
        m = n // 2
        if n % 2:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d = 1.0 / ((1.0 + term * d) or TINY)
        c = (1.0 + term / c) or TINY
        value *= c * d
        if abs(c * d - 1.0) < EXACT:
            break
    return value
