# SPDX-License-Identifier: MIT
"""What can be said of a figure that was measured in several runs of A and several of B.

Takes a figure's value in each run; gives the ratio with its interval, and a verdict in words. The run is the unit: the
ops of one run meet the same disturbances, so that an interval over ops is several times too narrow. The logs of the
runs' values are compared: Welch's t (B. L. Welch, Biometrika 34, 1947), 95 % intervals, Holm's correction over the
figures that are judged together (S. Holm, Scandinavian Journal of Statistics 6, 1979), and for *no change larger than*
two one-sided tests (D. J. Schuirmann, 1987), which is a 90 % interval inside of the limit.
"""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING

from opline.values import Value
from opline_analyses.compare import student

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SLOWER = ("slower", "faster")
LIMIT = 0.05  # a change below is of no interest, unless the user says otherwise
FAMILY = 0.025  # of comparisons without a change that call one, per family of figures: there are two
HISTORY = 16  # runs of A that make up for a single one of B
HISTORY_LEVEL = 0.99
RESOLUTION = 1 / math.sqrt(12)  # the SD of a time that is cut to whole nanoseconds


class Difference(Value):
    """How far B is from A in logs: ``log_ratio`` 0.1 is about 10 % more. ``scatter``: the SD of the logs of runs of the
    same side, with ``scatter_df`` degrees of freedom. ``error`` and ``df`` of the log ratio, and these two, are absent
    where one side has a single run.
    """

    a: float  # of a typical run: the geometric mean
    b: float
    log_ratio: float
    scatter: float | None
    scatter_df: float | None
    error: float | None
    df: float | None

    def interval(self, level: float = 0.95) -> tuple[float, float] | None:
        """The log ratio's; None without an error."""
        if self.error is None or self.df is None:
            return None
        reach = student.upper((1 - level) / 2, self.df) * self.error
        return self.log_ratio - reach, self.log_ratio + reach

    def p(self) -> float | None:
        """Of as large a difference, if there were none."""
        if self.error is None or self.df is None:
            return None
        return student.two_sided(self.log_ratio / self.error, self.df)

    def p_beyond(self, limit: float, above: bool) -> float | None:
        """Of a log ratio so far above ``limit`` (or below it), if it were the limit."""
        if self.error is None or self.df is None:
            return None
        beyond = (self.log_ratio - limit) / self.error
        return student.survival(beyond if above else -beyond, self.df)


class Verdict(Value):
    """``kind``: more, less, same, maybe (if it were the only figure), undecided, described (one run), unjudged."""

    kind: str
    text: str


def difference(a: Sequence[float], b: Sequence[float], resolution: float = 0.0) -> Difference | None:
    """Of the values per run, all above 0; None where one is not. ``resolution``: the unit in which they are cut."""
    if not a or not b or min(*a, *b) <= 0:
        return None
    logs = [[math.log(v) for v in side] for side in (a, b)]
    means = [math.fsum(side) / len(side) for side in logs]
    typical = math.exp(means[0]), math.exp(means[1])
    log_ratio = means[1] - means[0]
    # values of one side that are equal, because times are whole numbers, are not known to be equal
    floors = [(RESOLUTION * resolution / v) ** 2 for v in typical]
    if min(map(len, logs)) > 1:
        variances = [max(statistics.variance(side), f) for side, f in zip(logs, floors, strict=True)]
        free = [len(side) - 1 for side in logs]
        parts = [v / len(side) for v, side in zip(variances, logs, strict=True)]
        total = sum(parts)
        # without any scatter a difference is as certain as can be; two equal sides have ratio 0 / tiny
        df = total**2 / sum(p**2 / f for p, f in zip(parts, free, strict=True)) if total else float(sum(free))
        scatter = math.sqrt(sum(v * f for v, f in zip(variances, free, strict=True)) / sum(free))
        return Difference(*typical, log_ratio, scatter, float(sum(free)), max(math.sqrt(total), student.TINY), df)
    return Difference(*typical, log_ratio, None, None, None, None)


def prediction(a: Sequence[float], b: float, resolution: float = 0.0) -> Difference | None:
    """How far one run lies from at least HISTORY earlier ones: its error is that of one more run of theirs."""
    found = difference(a, (b,), resolution)
    if found is None or len(a) < HISTORY:
        return None
    variance = max(statistics.variance([math.log(v) for v in a]), (RESOLUTION * resolution / found.a) ** 2)
    error = max(math.sqrt(variance * (1 + 1 / len(a))), student.TINY)
    df = float(len(a) - 1)
    return Difference(found.a, found.b, found.log_ratio, math.sqrt(variance), df, error, df)


def holm(p: Sequence[float]) -> list[float]:
    """The p values, corrected for their number, in their order."""
    corrected = [0.0] * len(p)
    largest = 0.0
    for n, i in enumerate(sorted(range(len(p)), key=lambda i: p[i])):
        largest = max(largest, min(1.0, (len(p) - n) * p[i]))
        corrected[i] = largest
    return corrected


def verdict(d: Difference, p_holm: float | None, limit: float = LIMIT, words: tuple[str, str] = SLOWER) -> Verdict:
    """In words. ``p_holm``: corrected for all that is judged with it. ``words``: of more and of less."""
    interval, narrow = d.interval(), d.interval(0.90)
    if interval is None or narrow is None or p_holm is None:
        return Verdict("described", change(d.log_ratio))
    low, high = interval
    if p_holm <= FAMILY and d.log_ratio:
        more = d.log_ratio > 0
        text = f"{words[0] if more else words[1]} {by(d.log_ratio, low, high)}"
        if abs(d.log_ratio) < math.log1p(limit):
            text += f", below {number(limit)} %"
        return Verdict("more" if more else "less", text)
    bound = max(math.expm1(narrow[1]), -math.expm1(narrow[0]))
    if bound <= limit:
        return Verdict("same", f"no change larger than {number(max(bound, 0.001), math.ceil)} %")
    span = f"{change(low)} … {change(high)}"
    if low > 0 or high < 0:  # by itself it would be called
        return Verdict("maybe", f"maybe {words[low < 0]}: {span}")
    return Verdict("undecided", f"can't tell: {span}")


def number(share: float, rounded: Callable[[float], int] = round) -> str:
    """A share as per cent with two figures."""
    value = 100 * abs(share)
    if value >= 9.95:
        return str(rounded(value))
    return f"{rounded(value * 10) / 10:g}"


def factor(ratio: float) -> str:
    """A factor with two figures."""
    return f"{ratio:.2g}" if ratio < 99.5 else f"{ratio:.0f}"


def change(log_ratio: float) -> str:
    """+12 %, -9 %, ×3.2, ÷2.4."""
    ratio = math.exp(log_ratio)
    if ratio >= 2:
        return f"×{factor(ratio)}"
    if ratio <= 0.5:
        return f"÷{factor(1 / ratio)}"
    return f"{_signed(ratio - 1, '+')} %"


def _signed(share: float, plus: str = "") -> str:
    """Nothing is not below nothing."""
    said = number(share)
    return f"{'-' if share < 0 and said != '0' else plus}{said}"


def by(log_ratio: float, low: float, high: float) -> str:
    """by 12 % [8, 17]; by a factor of 3.2 [2.1, 4.9]."""
    sign = 1 if log_ratio > 0 else -1
    near, far = sorted((sign * low, sign * high))
    middle = sign * log_ratio
    if math.exp(far) < 2:
        share = math.expm1 if sign > 0 else lambda x: -math.expm1(-x)
        ends = [_signed(share(x)) for x in (near, far)]
        return f"by {number(share(middle))} % [{ends[0]}, {ends[1]}]"
    return f"by a factor of {factor(math.exp(middle))} [{factor(math.exp(near))}, {factor(math.exp(far))}]"
