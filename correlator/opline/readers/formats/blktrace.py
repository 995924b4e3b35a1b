# SPDX-License-Identifier: MIT
"""The front end for blktrace's binary files, version 7: one file for each CPU (sda.blktrace.0, sda.blktrace.1, ...),
or all of them in one, as `blktrace -o -` writes. They go through the block model like the events of any trace.

A record: magic and version, sequence number, time in ns, sector, bytes, action, thread, device, CPU, error, and the
size of what follows (a remap's devices and a split's sector, big-endian). The recording machine's byte order. Source:
struct blk_io_trace in the kernel's include/uapi/linux/blktrace_api.h, kernel/trace/blktrace.c.

What the format does not have: write-zeroes are writes in it, and whether a bio or a request completed is not said: a
device that never issues requests (device mapper) completes bios.
"""

from __future__ import annotations

import heapq
import os
import re
import struct
from typing import TYPE_CHECKING

from opline import _core
from opline.errors import TraceError
from opline.readers import pipes
from opline.readers.plugs import Plugs
from opline.readers.registry import CERTAIN, EVENTS, NO

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, BinaryIO, TypeAlias

    from opline.paths import StrPath
    from opline.readers.registry import Head

    Record: TypeAlias = tuple[int, ...]  # time, sequence, sector, bytes, action, thread, device, CPU, error

CALLED, HAS, MODEL = "blktrace's files", EVENTS, "generic"
SLICE = 1 << 13  # events
MAGIC, VERSION = 0x65617400, 7
_FORMAT = "IIQQIIIIIHH"
_SPLIT, _PLUG, _UNPLUG, _UNPLUG_TIMER = 13, 9, 10, 11
_CGROUP = 1 << 8  # of the action: an 8-byte cgroup ID comes first in what follows
_NOTIFY = 1 << 10  # of the category: a note, not an event
_PROCESS, _TIMESTAMP = 0, 1
_CHUNK = 1 << 20
_SIBLING = re.compile(r"(.*)\.blktrace\.(\d{1,5})")
_TOLD = 3
_MOST_NS = 1 << 63  # of a time, in 64 signed bits
_MOST_SECTORS = 1 << 55  # of 512 bytes, in 64 bits

_READ, _WRITE, _FLUSH, _SYNC = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_AHEAD, _META, _DISCARD, _FUA = 1 << 11, 1 << 12, 1 << 13, 1 << 15
_EVENTS = {
    1: "block_bio_queue", 2: "block_bio_backmerge", 3: "block_bio_frontmerge", 4: "block_getrq", 6: "block_rq_requeue",
    7: "block_rq_issue", 8: "block_rq_complete", 12: "block_rq_insert", 13: "block_split", 14: "block_bio_bounce",
    15: "block_bio_remap",
}  # fmt: skip


def probe(head: Head) -> int:
    """CERTAIN where it begins with a record of blktrace."""
    return NO if _byte_order(head.data) is None else CERTAIN


def names(_head: Head) -> set[str]:
    """Of the actions that blktrace records by default."""
    return set(_EVENTS.values())


def front(paths: list[str]) -> BlktraceReader:
    """What reads the files."""
    return BlktraceReader(paths)


def _byte_order(head: bytes) -> str | None:
    for order in "<>":
        if len(head) >= 4 and struct.unpack(order + "I", head[:4])[0] & 0xFFFFFF00 == MAGIC:
            return order
    return None


def files(path: str) -> list[str]:
    """All CPUs' files of the device whose file is named, without empty ones; else the file alone."""
    named = _SIBLING.fullmatch(path)
    if named is None:
        return [path]
    found = files_in(os.path.dirname(named[1]) or ".")
    mine = [p for p in found if (s := _SIBLING.fullmatch(p)) and _same(s[1], named[1])]
    return [file for file in mine if os.stat(file).st_size or file == path]


def _same(one: str, other: str) -> bool:
    return os.path.normpath(one) == os.path.normpath(other)


def files_in(folder: StrPath) -> list[str]:
    """blktrace's files in a folder, by device and CPU."""
    found = [name for name in os.listdir(folder) if re.fullmatch(r".+\.blktrace\.\d+", name)]
    by_cpu = sorted(found, key=lambda name: (name.rpartition(".")[0], int(name.rpartition(".")[2])))
    return [os.path.join(os.fspath(folder), name) for name in by_cpu]


def files_missing(paths: list[str]) -> list[str]:
    """The files that a device's set lacks before its last. blktrace makes one for each CPU, empty without events."""
    devices = sorted({file[1] for path in paths if (file := _SIBLING.fullmatch(path))})
    missing = []
    for device in devices:
        named = (_SIBLING.fullmatch(path) for path in files_in(os.path.dirname(device) or "."))
        there = {int(file[2]) for file in named if file and _same(file[1], device)}
        missing += [f"{device}.blktrace.{cpu}" for cpu in range(max(there, default=0)) if cpu not in there]
    return missing


def letters(category: int, size: int) -> str:
    """rwbs as the kernel's blk_fill_rwbs() writes it, of an action's category."""
    first = "F" if category & _FLUSH else ""
    if category & _DISCARD:
        operation = "D"
    elif category & _WRITE:
        operation = "W"
    elif size:
        operation = "R"
    else:
        operation = "F" if category & _FLUSH else "N"
    after = ((_FUA, "F"), (_AHEAD, "A"), (_SYNC, "S"), (_META, "M"))
    return first + operation + "".join(letter for bit, letter in after if category & bit)


_PLACE = ("dev", "sector", "rwbs")
# What an event's class has besides, where it is not the number of sectors alone.
_OWN = {
    **dict.fromkeys(("block_rq_complete", "block_rq_requeue", "block_bio_complete"), ("nr_sector", "error")),
    **dict.fromkeys(("block_bio_remap", "block_rq_remap"), ("nr_sector", "old_dev", "old_sector")),
    "block_split": ("new_sector",),
}


class BlktraceReader:
    """Reads the files of one or several devices together. ``losses`` are known after reading."""

    name = "blktrace"

    def __init__(self, paths: list[str]) -> None:
        self._paths = paths
        self._cut = 0
        self._missing = files_missing(paths)
        self._messages: list[str] = [
            f"{path}: there is no such file, and there are those of other CPUs" for path in self._missing[:_TOLD]
        ]
        self._names: dict[int, str] = {}
        self._origin: int | None = None
        self._read = 0
        self._plugs = Plugs()

    def read(self, consumer: _core.Core | _core.Printer | _core.Dropper) -> Iterator[float | None]:
        """Push all events, in slices; each ``next()`` gives the share of the bytes read so far, None of a pipe."""
        assert not isinstance(consumer, _core.Dropper), "checks leave out events of CTF traces only"
        try:
            total = sum(os.stat(path).st_size for path in self._paths)
            for events in self._push(consumer):
                if events % SLICE == 0:
                    yield min(1.0, self._read / total) if total else None
        except OSError as error:
            raise TraceError(f"Cannot read {error.filename or self._paths[0]}: {error.strerror}.") from error

    def _push(self, consumer: _core.Core | _core.Printer) -> Iterator[int]:
        stream = consumer.add_stream("", True, "blktrace", 0)
        # of each event: with its thread's name, and without, where no note has told it
        classes: dict[tuple[str, bool], tuple[int, tuple[str, ...]]] = {}
        for event in sorted({*_EVENTS.values(), "block_bio_complete"}):
            for named in (True, False):
                fields = (*_PLACE, *_OWN.get(event, ("nr_sector",)), "tid", *(("comm",) if named else ()))
                number, wanted, _ = consumer.add_class(event, True, [(name, False) for name in fields])
                classes[event, named] = number, tuple(fields[i] for i in wanted)
        last: dict[int, tuple[int, int]] = {}  # of each CPU: sequence number and time
        issuing: set[int] = set()
        pushed = 0
        sources = [self._records(path) for path in self._paths]
        if len(sources) == 1 and not _SIBLING.fullmatch(self._paths[0]):
            sources = [iter(sorted(sources[0]))]  # all CPUs, each in its order
        merged = heapq.merge(*sources)
        for ts_ns, sequence, sector, size, action, tid, dev, cpu, error, more in merged:
            number, category = action & 0xFF, action >> 16
            before = last.get(cpu)
            if sequence and before is not None and before[0] and sequence > before[0] + 1:
                consumer.discarded(stream, before[1], ts_ns, sequence - before[0] - 1, False)
            last[cpu] = sequence, ts_ns
            if number not in _EVENTS:
                self._plug(number, dev, ts_ns, more)
                continue
            if number != _SPLIT:  # as btt
                self._plugs.saw(dev, ts_ns)
            event = _EVENTS[number]
            if event == "block_rq_issue":
                issuing.add(dev)
            elif event == "block_rq_complete" and dev not in issuing:
                event = "block_bio_complete"
            payload: dict[str, int | str] = {
                "dev": dev, "sector": sector, "nr_sector": size >> 9, "rwbs": letters(category, size), "tid": tid,
                "comm": self._names.get(tid, ""), "error": error - (1 << 16) if error & 0x8000 else error,
            }  # fmt: skip
            if event == "block_split":
                payload["new_sector"] = _split_at(sector, more)
            elif event == "block_bio_remap":
                payload["old_dev"], payload["dev"], payload["old_sector"] = _remapped(dev, more)
            cls, wanted_names = classes[event, tid in self._names]
            consumer.event(ts_ns, cls, stream, cpu, tuple(payload[name] for name in wanted_names))
            pushed += 1
            yield pushed
        if not pushed:
            raise TraceError(f"{self._paths[0]} has no event of a request: nothing was traced.")
        consumer.finish()

    def _plug(self, number: int, dev: int, ts_ns: int, more: bytes) -> None:
        if number == _PLUG:
            self._plugs.plug(dev, ts_ns)
        elif number in (_UNPLUG, _UNPLUG_TIMER):
            self._plugs.unplug(dev, ts_ns, int.from_bytes(more[:8], "big"), number == _UNPLUG_TIMER)

    def _records(self, path: str) -> Iterator[tuple[int, int, int, int, int, int, int, int, int, bytes]]:
        """The events of a file, in its order; notes are taken in on the way. What is cut off or damaged is counted."""
        with pipes.opened(path) as file:
            head, at, ended = file.read(_CHUNK), 0, False
            order = _byte_order(head)
            self._read += len(head)
            if not head:
                return
            if order is None:
                raise TraceError(f"{path} does not begin with a record of blktrace.")
            record = struct.Struct(order + _FORMAT)
            data = head
            while True:
                if len(data) - at < record.size and not ended:
                    data, at, ended = self._more(file, data, at)
                if len(data) - at < record.size:
                    break
                magic, sequence, ts_ns, sector, size, action, tid, dev, cpu, error, more = record.unpack_from(data, at)
                if magic != MAGIC | VERSION:
                    if magic & 0xFFFFFF00 == MAGIC:
                        raise TraceError(f"{path} is of version {magic & 0xFF} of blktrace's format; 7 is read.")
                    break
                while len(data) - at < record.size + more and not ended:
                    data, at, ended = self._more(file, data, at)
                after = data[at + record.size : at + record.size + more]
                if len(after) < more or ts_ns >= _MOST_NS or sector > _MOST_SECTORS:
                    break
                at += record.size + more
                if (action >> 16) & _NOTIFY:
                    self._note(action & 0xFF, tid, ts_ns, after, order)
                    continue
                yield ts_ns, sequence, sector, size, action, tid, dev, cpu, error, after[8 if action & _CGROUP else 0 :]
            if at < len(data) or not ended:
                self._cut += 1
                if self._cut <= _TOLD:
                    self._messages.append(
                        f"{path} is cut off or damaged: {len(data) - at} bytes and more are not read."
                    )

    def _more(self, file: BinaryIO, data: bytes, at: int) -> tuple[bytes, int, bool]:
        fresh = file.read(_CHUNK)
        self._read += len(fresh)
        return data[at:] + fresh, 0, not fresh

    def _note(self, kind: int, tid: int, ts_ns: int, after: bytes, order: str) -> None:
        if kind == _PROCESS and after:
            self._names[tid] = after.rstrip(b"\0").decode("utf-8", "replace")
        elif kind == _TIMESTAMP and len(after) >= 8 and self._origin is None:
            seconds, ns = struct.unpack(order + "II", after[:8])
            self._origin = seconds * 1_000_000_000 + ns - ts_ns

    def survey(self) -> dict[str, Any]:
        """The files say nothing of what is missing before they have been read."""
        return {}

    def losses(self) -> tuple[dict[str, int], list[str]]:
        """How many files are missing, or were not read to their end."""
        counts = {"streams_missing": len(self._missing), "damaged_streams": self._cut}
        return {name: count for name, count in counts.items() if count}, self._messages

    def plugs(self) -> list[dict[str, Any]]:
        """Of each device that was plugged."""
        return self._plugs.told()

    def version(self) -> None:
        """Our own: as opline's."""

    def environment(self) -> list[dict[str, Any]]:
        """The files; their clock is the kernel's, from which the time of day is so far as a note in them says."""
        clock: dict[str, Any] = {"name": "kernel", "frequency": 1_000_000_000}
        if self._origin is not None:
            clock["offset_s"], clock["offset_cycles"] = divmod(self._origin, 1_000_000_000)
        return [{"path": path, "environment": {}, "clock": clock} for path in self._paths]


def _split_at(sector: int, more: bytes) -> int:
    """Where a bio was split; the kernel writes the last 32 bits only."""
    low = int.from_bytes(more[:8], "big") & 0xFFFFFFFF
    found = sector & ~0xFFFFFFFF | low
    return found if found >= sector else found + (1 << 32)


def _remapped(dev: int, more: bytes) -> tuple[int, int, int]:
    """The device that a bio came from, the one it went to, and the sector that it came from."""
    old, new, sector = struct.unpack(">IIQ", more[:16]) if len(more) >= 16 else (dev, dev, 0)
    return old, new or dev, min(sector, _MOST_SECTORS)
