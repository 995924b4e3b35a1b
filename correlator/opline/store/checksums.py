# SPDX-License-Identifier: MIT
"""Says whether a run's Parquet files are what was written: ``manifest.json`` has each file's size and CRC-32, each
page's header the CRC-32 of the page (PageHeader.crc of apache/parquet-format 2.11), which says where damage is.
"""

from __future__ import annotations

import mmap
import os
import zlib
from typing import TYPE_CHECKING

from opline.store.schema import TABLES
from opline.values import Value

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any

KEY = "checksums"  # in the manifest: {"ops.parquet": {"bytes": 4711, "crc32": "0123abcd"}, ...}
_CHUNK = 1 << 20
_MAGIC = b"PAR1"
_DATA, _DICTIONARY = 0, 2  # of parquet.thrift, PageType
_DEEPEST = 2  # a page's header has one struct in it


class Page(Value):
    """A page of a Parquet file: its number from 0, where its header begins, of which row group and column it is."""

    offset: int
    row_group: int
    column: str
    fault: str | None  # None: it is what was written


def noted(manifest: dict[str, Any], table: str) -> tuple[int, str] | None:
    """Size and CRC-32 of a table's file, as the manifest has them; None: it has none (of a run by an older opline)."""
    files = manifest.get(KEY)
    entry = files.get(f"{table}.parquet") if isinstance(files, dict) else None
    if not isinstance(entry, dict):
        return None
    size, crc = entry.get("bytes"), entry.get("crc32")
    return (size, crc) if isinstance(size, int) and isinstance(crc, str) else None


def is_newer(manifest: dict[str, Any], table: str) -> bool:
    """The run was written by an older opline that had no such table: the manifest has other files, and not this."""
    files = manifest.get(KEY)
    return isinstance(files, dict) and bool(files) and f"{table}.parquet" not in files


def fault_of(file: Path, size: int, crc: str) -> str | None:
    """What is wrong with the file; None: nothing. Reads all of it. Raises OSError."""
    found, total = 0, 0
    with file.open("rb", buffering=0) as data:
        chunk = memoryview(bytearray(_CHUNK))
        while count := data.readinto(chunk):
            found = zlib.crc32(chunk[:count], found)
            total += count
    if total != size:
        return f"it has {total} bytes and was written with {size}"
    return None if f"{found:08x}" == crc else f"its CRC-32 is {found:08x} and was {crc}"


def pages(file: Path) -> Iterator[Page]:
    """All pages of a file that opline wrote, one after the other as they lie there; after one whose header can't be
    read there are none. Raises OSError.
    """
    table = file.name.removesuffix(".parquet")
    columns = [c.name for t in TABLES if t.name == table for c in t.columns]
    with file.open("rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        if size < 12:
            yield Page(0, 0, columns[0], "the file is cut off")
            return
        with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
            yield from _pages_of(data, columns)


def _pages_of(data: mmap.mmap, columns: list[str]) -> Iterator[Page]:
    end = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    if data[:4] != _MAGIC or data[-4:] != _MAGIC or end < 4:
        yield Page(0, 0, columns[0], "the file's begin or end is damaged")
        return
    at, done = 4, 0
    while at < end:
        row_group, column = divmod(done, len(columns))
        try:
            header, body = _struct(data, at)
            kind, size = header[1], header[3]
        except (LookupError, ValueError):
            header, kind, size, body = {}, -1, -1, at
        if kind not in (_DATA, _DICTIONARY) or size < 0 or body + size > end:
            yield Page(at, row_group, columns[column], "its header is damaged")
            return
        crc = header.get(4)
        fault = None
        if crc is None:
            fault = "it has no checksum"
        elif zlib.crc32(data[body : body + size]) != crc & 0xFFFFFFFF:
            fault = "its checksum is wrong"
        yield Page(at, row_group, columns[column], fault)
        done += kind == _DATA
        at = body + size


def _varint(data: mmap.mmap, at: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 64:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
        shift += 7
    raise ValueError("a number of more than 64 bits")


def _struct(data: mmap.mmap, at: int, depth: int = 0) -> tuple[dict[int, int], int]:
    """The integers of a struct in Thrift's compact protocol (apache/thrift 0.22, thrift-compact-protocol.md) by field,
    and where it ends; structs, booleans and binaries in it are passed over. Page headers have nothing else. Raises
    LookupError or ValueError.
    """
    if depth > _DEEPEST:
        raise ValueError("structs in structs")
    fields: dict[int, int] = {}
    field = 0
    while head := data[at]:
        at += 1
        step, kind = head >> 4, head & 15
        if step == 0:
            raw, at = _varint(data, at)
            step = (raw >> 1 ^ -(raw & 1)) - field
        field += step
        if kind in (5, 6):  # i32, i64
            raw, at = _varint(data, at)
            fields[field] = raw >> 1 ^ -(raw & 1)
        elif kind == 8:  # binary
            length, at = _varint(data, at)
            at += length
        elif kind == 12:
            _, at = _struct(data, at, depth + 1)
        elif kind in (1, 2):  # a boolean: its kind is its value
            pass
        else:
            raise ValueError("no page header")
    return fields, at + 1
