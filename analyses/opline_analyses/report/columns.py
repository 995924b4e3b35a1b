# SPDX-License-Identifier: MIT
"""Columns of whole numbers as the page takes them: byte planes, each column deflated, all in one blob.

Takes arrays of integers that are not negative; gives the blob and its directory. A column's numbers are written as
their lowest bytes, then their second ones, and so on: bytes of one weight resemble each other, and deflate (RFC 1950,
what a browser's DecompressionStream calls "deflate") finds it. assets/decode.js reads it.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from opline_analyses.ops.rows import Column

LEVEL = 6  # level 9 takes 13 times as long for 1.3 % less


class Columns:
    """The blob of a page, a column at a time."""

    def __init__(self) -> None:
        self.directory: dict[str, tuple[int, int, int, int, int]] = {}
        self._parts: list[bytes] = []
        self.size = 0

    def add(self, name: str, values: Column, delta: bool = False) -> None:
        """``values``: integers from 0 up; with ``delta`` they don't fall, and their differences are written.

        The directory has, by name: 1 for delta, bytes of a number, numbers, offset and size in the blob.
        """
        if name in self.directory:
            raise ValueError(f"the column {name} is there already")
        whole = np.asarray(values)
        if whole.dtype != np.uint64:
            whole = whole.astype(np.int64, copy=False)
            if delta:
                whole = np.diff(whole, prepend=np.int64(0))
            if len(whole) and int(whole.min()) < 0:
                raise ValueError(f"the column {name} has a negative number")
        width = max(1, (int(whole.max()).bit_length() + 7) // 8) if len(whole) else 1
        planes = whole.astype("<u8").view(np.uint8).reshape(-1, 8)[:, :width].T
        packed = zlib.compress(np.ascontiguousarray(planes).tobytes(), LEVEL)
        self.directory[name] = (int(delta), width, len(whole), self.size, len(packed))
        self._parts.append(packed)
        self.size += len(packed)

    def copy(self) -> Columns:
        """What has been added so far, to add to."""
        other = Columns()
        other.directory, other._parts, other.size = dict(self.directory), list(self._parts), self.size
        return other

    def blob(self) -> bytes:
        """All columns."""
        return b"".join(self._parts)


def zigzag(values: Column) -> Column:
    """Signed numbers as unsigned ones: 0 -1 1 -2 becomes 0 1 2 3. 64 bits."""
    whole = np.asarray(values).astype(np.int64, copy=False)
    return ((whole << 1) ^ (whole >> 63)).view(np.uint64)


def decoded(directory: dict[str, Any], blob: bytes, name: str) -> Column:
    """A column as it was given: what the page's script does, for tests."""
    delta, width, count, offset, size = directory[name]
    planes = np.frombuffer(zlib.decompress(blob[offset : offset + size]), np.uint8).reshape(width, count)
    whole = np.zeros(count, np.uint64)
    for plane in range(width):
        whole |= planes[plane].astype(np.uint64) << np.uint64(8 * plane)
    signed = whole.view(np.int64)
    return np.cumsum(signed) if delta else signed
