# SPDX-License-Identifier: MIT
"""Cut-off and damaged data stream files: found before babeltrace2 sees them, and put right in a folder of links.

babeltrace2 gives up on a whole trace for one file that ends inside a packet. Takes the folder of a trace as LTTng
writes it (CTF 1.8); gives what is wrong with its files, and a folder in which each of them ends where it is readable.
"""

from __future__ import annotations

import os
import re
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from opline.readers.metadata import metadata_text
from opline.readers.trace import stream_files

_MAGIC = 0xC1FC1FC1
_INDEX_MAGIC = 0xC1F1DCC1
# The begin of LTTng's packet context (lttng-tools 2.13, src/bin/lttng-sessiond/ust-metadata.cpp, and lttng-modules)
_CONTEXT = re.compile(
    r"struct packet_context \{\s*\S+ timestamp_begin;\s*\S+ timestamp_end;"
    r"\s*uint64_t content_size;\s*uint64_t packet_size;"
)
_SIZES = struct.Struct("QQ")  # content_size, packet_size: in bits


@dataclass(slots=True)
class StreamDamage:
    """What is wrong with one file. Bytes from ``good_bytes`` on make no whole packet; the packet that begins there can
    be read to the file's end if ``partial`` is set.
    """

    path: Path
    loss: str  # name in opline.losses
    count: int
    why: str
    good_bytes: int
    partial: bool = False


@dataclass(slots=True)
class Layout:
    """Where a packet's sizes lie, in bytes from its begin."""

    sizes_at: int
    header_bytes: int
    order: str = field(default="<")

    def sizes(self, data: bytes) -> tuple[int, int]:
        """(content, packet) in bits."""
        content, packet = struct.unpack_from(self.order + _SIZES.format, data, self.sizes_at)
        return content, packet


def layout_of(folder: Path) -> Layout | None:
    """The layout of LTTng's packets; None for a trace of another tracer, or one whose metadata can't be read."""
    try:
        text = metadata_text(folder)
    except (OSError, ValueError):
        return None
    if not _CONTEXT.search(text):
        return None
    header = 32 if "stream_instance_id" in text else 24
    order = ">" if "byte_order = be" in text else "<"
    return Layout(header + 16, header + 32, order)


def check(folder: Path) -> list[StreamDamage]:
    """What is wrong with the files of a trace; an empty list if nothing is, or if another tracer wrote it."""
    layout = layout_of(folder)
    if layout is None:
        return []
    found = []
    for path in stream_files(folder):
        size = path.stat().st_size
        if size == 0:
            continue
        indexed = _indexed_bytes(folder / "index" / f"{path.name}.idx")
        with path.open("rb") as file:
            if indexed == size and struct.unpack(layout.order + "I", file.read(4))[0] == _MAGIC:
                continue  # the common case: LTTng says the same, and the packets need not be looked at
            damage = _walk(file, path, size, layout)
        if damage is None and indexed is not None and indexed > size:
            damage = StreamDamage(path, "packets_missing", 1, "the file is shorter than its index says", size)
        if damage is not None:
            found.append(damage)
    return found


def _indexed_bytes(path: Path) -> int | None:
    """Where the last packet of LTTng's index ends; None without a whole index."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    if len(data) < 16:
        return None
    magic, _major, _minor, record = struct.unpack_from(">IIII", data)
    if magic != _INDEX_MAGIC or record < 56 or (len(data) - 16) % record:
        return None
    if len(data) == 16:
        return 0
    offset, packet_bits = struct.unpack_from(">QQ", data, len(data) - record)
    return int(offset + packet_bits // 8)


def _walk(file: BinaryIO, path: Path, size: int, layout: Layout) -> StreamDamage | None:
    at = 0
    while at < size:
        file.seek(at)
        head = file.read(layout.header_bytes)
        if len(head) < layout.header_bytes:
            return StreamDamage(path, "truncated_packets", 1, f"packet at byte {at}: its header is cut off", at)
        content, packet = layout.sizes(head)
        if struct.unpack_from(layout.order + "I", head)[0] != _MAGIC or not 0 < content <= packet or packet % 8:
            return StreamDamage(path, "malformed_packets", 1, f"packet at byte {at}: no packet begins here", at)
        if at + packet // 8 > size:
            cut = (size - at) * 8 < content
            why = f"packet at byte {at}: the file ends before the packet does; its events up to there are read"
            return StreamDamage(path, "truncated_packets", int(cut), why, at, partial=True)
        at += packet // 8
    return None


def mend(folder: Path, damages: list[StreamDamage], into: Path) -> None:
    """Make ``into`` a trace: links to the sound files, and copies of the damaged ones up to where they are readable.

    LTTng's indexes are left out: babeltrace2 makes its own. Raises OSError.
    """
    layout = layout_of(folder)
    assert layout is not None
    damaged = {d.path.name: d for d in damages}
    into.mkdir(parents=True)
    for path in [folder / "metadata", *stream_files(folder)]:
        damage = damaged.get(path.name)
        if damage is None:
            (into / path.name).symlink_to(path.absolute())
        elif damage.good_bytes > 0 or damage.partial:
            _copy(path, into / path.name, damage, layout)


def _copy(path: Path, target: Path, damage: StreamDamage, layout: Layout) -> None:
    with path.open("rb") as source, target.open("wb") as out:
        end = source.seek(0, os.SEEK_END) if damage.partial else damage.good_bytes
        source.seek(0)
        left = end
        while left > 0 and (piece := source.read(min(left, 1 << 20))):
            out.write(piece)
            left -= len(piece)
        if damage.partial:
            available = (end - damage.good_bytes) * 8
            source.seek(damage.good_bytes)
            content, _packet = layout.sizes(source.read(layout.header_bytes))
            out.seek(damage.good_bytes + layout.sizes_at)
            out.write(struct.pack(layout.order + _SIZES.format, min(content, available), available))
