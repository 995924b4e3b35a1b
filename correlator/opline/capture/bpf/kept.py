# SPDX-License-Identifier: MIT
"""What takes long to compute and is the same for the next recording, in ``/var/cache/opline``, which is root's alone.

Without such a folder nothing is kept. A file is believed only if the folder and the file are ours and nobody else can
write them. The oldest files go when there are too many.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from opline.capture.directory.runtime import is_ours, read_own
from opline.folder import OURS, PART, Folder

_MODE = 0o700
_MOST = 32  # files
_MOST_BYTES = 16 << 20  # of one


def folder() -> Path:
    """``$OPLINE_CACHE_DIR``, else ``/var/cache/opline``."""
    return Path(os.environ.get("OPLINE_CACHE_DIR") or "/var/cache/opline")


def read(name: str) -> bytes | None:
    """What was kept under a name; None if nothing is, or nothing that can be believed."""
    with suppress(OSError), Folder(folder(), follow=False) as own:
        if is_ours(own.descriptor):
            return read_own(own, name, _MOST_BYTES)
    return None


def write(name: str, text: str) -> None:
    """Keeps a text under a name, if that is possible."""
    with suppress(OSError):
        with suppress(FileExistsError):
            folder().mkdir(mode=_MODE)
        with Folder(folder(), follow=False) as own:
            if is_ours(own.descriptor):
                own.write(name, text, OURS)
                _drop_oldest(own)


def _drop_oldest(own: Folder) -> None:
    ages = {name: os.stat(name, dir_fd=own.descriptor, follow_symlinks=False).st_mtime_ns for name in own.names()}
    for name in sorted(ages, key=ages.__getitem__)[:-_MOST]:
        if not name.endswith(PART):  # another recorder writes it
            own.remove(name)
