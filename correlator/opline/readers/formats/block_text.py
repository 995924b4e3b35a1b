# SPDX-License-Identifier: MIT
"""The front end for text: block events of `perf script`, ftrace and `trace-cmd report`, from a file or a pipe.

They go through the block model like those of any trace. There are no ops: the text has no application's events. The
core's own code reads the lines (correlator/native/src/feed/line.hpp has what it understands).
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from opline import _core
from opline.errors import TraceError
from opline.readers import pipes
from opline.readers.lines import LinesReader
from opline.readers.registry import CERTAIN, EVENTS, LIKELY, NO
from opline.talk import talk

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, BinaryIO

    from opline.readers.registry import Head

CALLED, HAS, MODEL = "text with block events", EVENTS, "generic"
PIECE = 1 << 20  # bytes
_SHOWS_RAW = 1 << 16  # bytes
# A line of perf's or ftrace's, whichever its event is: a thread, a CPU, a time and a name.
_EVENT = re.compile(
    r"\s*+\S.{0,60}?[ -]\d{1,9}(?:/\d{1,9})? .{0,40}?\b\d{1,12}\.\d{6,9}: +(?:\d{1,12} +)?[\w:.-]{3,80}: .*+"
)
# Of ftrace's options raw and hex: the thread, the CPU, the time and the number of the event's type, and no field.
_RAW = re.compile(r"(?:\d{1,9} \d{1,5} \d{1,19}|[0-9a-f]{8} [0-9a-f]{8} [0-9a-f]{16}) type: \d{1,5}")

# The time is a count of a clock without a unit: trace-cmd report --raw-ts, or ftrace's clocks x86-tsc and counter.
_COUNTED = re.compile(r".{0,80}?\[\d{1,5}\].{0,9}?\s*\d{1,19}: +(?:\(\+\d{1,18}\) +)?block_\w{3,30}: .*+")
_TIME = re.compile(r"\d\.\d{6}")


def _is_block_event(line: str) -> bool:
    data = line.encode()
    return _core.parse_block_line(data) is not None or _core.is_block_line(data)


def probe(head: Head) -> int:
    """CERTAIN where lines are block events, or ought to be; LIKELY where they are other events of perf or ftrace."""
    if head.has(_is_block_event) or head.has_line(_RAW):
        return CERTAIN
    return LIKELY if head.has_line(_EVENT) else NO


def names(head: Head) -> set[str]:
    """Of the block events."""
    events = (_core.parse_block_line(line.encode()) for line in head.lines)
    return {event[0] for event in events if event is not None}


def files(path: str) -> list[str]:
    """The file alone."""
    return [path]


def front(paths: list[str]) -> TextReader:
    """What reads it."""
    return TextReader(paths[0])


class TextReader(LinesReader):
    """Reads one file of lines. ``losses`` are known after reading."""

    name = "text"

    def read(self, consumer: _core.Core | _core.Printer | _core.Dropper) -> Iterator[float | None]:
        """Push all events, in slices; each ``next()`` gives the share of the bytes read so far, None of a pipe."""
        assert not isinstance(consumer, _core.Dropper), "checks leave out events of CTF traces only"
        try:
            with pipes.opened(self._path) as file:
                yield from self._read(file, consumer)
        except OSError as error:
            raise TraceError(f"Cannot read {self._path}: {error.strerror}.") from error
        except ValueError as error:
            raise TraceError(f"Cannot read {self._path}: {error}.") from error

    def _read(self, file: BinaryIO, consumer: _core.Core | _core.Printer) -> Iterator[float | None]:
        total, read = os.fstat(file.fileno()).st_size, 0
        piece = file.read(PIECE)
        begin = piece[:_SHOWS_RAW]
        stand_ins = self._stand_ins(piece) if isinstance(consumer, _core.Core) else (False, False)
        feed = _core.TextFeed(consumer, *stand_ins)
        while piece:
            feed.feed(piece)
            read += len(piece)
            piece = file.read(PIECE)
            yield min(1.0, read / total) if total else None
        feed.end()
        number, events, self._unreadable = feed.counts()
        self._messages = [f"{self._path}, line {at}: not understood: {text}" for at, text in feed.unread()]
        lines = begin.decode(errors="replace").splitlines() if not events else []
        if any(map(_RAW.fullmatch, lines)):
            raise TraceError(
                f"{self._path} has events without their fields (ftrace's option raw or hex): set both to 0 "
                "(`echo 0 > options/raw`) and print the trace again."
            )
        if any(map(_COUNTED.fullmatch, lines)):
            raise TraceError(
                f"{self._path} has times without a unit: print it again without --raw-ts. If the trace's clock is "
                "x86-tsc or counter, record it again with the clock mono (`trace-cmd record -C mono`)."
            )
        if any(_core.is_block_line(line.encode()) and not _TIME.search(line) for line in lines):
            raise TraceError(f"{self._path} has block events without times: print them, too (perf script -F +time).")
        if not events:
            raise TraceError(
                f"{self._path} has no block events that can be read, in {number} lines: give the output of "
                "`perf script`, `trace-cmd report` or ftrace, with block_rq_issue and block_rq_complete."
            )
        consumer.finish()

    def _stand_ins(self, begin: bytes) -> tuple[bool, bool]:
        """Whether the accounting's begin stands for the issue, and its end for the completion: a text of Linux 6.5 or
        later that begins with them alone. Says so.
        """
        start = b"block_io_start:" in begin and b"block_rq_issue:" not in begin
        done = b"block_io_done:" in begin and b"block_rq_complete:" not in begin
        if start:
            talk(
                f"{self._path} has no block_rq_issue: block_io_start stands for it. Latencies include the wait in the "
                "kernel's queue, and sizes are those before merges."
            )
        return start, done

    def environment(self) -> list[dict[str, Any]]:
        """The file; its clock is the kernel's, without an offset to the time of day."""
        return [{"path": self._path, "environment": {}, "clock": {"name": "kernel", "frequency": 1_000_000_000}}]
