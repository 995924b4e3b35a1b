# SPDX-License-Identifier: MIT
"""The front end for text: block events of `perf script`, ftrace and `trace-cmd report`, from a file or a pipe.

They go through the block model like those of any trace. There are no ops: the text has no application's events. The
core's own code reads the lines (correlator/native/src/feed/line.hpp has what it understands).
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from opline import _core
from opline.readers import pipes
from opline.readers.lines import LinesReader
from opline.readers.trace import TraceError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, BinaryIO

    from opline.paths import StrPath

PIECE = 1 << 20  # bytes
_LOOKED_AT = 1 << 16  # bytes of a file, to find out what it is


def is_text(path: StrPath) -> bool:
    """A file that begins like text with block events, or a pipe, which can't be looked into."""
    try:
        mode = os.stat(path).st_mode
        if stat.S_ISFIFO(mode):
            return True
        if not stat.S_ISREG(mode):
            return False
        with open(path, "rb") as file:
            head = file.read(_LOOKED_AT)
    except OSError:
        return False
    return shows_block_events(head)


def shows_block_events(head: bytes) -> bool:
    """Whether lines are block events, or ought to be."""
    lines = head.splitlines()
    return any(_core.parse_block_line(line) for line in lines) or any(_core.is_block_line(line) for line in lines)


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

    def _read(self, file: BinaryIO, consumer: _core.Core | _core.Printer) -> Iterator[float | None]:
        feed = _core.TextFeed(consumer)
        total, read = os.fstat(file.fileno()).st_size, 0
        while piece := file.read(PIECE):
            feed.feed(piece)
            read += len(piece)
            yield min(1.0, read / total) if total else None
        feed.end()
        number, events, self._unreadable = feed.counts()
        self._messages = [f"{self._path}, line {at}: not understood: {text}" for at, text in feed.unread()]
        if not events:
            raise TraceError(
                f"{self._path} has no block events that can be read, in {number} lines: give the output of "
                "`perf script`, `trace-cmd report` or ftrace, with block_rq_issue and block_rq_complete."
            )
        consumer.finish()

    def environment(self) -> list[dict[str, Any]]:
        """The file; its clock is the kernel's, without an offset to the time of day."""
        return [{"path": self._path, "environment": {}, "clock": {"name": "kernel", "frequency": 1_000_000_000}}]
