# SPDX-License-Identifier: MIT
"""Buckets with fixed edges: the bucket of a value, and the bucket's begin and end.

Edges never depend on the data, so two distributions can be added and subtracted. Everything is integers; a bucket holds
low ≤ value < high.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from opline.values import Value

Numbers = Any  # ndarray of int64

_FLOAT_EXACT = 1 << 52


class Buckets(Protocol):
    """A way to put values into buckets; buckets have ordinals in the order of their values."""

    def index(self, values: Numbers) -> Numbers:
        """The ordinal of each value's bucket."""
        ...

    def edges(self, index: int) -> tuple[int, int]:
        """The begin of a bucket, and the begin of the next."""
        ...


def bit_lengths(values: Numbers) -> Numbers:
    """``int.bit_length`` of each value; no value may be below 0."""
    values = np.asarray(values, np.int64)
    large = values >= _FLOAT_EXACT
    lengths = np.frexp(np.where(large, values >> 20, values).astype(np.float64))[1].astype(np.int64)
    return lengths + np.where(large, 20, 0)


class PowerOfTwo(Value):
    """0 ≤ v < 1, 1 ≤ v < 2, 2 ≤ v < 4, … in ``unit``s: bucket k ends at 2^k units."""

    unit: int = 1

    def index(self, values: Numbers) -> Numbers:
        """The number of bits of the whole units."""
        return bit_lengths(np.asarray(values, np.int64) // self.unit)

    def edges(self, index: int) -> tuple[int, int]:
        """(0, unit), (unit, 2 units), …"""
        return (1 << index - 1 if index else 0) * self.unit, (1 << index) * self.unit


class Fine(Value):
    """Every power of two split in 2^``bits``; below 2^bits units, one bucket per unit. ``unit`` as above."""

    unit: int = 1
    bits: int = 2

    def index(self, values: Numbers) -> Numbers:
        """The first ``bits`` + 1 binary digits, and how many follow."""
        whole = np.asarray(values, np.int64) // self.unit
        shift = np.maximum(bit_lengths(whole) - 1 - self.bits, 0)
        return (shift << self.bits) + (whole >> shift)

    def edges(self, index: int) -> tuple[int, int]:
        """(0, unit), (unit, 2 units), …, then steps of a 2^bits-th of the power of two below."""

        def begin(i: int) -> int:
            shift = max((i >> self.bits) - 1, 0)
            return (i - (shift << self.bits)) << shift

        return begin(index) * self.unit, begin(index + 1) * self.unit


class Linear(Value):
    """Steps of one length from ``low`` on."""

    step: int
    low: int = 0

    def index(self, values: Numbers) -> Numbers:
        """How many steps above ``low``; below 0 where the value is below."""
        return (np.asarray(values, np.int64) - self.low) // self.step

    def edges(self, index: int) -> tuple[int, int]:
        """Where the step begins and ends."""
        begin = self.low + index * self.step
        return begin, begin + self.step


class Listed(Value):
    """Buckets between custom limits: below the first, between two, from the last on."""

    limits: tuple[int, ...]

    def index(self, values: Numbers) -> Numbers:
        """How many limits are not above the value."""
        return np.searchsorted(np.asarray(self.limits, np.int64), np.asarray(values, np.int64), side="right")

    def edges(self, index: int) -> tuple[int, int]:
        """The last bucket ends where a column of a run does."""
        ends = (0, *self.limits, (1 << 63) - 1)
        return ends[index], ends[index + 1]


class Within(Value):
    """The buckets of another kind between ``first`` and ``last``; values outside fall into the bucket below the first
    or above the last: no value is left out.
    """

    inner: Any  # Buckets
    first: int
    last: int

    def index(self, values: Numbers) -> Numbers:
        """``first`` - 1 to ``last`` + 1."""
        return np.clip(self.inner.index(values), self.first - 1, self.last + 1)

    def edges(self, index: int) -> tuple[int, int]:
        """As of the other kind."""
        low, high = self.inner.edges(index)
        return int(low), int(high)
