# SPDX-License-Identifier: MIT
"""Where files lie on disk: reads ``extents.json`` (docs/internals/stitching.md, "Extents") and the text of ``filefrag
-v``.

filefrag's output is that of e2fsprogs 1.47 (misc/filefrag.c, print_extent_info): a line with the file's size and unit,
a header, and a line per extent ``N: LOGICAL.. LOGICAL: PHYSICAL.. PHYSICAL: LENGTH: [EXPECTED:] FLAGS``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from opline.errors import OplineError
from opline.paths import is_utf8, name_bytes
from opline.shapes import parsed

VERSION = 1
SECTOR_BYTES = 512
_BEYOND = 1 << 55  # sectors: no file has an offset of 2^64 bytes
# FIEMAP flags (Linux, include/uapi/linux/fiemap.h) with which the physical place is none, or not the data's own.
PLACELESS = frozenset({"unknown_loc", "delalloc", "encoded", "encrypted", "not_aligned", "inline", "tail_packed"})

_SIZE = r"File size of (?P<path>.+) is (?P<size>\d+) \(\d+ blocks? of (?P<unit>\d+) bytes\)"
_EXTENT = r"\s*\d+:\s*(\d+)\.\.\s*(\d+):\s*(\d+)\.\.\s*(\d+):\s*(\d+):\s*+(?:\d++:)?\s*+([\w,]*+)\s*+"


class Extent(NamedTuple):
    """Sectors (512 bytes) of a file in one piece on its file system's device."""

    logical_sector: int
    physical_sector: int
    sectors: int


class FileMap(NamedTuple):
    """Where one file lies. ``disk`` (kernel-internal number) is the whole disk that block events name, and
    ``start_sector`` where the file system's partition begins on it; without it the core finds the disk by what it sees.
    """

    path: str
    size_bytes: int
    extents: tuple[Extent, ...]  # by logical_sector, none overlap
    changed: bool = False  # at some time of the recording it lay elsewhere
    disk: int | None = None
    start_sector: int = 0
    dev: int | None = None  # of the file system, kernel-internal; with the inode: which file of a system call it is
    inode: int | None = None
    generation: int = 0  # of the inode, whose number another file may have had before; 0: not known

    def plan(self) -> dict[str, Any]:
        """As the core reads it."""
        extents = [[e.logical_sector, e.physical_sector, e.sectors] for e in self.extents]
        return {
            "path": self.path if is_utf8(self.path) else list(name_bytes(self.path)),
            "disk": self.disk,
            "start_sector": self.start_sector,
            "changed": self.changed,
            "dev": self.dev,
            "inode": self.inode,
            "generation": self.generation,
            "extents": extents,
        }


def read_extents(path: Path) -> list[FileMap]:
    """The files that ``path`` maps, either format. Raises OplineError: what, where."""
    try:
        text = path.read_bytes().decode(errors="surrogateescape")  # the name of a file is bytes
    except OSError as error:
        raise OplineError(f"Cannot read {path}: {error.strerror}.") from error
    return _from_json(path, text) if text.lstrip().startswith("{") else _from_filefrag(path, text)


def _from_filefrag(path: Path, text: str) -> list[FileMap]:
    maps: list[FileMap] = []
    name, size, unit = "", 0, 0
    extents: list[Extent] = []
    for number, line in enumerate(text.splitlines(), 1):
        if header := re.fullmatch(_SIZE, line.strip()):
            if name:
                maps.append(FileMap(name, size, _ordered(path, name, extents)))
            name, size, unit, extents = header["path"], int(header["size"]), int(header["unit"]), []
            if unit % SECTOR_BYTES:
                raise OplineError(f"{path}:{number}: blocks of {unit} bytes are no whole sectors: use -b512.")
        elif found := re.fullmatch(_EXTENT, line):
            if not name:
                raise OplineError(f"{path}:{number}: an extent before any line `File size of …`: use filefrag -v.")
            first, last, start, end, length = (int(found[i]) for i in range(1, 6))
            if last - first + 1 != length or end - start + 1 != length:
                raise OplineError(f"{path}:{number}: the extent's ends and its length {length} contradict each other.")
            if PLACELESS.isdisjoint(found[6].split(",")):
                by = unit // SECTOR_BYTES
                extents.append(Extent(first * by, start * by, length * by))
        elif re.match(r"\s*\d+:", line):
            raise OplineError(f"{path}:{number}: not a line of `filefrag -v`: {line.strip()[:60]!r}.")
    if not name:
        raise OplineError(f"{path} is neither extents.json nor the text of `filefrag -v -b512 FILE`.")
    maps.append(FileMap(name, size, _ordered(path, name, extents)))
    return maps


def _from_json(path: Path, text: str) -> list[FileMap]:
    try:
        document = parsed(text)
    except ValueError as error:
        raise OplineError(f"Cannot read {path}: not JSON ({error}).") from error
    if (
        not isinstance(document, dict)
        or document.get("version") != VERSION
        or not isinstance(document.get("files"), list)
    ):
        raise OplineError(f"{path} is not an extents.json of version {VERSION} (`version`, `files`).")
    maps: list[FileMap] = []
    for i, file in enumerate(document["files"]):
        try:
            extents = [
                Extent(int(e["logical_sector"]), int(e["physical_sector"]), int(e["sectors"]))
                for e in file["extents"]
                if PLACELESS.isdisjoint(e.get("flags", ()))
            ]
            if (file.get("dev") is None) != (file.get("inode") is None):
                raise ValueError("a `dev` without an `inode`, or an `inode` without a `dev`, names no file")
            maps.append(
                FileMap(
                    path=str(file["path"]),
                    size_bytes=_below(1 << 64, file["size_bytes"]),
                    extents=_ordered(path, str(file["path"]), extents),
                    changed=bool(file.get("changed", False)),
                    disk=None if file.get("disk") is None else _number(file["disk"]),
                    start_sector=_below(_BEYOND, file.get("start_sector") or 0),
                    dev=None if file.get("dev") is None else _number(file["dev"]),
                    inode=None if file.get("inode") is None else _below(1 << 64, file["inode"]),
                    generation=_below(1 << 32, file.get("generation") or 0),
                )
            )
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            what = f"no {error}" if isinstance(error, KeyError) else str(error)
            raise OplineError(f"{path}: files[{i}]: {what}.") from error
    return maps


def _below(limit: int, value: Any) -> int:
    number = int(value)
    if not 0 <= number < limit:
        raise ValueError(f"{number} is out of range")
    return number


def _number(text: str) -> int:
    major, colon, minor = text.partition(":")
    if not (colon and major.isdigit() and minor.isdigit()):
        raise ValueError(f"{text!r} is no device number MAJOR:MINOR")
    return _below(1 << 12, major) << 20 | _below(1 << 20, minor)


def _ordered(path: Path, name: str, extents: list[Extent]) -> tuple[Extent, ...]:
    return tuple(_joined(path, name, sorted(extents)))


def _joined(path: Path, name: str, extents: list[Extent]) -> Iterator[Extent]:
    """Neighbours that continue each other become one. Raises OplineError for overlaps."""
    last: Extent | None = None
    for e in extents:
        if min(e.logical_sector, e.physical_sector) < 0 or e.sectors <= 0 or max(e) >= _BEYOND:
            raise OplineError(f"{path}: {name}: an extent of {e.sectors} sectors at {e.logical_sector} makes no sense.")
        if last is None:
            last = e
            continue
        end = last.logical_sector + last.sectors
        if e.logical_sector < end:
            raise OplineError(f"{path}: {name}: extents overlap at sector {e.logical_sector} of the file.")
        if e.logical_sector == end and e.physical_sector == last.physical_sector + last.sectors:
            last = Extent(last.logical_sector, last.physical_sector, last.sectors + e.sectors)
        else:
            yield last
            last = e
    if last is not None:
        yield last
