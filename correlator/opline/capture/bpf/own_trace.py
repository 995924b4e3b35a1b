# SPDX-License-Identifier: MIT
"""A CTF trace that a collector writes by itself (tracepoints/ctf_stream.h), below that of the session."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from opline.errors import OplineError
from opline.folder import TRACERS, Folder

#: Opens the streams' files in a folder and the files of their index in another one, by descriptors; False: it can't.
Opens: TypeAlias = Callable[[int, int], bool]

_MODE = 0o770  # of folders, as LTTng's are


class OwnTrace:
    """The trace in ``folder``, which is made, and its later parts: one in each chunk of a rotated session."""

    def __init__(self, folder: Path, metadata: str, first: Opens, later: Opens) -> None:
        """``later`` lets the streams go on in other files. Raises OplineError if the trace can't be made."""
        self.folder, self._metadata, self._later = folder, metadata, later
        try:
            folder.parent.mkdir(mode=_MODE, exist_ok=True)  # the session's trace, which LTTng may not have made yet
        except OSError as error:
            raise OplineError(f"{folder}: {error.strerror}") from error
        self._make(folder, first)

    def go_on_in(self, chunk: Path) -> None:
        """Let the streams go on in a part of the trace in this chunk. Raises OplineError: they stay where they are."""
        self._make(chunk / self.folder.name, self._later)

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
