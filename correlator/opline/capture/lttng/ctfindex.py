# SPDX-License-Identifier: MIT
"""Discarded events and packets per channel from LTTng's index files, without decoding an event.

LTTng writes ``index/CHANNEL_CPU.idx`` beside each data stream: a header and a fixed-size record per packet, big endian
(lttng-tools 2.13, src/common/index/ctf-index.h). ``events_discarded`` counts from the begin of the stream.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path

from opline.readers import chunks

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
    discarded_before: int = 0  # of them, before the first packet that is there
    lost_packets: int = 0
    begins_ns: list[int] = field(default_factory=list)  # when each stream's first packet begins
    ends_ns: list[int] = field(default_factory=list)  # when each stream's last packet ends
    short_from_ns: list[int] = field(default_factory=list)  # begins of packets that are not whole in their file
    damaged: int = 0  # index files that are cut off or not index files


@dataclass(slots=True)
class _Stream:
    """What all files of a data stream have in common: a rotated session has a file per chunk."""

    indexed: bool = False  # one of its index files is one
    next_number: int | None = None
    discarded: int = 0
    discarded_before: int = 0
    begin_ns: int | None = None
    end_ns: int = 0


def _add(index: ChannelIndex, stream: _Stream, data: bytes, stream_bytes: int) -> None:
    if len(data) < _HEADER.size:
        index.damaged += 1
        return
    magic, _major, minor, size = _HEADER.unpack_from(data)
    if magic != _MAGIC or size < _PACKET.size:
        index.damaged += 1
        return
    stream.indexed = True
    body = len(data) - _HEADER.size
    if body % size:
        index.damaged += 1
    for at in range(_HEADER.size, _HEADER.size + body - body % size, size):
        offset, packet, content, begin, end, discarded, _stream = _PACKET.unpack_from(data, at)
        index.packets += 1
        if stream.begin_ns is None:
            stream.begin_ns = begin
        if offset + packet // 8 > stream_bytes:
            index.short_from_ns.append(begin)
        index.content_bytes += content // 8
        if minor >= 1 and size >= _PACKET.size + _SEQUENCE.size:
            _instance, number = _SEQUENCE.unpack_from(data, at + _PACKET.size)
            if stream.next_number is None and number > 0:  # chunks before were removed
                stream.discarded_before = discarded & COUNT_MASK
            if stream.next_number is not None and number > stream.next_number:
                index.lost_packets += number - stream.next_number
            stream.next_number = number + 1
        stream.discarded, stream.end_ns = discarded & COUNT_MASK, end


def read(trace: Path) -> list[ChannelIndex]:
    """All channels below ``trace``, by domain and name. An empty list if there is no index."""
    channels: dict[tuple[str, str], ChannelIndex] = {}
    streams: dict[tuple[str, ...], tuple[ChannelIndex, _Stream]] = {}
    for file in sorted(trace.rglob("*.idx"), key=chunks.place_of):
        domain = "kernel" if "kernel" in file.relative_to(trace).parts else "ust"
        channel = file.stem.rpartition("_")[0]
        index = channels.setdefault((domain, channel), ChannelIndex(domain, channel))
        _, stream = streams.setdefault(chunks.place_of(file)[0], (index, _Stream()))
        try:
            data = file.parent.parent / file.stem
            _add(index, stream, file.read_bytes(), data.stat().st_size if data.exists() else 0)
        except OSError:
            index.damaged += 1
    for index, stream in streams.values():
        index.streams += stream.indexed
        index.discarded_events += stream.discarded
        index.discarded_before += stream.discarded_before
        if stream.begin_ns is not None:
            index.begins_ns.append(stream.begin_ns)
            index.ends_ns.append(stream.end_ns)
    return list(channels.values())
