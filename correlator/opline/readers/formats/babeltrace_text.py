# SPDX-License-Identifier: MIT
"""The front end for what babeltrace prints of a trace, from a file or a pipe:

    [09:34:23.661871204] (+0.000003133) node1 ioctximpl:aio_write: { cpu_id = 12 }, { pthread_id = 1402 }, { oid = "x" }

Several events may be on one line, and a mail program may have broken a line at a blank. The first group is the
packet's, the last the payload, what is between is context. Other forms that are read: dates, seconds, cycles, without
the difference, with all names. Times of the day that fall back by half a day are of the next day. Source of the format:
sink.text.pretty of babeltrace 2 (src/plugins/text/pretty), and babeltrace 1's, which is the same here.
"""

from __future__ import annotations

import calendar
import io
import re
from typing import TYPE_CHECKING

from opline import _core
from opline.errors import TraceError
from opline.readers import day_times, pipes
from opline.readers.lines import LinesReader
from opline.readers.registry import CERTAIN, EVENTS, NO

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any, TypeAlias

    from opline.readers.registry import Head

    Value: TypeAlias = int | float | str | None
    Group: TypeAlias = dict[str, Value]

CALLED, HAS, MODEL = "babeltrace's text", EVENTS, "generic"
SLICE = 1 << 13  # lines
_LONGEST_BROKEN = 1 << 12  # characters of an event that is on several lines
_TOLD = 3  # events that could not be read, of which each is shown
_NS = 1_000_000_000
_STAMP = r"\[((?:\d{4}-\d\d-\d\d )?\d{1,2}:\d\d:\d\d\.\d{9}|\d{1,10}\.\d{9}|\d{20})\]"
_BEGIN = re.compile(_STAMP + r" (?:\(\+[\d?]{1,20}(?:\.[\d?]{9})?\) )?")
# --names=all: `timestamp = T, delta = D, trace:hostname = H, name = N, stream.packet.context = { … }, …`
_NAMED = re.compile(r"timestamp = ([^,]{8,40}), (?:delta = [^,]{1,40}, )?")
_NAMED_GROUP = re.compile(r"(?:stream\.packet|stream\.event|event|packet)\.(?:context|header|fields) = (?=\{)")
# The host's name, with the process's where the trace is of one, and the event's; a NUL is in no name.
_HEAD = re.compile(r"(?:([^\s\0:]{1,255})(?::([^\0\n{}]{1,32}):(\d{1,10}))? |([^\s\0]{1,255}) )?([^\s\0]+): (?=\{)")
_FIELD = re.compile(r"\s*([^\s\0={}\[\](),]+)\s*=\s*")
_TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')
_NUMBER = re.compile(r"(?:0x[0-9A-Fa-f]{1,16}|-?\d{1,20})(?=[\s,}])")
_REAL = re.compile(r"-?(?:\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|inf|nan)(?=[\s,}])")
_CONTAINER = re.compile(r":\s*container\s*=\s*(-?\d{1,20})\s*\)")
_DISCARDED = re.compile(rf"discarded (\d{{1,18}}) events? between {_STAMP} and {_STAMP}")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_CLOSES = {"{": "}", "[": "]", "(": ")"}


class _Unreadable(Exception):  # noqa: N818
    """An event that is cut off, or in another form."""


def probe(head: Head) -> int:
    """CERTAIN where a line is as babeltrace prints it."""
    return CERTAIN if head.has(_begins) else NO


def names(head: Head) -> set[str]:
    """Of the events that can be read."""
    lines = (line for _, line in _whole_lines(head.lines))
    return {event[2] for line in lines for event in events_of(line) if not isinstance(event, str)}


def files(path: str) -> list[str]:
    """The file alone."""
    return [path]


def front(paths: list[str]) -> BabeltraceTextReader:
    """What reads it."""
    return BabeltraceTextReader(paths[0])


def _begins(line: str) -> bool:
    line = _without_names(line)
    found = _BEGIN.search(line)
    return found is not None and _HEAD.match(line, found.end()) is not None


def _goes_on(line: str) -> bool:
    """Whether a line with the begin of an event does not have its end."""
    return line.count("{") != line.count("}") or "{" not in line or line.rstrip().endswith(",")


def _whole_lines(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Lines and their numbers. What follows an event without an end, up to the next event, is put behind it."""
    held, held_number = "", 0
    for number, line in enumerate(lines, 1):
        begins = _BEGIN.search(line) is not None or _NAMED.match(line) is not None
        if held and not begins and line.strip() and len(held) < _LONGEST_BROKEN and _goes_on(held):
            held = f"{held.rstrip()} {line.lstrip()}"
            continue
        if held:
            yield held_number, held
            held = ""
        if begins:
            held, held_number = line, number
        else:
            yield number, line
    if held:
        yield held_number, held


def _closing(text: str, at: int) -> int:
    """Where what opens at ``at`` has ended. Raises _Unreadable."""
    open_ones = []
    while at < len(text):
        letter = text[at]
        if letter == '"':
            quoted = _TEXT.match(text, at)
            if quoted is None:
                break
            at = quoted.end()
            continue
        if letter in _CLOSES:
            open_ones.append(_CLOSES[letter])
        elif open_ones and letter == open_ones[-1]:
            open_ones.pop()
            if not open_ones:
                return at + 1
        at += 1
    raise _Unreadable


def _value(text: str, at: int) -> tuple[Value, int]:
    """A value and where it ends; None of what has parts. Raises _Unreadable."""
    if quoted := _TEXT.match(text, at):
        return re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[1]), quoted[1]), quoted.end()
    if number := _NUMBER.match(text, at):
        value = int(number[0], 16 if number[0].startswith("0x") else 10)
        if -(2**63) <= value < 2**64:
            return value, number.end()
    if real := _REAL.match(text, at):
        return float(real[0]), real.end()
    if at < len(text) and text[at] in _CLOSES:
        end = _closing(text, at)
        container = _CONTAINER.search(text, at, end) if text[at] == "(" else None
        return (None if container is None else int(container[1])), end
    raise _Unreadable


def _group(text: str, at: int) -> tuple[Group, int]:
    """`{ a = 1, b = "x" }` and where it ends. Raises _Unreadable."""
    found: Group = {}
    at += 1
    while True:
        while at < len(text) and text[at] in " ,":
            at += 1
        if text.startswith("}", at):
            return found, at + 1
        field = _FIELD.match(text, at)
        if field is None:
            raise _Unreadable
        found[field[1]], at = _value(text, field.end())


def _groups(text: str, at: int) -> list[Group]:
    found = []
    while True:
        group, at = _group(text, at)
        found.append(group)
        if not text.startswith(", {", at):
            return found
        at += 2


def _time_of(stamp: str) -> tuple[int, bool]:
    """A time in ns, and whether it is of the day only. Cycles are taken for ns, as of LTTng's clocks."""
    day, _, clock = stamp.rpartition(" ")
    whole, _, fraction = clock.partition(".")
    if ":" not in whole:
        return int(whole) * (_NS if fraction else 1) + int(fraction or 0), False
    hours, minutes, seconds = map(int, whole.split(":"))
    ns = ((hours * 60 + minutes) * 60 + seconds) * _NS + int(fraction)
    if not day:
        return ns, True
    year, month, number = map(int, day.split("-"))
    try:
        return calendar.timegm((year, month, number, 0, 0, 0)) * _NS + ns, False
    except ValueError:
        raise _Unreadable from None


def _without_names(line: str) -> str:
    """A line of --names=all as one without names."""
    found = _NAMED.match(line)
    brace = line.find("{")
    if found is None or brace < 0:
        return line
    rest = _NAMED_GROUP.sub("", line[found.end() :])
    head, _, groups = rest.partition("{")
    said = dict(item.partition(" = ")[::2] for item in head.rstrip(", ").split(", "))
    host = next((value for key, value in said.items() if key.endswith("hostname")), "")
    return f"[{found[1]}] {host + ' ' if host else ''}{said.get('name', '')}: {{{groups}"


def events_of(line: str) -> Iterator[tuple[tuple[int, bool], str, str, list[Group]] | str]:
    """Of each event on a line the time (ns; whether of the day only), host ("" where it is not said), name and
    groups; of one that can't be read its text.
    """
    line = _without_names(line)
    begins = list(_BEGIN.finditer(line))
    for n, begin in enumerate(begins):
        piece = line[begin.end() : begins[n + 1].start() if n + 1 < len(begins) else len(line)]
        head = _HEAD.match(piece)
        try:
            if head is None:
                raise _Unreadable
            groups = _groups(piece, head.end())
            if head[2]:  # the process's, unless its contexts say it
                behind_packet = int(len(groups) > 1 and "cpu_id" in groups[0])
                groups.insert(behind_packet, {"procname": head[2], "vpid": int(head[3])})
            yield _time_of(begin[1]), head[1] or head[4] or "", head[5], groups
        except _Unreadable:
            yield line[begin.start() : begin.start() + 120].rstrip()


class BabeltraceTextReader(LinesReader):
    """Reads one file of lines. ``losses`` are known after reading."""

    name = "babeltrace text"

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._classes: dict[tuple[Any, ...], tuple[int, list[int], int]] = {}
        self._streams: dict[tuple[str, bool, int], int] = {}
        self._last_ns = 0

    def read(self, consumer: _core.Core | _core.Printer | _core.Dropper) -> Iterator[float | None]:
        """Push all events, in slices; each ``next()`` gives None."""
        assert not isinstance(consumer, _core.Dropper), "checks leave out events of CTF traces only"
        events = 0
        try:
            with io.TextIOWrapper(pipes.opened(self._path), encoding="utf-8", errors="replace") as file:
                for turn, (number, line) in enumerate(_whole_lines(file)):
                    if turn % SLICE == SLICE - 1:
                        yield None
                    events += self._line(consumer, number, line)
        except OSError as error:
            raise TraceError(f"Cannot read {self._path}: {error.strerror}.") from error
        if not events:
            raise TraceError(f"{self._path} has no event as babeltrace prints it.")
        consumer.finish()

    def _line(self, consumer: _core.Core | _core.Printer, number: int, line: str) -> int:
        """How many of its events were pushed."""
        pushed = 0
        lost = _DISCARDED.search(line)
        if lost is not None:
            begin, end = (self._of_clock(_time_of(stamp)) for stamp in (lost[2], lost[3]))
            consumer.discarded(self._stream(consumer, "", False, 0), begin, end, int(lost[1]), False)
            return 0
        for event in events_of(line):
            if isinstance(event, str) or not self._event(consumer, *event):
                self._unreadable += 1
                if self._unreadable <= _TOLD:
                    shown = event if isinstance(event, str) else f"{event[2]}: its own time is of another clock"
                    self._messages.append(f"{self._path}, line {number}: not understood: {shown}")
            else:
                pushed += 1
        return pushed

    def _of_clock(self, time: tuple[int, bool]) -> int:
        """A time of the day as one that goes on after midnight; others as they are."""
        of_day, of_day_only = time
        return day_times.after(self._last_ns, of_day) if of_day_only else of_day

    def _event(
        self, consumer: _core.Core | _core.Printer, time: tuple[int, bool], host: str, name: str, groups: list[Group]
    ) -> bool:
        """Whether it was pushed: an event of the BPF collector has its time as a field, on a clock that the text does
        not name. That is shown like any other.
        """
        packet = groups.pop(0) if len(groups) > 1 and "cpu_id" in groups[0] else {}
        payload = groups.pop()
        context: Group = {}
        for group in groups:
            context |= group
        fields = [(field, True) for field in context] + [(field, False) for field in payload]
        kernel = ":" not in name
        key = (name, *fields)
        if key not in self._classes:
            self._classes[key] = consumer.add_class(name, kernel, fields)
        number, wanted, time_slot = self._classes[key]
        if time_slot >= 0 and isinstance(consumer, _core.Core):
            return False
        values = [*context.values(), *payload.values()]
        cpu = packet.get("cpu_id")
        cpu = cpu if isinstance(cpu, int) and 0 <= cpu < 2**31 else None
        self._last_ns = ts_ns = self._of_clock(time)
        stream = self._stream(consumer, host, kernel, -1 if cpu is None else cpu)
        consumer.event(ts_ns, number, stream, cpu, tuple(values[i] for i in wanted))
        return True

    def _stream(self, consumer: _core.Core | _core.Printer, host: str, kernel: bool, cpu: int) -> int:
        key = (host, kernel, cpu)
        if key not in self._streams:
            self._streams[key] = consumer.add_stream(host, kernel, "text", max(cpu, 0))
        return self._streams[key]

    def environment(self) -> list[dict[str, Any]]:
        """The file; its times are of the day, and no more is known of their clock."""
        return [{"path": self._path, "environment": {}, "clock": {"name": "time of day", "frequency": _NS}}]
