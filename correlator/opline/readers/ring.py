# SPDX-License-Identifier: MIT
"""The front end for what happens now: records of the BPF programs, as the bridge passes them on (struct block_event in
tracepoints/block_event.h; the signs LIVE_MARK and LIVE_LOST in tracepoints/live_provider.h), into a core.

They are the events that a recording has, with the same names and fields, so a core makes the same of them.
"""

from __future__ import annotations

import struct
from operator import itemgetter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    from opline import _core

RECORD = struct.Struct("<6Q4IIiiIHBBi16s")
MEMBERS = (
    "ktime", "rq", "bio", "parent", "sector", "other", "nr_sector", "bytes", "dev", "old_dev", "rwbs", "error", "tid",
    "lost", "cpu", "kind", "call", "pid", "comm",
)  # fmt: skip
LOST, MARK = 254, 255
_REMEMBERED = 1 << 16  # threads, and names

_PLACE = ("dev", "sector", "nr_sector", "rwbs")
_REST = ("tid", "pid", "comm", "cpu", "rq", "bio", "parent")
_REQUEST, _DONE = (*_PLACE, "bytes", *_REST), (*_PLACE, "error", *_REST)
_BIO, _MOVED = (*_PLACE, *_REST), (*_PLACE, "old_dev", "old_sector", *_REST)
# In the order of enum block_kind; fields as in tracepoints/block_tp.h.
KINDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("block_bio_queue", _BIO),
    ("block_getrq", _BIO),
    ("block_bio_backmerge", _BIO),
    ("block_bio_frontmerge", _BIO),
    ("block_split", (*_PLACE, "new_sector", *_REST)),
    ("block_bio_remap", _MOVED),
    ("block_bio_complete", _DONE),
    ("block_rq_insert", _REQUEST),
    ("block_rq_issue", _REQUEST),
    ("block_rq_bio", _BIO),
    ("block_rq_requeue", _REQUEST),
    ("block_rq_merge", _REQUEST),
    ("block_rq_remap", _MOVED),
    ("block_rq_complete", _DONE),
)
_MEMBER_OF = {"old_sector": "other", "new_sector": "other"}
_KIND, _TID, _PID, _COMM = (MEMBERS.index(name) for name in ("kind", "tid", "pid", "comm"))


class RingReader:
    """Pushes records into a core. ``until_ns``: all that happened up to there has been pushed; ``first_ns``: the first
    time that is known. ``lost``: events that are missing. ``processes``: of each thread that was seen its process.
    """

    def __init__(self, core: _core.Core) -> None:
        self._core = core
        self._stream = core.add_stream("", False, "block", 0)
        self._classes: list[tuple[int, Any]] = []
        for event, fields in KINDS:
            number, wanted, _ = core.add_class(f"block:{event}", False, [(name, False) for name in fields])
            places = [MEMBERS.index(_MEMBER_OF.get(fields[i], fields[i])) for i in wanted]
            self._classes.append((number, itemgetter(*places)))
        self._names: dict[bytes, str] = {}
        self._rest = b""
        self.first_ns: int | None = None
        self.until_ns: int | None = None
        self.events = 0
        self.lost = 0
        self.processes: dict[int, int] = {}

    def feed(self, data: bytes) -> None:
        """Push what came out of the pipe; a record that is cut off waits for its rest."""
        data = self._rest + data
        whole = len(data) - len(data) % RECORD.size
        self._rest = data[whole:]
        core, stream, classes, names, processes = self._core, self._stream, self._classes, self._names, self.processes
        if whole and self.first_ns is None:
            self.first_ns = RECORD.unpack_from(data)[0]
        for record in RECORD.iter_unpack(memoryview(data)[:whole]):
            kind = record[_KIND]
            if kind >= LOST:
                self._sign(kind, record[0], record[1])
                continue
            raw = record[_COMM]
            comm = names.get(raw)
            if comm is None:
                comm = names[raw] = raw.split(b"\0")[0].decode("utf-8", "replace")
            if processes.get(record[_TID]) != record[_PID]:
                processes[record[_TID]] = record[_PID]
            cls, wanted = classes[kind]
            core.event(record[0], cls, stream, None, wanted((*record[:_COMM], comm)))
            self.events += 1
        _forget(names)
        _forget(processes)

    def _sign(self, kind: int, at_ns: int, number: int) -> None:
        if kind == MARK:
            self.until_ns = at_ns
        else:
            self.lost += number
            since = at_ns if self.until_ns is None else min(at_ns, self.until_ns)
            self._core.discarded(self._stream, since, at_ns, number, False)


def _forget(known: dict[Any, Any]) -> None:
    """What has not been seen for long is looked up in no row any more."""
    if len(known) > _REMEMBERED:
        for old in list(known)[: len(known) - _REMEMBERED // 2]:
            del known[old]
