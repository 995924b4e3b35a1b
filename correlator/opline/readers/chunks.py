# SPDX-License-Identifier: MIT
"""The chunks of a rotated LTTng session, by the names that LTTng gives their folders (lttng-concepts(7), "Recording
session rotation"): ``archives/BEGIN-END-NUMBER`` for a closed chunk, ``BEGIN-NUMBER`` for the open one.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from opline.locks import is_held
from opline.paths import LOCK_NAME, is_recording, plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from opline.paths import StrPath

#: In a collector's part of a chunk: from which time on (CLOCK_MONOTONIC ns) the part has all that is told once.
WHOLE_FROM = ".whole_from"
#: In a recording's directory: a chunk that is being removed. No trace is looked for there.
REMOVING = ".removing"
_ARCHIVES = "archives"
_TIME = r"\d{8}T\d{6}[+-]\d{4}"
_CLOSED = re.compile(rf"{_TIME}-{_TIME}-(\d+)")
_OPEN = re.compile(rf"{_TIME}-(\d+)")


def place_of(folder: StrPath) -> tuple[tuple[str, ...], int]:
    """The parts of a trace's path without those of its chunk, and the chunk's number; -1: it is of none. In this order
    the chunks of a trace follow each other in time, at the place that the trace has without rotation.
    """
    parts = tuple(plain(folder).split("/"))
    for at in range(len(parts) - 1, -1, -1):
        if at and parts[at - 1] == _ARCHIVES and (found := _CLOSED.fullmatch(parts[at])):
            return parts[: at - 1] + parts[at + 1 :], int(found[1])
        if found := _OPEN.fullmatch(parts[at]):
            return parts[:at] + parts[at + 1 :], int(found[1])
    return parts, -1


def open_in(session: StrPath) -> str:
    """Where LTTng writes now: the folder of the open chunk, else the session's own."""
    try:
        found = [name for name in os.listdir(session) if _OPEN.fullmatch(name)]
    except OSError:
        found = []
    return max((os.path.join(session, name) for name in found), key=lambda p: place_of(p)[1], default=plain(session))


def all_closed(session: StrPath) -> list[str]:
    """The folders of the closed chunks, by their numbers."""
    try:
        found = os.listdir(os.path.join(session, _ARCHIVES))
    except OSError:
        return []
    paths = [os.path.join(session, _ARCHIVES, name) for name in found if _CLOSED.fullmatch(name)]
    return sorted(paths, key=lambda path: place_of(path)[1])


def first_closed(session: StrPath) -> str | None:
    """The folder of the first chunk; None as long as the session daemon has not closed it."""
    first = all_closed(session)[:1]
    return first[0] if first and place_of(first[0])[1] == 0 else None


def closed(folders: Sequence[str]) -> list[str]:
    """These traces without the open chunk of a recording that goes on: LTTng still writes there, and moves it."""
    sessions = {folder: _session_of_open(folder) for folder in folders}
    going_on = {session: _goes_on(session) for session in set(sessions.values()) if session}
    found = [folder for folder in folders if not going_on.get(sessions[folder])]
    return found or list(folders)


def _session_of_open(folder: str) -> str:
    """The folder of the session whose open chunk a trace is in; empty if it is in none."""
    parts = plain(folder).split("/")
    for at in range(len(parts) - 1, 0, -1):
        if _OPEN.fullmatch(parts[at]):
            return "/".join(parts[:at]) or "/"
    return ""


def _goes_on(session: str) -> bool:
    recording = os.path.dirname(os.path.abspath(session))
    return is_recording(recording) and is_held(os.path.join(recording, LOCK_NAME))


def newest(folders: Iterable[StrPath]) -> list[StrPath]:
    """Those of the newest chunk; none if no trace is of a chunk."""
    numbers = {folder: place_of(folder)[1] for folder in folders}
    last = max(numbers.values(), default=-1)
    return [folder for folder, number in numbers.items() if number == last >= 0]


def any_newer(there: Iterable[StrPath], known: Iterable[StrPath]) -> bool:
    """Is there a newer chunk than those that are known? False if no known trace is of a chunk."""
    last = max((place_of(folder)[1] for folder in known), default=-1)
    return 0 <= last < max((place_of(folder)[1] for folder in there), default=-1)
