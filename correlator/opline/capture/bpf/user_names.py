# SPDX-License-Identifier: MIT
"""Names of the functions in user stacks: what a process had mapped where, and the symbols of those files.

How a stack goes on from a place in the code is in these files, too (:mod:`opline.capture.machine.unwinding`), and the
BPF program is told (tracepoints/user_frames.bpf.c): of the places of a stack that it gives, and of all that look like
return addresses further up on the thread's stack. Such a word need not be one: what is told is true of the code at that
place, whoever comes there.

Addresses mean something only while the process runs its program. So the mappings are read soon after a stack was taken
(``/proc/PID/maps``), and the files are opened through ``/proc/PID/map_files``: that is the file itself, in a container
as well, and if it was deleted or replaced. What was read serves until the end, also of a process that has ended.

A name is never a guess. An address that lies in no mapped file, or in no function of which the file tells the length,
stays without a name. A stack ends at the first address to which no call returns.

bcc's cache of symbols is not used: it reads a process's mappings when a name is asked for, which is too late for one
that has ended or runs another program, and names an address after the symbol before it, however far that is.
"""

from __future__ import annotations

import re
import struct
from bisect import bisect_right
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from opline.capture.machine.code_names import CodeNames, Demangler, follows_call
from opline.capture.machine.elf import Elf
from opline.capture.machine.unwinding import BY_FRAME_POINTER, Row, Unwinding
from opline.errors import OplineError

_MAP = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) ..x. ([0-9a-f]+) ([0-9a-f]+:[0-9a-f]+) (\d+) *(.*)$", re.MULTILINE)
_DELETED = " (deleted)"
_RETURN_PROBES = "[uprobes]"  # where functions with a return probe return to, on the way to their callers
_WORDS = 4096  # of a thread's stack, that are looked through
_NEW_PLACES = 512  # of one stack
Program = tuple[int, int]  # a process, and since when it runs its program


class _File:
    """A mapped file. ``elf`` None: it could not be opened, or is no ELF file."""

    def __init__(self, name: str, elf: Elf | None) -> None:
        self.name, self._elf = name, elf
        self.rows: dict[int, Row] = {}  # by offset: the places that were met so far
        self._names: CodeNames | None = None
        self._unwinding: Unwinding | None = None

    def address(self, offset: int) -> int | None:
        """Where a byte of the file is linked to."""
        return None if self._elf is None else self._elf.address(offset)

    def returns_here(self, offset: int) -> bool:
        return self._elf is None or follows_call(self._elf, offset)

    def function(self, address: int) -> tuple[str, int] | None:
        """Name and begin of the function at an address, as linked."""
        if self._names is None and self._elf is not None:
            try:
                self._names = CodeNames(self._elf)
            except OplineError:
                self._elf = None
        return None if self._names is None else self._names.function(address)

    def row(self, offset: int, called: bool) -> Row | None:
        """How a stack goes on at a byte of the file. None: that is not known."""
        at = self.address(offset)
        if self._elf is None or at is None:
            return BY_FRAME_POINTER
        if self._unwinding is None:
            self._unwinding = Unwinding(self._elf)
        return self._unwinding.row(at - called)


class _Mapping(NamedTuple):
    begin: int
    end: int
    offset: int  # in the file
    key: tuple[str, int, str]  # device, inode, path


class _Mappings:
    """Those of a process whose bytes may be executed."""

    def __init__(self, all_: Sequence[_Mapping]) -> None:
        self._all, self._begins = all_, [one.begin for one in all_]

    def at(self, address: int) -> _Mapping | None:
        place = bisect_right(self._begins, address) - 1
        found = self._all[place] if place >= 0 else None
        return found if found is not None and address < found.end else None


class UserNames:
    """``now_since``: since when a process runs the program that it runs now; None: it has ended. ``tell``: says to the
    BPF program how a stack goes on from an address.
    """

    def __init__(self, now_since: Callable[[int], int | None], tell: Callable[[Program, int, Row], None]) -> None:
        self._now_since, self._tell = now_since, tell
        self._told: set[tuple[Program, int]] = set()
        self._maps: dict[Program, _Mappings] = {}
        self._unsure: set[Program] = set()  # read for the first time just now
        self._read: set[Program] = set()  # read just now
        self._files: dict[tuple[str, int, str], _File] = {}
        self._demangler = Demangler()

    def see(self, program: Program, addresses: Sequence[int], tid: int, stack_pointer: int) -> None:
        """Of a stack of a process's thread, innermost first, with the stack pointer there: read what the process has
        mapped, unless that is known of all addresses, and say how stacks go on. Never raises.
        """
        if not all(self._is_mapped(program, address) for address in addresses):
            self._read_maps(program)
        mappings = self._maps.get(program)
        if mappings is None:
            return
        ends_here = (program, addresses[-1]) not in self._told
        self._tell_of(program, mappings, addresses[:1], called=False)
        self._tell_of(program, mappings, addresses[1:], called=True)
        if ends_here and self._runs(program):
            with suppress(OSError, OverflowError), Path("/proc", str(tid), "mem").open("rb", buffering=0) as memory:
                memory.seek(stack_pointer)
                words = memory.read(8 * _WORDS)
                further = [word for (word,) in struct.iter_unpack("<Q", words[: len(words) & ~7])]
                self._tell_of(program, mappings, further, called=True)

    def _tell_of(self, program: Program, mappings: _Mappings, addresses: Sequence[int], called: bool) -> None:
        new = 0
        for address in addresses:
            mapping = mappings.at(address)
            if mapping is None or (program, address) in self._told:
                continue
            file, offset = self._files.get(mapping.key), address - mapping.begin + mapping.offset
            if file is not None and called and not file.returns_here(offset):
                continue
            row = self._row(mapping, file, offset, called)
            if row is not None:
                self._tell(program, address, row)
            self._told.add((program, address))
            new += 1
            if new == _NEW_PLACES:
                return

    @staticmethod
    def _row(mapping: _Mapping, file: _File | None, offset: int, called: bool) -> Row | None:
        if file is None:  # the caller of a function with a return probe is known to the kernel alone
            return None if mapping.key[2] == _RETURN_PROBES else BY_FRAME_POINTER
        if offset in file.rows:
            return file.rows[offset]
        row = file.row(offset, called)
        if row is not None:
            file.rows[offset] = row
        return row

    def _tell_of_files(self, program: Program, mappings: Sequence[_Mapping]) -> None:
        """What is known from other processes: those that a server forks run the same files."""
        for mapping in mappings:
            file = self._files.get(mapping.key)
            for offset, row in file.rows.items() if file is not None else ():
                address = offset - mapping.offset + mapping.begin
                if mapping.begin <= address < mapping.end:
                    self._tell(program, address, row)
                    self._told.add((program, address))

    def _is_mapped(self, program: Program, address: int) -> bool:
        mappings = self._maps.get(program)
        return mappings is not None and mappings.at(address) is not None

    def _read_maps(self, program: Program) -> None:
        if program in self._read or not self._runs(program):
            return
        self._read.add(program)
        place = Path("/proc", str(program[0]))
        try:
            text = (place / "maps").read_text(errors="replace")
        except OSError:
            return
        found = []
        for begin, end, offset, device, inode, path in _MAP.findall(text):
            mapping = _Mapping(int(begin, 16), int(end, 16), int(offset, 16), (device, int(inode), path))
            found.append(mapping)
            if int(inode) and mapping.key not in self._files:
                self._files[mapping.key] = self._open(place, mapping)
        if self._runs(program):
            if program not in self._maps:
                self._unsure.add(program)
                self._tell_of_files(program, found)
            self._maps[program] = _Mappings(found)

    def confirm(self) -> None:
        """To be called a while after :meth:`see`: mappings that were read while the process went over to another
        program are thrown away.
        """
        for program in self._unsure:
            if self._now_since(program[0]) not in (None, program[1]):
                del self._maps[program]
        self._unsure.clear()
        self._read.clear()

    def _runs(self, program: Program) -> bool:
        return self._now_since(program[0]) == program[1]

    @staticmethod
    def _open(place: Path, mapping: _Mapping) -> _File:
        path = mapping.key[2].removesuffix(_DELETED)
        name = path.rpartition("/")[2] or path
        try:
            return _File(name, Elf(place / "map_files" / f"{mapping.begin:x}-{mapping.end:x}"))
        except OplineError:
            return _File(name, None)

    def frames(self, program: Program, addresses: Sequence[int]) -> list[str]:
        """``function+0xoffset [file]``, innermost first; without a name ``[file+0xaddress]``, the address as the file
        is linked. Of a program whose mappings are not known the innermost address itself.
        """
        mappings = self._maps.get(program)
        found: list[str] = []
        for address in addresses if mappings is not None else ():
            mapping = mappings.at(address) if mappings is not None else None
            frame = None if mapping is None else self._frame(mapping, address, bool(found))
            if frame is None:
                break
            found.append(frame)
        return found or [f"{addresses[0]:#x}"]

    def _frame(self, mapping: _Mapping, address: int, called: bool) -> str | None:
        """``called``: the address is one to which a call returns. None: it is not."""
        file, offset = self._files.get(mapping.key), address - mapping.begin + mapping.offset
        if file is None:  # of no file
            name = mapping.key[2].strip("[]")
            return f"[{name}+{offset:#x}]" if name else "[anonymous]"
        at = file.address(offset)
        if at is None:
            return f"[{file.name}+{offset:#x}]"
        if called and not file.returns_here(offset):
            return None
        function = file.function(at - called)  # the call itself lies before
        if function is None:
            return f"[{file.name}+{at:#x}]"
        return f"{self._demangler.plain(function[0])}+{at - function[1]:#x} [{file.name}]"
