# SPDX-License-Identifier: MIT
"""A recorded trace of LTTng-UST 2.13 split by process into two traces, as if two hosts had recorded it: the second one
has another clock. For traces whose events have `vpid` in their context.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

METADATA_HEADER = struct.Struct("<I16sIIIBBBBB")
PACKET_HEADER = 4 + 16 + 4 + 8
PACKET_CONTEXT = struct.Struct("<6QI")  # begin, end, content and packet size in bits, sequence number, discarded, CPU
INDEX_HEADER = struct.Struct(">4I")
INDEX_ENTRY = struct.Struct(">7Q")  # offset, packet and content size, begin, end, discarded, stream id
COMPACT, EXTENDED = struct.Struct("<HI"), struct.Struct("<HIQ")
EXTENDED_ID = 65_535
FIELD = re.compile(
    r"integer \{ size = (?P<bits>\d+);[^}]*\} \w+(?:\[ ?(?P<count>\w+) ?\])?;"
    r"|(?P<float>floating_point) \{[^}]*\} \w+;|(?P<string>string) \w+;"
)
Clock = Callable[[int], int]


class Field(NamedTuple):
    """``size`` in bytes, 0 of a string. ``times``: of an array; -1: the field before says it."""

    size: int
    times: int = 1


class Event(NamedTuple):
    """``body``: context and fields."""

    ns: int
    number: int
    pid: int
    body: bytes


class Layout(NamedTuple):
    context: list[Field]
    pid_at: int
    fields: dict[int, list[Field]]


def text_of(metadata: bytes) -> str:
    found, at = [], 0
    while at < len(metadata):
        _, _, _, content, packet, *_ = METADATA_HEADER.unpack_from(metadata, at)
        found.append(metadata[at + METADATA_HEADER.size : at + content // 8])
        at += packet // 8
    return b"".join(found).decode()


def _fields(text: str) -> list[Field]:
    found = []
    for match in FIELD.finditer(text):
        if match["string"]:
            found.append(Field(0))
        elif match["float"]:
            found.append(Field(8))
        else:
            count = match["count"] or "1"
            found.append(Field(int(match["bits"]) // 8, int(count) if count.isdecimal() else -1))
    return found


def layout_of(text: str) -> Layout:
    context = re.search(r"event\.context := struct \{(.*?)\n\t\};", text, re.DOTALL)
    assert context is not None and "event.header := struct event_header_large" in text
    before = context[1][: context[1].index("_vpid")]
    events = re.findall(
        r"event \{\s+name = \"[^\"]+\";\s+id = (\d+);.*?fields := struct \{(.*?)\n?\t*\};", text, re.DOTALL
    )
    pid_at = sum(f.size * f.times for f in _fields(before))
    return Layout(_fields(context[1]), pid_at, {int(number): _fields(body) for number, body in events})


def _past(data: bytes, at: int, fields: list[Field]) -> int:
    """Where the fields that begin there end."""
    last = 0
    for field in fields:
        if not field.size:
            at = data.index(0, at) + 1
            continue
        size = field.size * (last if field.times < 0 else field.times)
        last = int.from_bytes(data[at : at + size], "little")
        at += size
    return at


def events_of(packet: bytes, layout: Layout) -> Iterator[Event]:
    begin_ns, _, content, *_ = PACKET_CONTEXT.unpack_from(packet, PACKET_HEADER)
    at, ns = PACKET_HEADER + PACKET_CONTEXT.size, begin_ns
    while at < content // 8:
        number, low = COMPACT.unpack_from(packet, at)
        if number == EXTENDED_ID:
            _, number, ns = EXTENDED.unpack_from(packet, at)
            at += EXTENDED.size
        else:
            ns += (low - ns) % (1 << 32)
            at += COMPACT.size
        past = _past(packet, _past(packet, at, layout.context), layout.fields[number])
        (pid,) = struct.unpack_from("<i", packet, at + layout.pid_at)
        yield Event(ns, number, pid, packet[at:past])
        at = past
    assert at == content // 8


def _packet(packet: bytes, events: list[Event], clock: Clock) -> bytes:
    begin_ns, end_ns, _, size, *rest = PACKET_CONTEXT.unpack_from(packet, PACKET_HEADER)
    made = bytearray(packet[:PACKET_HEADER]) + PACKET_CONTEXT.pack(clock(begin_ns), clock(end_ns), 0, 0, *rest)
    for event in events:
        made += EXTENDED.pack(EXTENDED_ID, event.number, clock(event.ns)) + event.body
    content = 8 * len(made)
    made += bytes(max(0, size // 8 - len(made)))
    struct.pack_into("<2Q", made, PACKET_HEADER + 16, content, 8 * len(made))
    return bytes(made)


def split(trace: Path, out: Path, is_first: Callable[[int], bool], clock: Clock) -> tuple[Path, Path]:
    """The traces of the processes that ``is_first`` takes, and of the others, whose times ``clock`` gives."""
    made = []
    for name, first in (("first", True), ("second", False)):
        place = out / name
        for metadata in trace.rglob("metadata"):
            folder = place / metadata.parent.relative_to(trace)
            folder.mkdir(parents=True)
            raw = metadata.read_bytes()
            text = text_of(raw)
            if not first:
                uuid = re.search(r"clock \{.*?uuid = \"([^\"]+)\"", text, re.DOTALL)
                assert uuid is not None
                text = text.replace(f'uuid = "{uuid[1]}"', 'uuid = "5ec0d000-0000-4000-8000-000000000002"', 1)
            (folder / "metadata").write_text(text)
            layout = layout_of(text_of(raw))
            for stream in sorted(f for f in metadata.parent.iterdir() if f.is_file() and f.name != "metadata"):
                (folder / stream.name).write_bytes(
                    b"".join(_stream(stream.read_bytes(), layout, is_first, first, clock))
                )
        made.append(place)
    return made[0], made[1]


def _stream(data: bytes, layout: Layout, is_first: Callable[[int], bool], first: bool, clock: Clock) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        size = PACKET_CONTEXT.unpack_from(data, at + PACKET_HEADER)[3] // 8
        packet = data[at : at + size]
        mine = [event for event in events_of(packet, layout) if is_first(event.pid) == first]
        yield _packet(packet, mine, (lambda ns: ns) if first else clock)
        at += size
