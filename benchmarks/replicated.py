# SPDX-License-Identifier: MIT
"""A long trace out of a recorded one: its packets again and again, each time later.

A copy is later by a multiple of 2^32 ns, so that the 32-bit times in the events' headers stay what they are and only
the packets' contexts change: begin and end, sequence number, count of discarded events (lttng-modules and LTTng-UST
2.13; the layout is checked against the metadata). The few extended headers with all 64 bits of the time change too;
they are found by their values, so the benchmark checks that times go back in the copies no more often than in the
recording. The events of a copy follow all of the copy before it.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
import tempfile
from pathlib import Path
from typing import BinaryIO

ROOT = Path(__file__).resolve().parent.parent
_HEADER = (
    "packet.header := struct { uint32_t magic; uint8_t uuid[16]; uint32_t stream_id; uint64_t stream_instance_id; };"
)
_CONTEXT = (
    "struct packet_context { uint64_clock_monotonic_t timestamp_begin; uint64_clock_monotonic_t timestamp_end; "
    "uint64_t content_size; uint64_t packet_size; uint64_t packet_seq_num; unsigned long events_discarded; "
    "uint32_t cpu_id; };"
)
_CONTEXT_AT = 4 + 16 + 4 + 8
_FIELDS = struct.Struct("<6Q")  # begin, end, content, packet (bits), sequence, discarded
_EXTENDED = struct.Struct("<HIQ")  # 65535, the event's id, its time
_MOST_IDS = 1 << 14
_STEP_NS = 1 << 32


def trace_of(folder: Path, recording: str, copies: int) -> Path:
    """The trace of so many copies of a recorded trace of tests/traces; made in ``folder`` at first need. A trace of
    several domains is one folder with a folder for each in it.
    """
    place = folder / f"{recording}-{copies}"
    if not (place / "complete").exists():
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        subprocess.run(["tar", "-xJf", ROOT / "tests" / "traces" / f"{recording}.tar.xz", "-C", place], check=True)
        source = place / recording
        _replicate(source, place / "trace", sorted(m.parent for m in source.rglob("metadata")), copies)
        shutil.rmtree(source)
        (place / "complete").touch()
    return place / "trace"


def unpacked(folder: Path, recording: str) -> Path:
    """A recorded trace of tests/traces, unpacked into ``folder`` at first need. Only the trace: a client's log beside
    it would be read as well.
    """
    trace = folder / recording / "trace"
    if not trace.exists():
        archive = ROOT / "tests" / "traces" / f"{recording}.tar.xz"
        subprocess.run(["tar", "-xJf", archive, "-C", folder, f"{recording}/trace"], check=True)
    return trace


def count(trace: Path, model: str) -> tuple[int, int, int]:
    """The trace's events, its complete ops, and how often time goes back in it."""
    from opline.correlation import correlate
    from opline.model import load_model

    with tempfile.TemporaryDirectory(dir=trace.parent) as run:
        core = correlate(trace, load_model(model), Path(run, "run"), progress=False)["core"]
    return core["events"], core["ops"]["complete"], core["losses"]["events_out_of_order"]


def _packets(data: bytes) -> list[tuple[int, tuple[int, ...]]]:
    """Where each packet begins, and what its context says."""
    found = []
    at = 0
    while at < len(data):
        fields = _FIELDS.unpack_from(data, at + _CONTEXT_AT)
        found.append((at, fields))
        at += fields[3] // 8
    return found


def _extended(data: bytes, at: int, fields: tuple[int, ...]) -> list[int]:
    """Where extended headers begin in the packet at ``at``."""
    begin, end, content = fields[:3]
    found = []
    place = at + _CONTEXT_AT + _FIELDS.size
    past = at + content // 8 - _EXTENDED.size
    while (place := data.find(b"\xff\xff", place, past)) >= 0:
        _, number, time = _EXTENDED.unpack_from(data, place)
        if number < _MOST_IDS and begin <= time <= end:
            found.append(place)
        place += 1
    return found


def _copied(data: bytes, copies: int, step: int, out: BinaryIO) -> None:
    """Writes the packets of one stream so many times, each time ``step`` ns later."""
    found = _packets(data)
    if not found:
        return
    first, last = found[0][1], found[-1][1]
    extended = [place for at, fields in found for place in _extended(data, at, fields)]
    for copy in range(copies):
        changed = bytearray(data)
        for at, (begin, end, content, size, sequence, discarded) in found:
            counted = copy * (last[4] - first[4] + 1), copy * (last[5] - first[5])
            later = (begin + copy * step, end + copy * step, content, size)
            _FIELDS.pack_into(changed, at + _CONTEXT_AT, *later, sequence + counted[0], discarded + counted[1])
        for place in extended:
            mark, number, time = _EXTENDED.unpack_from(data, place)
            _EXTENDED.pack_into(changed, place, mark, number, time + copy * step)
        out.write(changed)


def _replicate(source: Path, target: Path, folders: list[Path], copies: int) -> None:
    streams: dict[Path, bytes] = {}
    for folder in folders:
        said = " ".join((folder / "metadata").read_bytes().replace(b"\0", b"").decode("latin-1").split())
        if _HEADER not in said or _CONTEXT not in said or "event.header := struct event_header_large;" not in said:
            raise SystemExit(f"{folder}: its packets are not as expected; no copies can be made of it")
        for file in sorted(f for f in folder.iterdir() if f.is_file()):
            out = target / file.relative_to(source)
            out.parent.mkdir(parents=True, exist_ok=True)
            if file.name == "metadata":
                shutil.copy(file, out)
            else:
                streams[out] = file.read_bytes()
    times = [t for data in streams.values() for _, fields in _packets(data) for t in fields[:2]]
    step = -(-(max(times) - min(times) + 1) // _STEP_NS) * _STEP_NS
    for out, data in streams.items():
        with out.open("wb") as file_out:
            _copied(data, copies, step, file_out)
