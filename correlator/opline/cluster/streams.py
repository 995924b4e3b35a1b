# SPDX-License-Identifier: MIT
"""Messages of any two programs, by their positions in TCP streams (`opline record --tcp`): which call of one host
received the byte that a call of another host sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opline.store.arrays import read_table
from opline.values import Value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from opline.store.arrays import Batch

_WRAP = 1 << 32  # sequence numbers have 32 bits
LEAST_SHARE = 0.5  # of the sends of one connection have a receive, or it is not the same connection
_ONE_BOOT = ("127.", "[::1]:", "[::ffff:127.")  # such addresses lead to the machine itself

#: Address and port of the sender, and of the receiver.
Route = tuple[str, str]


class Socket(Value):
    """One direction of one socket, in order of time: time (i64, ns of the host), position of the first byte (i64, from
    that of the first call on, which is ``first`` modulo 2^32), and of the byte behind the last one.
    """

    ts_ns: np.ndarray
    begin: np.ndarray
    end: np.ndarray
    first: int


class Streams(Value):
    """The calls of one host: sockets by route."""

    sends: dict[Route, list[Socket]]
    receives: dict[Route, list[Socket]]

    def span(self) -> tuple[int, int] | None:
        """Time of the first and the last call; None: there is none."""
        times = [s.ts_ns[[0, -1]] for of in (self.sends, self.receives) for found in of.values() for s in found]
        return (int(min(t[0] for t in times)), int(max(t[1] for t in times))) if times else None


class StreamPairs(Value):
    """Of the sends of one host to another: those with a receive, as times of both (i64, ns of each host; the latest
    send of a receive alone), how many have one, and how many have none.
    """

    sent_ns: np.ndarray
    received_ns: np.ndarray
    paired: int
    unpaired: int


def streams_of(run: Path) -> Streams:
    """The TCP streams of a host's run."""
    table = read_table(run / "tcp.parquet", "ts_ns")
    if not len(table):
        return Streams({}, {})
    sent = table.array("direction") == "send"
    return Streams(dict(_sockets(table, sent, "local", "peer")), dict(_sockets(table, ~sent, "peer", "local")))


def _sockets(table: Batch, wanted: np.ndarray, sender: str, receiver: str) -> Iterator[tuple[Route, list[Socket]]]:
    """Sockets by route, of the rows that are ``wanted``. ``sender``, ``receiver``: the columns of their addresses."""
    if not wanted.any():
        return
    codes, names = zip(*(table.codes(name) for name in (sender, receiver, "socket")), strict=True)
    codes = tuple(of[wanted] for of in codes)
    order = np.lexsort(codes[::-1])
    keys = np.stack(codes)[:, order]
    ts_ns, position, size = (
        table.numbers(name).filled(np.int64)[wanted][order] for name in ("ts_ns", "position", "bytes")
    )
    begins = np.flatnonzero(np.r_[True, (np.diff(keys) != 0).any(axis=0)])
    found: dict[Route, list[Socket]] = {}
    for begin, end in zip(begins, np.r_[begins[1:], len(order)], strict=True):
        route = (str(names[0][keys[0, begin]]), str(names[1][keys[1, begin]]))
        moved = np.diff(position[begin:end]) % _WRAP
        passed = np.r_[0, np.cumsum(np.where(moved < _WRAP // 2, moved, moved - _WRAP))]
        socket = Socket(ts_ns[begin:end], passed, passed + size[begin:end], int(position[begin]))
        found.setdefault(route, []).append(socket)
    yield from found.items()


class StreamExchange:
    """Between all hosts. ``boots``: of each host, "" if it is not known."""

    def __init__(self, streams: Mapping[str, Streams], boots: Mapping[str, str]) -> None:
        self.streams = streams
        self._pairs = {
            (a, b): _between(streams[a], streams[b], bool(boots[a]) and boots[a] == boots[b])
            for a in streams
            for b in streams
            if a != b
        }

    def __getitem__(self, key: tuple[str, str]) -> StreamPairs:
        """Of the sends of the first host to the second."""
        return self._pairs[key]


def _between(a: Streams, b: Streams, one_boot: bool) -> StreamPairs:
    """``one_boot``: both are of one kernel, so that an address of the machine itself may lead from one to the other."""
    parts = []
    for route in a.sends.keys() & b.receives.keys():
        if route in a.receives or route in b.sends:  # both ends are on one host
            continue
        if not one_boot and route[1].startswith(_ONE_BOOT):
            continue
        for received in b.receives[route]:
            found = max((_pair(sent, received) for sent in a.sends[route]), key=lambda part: part.paired)
            if found.paired >= LEAST_SHARE * (found.paired + found.unpaired):
                parts.append(found)
    nothing = np.empty(0, np.int64)
    return StreamPairs(
        np.concatenate([nothing, *(part.sent_ns for part in parts)]),
        np.concatenate([nothing, *(part.received_ns for part in parts)]),
        sum(part.paired for part in parts),
        sum(part.unpaired for part in parts),
    )


def _pair(sent: Socket, received: Socket) -> StreamPairs:
    """Each byte that begins a send is received by the first call whose bytes end behind it."""
    apart = (sent.first - received.first) % _WRAP
    position = sent.begin + (apart if apart < _WRAP // 2 else apart - _WRAP)
    ends = np.maximum.accumulate(received.end)
    at = np.searchsorted(ends, position, "right")
    inside = at < len(ends)
    inside[inside] &= received.begin[at[inside]] <= position[inside]
    sends, receives = np.flatnonzero(inside), at[inside]
    last = np.r_[np.diff(receives) != 0, True] if len(receives) else np.empty(0, bool)
    return StreamPairs(sent.ts_ns[sends[last]], received.ts_ns[receives[last]], len(sends), len(position) - len(sends))
