# SPDX-License-Identifier: MIT
"""When the streams of LTTng's traces end, by their index. A machine that only records has no core: none is needed."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import TYPE_CHECKING

from opline.readers import chunks
from opline.readers.trace import stream_files

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opline.paths import StrPath

_INDEX_MAGIC = 0xC1F1DCC1


def last_packet_end_ns(folders: Sequence[StrPath]) -> int | None:
    """When the last packet of these traces ends, by LTTng's index (its clock counts nanoseconds); None without one."""
    return max(_stream_ends_ns(folders), default=None)


def closed_until_ns(folders: Sequence[StrPath]) -> int | None:
    """When the newest chunk among these traces was closed: the last packet of each of its streams ends then or later.
    None if they are no chunks, or have no index.
    """
    return min(_stream_ends_ns(chunks.newest(folders)), default=None)


def _stream_ends_ns(folders: Sequence[StrPath]) -> list[int]:
    ends = []
    for folder in folders:
        for path in stream_files(folder):
            if record := _last_record(Path(folder) / "index" / f"{Path(path).name}.idx"):
                ends.append(struct.unpack_from(">Q", record, 32)[0])
    return ends


def _last_record(path: Path) -> bytes | None:
    """The last packet's record in an index of LTTng's; empty if it has none, None without a whole index."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    if len(data) < 16:
        return None
    magic, _major, _minor, record = struct.unpack_from(">IIII", data)
    if magic != _INDEX_MAGIC or record < 56 or (len(data) - 16) % record:
        return None
    return data[len(data) - record :] if len(data) > 16 else b""
