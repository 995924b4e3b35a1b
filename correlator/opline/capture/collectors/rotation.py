# SPDX-License-Identifier: MIT
"""Lets a collector's own traces go on in the next chunk when LTTng's session daemon has begun one."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from opline.capture.bpf.own_trace import OwnTrace
from opline.errors import OplineError
from opline.readers import chunks

LOOK_NS = 50_000_000  # how often; the session daemon looks after half a second first whether a chunk is complete


class Rotation:
    """``session``: the folder of the session's trace, in which all of ``traces`` are."""

    def __init__(self, session: Path, traces: Sequence[OwnTrace]) -> None:
        self._session, self._traces = session, traces
        self._number = -1  # of the chunk where its parts are: the first ones are in none, however many there are by now
        self._first = list(traces)  # those whose first part is not in the first chunk's folder yet
        self.failed = 0  # parts that could not be made: the part before goes on
        self.untold = 0  # parts in which could not be told again what is told once: those before are kept

    def look(self) -> None:
        """Has a chunk begun, or has the first one got its folder?"""
        now = chunks.open_in(self._session)
        number = chunks.place_of(now)[1]
        if number > self._number:
            for trace in self._traces:
                try:
                    trace.go_on_in(Path(now))
                except OplineError:
                    self.failed += 1
            self._number = number
        for trace in self._traces:
            try:
                trace.retell()
            except OplineError:
                self.untold += 1
        if self._first and self._number >= 0 and (first := chunks.first_closed(self._session)):
            for trace in self._first:
                with suppress(OSError):
                    trace.folder.rename(Path(first) / trace.folder.name)
            self._first = []
