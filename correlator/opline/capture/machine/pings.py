# SPDX-License-Identifier: MIT
"""Messages by UDP that hosts send to each other for `opline join` alone: CLOCK_MONOTONIC of both ends, before each send
and after each receive.

A burst of pings goes to a peer ten times a second, each after the answer to the one before. The file has the tightest
ping of each burst in each direction. A peer answers only to pings that have its key; an answer has the size of a ping.
"""

from __future__ import annotations

import os
import secrets
import socket
import struct
import time
import uuid
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from opline.capture.machine.clocks import clock_offset_ns
from opline.capture.machine.processes import boot_id
from opline.errors import OplineError, UsageError
from opline.readers.pings import COLUMNS, End

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

BURST = 8
EVERY_NS = 100_000_000
PATIENCE_S = 0.05  # for an answer
SILENT_NS = 1_000_000_000  # a peer that has not answered to a burst gets the next one after this time
_KEY_BYTES = 16
_HOST_BYTES = 64
_MAGIC = b"oplping1"
# magic, key, number of the ping, received, replied, boot id, clock offset, host name
_MESSAGE = struct.Struct(f"!8s{_KEY_BYTES}sQqq16sq{_HOST_BYTES}s")


def _here() -> End:
    """The clock of this process."""
    return End(socket.gethostname(), boot_id(), clock_offset_ns())


class Peer(NamedTuple):
    """Where a host answers pings, and the key that it answers to."""

    address: str
    port: int
    key: bytes

    @classmethod
    def of(cls, text: str) -> Peer:
        """HOST:PORT/KEY, as Answerer.place has it. Raises UsageError."""
        where, _, key = text.rpartition("/")
        address, _, port = where.rpartition(":")
        try:
            found = cls(address.strip("[]"), int(port), bytes.fromhex(key))
        except ValueError:
            found = cls("", 0, b"")
        if not found.address or not 0 < found.port < 1 << 16 or len(found.key) != _KEY_BYTES:
            raise UsageError(f"{text}: HOST:PORT/KEY is wanted, as `opline ping` prints it on the other host.")
        return found


class Answerer:
    """Answers pings at a port of this host."""

    def __init__(self, address: str = "", port: int = 0) -> None:
        """Without an address all addresses of this host; port 0: any free one. Raises OplineError."""
        self._key = secrets.token_bytes(_KEY_BYTES)
        end = _here()
        self._end = uuid.UUID(end.boot_id).bytes, end.clock_offset_ns, end.host.encode()[:_HOST_BYTES]
        try:
            every = not address and socket.has_dualstack_ipv6()
            family = socket.AF_INET6 if every or ":" in address else socket.AF_INET
            self._socket = socket.socket(family, socket.SOCK_DGRAM)
            if every:
                self._socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            self._socket.bind((address, port))
        except OSError as error:
            raise OplineError(f"No pings at UDP port {port or 'of any number'}: {error.strerror or error}.") from error

    def place(self) -> tuple[int, str]:
        """The port, and the key as text."""
        return int(self._socket.getsockname()[1]), self._key.hex()

    def answer(self, patience_s: float) -> None:
        """Answers to what comes within so long, and to nothing else."""
        self._socket.settimeout(patience_s)
        with suppress(OSError):
            data, asker = self._socket.recvfrom(_MESSAGE.size + 1)
            received_ns = time.monotonic_ns()
            if len(data) != _MESSAGE.size:
                return
            magic, key, number, *_ = _MESSAGE.unpack(data)
            if magic == _MAGIC and secrets.compare_digest(key, self._key):
                replied_ns = time.monotonic_ns()
                self._socket.sendto(_MESSAGE.pack(_MAGIC, key, number, received_ns, replied_ns, *self._end), asker)

    def close(self) -> None:
        """Gives the port back."""
        self._socket.close()


class Ping(NamedTuple):
    """One message there and back; each time is of its own host's CLOCK_MONOTONIC."""

    peer: End
    sent_ns: int
    received_ns: int
    replied_ns: int
    returned_ns: int


class Pinger:
    """Sends pings to one peer. ``answered``: how many bursts had an answer."""

    def __init__(self, peer: Peer) -> None:
        """Raises OplineError for an address that does not exist."""
        try:
            family, kind, protocol, _, to = socket.getaddrinfo(peer.address, peer.port, type=socket.SOCK_DGRAM)[0]
        except OSError as error:
            raise OplineError(f"No pings to {peer.address}: {error.strerror or error}.") from error
        self._socket = socket.socket(family, kind, protocol)
        self.peer = peer
        self._to = to
        self._number = 0
        self.answered = 0
        self.next_ns = 0

    def burst(self) -> list[Ping]:
        """The tightest ping of a burst in each direction; none if an answer is missing to each of them."""
        found = []
        for _ in range(BURST):
            with suppress(OSError):  # no route for now, or nothing listens
                if (ping := self._ping()) is not None:
                    found.append(ping)
                    continue
            if not found:
                break
        self.next_ns = time.monotonic_ns() + (EVERY_NS if found else SILENT_NS)
        self.answered += bool(found)
        tightest = {
            min(found, key=lambda p: p.received_ns - p.sent_ns),
            min(found, key=lambda p: p.returned_ns - p.replied_ns),
        } if found else set()  # fmt: skip
        return sorted(tightest, key=lambda p: p.sent_ns)

    def _ping(self) -> Ping | None:
        self._number += 1
        until_s = time.monotonic() + PATIENCE_S
        message = _MESSAGE.pack(_MAGIC, self.peer.key, self._number, 0, 0, bytes(16), 0, b"")
        sent_ns = time.monotonic_ns()
        self._socket.sendto(message, self._to)
        while (left_s := until_s - time.monotonic()) > 0:
            self._socket.settimeout(left_s)
            data, _ = self._socket.recvfrom(_MESSAGE.size + 1)
            returned_ns = time.monotonic_ns()
            if len(data) != _MESSAGE.size:
                continue
            magic, key, number, received_ns, replied_ns, boot, offset_ns, host = _MESSAGE.unpack(data)
            if (magic, number) == (_MAGIC, self._number) and secrets.compare_digest(key, self.peer.key):
                end = End(host.rstrip(b"\0").decode(errors="replace"), str(uuid.UUID(bytes=boot)), offset_ns)
                return Ping(end, sent_ns, received_ns, replied_ns, returned_ns)
        return None

    def close(self) -> None:
        """Gives the socket back."""
        self._socket.close()


def write_pings(pingers: Sequence[Pinger], descriptor: int, going_on: Callable[[float], bool]) -> None:
    """Pings each peer, and writes rows of COLUMNS. ``going_on``: waits so many seconds, and tells whether to go on.
    Raises OplineError.
    """
    here = _here()
    _write(descriptor, COLUMNS)
    while going_on(max(0.0, (min(p.next_ns for p in pingers) - time.monotonic_ns()) / 1e9)):
        for pinger in pingers:
            if time.monotonic_ns() >= pinger.next_ns:
                for ping in pinger.burst():
                    _write(descriptor, (*here, *ping.peer, *ping[1:]))


def _write(descriptor: int, values: Sequence[object]) -> None:
    """One row in one call: a row is whole, or the last one. Raises OplineError."""
    line = ",".join(str(v).replace(",", "_").replace('"', "_") for v in values) + "\n"
    try:
        os.write(descriptor, line.encode())
    except OSError as error:
        raise OplineError(f"Cannot write the pings: {error.strerror}.") from error
