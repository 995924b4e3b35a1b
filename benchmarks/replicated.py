# SPDX-License-Identifier: MIT
"""A long kernel trace out of a recorded one: its packets again and again, each time later.

A copy is later by a multiple of 2^32 ns, so that the 32-bit times in the events' headers stay what they are and only
the packets' contexts change: begin and end, sequence number, count of discarded events (lttng-modules 2.13; the layout
is checked against the metadata); and the few extended headers with all 64 bits, which are found by their values: who
uses the copies has to check that time never goes back in them. The events of a copy follow all of the copy before it.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RECORDING = "fio-psync-qd1-nvme"
MODEL = "syscalls"
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


def trace_of(folder: Path, copies: int) -> Path:
    """The trace of so many copies; made in ``folder`` at first need."""
    trace = folder / f"kernel-{copies}"
    if not (trace / "complete").exists():
        shutil.rmtree(trace, ignore_errors=True)
        trace.mkdir(parents=True)
        subprocess.run(["tar", "-xJf", ROOT / "tests" / "traces" / f"{RECORDING}.tar.xz", "-C", trace], check=True)
        _replicate(trace / RECORDING / "kernel", trace / "trace" / "kernel", copies)
        shutil.rmtree(trace / RECORDING)
        (trace / "complete").touch()
    return trace / "trace"


def count(trace: Path) -> tuple[int, int, int]:
    """The trace's events, its complete ops, and how often time goes back in it."""
    from opline.correlate import correlate
    from opline.model import load_model

    with tempfile.TemporaryDirectory(dir=trace.parent) as run:
        core = correlate(trace, load_model(MODEL), Path(run, "run"), progress=False)["core"]
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


def _replicate(source: Path, target: Path, copies: int) -> None:
    said = " ".join((source / "metadata").read_bytes().replace(b"\0", b"").decode("latin-1").split())
    if _HEADER not in said or _CONTEXT not in said or "event.header := struct event_header_large;" not in said:
        raise SystemExit(f"{source}: its packets are not as expected; no copies can be made of it")
    target.mkdir(parents=True)
    shutil.copy(source / "metadata", target)
    streams = {f.name: f.read_bytes() for f in sorted(source.iterdir()) if f.is_file() and f.name != "metadata"}
    packets = {name: _packets(data) for name, data in streams.items()}
    times = [t for found in packets.values() for _, fields in found for t in fields[:2]]
    step = -(-(max(times) - min(times) + 1) // _STEP_NS) * _STEP_NS
    for name, data in streams.items():
        found = packets[name]
        first, last = found[0][1], found[-1][1]
        extended = [place for at, fields in found for place in _extended(data, at, fields)]
        with (target / name).open("wb") as out:
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
