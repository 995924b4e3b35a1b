# SPDX-License-Identifier: MIT
"""A JSON array that is written as its items come."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import BinaryIO

_TOGETHER = 512


def write_list(out: BinaryIO, items: Iterable[str]) -> int:
    """Writes items that are JSON already, a line each; gives their number."""
    number = 0
    separator = "[\n"
    rest = iter(items)
    while part := list(islice(rest, _TOGETHER)):
        out.write((separator + ",\n".join(part)).encode())
        number += len(part)
        separator = ",\n"
    out.write(b"\n]" if number else b"[\n]")
    return number
