# SPDX-License-Identifier: MIT
"""Removes a chunk of a trace: the files that a tracer made, and no others."""

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress
from pathlib import Path

from opline.folder import Folder
from opline.readers import chunks

_MADE = re.compile(rf"metadata|\w[\w.-]*_\d+(\.idx)?|{re.escape(chunks.WHOLE_FROM)}")  # files of a chunk


def remove_chunk(folder: Path) -> bool:
    """Remove the files of a chunk, and the folders that are empty then. False: files that no tracer made are left.
    Raises OSError.
    """
    for place, folders, files in os.walk(folder, topdown=False, followlinks=False):
        with Folder(place, follow=False) as top:
            for name in files:
                about = os.stat(name, dir_fd=top.descriptor, follow_symlinks=False)
                if _MADE.fullmatch(name) and stat.S_ISREG(about.st_mode):
                    top.remove(name)
            for name in folders:
                with suppress(OSError):  # not empty, or a link
                    os.rmdir(name, dir_fd=top.descriptor)
    with suppress(OSError):
        folder.rmdir()
    return not folder.exists()
