# SPDX-License-Identifier: MIT
"""Readings of the host's clocks while a recording goes on: ``clocks.csv`` beside the trace, a row ten times a second.

`opline join` needs them: CLOCK_MONOTONIC, the clock of the trace, is slewed by NTP; CLOCK_MONOTONIC_RAW never is
(clock_gettime(2)). ``frequency`` (2**-16 ppm), ``tick_us``, ``status`` and ``max_error_us`` are the kernel's, as
adjtimex(2) has them.
"""

from __future__ import annotations

import ctypes
import os
import struct
import time
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opline.folder import Access, Folder

FILE_NAME = "clocks.csv"
COLUMNS = (
    "monotonic_ns", "raw_ns", "realtime_ns", "bracket_ns", "frequency", "tick_us", "status", "max_error_us"
)  # fmt: skip
EVERY_NS = 90_000_000  # the recorder looks ten times a second, or a little later
_ROUNDS = 8  # the tightest counts
_TIMEX_BYTES = 208  # struct timex of 64-bit Linux
_TIMEX = struct.Struct("=I4xqqqqi4xqqqqqq")  # modes offset freq maxerror esterror status … tick, as far as it is used


def reading() -> tuple[int, ...]:
    """CLOCK_MONOTONIC, MONOTONIC_RAW and REALTIME in ns, and how long it took to read all three: the two others lie
    within that after the first.
    """
    best: tuple[int, ...] | None = None
    for _ in range(_ROUNDS):
        monotonic = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        raw = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
        wall = time.clock_gettime_ns(time.CLOCK_REALTIME)
        bracket = time.clock_gettime_ns(time.CLOCK_MONOTONIC) - monotonic
        if best is None or bracket < best[3]:
            best = monotonic, raw, wall, bracket
    assert best is not None
    return best


class ClockLog:
    """The file of one recording. Never raises: without it a recording is as good as before, for one host."""

    def __init__(self, folder: Folder, access: Access) -> None:
        self._folder, self._access = folder, access
        self._descriptor = -1
        self._next_ns = 0
        self._timex = ctypes.create_string_buffer(_TIMEX_BYTES)
        self._adjtimex = getattr(ctypes.CDLL(None, use_errno=True), "adjtimex", None)
        with suppress(OSError):
            self._descriptor = folder.create(FILE_NAME, access, os.O_WRONLY | os.O_APPEND)
            self._write(",".join(COLUMNS))
            self.look()

    def look(self) -> None:
        """A row, if it is time."""
        now_ns = time.monotonic_ns()
        if self._descriptor < 0 or now_ns < self._next_ns:
            return
        self._next_ns = now_ns + EVERY_NS
        with suppress(OSError):
            self._write(",".join("" if v is None else str(v) for v in (*reading(), *self._kernel())))

    def forget_before(self, ns: int) -> None:
        """Remove the rows of before that time."""
        if self._descriptor < 0:
            return
        with suppress(OSError, ValueError):
            with os.fdopen(os.open(FILE_NAME, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._folder.descriptor)) as file:
                head, *rows = file
            later = [row for row in rows if int(row.partition(",")[0]) >= ns]
            self._folder.write(FILE_NAME, "".join([head, *later]), self._access)
            flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
            fresh = os.open(FILE_NAME, flags, dir_fd=self._folder.descriptor)
            os.close(self._descriptor)
            self._descriptor = fresh

    def close(self) -> None:
        """A last row."""
        self._next_ns = 0
        self.look()
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _write(self, line: str) -> None:
        os.write(self._descriptor, f"{line}\n".encode())

    def _kernel(self) -> tuple[int | None, ...]:
        """What adjtimex says: it changes nothing."""
        ctypes.memset(self._timex, 0, _TIMEX_BYTES)
        if self._adjtimex is None or self._adjtimex(self._timex) < 0:
            return None, None, None, None
        _, _, frequency, max_error, _, status, _, _, _, _, _, tick = _TIMEX.unpack_from(self._timex)
        return frequency, tick, status, max_error
