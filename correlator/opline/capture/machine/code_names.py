# SPDX-License-Identifier: MIT
"""Names of functions by their place in an ELF file: the symbol tables of the file, and of its debugging symbols where
those are installed apart (/usr/lib/debug/.build-id).

A place has a name only where a symbol says how long its function is, and the place lies within it. So a file without
the symbols of its own functions gives none, rather than that of the exported function before.
"""

from __future__ import annotations

import ctypes
from contextlib import suppress
from typing import Any

import numpy as np

from opline.capture.machine.elf import Elf
from opline.errors import OplineError

_SYMBOLS = np.dtype([("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("at", "<u8"), ("n", "<u8")])
_FUNCTIONS = (2, 10)  # STT_FUNC, STT_GNU_IFUNC
_NESTED = 16  # so many symbols that begin before a place are looked at
_X86_64 = 62  # EM_X86_64
_CALL = 0xE8  # of a place relative to the next instruction: five bytes
_CALL_BY, _CALL_BY_KIND, _CALL_BY_MASK = 0xFF, 0x10, 0x38  # FF /2: of a register or of memory: two to seven bytes


class CodeNames:
    """The functions of one file. Raises OplineError if the file is damaged."""

    def __init__(self, elf: Elf) -> None:
        self._elf = elf
        tables = [(elf, elf.symbol_tables())]
        with suppress(OplineError):  # damaged debugging symbols are none
            if (apart := elf.debug_file()) is not None:
                tables.append((apart, apart.symbol_tables()))
        found, texts = [], []
        for of, parts in tables:
            for offset, size, names_at in parts:
                part = of.data[offset : offset + size]
                table = np.frombuffer(part[: len(part) // _SYMBOLS.itemsize * _SYMBOLS.itemsize], _SYMBOLS)
                kept = table[np.isin(table["info"] & 15, _FUNCTIONS) & (table["section"] != 0) & (table["n"] != 0)]
                found.append(kept)
                texts += [(of, names_at)] * len(kept)
        symbols = np.concatenate(found) if found else np.empty(0, _SYMBOLS)
        self._order = np.argsort(symbols["at"], kind="stable")
        self._symbols, self._texts = symbols[self._order], texts

    def _name(self, place: int) -> str:
        elf, names_at = self._texts[int(self._order[place])]
        return elf.text(names_at + int(self._symbols["name"][place]))

    def function(self, address: int) -> tuple[str, int] | None:
        """Name, and begin, of the function in which an address of the file (as it is linked) lies; None: not known."""
        last = int(np.searchsorted(self._symbols["at"], address, "right"))
        same: list[str] = []
        begin = -1
        for place in range(last - 1, max(last - 1 - _NESTED, -1), -1):
            at, size = int(self._symbols["at"][place]), int(self._symbols["n"][place])
            if begin >= 0 and at != begin:
                break
            if at <= address < at + size:
                begin = at
                same.append(self._name(place))
        # of several names the plainest: __pwrite64, pwrite64 and pwrite are one
        return None if not same else (min(same, key=lambda n: (len(n) - len(n.lstrip("_")), len(n), n)), begin)


def follows_call(elf: Elf, offset: int) -> bool:
    """Does a call return to this offset in the file? True where that is not known of the machine's code."""
    if elf.machine != _X86_64:
        return True
    code = elf.data[max(offset - 7, 0) : offset]
    return len(code) == 7 and (
        code[-5] == _CALL
        or any(code[-n] == _CALL_BY and code[1 - n] & _CALL_BY_MASK == _CALL_BY_KIND for n in range(2, 8))
    )


class Demangler:
    """Names of C++ functions as they are written, by libstdc++, which the core is linked with."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        try:
            library: Any = ctypes.CDLL("libstdc++.so.6")
            self._demangle = library["__cxa_demangle"]
            self._free = ctypes.CDLL(None)["free"]
        except (OSError, AttributeError):
            self._demangle = None
            return
        self._demangle.restype, self._free.argtypes = ctypes.c_void_p, (ctypes.c_void_p,)
        self._demangle.argtypes = (ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)

    def plain(self, name: str) -> str:
        """The name; of one that is no mangled name, itself."""
        if self._demangle is None or not name.startswith("_Z"):
            return name
        if name not in self._known:
            status = ctypes.c_int()
            found = self._demangle(name.encode(), None, None, ctypes.byref(status))
            text = ctypes.cast(found, ctypes.c_char_p).value if found else None
            self._known[name] = name if text is None else text.decode(errors="replace")
            if found:
                self._free(found)
        return self._known[name]
