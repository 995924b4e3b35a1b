# SPDX-License-Identifier: MIT
"""The directory of a recording: made, or taken if it is empty, by one recorder alone."""

from __future__ import annotations

import contextlib
import os
import shutil
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from opline import locks
from opline.capture.directory.recording import TRACE_NAME
from opline.errors import OplineError, UsageError
from opline.folder import Folder
from opline.paths import LOCK_NAME

ROOM_NAME = ".room"
_MOST_NAMES = 1000
_ROOM_BYTES = 1 << 20


@dataclass(slots=True)
class Place:
    """The directory; ``made``: it was not there before. ``lock`` tells analyses that its recorder lives."""

    path: Path
    made: bool
    lock: int = -1

    @classmethod
    def claim(cls, wanted: Path, any_name: bool) -> Place:
        """Make it. The folder of the trace is made in it at once: whoever else wants the directory finds it taken.
        ``any_name``: nobody asked for this very name, so a taken one gets a number (``-2``). Raises OplineError.
        """
        path = wanted.absolute()
        for number in count(2):
            try:
                return cls(path, _claim(path))
            except FileExistsError as error:
                if not any_name or number > _MOST_NAMES:
                    what = "exists and is not empty" if path.is_dir() else "exists and is no directory"
                    raise UsageError(f"{wanted} {what}: choose another directory with -o.") from error
                path = path.with_name(f"{wanted.name}-{number}")
            except OSError as error:
                raise OplineError(f"{wanted} cannot be made: {error.strerror}") from error
        raise AssertionError

    def hold(self) -> None:
        """Hold the lock of the recording until ``let_go()``. Never raises: a file system may have no locks."""
        with contextlib.suppress(OSError), Folder(self.path) as folder:
            self.lock = locks.make(LOCK_NAME, folder.descriptor) or -1

    def let_go(self) -> None:
        """The recording is over. Never raises."""
        if self.lock >= 0:
            with contextlib.suppress(OSError):
                (self.path / LOCK_NAME).unlink(missing_ok=True)
            os.close(self.lock)
            self.lock = -1

    def reserve(self) -> None:
        """Keep room on the disk for the manifest, which says what is missing when the disk is full. Never raises."""
        for size in (_ROOM_BYTES, _ROOM_BYTES // 2):
            self.release()
            with contextlib.suppress(OSError), (self.path / ROOM_NAME).open("xb") as room:
                os.posix_fallocate(room.fileno(), 0, size)
                return

    def release(self) -> None:
        """Give the room back. Never raises."""
        with contextlib.suppress(OSError):
            (self.path / ROOM_NAME).unlink(missing_ok=True)

    def forget(self) -> None:
        """The command never ran: leave nothing of what was made."""
        if self.made:
            shutil.rmtree(self.path, ignore_errors=True)
            return
        with contextlib.suppress(OSError):
            for entry in self.path.iterdir():  # it was empty
                if entry.is_dir() and not entry.is_symlink():
                    shutil.rmtree(entry, ignore_errors=True)
                else:
                    entry.unlink(missing_ok=True)


def _claim(path: Path) -> bool:
    """True if the directory is new. Raises FileExistsError if it is not ours to take."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        path.mkdir(mode=0o770)  # as LTTng makes a trace's
        made = True
    except FileExistsError:
        made = False
        if not path.is_dir() or any(path.iterdir()):
            raise
    (path / TRACE_NAME).mkdir(mode=0o770)
    return made
