# SPDX-License-Identifier: MIT
"""How a stack goes on at a place in a program: where its caller's frame is, by the call frame information that
compilers write beside the code (section ``.eh_frame``), with frame pointers or without.

The format: DWARF 5, section 6.4, and of ``.eh_frame`` and ``.eh_frame_hdr`` the Linux Standard Base, section 10.6.
x86-64 alone: the numbers of registers are those of its System V ABI.
"""

from __future__ import annotations

import mmap
import struct
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from opline.capture.machine.elf import Elf

_RBP, _RSP, _RETURN = 6, 7, 16  # registers
_TABLE = b"\x01\x1b\x03\x3b"  # .eh_frame_hdr that linkers write: version 1, and a sorted table of sdata4 from its begin
_SIZES = {0x00: 8, 0x02: 2, 0x03: 4, 0x04: 8, 0x0A: 2, 0x0B: 4, 0x0C: 8}  # DW_EH_PE_*: bytes of a pointer
_ULEB_OPERANDS = {5: 2, 6: 1, 7: 1, 8: 1, 9: 2, 0xC: 2, 0xD: 1, 0xE: 1, 0x14: 2, 0x2E: 1}  # by DW_CFA_*
_LONG = 0xFFFFFFFF  # of a length: one of 64 bits comes behind
_DAMAGED = (struct.error, ValueError, IndexError, KeyError)
_Numbers = np.ndarray[Any, np.dtype[np.int64]]
_UNKNOWN = 1  # of a register, where its caller's value is not on the stack


class Row(NamedTuple):
    """The caller's frame begins at the stack pointer (or at rbp, ``by_rbp``) plus ``cfa``; the return address lies
    below that, and the caller's rbp ``rbp_at`` bytes below. ``rbp_at`` 0: rbp is the caller's still.
    """

    by_rbp: bool
    cfa: int
    rbp_at: int


#: Of code without such information, which is taken to keep frame pointers: push rbp; mov rsp, rbp.
BY_FRAME_POINTER = Row(True, 16, 16)


class _Reader:
    """Numbers of a stretch of the file."""

    def __init__(self, data: bytes | mmap.mmap, at: int) -> None:
        self.data, self.at = data, at

    def unsigned(self, size: int) -> int:
        self.at += size
        return int.from_bytes(self.data[self.at - size : self.at], "little")

    def skip(self, size: int) -> None:
        self.at += size

    def uleb(self) -> int:
        value = shift = 0
        while True:
            byte = self.unsigned(1)
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def sleb(self) -> int:
        begin = self.at
        value = self.uleb()
        bits = 7 * (self.at - begin)
        return value - (1 << bits) if value >> bits - 1 else value

    def text(self) -> bytes:
        end = self.data.find(b"\0", self.at)
        if end < 0:
            raise ValueError
        found, self.at = self.data[self.at : end], end + 1
        return bytes(found)


class _Common(NamedTuple):
    """What functions share (CIE)."""

    code_step: int
    data_step: int
    pointers: int  # encoding of the function's begin
    has_more: bool
    signal: bool
    begin: int  # of the instructions, in the file
    end: int


class _Function(NamedTuple):
    """What is about one function (FDE). ``begin``: its address as linked."""

    common: _Common
    begin: int
    size: int
    at: int  # of the instructions, in the file
    end: int


class _State:
    """Rules at one place. ``cfa`` None: an expression. ``rules``: by register, offsets from the frame's begin."""

    def __init__(self) -> None:
        self.cfa: tuple[int, int] | None = None
        self.rules: dict[int, int] = {}


class Unwinding:
    """Of one file, whose code is x86-64's."""

    def __init__(self, elf: Elf) -> None:
        self._elf = elf
        self._common: dict[int, _Common | None] = {}
        self._begins, self._places = self._table()

    def _table(self) -> tuple[_Numbers, _Numbers]:
        """Where functions begin, and where their information is; addresses as linked."""
        header = self._elf.section(".eh_frame_hdr")
        if header is None or self._elf.data[header.offset : header.offset + 4] != _TABLE:
            return self._listed()
        (count,) = struct.unpack_from("<I", self._elf.data, header.offset + 8)
        pairs = np.frombuffer(self._elf.data[header.offset + 12 : header.offset + 12 + 8 * count], "<i4")
        pairs = pairs[: len(pairs) & ~1].reshape(-1, 2).astype(np.int64) + header.address
        return pairs[:, 0], pairs[:, 1]

    def _listed(self) -> tuple[_Numbers, _Numbers]:
        """The same of a file without that table, as static programs are: all the information in turn."""
        frames = self._elf.section(".eh_frame")
        found = []
        at, end = (0, 0) if frames is None else (frames.offset, frames.offset + frames.size)
        while frames is not None and at + 8 <= end:
            length, number = struct.unpack_from("<II", self._elf.data, at)
            if length in (0, _LONG):
                break
            place = frames.address + at - frames.offset
            with suppress(*_DAMAGED):
                if number and (function := self._function(place)) is not None:
                    found.append((function.begin, place))
            at += 4 + length
        table = np.array(sorted(found), np.int64).reshape(-1, 2)
        return table[:, 0], table[:, 1]

    def row(self, address: int) -> Row | None:
        """At this address, as linked. None: the stack can't be followed from here, or ends."""
        last = int(np.searchsorted(self._begins, address, "right")) - 1
        if last < 0:
            return BY_FRAME_POINTER
        try:
            return self._row(int(self._places[last]), address)
        except _DAMAGED:
            return None

    def _function(self, place: int) -> _Function | None:
        at = self._elf.file_offset(place)
        if at is None:
            return None
        reader = _Reader(self._elf.data, at)
        length = reader.unsigned(4)
        end, back = reader.at + length, reader.at
        common = self._common_of(back - reader.unsigned(4))
        if common is None:
            return None
        size = _SIZES[common.pointers & 15]
        begin_at = self._elf.address(reader.at)
        begin = int.from_bytes(reader.data[reader.at : reader.at + size], "little", signed=True)
        begin += begin_at if common.pointers & 0x70 == 0x10 and begin_at is not None else 0  # relative to its place
        reader.at += size
        function_bytes = reader.unsigned(size)
        if common.has_more:
            reader.skip(reader.uleb())
        return _Function(common, begin, function_bytes, reader.at, end)

    def _row(self, place: int, address: int) -> Row | None:
        function = self._function(place)
        if function is None or function.common.signal:
            return None
        if not function.begin <= address < function.begin + function.size:
            return BY_FRAME_POINTER
        common = function.common
        state = _State()
        self._run(state, common, common.begin, common.end, 0, 1, {})
        self._run(state, common, function.at, function.end, function.begin, address, dict(state.rules))
        if state.cfa is None or state.cfa[0] not in (_RBP, _RSP) or state.rules.get(_RETURN) != -8:
            return None
        rbp = state.rules.get(_RBP, 0)
        if rbp > 0 or not 0 <= state.cfa[1] < 1 << 31:
            return None
        return Row(state.cfa[0] == _RBP, state.cfa[1], -rbp)

    def _common_of(self, at: int) -> _Common | None:
        if at not in self._common:
            self._common[at] = self._read_common(at)
        return self._common[at]

    def _read_common(self, at: int) -> _Common | None:
        reader = _Reader(self._elf.data, at)
        length = reader.unsigned(4)
        end = reader.at + length
        number, version = reader.unsigned(4), reader.unsigned(1)
        more = reader.text()
        if number != 0 or version not in (1, 3) or more[:1] not in (b"", b"z"):
            return None
        code_step, data_step = reader.uleb(), reader.sleb()
        reader.unsigned(1) if version == 1 else reader.uleb()
        pointers, begin = 0, reader.at
        if more:
            begin = reader.uleb() + reader.at
        for kind in more[1:].decode():
            if kind == "R":
                pointers = reader.unsigned(1)
            elif kind == "L":
                reader.unsigned(1)
            elif kind == "P":
                reader.at += _SIZES[reader.unsigned(1) & 15]
        return _Common(code_step, data_step, pointers, bool(more), b"S" in more, begin, end)

    def _run(
        self, state: _State, common: _Common, at: int, end: int, location: int, until: int, initial: dict[int, int]
    ) -> None:
        """Instructions up to the address ``until``. ``initial``: the rules that a function begins with."""
        reader = _Reader(self._elf.data, at)
        kept: list[tuple[tuple[int, int] | None, dict[int, int]]] = []
        rules = state.rules
        while reader.at < end and location <= until:
            byte = reader.unsigned(1)
            high, low = byte >> 6, byte & 63
            if high == 1 or (high == 0 and low in (2, 3, 4)):
                step = low if high == 1 else reader.unsigned(1 << low - 2)
                location += step * common.code_step
            elif high == 2:
                rules[low] = reader.uleb() * common.data_step
            elif high == 3:
                _restore(rules, initial, low)
            elif low in _ULEB_OPERANDS:
                operands = [reader.uleb() for _ in range(_ULEB_OPERANDS[low])]
                self._set(state, common, initial, low, operands)
            elif low == 0x0A:
                kept.append((state.cfa, dict(rules)))
            elif low == 0x0B:
                state.cfa, known = kept.pop()
                rules.clear()
                rules.update(known)
            elif low == 0x0F:
                state.cfa = None
                reader.skip(reader.uleb())
            elif low in (0x10, 0x16):
                rules[reader.uleb()] = _UNKNOWN
                reader.skip(reader.uleb())
            elif low == 0x11:
                rules[reader.uleb()] = reader.sleb() * common.data_step
            elif low == 0x12:
                state.cfa = reader.uleb(), reader.sleb() * common.data_step
            elif low == 0x13:
                self._set(state, common, initial, 0x0E, [reader.sleb() * common.data_step])
            elif low != 0:
                raise ValueError

    @staticmethod
    def _set(state: _State, common: _Common, initial: dict[int, int], kind: int, operands: list[int]) -> None:
        """An instruction whose operands are unsigned numbers."""
        first, last = operands[0], operands[-1]
        if kind == 5:
            state.rules[first] = last * common.data_step
        elif kind == 6:
            _restore(state.rules, initial, first)
        elif kind in (7, 9, 0x14):
            state.rules[first] = _UNKNOWN
        elif kind == 8:
            state.rules.pop(first, None)
        elif kind == 0xC:
            state.cfa = first, last
        elif kind == 0xD:
            state.cfa = state.cfa and (first, state.cfa[1])
        elif kind == 0xE:
            state.cfa = state.cfa and (state.cfa[0], last)


def _restore(rules: dict[int, int], initial: dict[int, int], register: int) -> None:
    if register in initial:
        rules[register] = initial[register]
    else:
        rules.pop(register, None)
