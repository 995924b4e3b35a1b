# SPDX-License-Identifier: MIT
"""What the shim for Ceph must have seen of ``tests/ceph/shim/peers.c``, worked out from that program's log.

The log has one line per call and per message, with byte positions in the stream. From where a message's header ends and
its last byte is, and from what each call offered and took, follows the call that must announce it.
"""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PREAMBLE, HEADER, LOOKED_AT = 32, 41, 1024
OSD_OP, REPLICAS = 42, (112, 113)
REPOP = 59  # bytes of a replica's front that are looked at
BANNER = 26
_EVENT = re.compile(r"\[(\d+)\] \(\+[\d.?]+\) \S+ ceph(shim|ring):(\w+): (.*)")
_ORIGIN = ("ktime", "vpid", "vtid", "procname", "cpu")
_FIELD = re.compile(r'(\w+) = ("[^"]*"|[^ ,]+)')


@dataclass(frozen=True, slots=True)
class Event:
    """One event of the shim's: integers as integers, texts without quotes. ``direct``: written by the thread itself."""

    time_ns: int
    direct: bool
    name: str
    vpid: int
    vtid: int
    fields: dict[str, Any]


def events_of(trace: Path) -> list[Event]:
    """All events of a trace in order of their times, from what babeltrace2 prints."""
    argv = ["babeltrace2", "--clock-cycles", str(trace)]
    text = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=120).stdout
    found = []
    for line in text.splitlines():
        match = _EVENT.search(line)
        if match is None:
            continue
        parts = match[4].split("}, {")
        values = {k: v.strip('"') if v.startswith('"') else int(v, 0) for k, v in _FIELD.findall(parts[-1])}
        context = {k: v for part in parts[:-1] for k, v in _FIELD.findall(part)}
        direct = match[2] == "shim"
        origin = context if direct else {name: values.pop(name) for name in _ORIGIN}
        time_ns = int(match[1] if direct else origin["ktime"])
        found.append(Event(time_ns, direct, match[3], int(origin["vpid"]), int(origin["vtid"]), values))
    return sorted(found, key=lambda e: e.time_ns)


@dataclass(slots=True)
class Message:
    """A message of one end's stream: its bytes are [begin, end)."""

    begin: int
    end: int
    known_at: int  # position behind what the shim must have seen to know it
    fields: tuple[Any, ...]


@dataclass(slots=True)
class End:
    """One end of a connection."""

    name: int
    other: End | None = None
    number: int = 0  # the client's
    foreign: bool = False
    messages: list[Message] = field(default_factory=list)  # that it sends


@dataclass(slots=True)
class Truth:
    """Per thread the messenger's events in order, each as a tuple; and how often the rest must be there."""

    threads: dict[int, list[tuple[Any, ...]]]
    sessions: list[tuple[int, int, int]]  # the client's number, 1 for msgr2.1, mode
    alarms: tuple[int, int]  # descriptor, how many


def truth_of(log: Path) -> Truth:
    """Read a log of ``peers``."""
    ends: dict[int, End] = {}
    sessions: list[tuple[int, int, int]] = []
    calls: list[tuple[int, str, End, int, int, int, int]] = []
    alarms = (0, 0)

    def end(name: str) -> End:
        return ends.setdefault(int(name), End(int(name)))

    rev1: dict[int, bool] = {}
    processes = 0
    for line in log.read_text().splitlines():
        kind, *rest = line.split(" ")
        processes += kind == "P"
        if processes > 1:
            break  # the child of a traced process is not traced
        if kind == "S":
            client, server = end(rest[0]), end(rest[1])
            client.other, server.other = server, client
            client.number = server.number = int(rest[2])
            rev1[client.name] = rev1[server.name] = rest[3] == "1"
            sessions += [(client.number, int(rest[3]), int(rest[4]))] * 2
        elif kind == "N":
            client, server = end(rest[0]), end(rest[1])
            client.other, server.other = server, client
            client.foreign = server.foreign = True
        elif kind == "M":
            begin, behind, mtype, tid, seq, front, op, offset, length = map(int, rest[1:10])
            known_at = begin + PREAMBLE + HEADER
            looked_at = front if mtype == OSD_OP else min(front, REPOP) if mtype in REPLICAS else 0
            if looked_at:
                known_at += min(looked_at + (4 if rev1[int(rest[0])] else 0), LOOKED_AT - HEADER)
            named, client_tid = map(int, rest[11:13])
            number = named or end(rest[0]).number
            values = (mtype, tid, seq, behind - begin, number, op, offset, length, rest[10], client_tid)
            end(rest[0]).messages.append(Message(begin, behind, known_at, values))
        elif kind == "C":
            fd, position, wanted, got = map(int, rest[3:])
            calls.append((int(rest[0]), rest[1], end(rest[2]), fd, position, wanted, got))
        elif kind == "A":
            alarms = (int(rest[0]), int(rest[1]))
    threads: dict[int, list[tuple[Any, ...]]] = defaultdict(list)
    offered: dict[int, int] = defaultdict(int)
    for thread, direction, e, fd, position, wanted, got in calls:
        if e.foreign:
            continue
        out = threads[thread]
        if direction == "tx":
            out.append(("msgr_send_enter", fd, wanted))
            before, now = offered[e.name], max(offered[e.name], position + wanted)
            offered[e.name] = now
            out += [("msgr_tx_msg", fd, *m.fields, 0) for m in e.messages if before < m.known_at <= now]
            took = position + max(got, 0)
            out += [
                ("msgr_tx_msg", fd, *m.fields, 1)
                for m in e.messages
                if m.known_at <= before and position < m.end <= took
            ]
            out.append(("msgr_send_exit", fd, got))
        else:
            assert e.other is not None
            out.append(("msgr_recv", fd, got))
            for m in e.other.messages:
                if position < m.known_at <= position + got:
                    out.append(("msgr_rx_msg", fd, *m.fields, int(m.end <= position + got)))
                elif position < m.end <= position + got:
                    out.append(("msgr_rx_msg", fd, *m.fields, 1))
    return Truth(dict(threads), sessions, alarms)


_MESSAGE = ("mtype", "tid", "seq", "flen", "num", "op", "off", "len", "oid", "ctid", "whole")
_CALLS = {"msgr_send_enter": "bytes", "msgr_send_exit": "ret", "msgr_recv": "ret"}


def as_tuple(event: Event) -> tuple[Any, ...] | None:
    """An event as the truth has it, or None for the kinds that it does not order."""
    f = event.fields
    if event.name in _CALLS:
        return (event.name, f["fd"], f[_CALLS[event.name]])
    if event.name in ("msgr_tx_msg", "msgr_rx_msg"):
        return (event.name, f["fd"], *(f[name] for name in _MESSAGE))
    return None
