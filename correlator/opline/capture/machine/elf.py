# SPDX-License-Identifier: MIT
"""What a program or library has: functions, symbol tables, and for probes its USDT probes and LTTng tracepoints.

Takes an ELF file (64 bits, little-endian); no debugging information is needed. The formats: elf(5); of USDT notes
SystemTap's ``sys/sdt.h`` (a note of type 3 and name ``stapsdt``: three addresses, then provider, name and arguments,
each ended by NUL); of LTTng tracepoints ``struct lttng_ust_tracepoint`` (``lttng/tracepoint-types.h``, 2.13).
"""

from __future__ import annotations

import functools
import mmap
import re
import struct
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from opline.errors import OplineError
from opline.values import Value

# mov $imm32 to a register, or xor of one with itself, with and without the prefix for r8 to r15
_CONSTANT = re.compile(
    rb"(?:([\xb8-\xbf])....|(\x41[\xb8-\xbf])....|(\x31[\xc0\xc9\xd2\xdb\xed\xf6\xff])|(\x45\x31[\xc0\xc9\xd2\xdb]))",
    re.DOTALL,
)
# What changes nothing but the flags: test of registers, cmp of a register, or a variable, with a number
_COMPARES = re.compile(rb"[\x40-\x4f]?(?:[\x84\x85][\xc0-\xff]|[\x80\x83](?:[\xf8-\xff].|\x3d.{5}))", re.DOTALL)
# cmp of a register of 8 bytes and what lies relative to the next instruction, either way round
_COMPARED = re.compile(rb"(?=[\x48\x4c][\x39\x3b][\x05\x0d\x15\x1d\x25\x2d\x35\x3d](.{4}))", re.DOTALL)
_ARGUMENT_NUMBERS = (7, 6, 2, 1, 8, 9)  # of rdi, rsi, rdx, rcx, r8, r9 in instructions
_T = TypeVar("_T")
_HEADER = struct.Struct("<4s5B7xHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_NOTE = struct.Struct("<III")
_USDT_NOTE = struct.Struct("<QQQ")
_LOAD = 1  # PT_LOAD
_NOTES = 7  # SHT_NOTE
_SYMBOL_TABLES = (2, 11)  # SHT_SYMTAB, SHT_DYNSYM
_FUNCTIONS = (2, 10)  # STT_FUNC, STT_GNU_IFUNC
_VARIABLES = (1,)  # STT_OBJECT
_BUILD_ID = 3  # NT_GNU_BUILD_ID
_DEBUG_FILES = Path("/usr/lib/debug/.build-id")  # where debugging symbols that were split off are installed
_USDT = 3
_RELOCATIONS = 4  # SHT_RELA
_RELOCATION = struct.Struct("<QQq")
_RELATIVE = 8  # R_X86_64_RELATIVE
_TRACEPOINT_BYTES = 64  # struct lttng_ust_tracepoint, with the alignment of its section


class Place(Value):
    """One location of a USDT probe. Offsets are in the file; ``semaphore`` 0: it has none."""

    provider: str
    name: str
    offset: int
    semaphore: int
    arguments: str


class Section(NamedTuple):
    """Of a file: the address to which it is linked, and its bytes there."""

    address: int
    offset: int
    size: int


def _whole(read: Callable[[Elf], _T]) -> Callable[[Elf], _T]:
    """Read once. What a damaged file says of itself leads anywhere: one error for all."""

    @functools.wraps(read)
    def checked(self: Elf) -> _T:
        try:
            if read.__name__ not in self.known:
                self.known[read.__name__] = read(self)
            found: _T = self.known[read.__name__]
            return found
        except (struct.error, ValueError, IndexError, OverflowError) as error:
            raise OplineError(f"{self.path}: a damaged or cut off ELF file") from error

    return checked


class Elf:
    """An ELF file. Raises OplineError if the file can't be read or is no such file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.known: dict[str, Any] = {}  # what has been read
        try:
            with path.open("rb") as file:
                self.data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is empty"
            raise OplineError(f"{path}: cannot be read: {reason}") from error
        self._read_tables()

    @_whole
    def _read_tables(self) -> None:
        if self.data[:6] != b"\x7fELF\x02\x01":
            raise OplineError(f"{self.path}: not a program or library of 64 bits, little-endian (ELF)")
        fields = _HEADER.unpack_from(self.data)
        self.machine = fields[7]
        segments_at, sections_at = fields[10], fields[11]
        segment_count, section_count, names_index = fields[15], fields[17], fields[18]
        self._loads = []
        for i in range(segment_count):
            kind, _, offset, address, _, size, _, _ = _SEGMENT.unpack_from(self.data, segments_at + i * _SEGMENT.size)
            if kind == _LOAD:
                self._loads.append((address, size, offset))
        self._sections = [
            _SECTION.unpack_from(self.data, sections_at + i * _SECTION.size) for i in range(section_count)
        ]
        names = self._sections[names_index][4] if section_count else 0
        self._named = {self.text(names + section[0]): section for section in self._sections}

    def text(self, at: int) -> str:
        """The text that begins there in the file, up to its NUL."""
        end = self.data.find(b"\0", at)
        return self.data[at:end].decode("utf-8", "replace")

    def file_offset(self, address: int) -> int | None:
        """Where the byte that is loaded at that address lies in the file; None if it does not."""
        for start, size, offset in self._loads:
            if start <= address < start + size:
                return int(address - start + offset)
        return None

    def address(self, offset: int) -> int | None:
        """The other way round: where a byte of the file is loaded."""
        for start, size, begin in self._loads:
            if begin <= offset < begin + size:
                return int(offset - begin + start)
        return None

    @_whole
    def functions(self) -> dict[str, int]:
        """Names of functions, as they are linked, and their offsets in the file."""
        symbols = self._symbols(_FUNCTIONS)
        return {name: at for name, address, _ in symbols if (at := self.file_offset(address)) is not None}

    def section(self, name: str) -> Section | None:
        """Where a section is; None: the file has none of that name."""
        found = self._named.get(name)
        return None if found is None else Section(found[3], found[4], found[5])

    @_whole
    def symbol_tables(self) -> list[tuple[int, int, int]]:
        """Each symbol table: where it begins in the file, its bytes, and where the names begin to which it refers."""
        return [
            (offset, size, self._sections[link][4])
            for _, kind, _, _, offset, size, link, _, _, _ in self._sections
            if kind in _SYMBOL_TABLES
        ]

    @_whole
    def debug_file(self) -> Elf | None:
        """Its debugging symbols that were split off (/usr/lib/debug/.build-id); None: they are not installed."""
        build = self.build_id()
        apart = _DEBUG_FILES / build[:2] / f"{build[2:]}.debug"
        return Elf(apart) if build and apart.is_file() and apart != self.path else None

    @_whole
    def variables(self) -> dict[str, int]:
        """Names of variables, as they are linked, and their addresses; with those of its installed debugging symbols
        (/usr/lib/debug/.build-id).
        """
        apart = self.debug_file()
        own = {name: address for name, address, _ in self._symbols(_VARIABLES)}
        return (apart.variables() if apart is not None else {}) | own

    def compared(self, function: str) -> int | None:
        """The address of the variable with which that function compares a register of 8 bytes, by all its code the one
        with which it does so most often, and more than once. None if there is none, or several.
        """
        at, bytes_ = self._code().get(function, (0, 0))
        counts: Counter[int] = Counter()
        for found in _COMPARED.finditer(self.data[at : at + bytes_]):
            end = self.address(at + found.start() + 7)  # of the instruction: the address is relative to it
            if end is not None:
                counts[end + int(struct.unpack("<i", found[1])[0])] += 1
        most = counts.most_common(2)
        if not most or most[0][1] < 2 or (len(most) > 1 and most[1][1] == most[0][1]):
            return None
        return most[0][0]

    @_whole
    def _code(self) -> dict[str, tuple[int, int]]:
        """Names of functions, their offsets in the file and how many bytes they have."""
        return {
            name: (at, bytes_)
            for name, address, bytes_ in self._symbols(_FUNCTIONS)
            if (at := self.file_offset(address)) is not None
        }

    def _symbols(self, kinds: tuple[int, ...]) -> Iterator[tuple[str, int, int]]:
        """Names, addresses as linked, and bytes."""
        for offset, size, names in self.symbol_tables():
            for name, info, _, section, address, bytes_ in _SYMBOL.iter_unpack(self.data[offset : offset + size]):
                if info & 15 in kinds and section:
                    yield self.text(names + name), address, bytes_

    @_whole
    def build_id(self) -> str:
        """Which build this is, as the linker has noted it; empty if it has not."""
        return next((note.hex() for note in self._notes(_BUILD_ID, b"GNU\0")), "")

    @_whole
    def places(self) -> list[Place]:
        """All locations of USDT probes, in the order of the notes."""
        base = self._named.get(".stapsdt.base")
        found = []
        for note in self._notes(_USDT, b"stapsdt\0"):
            address, base_then, semaphore = _USDT_NOTE.unpack_from(note)
            moved = base[3] - base_then if base is not None and base_then else 0
            provider, name, arguments = note[_USDT_NOTE.size :].decode("utf-8", "replace").split("\0")[:3]
            offset = self.file_offset(address + moved)
            counter = self.file_offset(semaphore + moved) if semaphore else 0
            if offset is not None and counter is not None:
                found.append(Place(provider, name, offset, counter, arguments))
        return found

    def _notes(self, wanted: int, owner: bytes) -> Iterator[bytes]:
        for _, kind, _, _, at, size, _, _, _, _ in self._sections:
            end = at + size
            while kind == _NOTES and at + _NOTE.size <= end:
                name_bytes, bytes_, note_kind = _NOTE.unpack_from(self.data, at)
                content = at + _NOTE.size + (name_bytes + 3 & ~3)
                if note_kind == wanted and self.data[at + _NOTE.size : content].startswith(owner):
                    yield self.data[content : content + bytes_]
                at = content + (bytes_ + 3 & ~3)

    @_whole
    def lttng_events(self) -> list[str]:
        """``provider:event`` of the LTTng-UST (2.13 and later) tracepoints that were compiled in, sorted."""
        section, pointers = self._named.get("lttng_ust_tracepoints"), self._named.get("lttng_ust_tracepoints_ptrs")
        if section is None or pointers is None:
            return []
        moved = {  # where the program may be loaded anywhere, its pointers are in the relocations
            at: addend
            for _, kind, _, _, offset, size, _, _, _, _ in self._sections
            if kind == _RELOCATIONS
            for at, info, addend in _RELOCATION.iter_unpack(self.data[offset : offset + size])
            if info == _RELATIVE
        }
        found = set()
        for i in range(pointers[5] // 8):
            address = section[3] + i * _TRACEPOINT_BYTES
            if address + 24 > section[3] + section[5]:
                break
            names = []
            for field in (8, 16):  # provider_name, event_name
                (written,) = struct.unpack_from("<Q", self.data, section[4] + i * _TRACEPOINT_BYTES + field)
                place = self.file_offset(moved.get(address + field, written))
                names.append("" if place is None else self.text(place))
            if all(names):
                found.add(":".join(names))
        return sorted(found)

    def entry(self, offset: int, arguments: int | None) -> int:
        """Where a function is entered most cheaply: at what the kernel emulates. One that begins with a comparison and
        a conditional jump (pg_fdatasync) is taken at this jump: stack and registers are as they were. One that sets
        constants and jumps to another one (PQsendQuery) is taken at its jump, if none of the first ``arguments`` is
        what it sets (None: any register matters); any other one at its begin.
        """
        compares = _COMPARES.match(self.data, offset)
        if compares is not None and b"\x70" <= self.data[compares.end() : compares.end() + 1] <= b"\x7f":
            return compares.end()
        if arguments is None:
            return offset
        at = offset
        while (found := _CONSTANT.match(self.data, at)) is not None:
            code = found[1] or found[2] or found[3] or found[4]
            register = code[-1] & 7 if code[0] not in b"\x31\x45" else code[-1] >> 3 & 7
            if (register + (8 if code[0] in b"\x41\x45" else 0)) in _ARGUMENT_NUMBERS[:arguments]:
                return offset
            at = found.end()
        return at if self.data[at : at + 1] in (b"\xe9", b"\xeb") else offset

    def steps(self, offset: int) -> bool:
        """Does the kernel single-step the instruction there, and not emulate it? A hit costs some ten times as much
        then (arch/x86/kernel/uprobes.c: what is emulated are no-operations, pushes, jumps and calls).
        """
        code = self.data[offset : offset + 4]
        if code[:1] == b"\x66":
            code = code[1:]
        emulated = (
            code[:1] in b"\x90\xe8\xe9\xeb"
            or 0x50 <= code[0] <= 0x57
            or (code[0] == 0x41 and 0x50 <= code[1] <= 0x57)
            or 0x70 <= code[0] <= 0x7F
            or code[:2] in (b"\x0f\x1f", b"\x0f\x1e")
            or code == b"\xf3\x0f\x1e\xfa"
        )
        return not emulated
