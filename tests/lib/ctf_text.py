# SPDX-License-Identifier: MIT
"""Small CTF 1.8 traces with text metadata, one stream and one event: each piece of the metadata can be another one."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path

_UUID = "01020304-0506-0708-090a-0b0c0d0e0f10"
_TYPES = "".join(
    f"typealias integer {{ size = {bits}; align = 8; signed = false; }} := uint{bits}_t;\n" for bits in (8, 16, 32, 64)
)


def write_trace(folder: Path, order: str, options: Mapping[str, str], *, fields: str, payload: bytes) -> None:
    """A trace with one event ``e`` at 1000. ``options``: before, after (the trace block), head (the first line), clock,
    clock_more, header_more, context_more, packet_more (members, each a uint16_t that is 2), common, specific (contexts
    of the event, whose bytes begin the payload), uuid (``different``: the stream's is not the metadata's).
    """
    mark = ">" if order != "le" else "<"
    clock = options.get("clock", "clock { name = c; freq = 1000000000; };\n")
    ts = "integer { size = 64; align = 8; map = clock.c.value; }" if clock else "uint64_t"
    uuid = "uint8_t uuid[16]; " if "uuid" in options else ""
    common = f"event.context := struct {{ {options['common']} }};" if "common" in options else ""
    specific = f"context := struct {{ {options['specific']} }};" if "specific" in options else ""
    more = {name: options.get(name, "") for name in ("packet_more", "context_more", "header_more")}
    text = (
        options.get("head", "/* CTF 1.8 */\n") + _TYPES + options.get("before", "")
        + f"trace {{ major = 1; minor = 8; byte_order = {order}; "
        + (f'uuid = "{_UUID}"; ' if uuid else "")
        + f"packet.header := struct {{ uint32_t magic; {uuid}uint32_t stream_id; {more['packet_more']} }}; }};\n"
        + options.get("clock_more", "") + clock + options.get("after", "")
        + f"stream {{ id = 0; packet.context := struct {{ {ts} timestamp_begin; {ts} timestamp_end; "
        + f"uint64_t content_size; uint64_t packet_size; {more['context_more']} }}; "
        + f"event.header := struct {{ uint32_t id; {ts} timestamp; {more['header_more']} }}; {common} }};\n"
        + f'event {{ id = 0; name = "e"; stream_id = 0; {specific} fields := struct {{ {fields} }}; }};\n'
    )  # fmt: skip
    (folder / "metadata").write_text(text)

    def two(name: str) -> bytes:
        return struct.pack(mark + "H", 2) if name in options else b""

    head = struct.pack(mark + "I", 0xC1FC1FC1) + (bytes(16) if uuid else b"") + struct.pack(mark + "I", 0)
    head += two("packet_more")
    event = struct.pack(mark + "IQ", 0, 1000) + two("header_more") + payload
    size = 8 * (len(head) + 32 + len(two("context_more")) + len(event))
    context = struct.pack(mark + "QQQQ", 1000, 2000, size, size) + two("context_more")
    (folder / "stream0").write_bytes(head + context + event)
