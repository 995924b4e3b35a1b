# SPDX-License-Identifier: MIT
"""What cephtrace's tools print: an operation of an OSD on each line (osdtrace), or of a client (radostrace).

    osd 1 pg 20.138 op_r size 8192 client 16 tid 15 throttle_lat 2 recv_lat 11 dispatch_lat 12 queue_lat 41 osd_lat 35
        bluestore_lat 231 op_lat 332
      pid  client     tid  pool  pg     acting       w/r    size  latency     object[ops][offset,length]
    19015   34206  419359     2  39     [0,121,11]     R    4096     1240     rbd_data.37[read ][0, 4096]

Latencies are in us, one stage after the other; waits for peers run beside. The lines have no time: the operations are
put one behind the other, which is said. Source of the format: taodd/cephtrace, doc/tools/osdtrace.md, README.md (2025).
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

CALLED, HAS, MODEL = "operations that cephtrace has printed", EVENTS, "generic"
_OSD = re.compile(
    r"osd (?P<osd>\d{1,6}) pg (?P<pg>[\da-f.]{1,20}) (?P<kind>op_r|op_w|subop_w) size (?P<size>\d{1,12}) "
    r"client (?P<client>\d{1,19}) tid (?P<tid>\d{1,19}) (?P<stages>throttle_lat .*) (?:sub)?op_lat (?P<took>\d{1,12})"
)
_CLIENT_HEAD = re.compile(r"\s*+pid\s++client\s++tid\s++pool\s++pg\s++acting\s++\S++\s++size\s++latency\b.*+")
_CLIENT = re.compile(
    r"\s*+\d{1,9}\s++(?P<client>\d{1,19})\s++(?P<tid>\d{1,19})\s++\d{1,9}\s++[\da-f]{1,16}\s++\[[-\d,]{0,200}\]\s++"
    r"(?P<kind>[WR]{1,2})\s++(?P<size>\d{1,12})\s++(?P<took>\d{1,12})\s++(?:(?P<complete>[01])\s++)?"
    r"(?P<object>[^\s\[][^\[]{0,200}+)(?:\[(?P<does>[a-z][\w-]{0,60})[^\]]*+(?:\]\[(?P<offset>\d{1,18}),)?)?.*+"
)
_STAGE = re.compile(
    r"\b(throttle_lat|recv_lat|dispatch_lat|queue_lat|osd_lat|bluestore_lat) (\d{1,12})"
    r"(?: \(([^()]*+(?:\([^()]*+\)[^()]*+)?)\))?"
)
_PART = re.compile(r"\b(prepare|aio_wait|seq_wait|kv_commit) (\d{1,12})")
#: The point at which a stage ends.
_POINTS = {
    "throttle_lat": "throttled", "recv_lat": "received", "dispatch_lat": "dispatched", "queue_lat": "dequeued",
    "osd_lat": "submitted", "bluestore_lat": "stored", "prepare": "prepared", "aio_wait": "aio_done",
    "seq_wait": "in_sequence", "kv_commit": "kv_committed",
}  # fmt: skip
_ORIGIN_NS = 3600 * 10**9  # no line has a time
_US = 1000


def probe(head: Head) -> int:
    """CERTAIN where a line is an operation of an OSD, or the header of radostrace."""
    return CERTAIN if head.has_line(_OSD) or head.has_line(_CLIENT_HEAD) else NO


def names(_head: Head) -> set[str]:
    """Operations and their points."""
    return {"opline:op_begin", "opline:op_point", "opline:op_end"}


def files(path: str) -> list[str]:
    """The file alone."""
    return [path]


def front(paths: list[str]) -> CephtraceReader:
    """What reads it."""
    return CephtraceReader(paths[0])


class CephtraceReader(EventsReader):
    """Reads one file of lines."""

    name = "cephtrace"

    def events(self, file: BinaryIO) -> Iterator[Event | None]:
        """The begin, the points and the end of each operation, as those of tracepoints/opline_tp.h."""
        begin_ns = _ORIGIN_NS
        of_clients = False
        for number, line in lines_of(file):
            yield None
            of_clients = of_clients or _CLIENT_HEAD.fullmatch(line) is not None
            found = _OSD.fullmatch(line.strip()) or (_CLIENT.fullmatch(line) if of_clients else None)
            if found is None:
                if line.lstrip().startswith("osd ") or (of_clients and line.strip()[:1].isdigit()):
                    self.not_understood(number, line)
                continue
            if begin_ns == _ORIGIN_NS:
                self.tell_no_times()
            end_ns = begin_ns + int(found["took"]) * _US
            said = found.groupdict()
            what = said.get("object") or f"osd.{said.get('osd')} pg {said.get('pg')} client {found['client']}"
            does = said.get("does") or found["kind"]
            place: dict[str, int | str] = {"op_class": does, "object": what.strip(), "length": int(found["size"])}
            if said.get("offset"):
                place["offset"] = int(said["offset"])
            yield _event(begin_ns, "op_begin", number, **place)
            for at_ns, point in _points(begin_ns, end_ns, said.get("stages") or ""):
                yield _event(at_ns, "op_point", number, point=point, length=0)
            if said.get("complete") != "0":
                yield _event(end_ns, "op_end", number)
            begin_ns = end_ns + _US


def _points(begin_ns: int, end_ns: int, stages: str) -> Iterator[tuple[int, str]]:
    """Where each stage ends; none lies behind the end, which is measured for itself."""
    at_ns = begin_ns
    for stage in _STAGE.finditer(stages):
        part_ns = at_ns
        for part in _PART.finditer(stage[3] or ""):
            part_ns += int(part[2]) * _US
            yield min(part_ns, at_ns + int(stage[2]) * _US, end_ns), _POINTS[part[1]]
        at_ns += int(stage[2]) * _US
        yield min(at_ns, end_ns), _POINTS[stage[1]]


def _event(ts_ns: int, name: str, key: int, **more: int | str) -> Event:
    return Event(ts_ns, f"opline:{name}", {"key": key, "thread": 0, **more}, kernel=False)
