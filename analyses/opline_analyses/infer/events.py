# SPDX-License-Identifier: MIT
"""The events of a trace as values, for the search for rules: takes a path, gives events in order of time."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache, partial
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from opline import _core
from opline.applications import table
from opline.capture.directory import recording
from opline.errors import OplineError
from opline.readers.front import choose, reader_wanted
from opline.readers.trace import find_traces
from opline.scratch import scratch

MOST_EVENTS = 100_000  # limit of the application's events, from the first one on
PROBES = "probes"  # the channel of the events written by opline's collector for a model's probes
_MOST_LINES = 1_000_000
_OWN = ("block", "sched", "lttng_ust_statedump", "lttng_ust_tracelog", "lttng_ust_lib", "lttng_ust_dl")
_LINE = re.compile(r"(\d+) (\S+) (\S+) cpu -?\d+ ([!-z|~]+): (\{.*)", re.DOTALL)
_FIELD = re.compile(r'\b(\w++) = (?:(0x[0-9a-f]++)|(-?\d++)(?=[,\s}])|"((?:[^"\\]++|\\.)*+)")')

_WHOLE = ("block:request", "block:bio", "block:thread")
_QUEUED = 64  # among the flags of block:request: the record's time is the Q of its bio

Thread = tuple[str, int, int]  # host, process, thread


class Event(NamedTuple):
    """One event of an application, or an application's system call. Only texts and integers are fields here."""

    ts_ns: int
    name: str
    thread: Thread
    comm: str
    fields: dict[str, int | str]


class Events(NamedTuple):
    """The events read: ``cut`` if the trace continues afterwards. ``calls``: system calls, ``bios``: queueing threads.
    ``hex_fields``: fields shown as addresses by the tracer.
    """

    events: list[Event]
    calls: list[Event]
    bios: list[Event]
    hex_fields: frozenset[str]
    probed: frozenset[str]  # providers of a model's probes
    cut: bool


@dataclass
class _Seen:
    hexes: set[str] = field(default_factory=set)
    probed: set[str] = field(default_factory=set)
    # of whole requests: host, kernel's number → pid, tid, name
    threads: dict[tuple[str, int], tuple[int, int, str]] = field(default_factory=dict)
    left: int = MOST_EVENTS + 1  # of the application: lines are in order of time, and later lines are ignored


def read_events(trace: Path) -> Events:
    """The application's events and system calls. Raises OplineError, TraceError."""
    seen = _Seen()
    with scratch("infer") as folder:
        lines, cut = _printed(trace, "*:*", Path(folder) / "events")
        named = sorted(_all(lines, seen), key=_ts)
        calls = list(_all(_printed(trace, "syscall_e*", Path(folder) / "calls")[0], seen))
        bios = list(_all(_printed(trace, "block_bio_queue", Path(folder) / "bios")[0], seen))
    bios += [event for event in named if event.name == "block_bio_queue"]
    calls += [event for event in named if event.name.startswith("syscall_")]
    events = [event for event in named if ":" in event.name]
    cut |= len(events) > MOST_EVENTS
    del events[MOST_EVENTS:]
    last = events[-1].ts_ns if events else 0
    calls, bios = ([e for e in sorted(one, key=_ts) if not cut or e.ts_ns <= last] for one in (calls, bios))
    return Events(events, calls, bios, frozenset(seen.hexes), frozenset(seen.probed), cut)


def _all(lines: Iterator[str], seen: _Seen) -> Iterator[Event]:
    return (event for line in lines if (event := _parsed(line, seen)) is not None)


_ts = attrgetter("ts_ns")


def _printed(trace: Path, names: str, place: Path) -> tuple[Iterator[str], bool]:
    """The lines of `opline events`, and whether there were more than are looked at."""
    front, _ = choose(find_traces(trace), reader_wanted(None))
    begin_ns = _begin_ns(trace)
    wanted = {
        "names": names,
        "since_ns": begin_ns or 0,
        "since_is_absolute": begin_ns is not None,
        "limit": _MOST_LINES,
    }
    with place.open("wb") as file:
        printer = _core.Printer(file.fileno(), json.dumps(wanted | table.providers()))
        for _ in front.read(printer):
            if printer.done():
                break
        cut = printer.done()
        _, failed, _ = printer.finish()
    if failed:
        raise OplineError(f"Cannot write {place}: no room for the events that are to be looked at.")
    return _lines(place), cut


def _begin_ns(trace: Path) -> int | None:
    """The begin of the recording, or of its command: block events may begin seconds earlier. None: unknown."""
    try:
        begin = recording.load(trace)["command"]["begin_monotonic_ns"]
    except (OplineError, KeyError, TypeError):
        return None
    return begin if isinstance(begin, int) else None


def _lines(place: Path) -> Iterator[str]:
    with place.open(encoding="utf-8", errors="replace") as file:
        yield from file


def _parsed(line: str, seen: _Seen) -> Event | None:
    """None for a line without an application's event."""
    match = _LINE.match(line)
    if match is None:
        return None
    ts, host, channel, name, groups = match.groups()
    provider, _, rest = name.partition(":")
    if name in _WHOLE:
        return _queued(int(ts), host, rest, _fields(groups.partition("}, {")[2], set()), seen)
    own = name in ("syscall:" + rest, "block:block_bio_queue")
    if provider in _OWN and not own:
        return None
    if rest and not own and not seen.left:
        return None
    context, _, payload = groups.partition("}, {")
    fields = _fields(payload, seen.hexes)
    if own:  # an event of opline's collector: the thread is in the fields
        name, about = rest, _about(fields)
    else:
        about = _about_of(context)
    if own and isinstance(kernel_time := fields.get("ktime"), int):
        ts = str(kernel_time)
    pid, tid, comm = about
    if tid is None:
        return None
    if channel == PROBES:
        seen.probed.add(provider)
    if rest and not own:
        seen.left -= 1
    return Event(int(ts), name, (host, pid, tid), comm, fields)


@lru_cache(1 << 16)
def _about_of(context: str) -> tuple[int, int | None, str]:
    """Thread and fields of an event's context text, mostly equal to an earlier event's text."""
    return _about(_fields(context, set()))


def _about(fields: dict[str, int | str]) -> tuple[int, int | None, str]:
    """Process, thread and the name of the thread."""
    pid, tid = _number(fields, "vpid", "pid") or 0, _number(fields, "vtid", "tid", "pthread_id")
    return pid, tid, str(fields.get("procname", fields.get("comm", "")))


def _queued(ts_ns: int, host: str, kind: str, fields: dict[str, int | str], seen: _Seen) -> Event | None:
    """The bio at the begin of a block record (docs/internals/collectors.md). None: no Q in the record, or a record
    about a thread.
    """
    get = partial(_number, fields)
    if kind == "thread":
        about = (get("pid") or 0, get("tid") or 0, str(fields.get("comm", "")))
        seen.threads[host, get("kernel_tid") or 0] = about
        return None
    queued = (get("flags") or 0) & _QUEUED if kind == "request" else get("queue") == 0
    if not queued or (host, get("tid") or 0) not in seen.threads:
        return None
    pid, tid, comm = seen.threads[host, get("tid") or 0]
    return Event(ts_ns, "block_bio_queue", (host, pid, tid), comm, fields)


def _fields(text: str, hexes: set[str]) -> dict[str, int | str]:
    found: dict[str, int | str] = {}
    for name, address, number, quoted in _FIELD.findall(text):
        if address:
            hexes.add(name)
            found[name] = int(address, 16)
        else:
            found[name] = int(number) if number else quoted
    return found


def _number(fields: dict[str, int | str], *names: str) -> int | None:
    """The first existing integer of these fields."""
    for name in names:
        value = fields.get(name)
        if isinstance(value, int):
            return value
    return None
