# SPDX-License-Identifier: MIT
"""Removes the oldest chunks of a recording that goes on (`opline record --keep`), so that it does not fill the disk.

A chunk goes once the next one can be read without it: collectors have told again there what they tell once
(``opline.readers.chunks.WHOLE_FROM``). First the manifest says that the chunk is removed, then the chunk gets another
name outside of the trace, then its files are removed: whoever is killed leaves a trace of whole chunks. Only files that
a tracer made are removed; what else a user has put into a chunk gets its place back.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

from opline.capture.directory.recording import Recording
from opline.capture.directory.removal import remove_chunk
from opline.capture.recorder.clock_log import ClockLog
from opline.folder import Folder
from opline.readers import chunks
from opline.readers.stream_ends import last_packet_end_ns
from opline.readers.trace import traces_under

_EVERY_S = 0.5


class Keeper:
    """Of one recording: ``look()`` is called some ten times a second. ``complain`` takes a line for the user."""

    def __init__(
        self,
        keep: int,
        session: Path,
        note: Recording,
        folder: Folder,
        clocks: ClockLog,
        complain: Callable[[str], None],
    ) -> None:
        """``keep``: so many closed chunks; ``session``: the folder of the session's trace, in the recording's."""
        self._keep, self._session, self._note, self._folder = keep, session, note, folder
        self._clocks, self._complain = clocks, complain
        self._look_at = 0.0
        self._failed = False

    def look(self, collecting: bool) -> None:
        """Remove what is more than is kept, if it is time. ``collecting``: collectors are there, whose parts are to be
        waited for. Never raises.
        """
        if time.monotonic() < self._look_at or self._failed:
            return
        self._look_at = time.monotonic() + _EVERY_S
        through = (self._note.removed or {"through": -1})["through"]
        closed = [chunk for chunk in chunks.all_closed(self._session) if chunks.place_of(chunk)[1] > through]
        for old, following in list(pairwise(closed))[: max(0, len(closed) - self._keep)]:
            if collecting and not self._stands_alone(Path(old), Path(following)):
                return
            try:
                self._remove(Path(old), Path(following))
            except OSError as error:
                self._failed = True
                self._complain(f"chunks are removed no longer: {old}: {error.strerror}")
                return

    def _stands_alone(self, old: Path, following: Path) -> bool:
        """Has the following chunk all that collectors have told once?"""
        if _own(self._session):
            return False  # the first parts are not in the first chunk yet
        return all((following / name / chunks.WHOLE_FROM).exists() for name in _own(old))

    def _remove(self, old: Path, following: Path) -> None:
        note, number = self._note, chunks.place_of(old)[1]
        ends = [last_packet_end_ns(traces_under(old)), *(_whole_from_ns(following / name) for name in _own(following))]
        until_ns = max((ns for ns in ends if ns is not None), default=time.monotonic_ns())
        before = note.removed or {"chunks": 0}
        note.removed = {"chunks": before["chunks"] + 1, "through": number, "until_ns": until_ns}
        note.completed_before = {}  # what the devices had completed before is not what lies in the trace
        note.write(self._folder)
        holding = self._session.parent / chunks.REMOVING
        remove_chunk(holding)  # what a fault has left
        old.rename(holding)
        if not remove_chunk(holding):
            holding.rename(old)
        self._clocks.forget_before(until_ns)


def _own(folder: Path) -> list[str]:
    """The names of the traces that collectors write by themselves: LTTng's lie deeper."""
    with suppress(OSError):
        return [entry.name for entry in folder.iterdir() if (entry / "metadata").exists()]
    return []


def _whole_from_ns(part: Path) -> int | None:
    try:
        return int((part / chunks.WHOLE_FROM).read_text())
    except (OSError, ValueError):
        return None
