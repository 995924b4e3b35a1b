# SPDX-License-Identifier: MIT
"""A CTF trace that a collector writes by itself (tracepoints/ctf_stream.h), below that of the session."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from opline.errors import OplineError
from opline.folder import TRACERS, Folder

_MODE = 0o770  # of folders, as LTTng's are


@contextlib.contextmanager
def own_trace(folder: Path, metadata: str) -> Iterator[tuple[int, int]]:
    """Descriptors of the folder, which is made, and of its folder ``index``, for streams to be opened there. Raises
    OplineError.
    """
    try:
        folder.parent.mkdir(mode=_MODE, exist_ok=True)  # the session's trace, which LTTng may not have made yet
        folder.mkdir(mode=_MODE)
        (folder / "index").mkdir(mode=_MODE)
        with Folder(folder, follow=False) as top, Folder("index", top, follow=False) as index:
            top.write("metadata", metadata, TRACERS)
            yield top.descriptor, index.descriptor
    except OSError as error:
        raise OplineError(f"{folder}: {error.strerror}") from error
