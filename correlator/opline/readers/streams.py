# SPDX-License-Identifier: MIT
"""Cut-off and damaged data stream files: found before babeltrace2 sees them, and put right in a folder of links.

babeltrace2 gives up on a whole trace for one file that ends inside a packet. Takes the folder of a trace as LTTng
writes it (CTF 1.8 and 2); gives what is wrong with its files, and a folder in which each of them ends where it is
readable, its packets in the order of their times.
"""

from __future__ import annotations

import json
import os
import re
import struct

from opline.readers.metadata import metadata_text
from opline.readers.trace import stream_files
from opline.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from io import RawIOBase
    from pathlib import Path
    from typing import Any

    from opline.paths import StrPath

_MAGIC = 0xC1FC1FC1
_INDEX_MAGIC = 0xC1F1DCC1
# LTTng's packet context in CTF 1.8 (lttng-tools 2.13, src/bin/lttng-sessiond/ust-metadata.cpp, lttng-modules 2.13;
# lttng-tools 2.16 has no aliases and writes each type out)
_CONTEXT = r"(?:struct packet_context|packet\.context := struct) \{(.*?)\n\s*\}"
_FIELD = r"(?:integer \{ (size = \d+);[^}]*\}|(\w+(?: \w+)?)) (\w+);"
_BIG_ENDIAN = r"trace \{[^{}]*byte_order = be;"
_LONG_64 = r"integer \{ size = 64; [^}]*\} := unsigned long;"
_NAMES = ["timestamp_begin", "timestamp_end", "content_size", "packet_size", "packet_seq_num", "events_discarded"]
# The same in CTF 2 (lttng-tools 2.16, src/bin/lttng-sessiond/ctf2-trace-class-visitor.cpp)
_ROLES = (
    "default-clock-timestamp",
    "packet-end-default-clock-timestamp",
    "packet-content-length",
    "packet-total-length",
    "packet-sequence-number",
    "discarded-event-record-counter-snapshot",
)
_NO_COUNT = 2**64 - 1  # what babeltrace 2.0 itself means by "none": it aborts on it
_SIZES = struct.Struct("QQ")  # content_size, packet_size: in bits


class StreamDamage(Value):
    """What is wrong with one file. Bytes from ``good_bytes`` on make no whole packet; the packet that begins there can
    be read to the file's end if ``partial`` is set. ``order``: where its packets lie, (begin, end) in the order of
    their times, if that is not how they follow each other.
    """

    path: Path
    loss: str  # name in opline.losses
    lost: int
    why: str
    good_bytes: int
    partial: bool = False
    order: Sequence[tuple[int, int]] = ()


class Layout(Value):
    """Where a packet's sizes lie, in bytes from its begin."""

    sizes_at: int
    header_bytes: int
    order: str = "<"
    counters: bool = False  # the sequence number and the count of discarded events follow the sizes

    def times(self, data: bytes) -> tuple[int, int]:
        """(begin, end), raw values of the clock."""
        begin, end = struct.unpack_from(self.order + _SIZES.format, data, self.sizes_at - 16)
        return begin, end

    def sizes(self, data: bytes) -> tuple[int, int]:
        """(content, packet) in bits."""
        content, packet = struct.unpack_from(self.order + _SIZES.format, data, self.sizes_at)
        return content, packet


def layout_of(folder: StrPath) -> Layout | None:
    """The layout of LTTng's packets; None for a trace of another tracer, or one whose metadata can't be read."""
    try:
        text = metadata_text(folder)
        if text.startswith("\x1e"):
            return _layout_of_ctf_2(text)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    context = re.search(_CONTEXT, text, re.DOTALL)
    fields = re.findall(_FIELD, context[1]) if context else []
    wide = [
        name
        for size, alias, name in fields
        if "64" in (size or alias) or (alias == "unsigned long" and re.search(_LONG_64, text))
    ]
    if wide[:4] != _NAMES[:4] or [name for _, _, name in fields[:4]] != wide[:4]:
        return None
    header = 32 if "stream_instance_id" in text else 24
    order = ">" if re.search(_BIG_ENDIAN, text) else "<"
    counters = wide[:6] == _NAMES == [name for _, _, name in fields[:6]]
    return Layout(header + 16, header + (48 if counters else 32), order, counters)


def _layout_of_ctf_2(text: str) -> Layout | None:
    """By the roles of the fields, which are to follow each other as LTTng writes them."""
    fragments = [json.loads(part) for part in text.split("\x1e") if part.strip()]
    aliases = {f["name"]: f["field-class"] for f in fragments if f["type"] == "field-class-alias"}

    def resolved(fc: Any) -> dict[str, Any]:
        while isinstance(fc, str):
            fc = aliases[fc]
        return dict(fc)

    trace = next(f for f in fragments if f["type"] == "trace-class")
    contexts = [resolved(f["packet-context-field-class"]) for f in fragments if f["type"] == "data-stream-class"]
    at, places, order = 0, {}, "<"
    for structure in (resolved(trace["packet-header-field-class"]), contexts[0]):
        for member in structure["member-classes"]:
            fc = resolved(member["field-class"])
            size = fc["length"] * (8 if fc["type"] == "static-length-blob" else 1)
            align = fc.get("alignment", 8 if fc["type"] == "static-length-blob" else 1)
            at = -(-at // align) * align
            for role in fc.get("roles", ()):
                places[role] = (at, size)
            order = ">" if fc.get("byte-order") == "big-endian" else "<"
            at += size
    first = places["default-clock-timestamp"][0]
    if any(c != contexts[0] for c in contexts) or [places.get(role) for role in _ROLES[:4]] != [
        (first + 64 * i, 64) for i in range(4)
    ]:
        return None
    counters = [places.get(role) for role in _ROLES[4:]] == [(first + 64 * i, 64) for i in (4, 5)]
    return Layout(first // 8 + 16, first // 8 + (48 if counters else 32), order, counters)


def check(folder: StrPath) -> list[StreamDamage]:
    """What is wrong with the files of a trace; an empty list if nothing is, or if another tracer wrote it."""
    layout = layout_of(folder)
    if layout is None:
        return []

    from pathlib import Path

    found = []
    for path in map(Path, stream_files(folder)):
        size = path.stat().st_size
        if size == 0:
            continue
        indexed = _indexed_bytes(folder, path)
        with path.open("rb", buffering=0) as file:
            damages = _walk(file, path, size, layout)
        if not any(d.loss != "packets_out_of_order" for d in damages) and indexed is not None and indexed > size:
            damages.append(StreamDamage(path, "packets_missing", 1, "the file is shorter than its index says", size))
        found += damages
    return found


def cut_between_packets(folder: StrPath) -> list[StreamDamage]:
    """Of what ``check`` finds that alone which only LTTng's index tells: the loss ``packets_missing``."""
    if all((_indexed_bytes(folder, path) or 0) <= os.stat(path).st_size for path in stream_files(folder)):
        return []
    return [damage for damage in check(folder) if damage.loss == "packets_missing"]


def _indexed_bytes(folder: StrPath, stream: StrPath) -> int | None:
    """Where the last packet of a stream ends by LTTng's index; None without a whole index."""
    try:
        with open(os.path.join(folder, "index", f"{os.path.basename(stream)}.idx"), "rb") as index:
            data = index.read()
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


def _walk(file: RawIOBase, path: Path, size: int, layout: Layout) -> list[StreamDamage]:
    """What the headers of all packets say. Never trusts LTTng's index, which may be wrong, too."""
    at = last_end = disorder = 0
    damage: StreamDamage | None = None
    packets: list[tuple[int, int, int]] = []
    while at < size and damage is None:
        file.seek(at)
        head = file.read(layout.header_bytes) or b""
        if len(head) < layout.header_bytes:
            damage = StreamDamage(path, "truncated_packets", 1, f"packet at byte {at}: its header is cut off", at)
            break
        content, packet = layout.sizes(head)
        magic = struct.unpack_from(layout.order + "I", head)[0]
        sound = magic == _MAGIC and layout.header_bytes * 8 <= content <= packet and packet % 8 == 0
        if sound and layout.counters:
            sound = _NO_COUNT not in struct.unpack_from(layout.order + "QQ", head, layout.sizes_at + 16)
        if not sound:
            damage = StreamDamage(path, "malformed_packets", 1, f"packet at byte {at}: no packet begins here", at)
            break
        end = at + packet // 8
        if end > size:
            cut = (size - at) * 8 < content
            why = f"packet at byte {at}: the file ends before the packet does; its events up to there are read"
            damage = StreamDamage(path, "truncated_packets", int(cut), why, at, partial=True)
        begin_time, end_time = layout.times(head)
        disorder += begin_time < last_end
        last_end = end_time
        packets.append((begin_time, at, min(end, size)))
        at = end
    found = [damage] if damage is not None else []
    if disorder:
        ordered = sorted(packets, key=lambda p: p[0])
        why = f"{disorder} packets begin before the one before them ended; packets are read in the order of their times"
        good = damage.good_bytes if damage is not None else size
        order = [(begin, end) for _, begin, end in ordered] if ordered != packets else []
        found.insert(0, StreamDamage(path, "packets_out_of_order", disorder, why, good, order=order))
    return found


def mend(folder: Path, damages: list[StreamDamage], into: Path) -> None:
    """Make ``into`` a trace: links to the sound files, and copies of the damaged ones up to where they are readable.

    LTTng's indexes are left out: babeltrace2 makes its own. Raises OSError.
    """
    from pathlib import Path

    layout = layout_of(folder)
    assert layout is not None
    ends = {d.path.name: d for d in damages if d.loss != "packets_out_of_order"}
    orders = {d.path.name: d.order for d in damages if d.order}
    into.mkdir(parents=True)
    for path in [folder / "metadata", *map(Path, stream_files(folder))]:
        damage, target = ends.get(path.name), into / path.name
        if damage is not None and (damage.good_bytes > 0 or damage.partial):
            _copy(path, target, damage, layout)
        elif damage is None:
            target.symlink_to(path.absolute())
        if path.name in orders and target.exists():
            _reorder(target, orders[path.name])


def _reorder(path: Path, order: Sequence[tuple[int, int]]) -> None:
    """Lays the packets of a file anew, in the order of their times."""
    sorted_path = path.with_name(f".{path.name}")
    with path.open("rb") as source, sorted_path.open("wb") as out:
        for begin, end in order:
            source.seek(begin)
            out.write(source.read(end - begin))
    sorted_path.replace(path)


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
