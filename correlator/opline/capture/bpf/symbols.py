# SPDX-License-Identifier: MIT
"""Names of the kernel's functions by address, from ``/proc/kallsyms`` (kernel/kallsyms.c)."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from pathlib import Path

KALLSYMS = Path("/proc/kallsyms")
_FUNCTIONS = b"tTwW"
_NAME_AT = 19  # in a line: 16 digits, a blank, the kind, a blank


class Symbols:
    """The functions that the kernel and its modules have at the moment. Reading them takes 0.1 s of CPU.

    Raises OSError.
    """

    def __init__(self, file: Path = KALLSYMS) -> None:
        lines = file.read_bytes().split(b"\n")
        begins = {int(line[:16], 16): line[_NAME_AT:] for line in reversed(lines) if line[17:18] in _FUNCTIONS and line}
        begins.pop(0, None)  # to whoever may not know them, all are 0
        self._begins = array("Q", sorted(begins))
        self._functions = [begins[begin] for begin in self._begins]
        self._names: dict[int, str] = {}  # of the addresses that were asked for: stacks share most of theirs

    def name(self, address: int) -> str:
        """``symbol+0xoffset``, with ``[module]`` behind it if it is of one; the address itself if no symbol is below
        it, or the kernel shows none.
        """
        if (known := self._names.get(address)) is None:
            known = self._names[address] = self._found(address)
        return known

    def _found(self, address: int) -> str:
        place = bisect_right(self._begins, address)
        if not place:
            return f"{address:#x}"
        symbol, *module = self._functions[place - 1].decode(errors="replace").split()
        return " ".join((f"{symbol}+{address - self._begins[place - 1]:#x}", *module))
