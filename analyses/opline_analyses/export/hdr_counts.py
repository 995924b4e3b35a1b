# SPDX-License-Identifier: MIT
"""HdrHistogram's counts of integers, with three significant digits: what its text and its log are made of.

Source: HdrHistogram 2.1 (AbstractHistogram.java, PercentileIterator.java, ZigZagEncoding.java): the index of a value,
the iteration over percentiles, and the encoding V2 with zlib.
"""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections.abc import Iterator, Mapping
from typing import NamedTuple

DIGITS = 3
SUB_BUCKETS = 2048  # the power of two from 2 * 10^DIGITS on
HIGHEST = 3_600_000_000_000  # trackable, at least: an hour in ns
_HALF_BITS = 10
_HALF = 1 << _HALF_BITS
_COOKIE, _COOKIE_DEFLATED = 0x1C849303 | 0x10, 0x1C849304 | 0x10
_TICKS = 5  # of percentiles in each half of the distance to 100 %


def index_of(value: int) -> int:
    """Where a value is counted."""
    bucket = (value | (SUB_BUCKETS - 1)).bit_length() - (_HALF_BITS + 1)
    return ((bucket + 1) << _HALF_BITS) + (value >> bucket) - _HALF


def range_of(index: int) -> tuple[int, int]:
    """The least value that is counted there, and how many values are."""
    bucket = (index >> _HALF_BITS) - 1
    sub = (index & (_HALF - 1)) + _HALF
    return (sub - _HALF, 1) if bucket < 0 else (sub << bucket, 1 << bucket)


class Level(NamedTuple):
    """A line of the text: the greatest value that is equal to three digits, its percentile, and the values up to it."""

    value: int
    percentile: float  # of 100
    up_to: int


class HdrCounts:
    """Counts by index, of integers from 0 on."""

    def __init__(self, counts: Mapping[int, int]) -> None:
        self.counts = dict(sorted(counts.items()))
        self.total = sum(self.counts.values())

    @property
    def greatest(self) -> int:
        """The greatest value that is equal to the greatest one to three digits; 0 without any."""
        if not self.counts:
            return 0
        least, size = range_of(next(reversed(self.counts)))
        return least + size - 1

    @property
    def highest(self) -> int:
        """The highest trackable value."""
        return max(HIGHEST, self.greatest)

    @property
    def buckets(self) -> int:
        """As many as the highest value needs."""
        return max(1, self.highest.bit_length() - SUB_BUCKETS.bit_length() + 2)

    def mean(self) -> float:
        """Of the middles."""
        return sum(_middle(index) * n for index, n in self.counts.items()) / self.total if self.total else 0.0

    def deviation(self) -> float:
        """The standard deviation, of the middles."""
        mean = self.mean()
        squares = sum((_middle(index) - mean) ** 2 * n for index, n in self.counts.items())
        return math.sqrt(squares / self.total) if self.total else 0.0

    def levels(self) -> Iterator[Level]:
        """The percentiles of HdrHistogram's text: five steps for each half of the distance to 100 %."""
        percentile, so_far = 0.0, 0
        for index, n in self.counts.items():
            so_far += n
            least, size = range_of(index)
            while 100.0 * so_far / self.total >= percentile:
                yield Level(least + size - 1, percentile, so_far)
                if so_far == self.total:
                    break
                percentile += 100.0 / (_TICKS * 2.0 ** (int(math.log2(100.0 / (100.0 - percentile))) + 1))
        if self.total:
            yield Level(self.greatest, 100.0, self.total)

    def encoded(self) -> str:
        """V2, deflated, in base64."""
        payload = bytearray()
        last = -1
        for index, n in self.counts.items():
            if gap := index - last - 1:
                payload += _zigzag(-gap if gap > 1 else 0)
            payload += _zigzag(n)
            last = index
        head = struct.pack(">iiiiqqd", _COOKIE, len(payload), 0, DIGITS, 1, self.highest, 1.0)
        packed = zlib.compress(head + bytes(payload))
        return base64.b64encode(struct.pack(">ii", _COOKIE_DEFLATED, len(packed)) + packed).decode()


def _middle(index: int) -> int:
    least, size = range_of(index)
    return least + (size >> 1)


def _zigzag(value: int) -> bytes:
    """LEB128 of the number with its sign in the lowest bit."""
    rest = (value << 1) ^ (value >> 63)
    out = bytearray()
    while rest >= 0x80:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)
