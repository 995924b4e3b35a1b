# SPDX-License-Identifier: MIT
"""Names of the kernel's functions by address, from ``/proc/kallsyms`` (kernel/kallsyms.c)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from pathlib import Path

KALLSYMS = Path("/proc/kallsyms")
_FUNCTIONS = b"tTwW"


def names(addresses: Iterable[int], file: Path = KALLSYMS) -> dict[int, str]:
    """``symbol+0xoffset`` of each address, with ``[module]`` behind it if it is of one; the address itself if no symbol
    is below it, or the kernel shows none. Raises OSError.
    """
    begins: dict[int, bytes] = {}
    with file.open("rb") as lines:
        for line in lines:
            address, kind, name = line.split(b" ", 2)
            if kind in _FUNCTIONS:
                begins.setdefault(int(address, 16), name)
    begins.pop(0, None)  # to whoever may not know them, all are 0
    sorted_begins = sorted(begins)
    return {address: _name(address, sorted_begins, begins) for address in set(addresses)}


def _name(address: int, sorted_begins: list[int], begins: dict[int, bytes]) -> str:
    place = bisect_right(sorted_begins, address)
    if not place:
        return f"{address:#x}"
    begin = sorted_begins[place - 1]
    symbol, *module = begins[begin].decode(errors="replace").split()
    return " ".join((f"{symbol}+{address - begin:#x}", *module))
