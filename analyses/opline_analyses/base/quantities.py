# SPDX-License-Identifier: MIT
"""Durations, sizes and limits as people type them: 10ms, 8k, >5ms, 4k..64k. Gives integers: nanoseconds, bytes."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

from opline.errors import UsageError
from opline.values import Value

if TYPE_CHECKING:
    from collections.abc import Callable

DURATIONS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "min": 60 * 10**9,
    "h": 3600 * 10**9,
}
# Of storage: powers of two; `s` is the block layer's sector.
SIZES = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40, "s": 512}
MOST = (1 << 63) - 1  # what a column of a run can hold

_NUMBER = re.compile(r"\s*+(\d++(?:\.\d*+)?|\.\d++)\s*+([a-zµ]*+)\s*+", re.IGNORECASE)
_MOMENT = re.compile(rf"([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d{{1,2}})?)\s*({'|'.join(DURATIONS)})?", re.IGNORECASE)


class Limits(Value):
    """``least`` ≤ value ≤ ``most``; None is open."""

    least: int | None = None
    most: int | None = None

    def condition(self, expression: str) -> tuple[str, tuple[object, ...]]:
        """As SQL, with its parameters."""
        parts = [(">=", self.least), ("<=", self.most)]
        found = [(sign, value) for sign, value in parts if value is not None]
        sql = " AND ".join(f"{expression} {sign} ?" for sign, _ in found)
        return f"({sql or 'true'})", tuple(value for _, value in found)


def _scaled(text: str, units: dict[str, int], option: str, what: str) -> int:
    fitting = _NUMBER.fullmatch(text)
    unit = fitting[2].lower() if fitting else ""
    if unit not in units and unit.removesuffix("ib") in units:
        unit = unit.removesuffix("ib")
    elif unit not in units and unit.removesuffix("b") in units:
        unit = unit.removesuffix("b")
    try:
        value = Decimal(fitting[1]) * units[unit] if fitting else None
    except (InvalidOperation, KeyError):
        value = None
    if value is None or value != value.to_integral_value() or value > MOST:
        raise UsageError(f"{option} {text}: not {what}.")
    return int(value)


def duration_ns(text: str, option: str, unit: str = "s") -> int:
    """A duration; a number alone is of ``unit``. Raises UsageError."""
    units = DURATIONS | {"": DURATIONS[unit]}
    return _scaled(text, units, option, f"a duration (10ms, 1.5s; a number alone is in {unit})")


def seconds_given(option: str) -> Callable[[str], float]:
    """What reads the argument of an option, in seconds: 10, 0.5, 500ms, 5m. It raises UsageError."""
    return lambda text: duration_ns(text, option) / 10**9


def moment_ns(text: str) -> int | None:
    """A time after a beginning, in seconds or with a unit (9.5, 10ms), cut to whole ns; None: it is none."""
    found = _MOMENT.fullmatch(text.strip())
    if found is None:
        return None
    whole = int(Decimal(found[1]) * DURATIONS[(found[2] or "s").lower()])
    return whole if abs(whole) <= MOST else None


def size_bytes(text: str, option: str) -> int:
    """A size; a number alone is in bytes, k is 1024. Raises UsageError."""
    return _scaled(text, SIZES, option, "a size in bytes (4096, 8k, 1m; 16s is 16 sectors)")


def limits(text: str, option: str, parse: Callable[[str, str], int]) -> Limits:
    """``8k`` is exactly that, ``>5ms`` and ``<=1s`` one side, ``4k..64k`` from and to, both inside.

    Raises UsageError.
    """
    stripped = text.strip()
    low, dots, high = stripped.partition("..")
    if dots:
        span = Limits(parse(low, option) if low else None, parse(high, option) if high else None)
        if span.least is not None and span.most is not None and span.least > span.most:
            raise UsageError(f"{option} {text}: the lower limit is above the upper one.")
        return span
    for sign in (">=", "<=", ">", "<", "="):
        if stripped.startswith(sign):
            value = parse(stripped[len(sign) :], option)
            if sign[0] == ">":
                return Limits(value + (sign == ">"), None)
            if sign[0] == "<":
                return Limits(None, value - (sign == "<"))
            return Limits(value, value)
    return Limits(parse(stripped, option), parse(stripped, option))


def decimals_of(interval_ns: int) -> int:
    """How many decimals a time in seconds needs so that steps of this length can be told apart: 0.1 s needs 1."""
    digits = 0
    while digits < 9 and interval_ns % 10 ** (9 - digits):
        digits += 1
    return digits


def seconds(ns: int, digits: int) -> str:
    """Nanoseconds as seconds with so many decimals, cut off, not rounded; exact with 9."""
    sign = "-" if ns < 0 else ""
    whole, rest = divmod(abs(ns), 10**9)
    return f"{sign}{whole}" + (f".{rest:09d}"[: digits + 1] if digits else "")


def round_up(value: int) -> int:
    """1, 2 or 5 times a power of ten, not below the value."""
    power = int(10 ** (len(str(max(1, value))) - 1))
    return next(power * m for m in (1, 2, 5, 10) if power * m >= value)
