# SPDX-License-Identifier: MIT
"""Operations that a daemon of Ceph has kept: what `ceph daemon osd.N dump_historic_ops` (also _by_duration, _slow_ops),
`dump_ops_in_flight` and `dump_blocked_ops` print, of OSDs and MDSs, as JSON.

Each operation is an op from `initiated` to `done`, each event of it a point. Its class is the first word of its
description and of what it does to the object: `osd_op write`. What is in flight has no end. Times are taken for UTC.
Source of the format: src/common/TrackedOp.cc, OpRequest::_dump (Hammer to Reef): `ops` was `Ops`, `type_data` a list.
"""

from __future__ import annotations

import calendar
import json
import re
from typing import TYPE_CHECKING, Any

from opline.errors import TraceError
from opline.readers.events import Event, EventsReader
from opline.readers.registry import CERTAIN, EVENTS, NO

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

    from opline.readers.registry import Head

CALLED, HAS, MODEL = "operations that a daemon of Ceph has kept", EVENTS, "generic"
_SHOWS = (re.compile(rb'"(?:num_ops|num to keep|size|complaint_time)"\s*+:'), re.compile(rb'"initiated_at"\s*+:'))
_STAMP = re.compile(r"(\d{4})-(\d\d)-(\d\d)[ T](\d\d):(\d\d):(\d\d)\.(\d{6,9})(?:Z|[+-]\d\d:?\d\d)?")
_CLASS = re.compile(r"(\w{1,60})")
_DOES = re.compile(r"\[([a-z][\w-]{0,60})(?: (\d{1,18})~(\d{1,18}))?")
_NUMBERS = re.compile(r" (?:from |to |on )?[\d,. ]{1,200}$")
_MOST = 200  # characters of a description


def probe(head: Head) -> int:
    """CERTAIN where it is JSON with operations of Ceph's OpTracker."""
    return CERTAIN if head.data.lstrip().startswith(b"{") and all(p.search(head.data) for p in _SHOWS) else NO


def files(path: str) -> list[str]:
    """The file alone."""
    return [path]


def front(paths: list[str]) -> CephOpsReader:
    """What reads it."""
    return CephOpsReader(paths[0])


def _ns(stamp: object) -> int | None:
    found = _STAMP.fullmatch(str(stamp))
    if found is None:
        return None
    try:
        whole = calendar.timegm(tuple(map(int, found.groups()[:6])))
    except (ValueError, OverflowError):
        return None
    return whole * 10**9 + int(found[7].ljust(9, "0"))


def _events(op: dict[str, Any]) -> list[tuple[int, str]]:
    """An op's events: time and name, without the numbers that one has."""
    data = op.get("type_data")
    listed = data.get("events") if isinstance(data, dict) else data[-1] if isinstance(data, list) and data else None
    found = []
    for event in listed if isinstance(listed, list) else []:
        if isinstance(event, dict) and (at := _ns(event.get("time"))) is not None:
            found.append((at, _NUMBERS.sub("", str(event.get("event", ""))[:_MOST])))
    return sorted(found, key=lambda event: event[0])


class CephOpsReader(EventsReader):
    """Reads one file of JSON."""

    name = "ceph"

    def events(self, file: BinaryIO) -> Iterator[Event | None]:
        """The begin, the points and the end of each op, as those of tracepoints/opline_tp.h."""
        try:
            document = json.load(file)
        except (ValueError, RecursionError) as error:
            raise TraceError(f"{self._path} is cut off, or no JSON: {error}.") from error
        ops = document.get("ops", document.get("Ops")) if isinstance(document, dict) else None
        ended = isinstance(document, dict) and "num_ops" not in document
        for number, op in enumerate(ops if isinstance(ops, list) else [], 1):
            yield None
            found = list(self._op(number, op, ended)) if isinstance(op, dict) else []
            if not found:
                self.not_understood(number, json.dumps(op))
            yield from found

    def _op(self, number: int, op: dict[str, Any], ended: bool) -> Iterator[Event]:
        begin_ns, took = _ns(op.get("initiated_at")), op.get("duration")
        if begin_ns is None:
            return
        points = [(at, name) for at, name in _events(op) if name != "initiated" and at >= begin_ns]
        said = str(op.get("description", ""))
        words = (_CLASS.match(said), _DOES.search(said))
        what: dict[str, int | str] = {"op_class": " ".join(w[1] for w in words if w), "object": said[:_MOST]}
        if (does := words[1]) is not None and does[2] is not None:
            what |= {"offset": int(does[2]), "length": int(does[3])}
        yield _event(begin_ns, "op_begin", number, **what)
        for at, name in points:
            if name != "done":
                yield _event(at, "op_point", number, point=name, length=0)
        end_ns = next((at for at, name in points if name == "done"), None)
        if end_ns is None and ended and isinstance(took, int | float) and 0 <= took < 1e9:
            end_ns = max(begin_ns + round(took * 1e9), *(at for at, _ in points), begin_ns)
        if end_ns is not None:
            yield _event(end_ns, "op_end", number)


def _event(ts_ns: int, name: str, key: int, **more: int | str) -> Event:
    return Event(ts_ns, f"opline:{name}", {"key": key, "thread": 0, **more}, kernel=False)
