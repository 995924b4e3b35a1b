# SPDX-License-Identifier: MIT
"""The front end for text: block events of `perf script`, ftrace and `trace-cmd report`, from a file or a pipe.

They go through the block model like those of any trace. There are no ops: the text has no application's events.
"""

from __future__ import annotations

import io
import os
import stat
import sys
from typing import TYPE_CHECKING

from opline import _core
from opline.readers import pipes
from opline.readers.text_lines import FIELDS, is_block_line, lost_events, parse
from opline.readers.trace import TraceError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from opline.paths import StrPath

SLICE = 1 << 13  # lines
_LOOKED_AT = 1 << 16  # bytes of a file, to find out what it is
_TOLD = 3  # lines that could not be read, of which each is shown


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
    lines = head.decode("utf-8", "replace").splitlines()
    return any(parse(line) for line in lines) or any(is_block_line(line) for line in lines[:1000])


class TextReader:
    """Reads one file of lines. ``losses`` are known after reading."""

    name = "text"

    def __init__(self, path: str) -> None:
        self._path = path
        self._unreadable = 0
        self._messages: list[str] = []

    def read(self, consumer: _core.Core | _core.Printer | _core.Dropper) -> Iterator[float | None]:
        """Push all events, in slices; each ``next()`` gives the share of the bytes read so far, None of a pipe."""
        if not isinstance(consumer, _core.Core):
            raise TraceError(f"{self._path} is text already: there is nothing to decode.")
        try:
            with io.TextIOWrapper(pipes.opened(self._path), encoding="utf-8", errors="replace") as file:
                yield from self._read(file, consumer)
        except OSError as error:
            raise TraceError(f"Cannot read {self._path}: {error.strerror}.") from error

    def _read(self, file: Any, core: _core.Core) -> Iterator[float | None]:
        stream = core.add_stream("", True, "text", 0)
        classes: dict[str, tuple[int, tuple[str, ...]]] = {}
        for event, names in FIELDS.items():
            fields = (*names, "tid", "comm")
            number, wanted, _ = core.add_class(event, True, [(name, False) for name in fields])
            classes[event] = number, tuple(fields[i] for i in wanted)
        total = os.fstat(file.fileno()).st_size
        read, events, number, last_ns, lost = 0, 0, 0, None, 0
        for number, line in enumerate(file, 1):
            read += len(line)
            if number % SLICE == 0:
                yield min(1.0, read / total) if total else None
            found = parse(line.rstrip("\r\n"))
            if found is None:
                lost += lost_events(line)
                if is_block_line(line) and not line.lstrip().startswith("#"):
                    self._note(number, line)
                continue
            event, ts_ns, cpu, comm, tid, payload = found
            if lost:
                core.discarded(stream, ts_ns if last_ns is None else last_ns, ts_ns, lost, False)
                lost = 0
            last_ns = ts_ns
            payload["tid"], payload["comm"] = tid, sys.intern(comm)
            cls, wanted_names = classes[event]
            core.event(ts_ns, cls, stream, cpu, tuple(payload[name] for name in wanted_names))
            events += 1
        if lost and last_ns is not None:
            core.discarded(stream, last_ns, last_ns, lost, False)
        if not events:
            raise TraceError(
                f"{self._path} has no block events that can be read, in {number} lines: give the output of "
                "`perf script`, `trace-cmd report` or ftrace, with block_rq_issue and block_rq_complete."
            )
        core.finish()

    def _note(self, number: int, line: str) -> None:
        self._unreadable += 1
        if self._unreadable <= _TOLD:
            self._messages.append(f"{self._path}, line {number}: not understood: {line.strip()[:120]}")

    def survey(self) -> dict[str, Any]:
        """Text says nothing of what is missing before it has been read."""
        return {}

    def losses(self) -> tuple[dict[str, int], list[str]]:
        """How many lines could not be read, and the first of them."""
        return ({"unreadable_lines": self._unreadable} if self._unreadable else {}), self._messages

    def version(self) -> None:
        """Our own: as opline's."""

    def environment(self) -> list[dict[str, Any]]:
        """The file; its clock is the kernel's, without an offset to the time of day."""
        return [{"path": self._path, "environment": {}, "clock": {"name": "kernel", "frequency": 1_000_000_000}}]
