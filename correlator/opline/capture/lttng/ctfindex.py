# SPDX-License-Identifier: MIT
"""Discarded events and packets per channel from LTTng's index files, without decoding an event.

LTTng writes ``index/CHANNEL_CPU.idx`` beside each data stream: a header and a fixed-size record per packet, big endian
(lttng-tools 2.13, src/common/index/ctf-index.h). ``events_discarded`` counts from the begin of the stream.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path

_MAGIC = 0xC1F1DCC1
_HEADER = struct.Struct(">IIII")  # magic, major, minor, bytes per record
_PACKET = struct.Struct(">QQQQQQQ")  # offset, packet bits, content bits, begin, end, discarded, stream id
_SEQUENCE = struct.Struct(">QQ")  # stream instance, packet number: from minor 1

#: LTTng 2.13 can report a discarded count whose top bit is set although few events were discarded.
COUNT_MASK = (1 << 63) - 1


@dataclass(slots=True)
class ChannelIndex:
    """Sums over the data streams of one channel."""

    domain: str  # "ust" or "kernel"
    channel: str
    streams: int = 0
    packets: int = 0
    content_bytes: int = 0
    discarded_events: int = 0
    lost_packets: int = 0
    begins_ns: list[int] = field(default_factory=list)  # when each stream's first packet begins
    ends_ns: list[int] = field(default_factory=list)  # when each stream's last packet ends
    short_from_ns: list[int] = field(default_factory=list)  # begins of packets that are not whole in their file
    damaged: int = 0  # index files that are cut off or not index files


def _add(index: ChannelIndex, data: bytes, stream_bytes: int) -> None:
    if len(data) < _HEADER.size:
        index.damaged += 1
        return
    magic, _major, minor, size = _HEADER.unpack_from(data)
    if magic != _MAGIC or size < _PACKET.size:
        index.damaged += 1
        return
    index.streams += 1
    body = len(data) - _HEADER.size
    if body % size:
        index.damaged += 1
    discarded = end = 0
    expected: int | None = None
    first: int | None = None
    for at in range(_HEADER.size, _HEADER.size + body - body % size, size):
        offset, packet, content, begin, end, discarded, _stream = _PACKET.unpack_from(data, at)
        index.packets += 1
        first = begin if first is None else first
        if offset + packet // 8 > stream_bytes:
            index.short_from_ns.append(begin)
        index.content_bytes += content // 8
        if minor >= 1 and size >= _PACKET.size + _SEQUENCE.size:
            _instance, number = _SEQUENCE.unpack_from(data, at + _PACKET.size)
            if expected is not None and number > expected:
                index.lost_packets += number - expected
            expected = number + 1
    index.discarded_events += discarded & COUNT_MASK
    if first is not None:
        index.begins_ns.append(first)
        index.ends_ns.append(end)


def read(trace: Path) -> list[ChannelIndex]:
    """All channels below ``trace``, by domain and name. An empty list if there is no index."""
    channels: dict[tuple[str, str], ChannelIndex] = {}
    for file in sorted(trace.rglob("*.idx")):
        domain = "kernel" if "kernel" in file.relative_to(trace).parts else "ust"
        channel = file.stem.rpartition("_")[0]
        index = channels.setdefault((domain, channel), ChannelIndex(domain, channel))
        try:
            stream = file.parent.parent / file.stem
            _add(index, file.read_bytes(), stream.stat().st_size if stream.exists() else 0)
        except OSError:
            index.damaged += 1
    return list(channels.values())
