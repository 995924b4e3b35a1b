# SPDX-License-Identifier: MIT
"""Where LTTng's packets have their sizes, times and counters, for who handles packets without decoding events.

Takes the folder of a trace as LTTng writes it (CTF 1.8 and 2).
"""

from __future__ import annotations

import json
import re
import struct
from typing import TYPE_CHECKING

from opline.readers.metadata import metadata_text
from opline.values import Value

if TYPE_CHECKING:
    from typing import Any

    from opline.paths import StrPath

# LTTng's packet context in CTF 1.8 (lttng-tools 2.13, src/bin/lttng-sessiond/ust-metadata.cpp, lttng-modules 2.13;
# lttng-tools 2.16 has no aliases and writes each type out)
_CONTEXT = r"(?:struct packet_context|packet\.context := struct) \{"
_CONTEXT_END = re.compile(r"\n[^\S\n]*+\}")
_FIELD = r"(?:integer \{ (size = \d+);[^{}]*+\}|\b(\w++(?: \w++)?)) (\w++);"
_BIG_ENDIAN = r"trace \{[^{}]*byte_order = be;"
_LONG_64 = r"integer \{ size = 64; [^{}]*+\} := unsigned long;"
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
_SIZES = struct.Struct("QQ")  # content_size, packet_size: in bits


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
    context = re.search(_CONTEXT, text)
    end = _CONTEXT_END.search(text, context.end()) if context else None
    fields = re.findall(_FIELD, text[context.end() : end.start()]) if context and end else []
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
