# SPDX-License-Identifier: MIT
"""A JSON array that is written as its items come."""

from __future__ import annotations

from collections.abc import Iterable
from typing import BinaryIO


def write_list(out: BinaryIO, items: Iterable[str]) -> int:
    """Writes items that are JSON already, a line each; gives their number."""
    number = 0
    out.write(b"[")
    for item in items:
        out.write(b",\n" if number else b"\n")
        out.write(item.encode())
        number += 1
    out.write(b"\n]")
    return number
