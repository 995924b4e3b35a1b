# SPDX-License-Identifier: MIT
"""Events that readers of text make of a line: of a block I/O its steps, of an application's op its points.

A text tells an I/O or an op when it has ended. So the events of all lines are sorted by time before they are pushed.
A text that names disks has no numbers of devices: each name gets one of major 4095, which no driver has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opline import _core
from opline.errors import TraceError
from opline.readers import pipes
from opline.readers.lines import LinesReader
from opline.talk import talk
from opline.values import Value

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, BinaryIO

SLICE = 1 << 13  # events
_NAMED_MAJOR = 4095
_TOLD = 3  # lines that could not be read, of which each is shown
_MOST_NS = 1 << 62
_MOST_SECTORS = 1 << 55


class Event(Value):
    """An event's time in ns, its name, its fields in order, whether the kernel has it, its CPU, and which of its fields
    are the thread's.
    """

    ts_ns: int
    name: str
    fields: dict[str, int | str]
    kernel: bool = True
    cpu: int | None = None
    context: tuple[str, ...] = ()


class EventsReader(LinesReader):
    """Reads one file into events. A format has a subclass with ``events``."""

    name = "text"

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._devices: dict[str, int] = {}

    def events(self, file: BinaryIO) -> Iterator[Event | None]:
        """All events in any order; None now and then. Raises TraceError."""
        raise NotImplementedError

    def read(self, consumer: _core.Core | _core.Printer | _core.Dropper) -> Iterator[float | None]:
        """Push all events, in slices; each ``next()`` gives None."""
        assert not isinstance(consumer, _core.Dropper), "checks leave out events of CTF traces only"
        found: list[Event] = []
        try:
            with pipes.opened(self._path) as file:
                for number, event in enumerate(self.events(file)):
                    if event is not None:
                        found.append(event)
                    if number % SLICE == 0:
                        yield None
        except OSError as error:
            raise TraceError(f"Cannot read {self._path}: {error.strerror}.") from error
        if not found:
            raise TraceError(f"{self._path} has nothing that can be read: nothing was traced, or it is cut off.")
        found.sort(key=lambda event: event.ts_ns)
        for name, dev in self._devices.items():
            found.insert(0, Event(found[0].ts_ns, "lttng_statedump_block_device", {"dev": dev, "diskname": name}))
        yield from self._push(consumer, found)
        consumer.finish()

    def _push(self, consumer: _core.Core | _core.Printer, found: list[Event]) -> Iterator[None]:
        streams = {kernel: consumer.add_stream("", kernel, "text", 0) for kernel in {e.kernel for e in found}}
        classes: dict[tuple[Any, ...], tuple[int, list[int], int]] = {}
        for number, event in enumerate(found):
            key = (event.name, event.kernel, *event.fields)
            if key not in classes:
                fields = [(field, field in event.context) for field in event.fields]
                classes[key] = consumer.add_class(event.name, event.kernel, fields)
            cls, wanted, _ = classes[key]
            values = [*event.fields.values()]
            consumer.event(event.ts_ns, cls, streams[event.kernel], event.cpu, tuple(values[i] for i in wanted))
            if number % SLICE == 0:
                yield None

    def not_understood(self, number: int, line: str) -> None:
        """Counts a line that can't be read."""
        self._unreadable += 1
        if self._unreadable <= _TOLD:
            self._messages.append(f"{self._path}, line {number}: not understood: {line.strip()[:120]}")

    def tell_no_times(self, how: str = "") -> None:
        """On stderr, that the lines have no time; ``how``: the options of the tool that print one."""
        talk(f"{self._path} has no times{how}: rates and intervals of it mean nothing.")

    def device(self, name: str) -> int:
        """The number of a device: its own, of MAJOR,MINOR or MAJOR:MINOR; of a name one that stands for it."""
        for separator in ",:":
            major, _, minor = name.partition(separator)
            if major.isdecimal() and minor.isdecimal() and int(major) < 1 << 12 and int(minor) < 1 << 20:
                return int(major) << 20 | int(minor)
        return self._devices.setdefault(name, _NAMED_MAJOR << 20 | len(self._devices))

    def environment(self) -> list[dict[str, Any]]:
        """The file; no more is known of its clock."""
        return [{"path": self._path, "environment": {}, "clock": {"name": "text", "frequency": 1_000_000_000}}]


def request(insert_ns: int | None, issue_ns: int, complete_ns: int, place: dict[str, int | str]) -> Iterator[Event]:
    """The steps of a request; ``insert_ns``: None where it is not known. ``place``: rq, its number in the text, dev,
    sector, nr_sector, rwbs, tid and comm. Nothing where a time or a place is none. One that flushes and has no sectors
    is the device's flush, whatever a tool's letters say of the file system's request for it.
    """
    if str(place["rwbs"]).startswith("F") and place["nr_sector"] == 0:
        place = {**place, "rwbs": "FF"}
    in_order = 0 <= (issue_ns if insert_ns is None else insert_ns) <= issue_ns <= complete_ns < _MOST_NS
    if not in_order or not 0 <= int(place["sector"]) < _MOST_SECTORS or not 0 <= int(place["nr_sector"]) < 1 << 32:
        return
    if insert_ns is not None:
        yield Event(insert_ns, "block_rq_insert", place)
    yield Event(issue_ns, "block_rq_issue", place)
    yield Event(complete_ns, "block_rq_complete", {**place, "error": 0})


def lines_of(file: BinaryIO) -> Iterator[tuple[int, str]]:
    """Numbers and lines, without their ends."""
    for number, line in enumerate(file, 1):
        yield number, line.decode(errors="backslashreplace").rstrip("\r\n")
