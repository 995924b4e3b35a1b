# SPDX-License-Identifier: MIT
"""What `perf trace` prints: a system call on each line, with the time of its entry and how long it took.

        0.035 ( 0.012 ms): fio/1234 pread64(fd: 3</dev/sda>, buf: 0x7f00, count: 4096, pos: 8192) = 4096

A call that others interrupt ends in `...`, and again as `... [continued]: read()) = 12`, with the time of its entry.
`?` is an entry before the trace: such a call has no latency. Of one traced process the name and thread may be missing.
Source of the format: tools/perf/builtin-trace.c (trace__sys_exit, trace__fprintf_entry_head) of Linux 3.7 to 6.12.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opline.readers.events import Event, EventsReader, lines_of
from opline.readers.registry import CERTAIN, EVENTS, NO

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

    from opline.readers.registry import Head

CALLED, HAS, MODEL = "perf trace's listing", EVENTS, "syscalls"
_LINE = re.compile(
    r" *+(\d{1,12}\.\d{3}|\?) \( *+(?:(\d{1,12}\.\d{3}) ms)? *+\): +(?:([^\n(]{1,40})/(\d{1,9}) +)?"
    r"(\.\.\. \[continued\]: )?(\w{1,60})\((.*+)"
)
_RETURN = re.compile(r"(-?\d{1,19}|0x[0-9a-f]{1,16})(?: .*+)?")
_ARGUMENT = re.compile(r"(\w{1,40}): (-?\d{1,19})(?=[,<)]|$)")
_ORIGIN_NS = 3600 * 10**9  # its times count from the begin of the trace
_NAMED = {"nbytes": "count", "offset": "pos"}


def _returned(line: str) -> bool:
    found = _LINE.fullmatch(line)
    return found is not None and bool(found[2])


def probe(head: Head) -> int:
    """CERTAIN where a line is a call that has returned."""
    return CERTAIN if head.has(_returned) else NO


def files(path: str) -> list[str]:
    """The file alone."""
    return [path]


def front(paths: list[str]) -> PerfTraceReader:
    """What reads it."""
    return PerfTraceReader(paths[0])


class PerfTraceReader(EventsReader):
    """Reads one file of lines."""

    name = "perf trace"

    def events(self, file: BinaryIO) -> Iterator[Event | None]:
        """The entry and the exit of each call."""
        begun: dict[tuple[str, str], str] = {}  # what interrupted calls were given, by thread and name
        for number, line in lines_of(file):
            yield None
            found = _LINE.fullmatch(line)
            if found is None:
                if line.strip() and not line.startswith(("LOST", " ")):
                    self.not_understood(number, line)
                continue
            at, took, comm, tid, continued, name, rest = found.groups()
            given, equals, returned = rest.rpartition(" = ")
            if not equals or took is None or at == "?":
                begun[tid or "", name] = rest
                continue
            if continued:
                given = begun.pop((tid or "", name), given)
            code = _RETURN.fullmatch(returned.strip())
            if code is None:
                self.not_understood(number, line)
                continue
            who: dict[str, int | str] = {"tid": int(tid or 1), "procname": (comm or "").strip()}
            fields = {_NAMED.get(key, key): int(value) for key, value in _ARGUMENT.findall(given[:_MOST])}
            begin_ns = _ns(at) + _ORIGIN_NS
            wanted = {key: value for key, value in fields.items() if -(2**63) <= value < 2**63 and key not in who}
            context = tuple(who)
            yield Event(begin_ns, f"syscall_entry_{name}", {**who, **wanted}, context=context)
            ended = {**who, "ret": int(code[1], 0)}
            yield Event(begin_ns + _ns(took), f"syscall_exit_{name}", ended, context=context)


def _ns(milliseconds: str) -> int:
    whole, _, fraction = milliseconds.partition(".")
    return int(whole) * 10**6 + int(fraction) * 1000


_MOST = 1000  # characters of what a call is given
