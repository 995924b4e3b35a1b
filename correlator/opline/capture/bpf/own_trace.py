# SPDX-License-Identifier: MIT
"""A CTF trace that a collector writes by itself (tracepoints/ctf_stream.h), below that of the session."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from opline.errors import OplineError
from opline.folder import TRACERS, Folder
from opline.readers import chunks

#: Opens the streams' files in a folder and the files of their index in another one, by descriptors; False: it can't.
Opens: TypeAlias = Callable[[int, int], bool]

_MODE = 0o770  # of folders, as LTTng's are


class OwnTrace:
    """The trace in ``folder``, which is made, and its later parts: one in each chunk of a rotated session."""

    def __init__(
        self,
        folder: Path,
        metadata: str,
        first: Opens,
        later: Opens,
        goes_on: Callable[[], bool],
        retell: Callable[[], None] = lambda: None,
    ) -> None:
        """``later`` lets the streams go on in other files, ``goes_on``: they have not yet. ``retell``: tells again what
        is told once, as each part is to be read without those before. Raises OplineError if the trace can't be made.
        """
        self.folder, self._metadata, self._later, self._goes_on, self._retell = folder, metadata, later, goes_on, retell
        self._part: Path | None = None  # the one in which that has not been told yet
        try:
            folder.parent.mkdir(mode=_MODE, exist_ok=True)  # the session's trace, which LTTng may not have made yet
        except OSError as error:
            raise OplineError(f"{folder}: {error.strerror}") from error
        self._make(folder, first)

    def go_on_in(self, chunk: Path) -> None:
        """Let the streams go on in a part of the trace in this chunk. Raises OplineError: they stay where they are."""
        part = chunk / self.folder.name
        self._make(part, self._later)
        self._part = part

    def retell(self) -> bool:
        """In a new part, once the streams are there: tell what is told once, and note in the part from when on it has
        all. False: the streams are not there yet. Raises OplineError.
        """
        if self._part is None:
            return True
        if self._goes_on():
            return False
        part, self._part = self._part, None
        self._retell()
        try:
            with Folder(part, follow=False) as top:
                top.write(chunks.WHOLE_FROM, f"{time.monotonic_ns()}\n", TRACERS)
        except OSError as error:
            raise OplineError(f"{part}: {error.strerror}") from error
        return True

    def _make(self, folder: Path, opens: Opens) -> None:
        try:
            folder.mkdir(mode=_MODE)
            (folder / "index").mkdir(mode=_MODE)
            with Folder(folder, follow=False) as top, Folder("index", top, follow=False) as index:
                top.write("metadata", self._metadata, TRACERS)
                if not opens(top.descriptor, index.descriptor):
                    raise OplineError(f"{folder}: the streams of the trace cannot be made")
        except OSError as error:
            raise OplineError(f"{folder}: {error.strerror}") from error
