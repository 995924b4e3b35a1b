# SPDX-License-Identifier: MIT
"""Files for DuckDB, by their descriptors: of a path it takes `*`, `?` and `[` as a pattern, and `name=value` in a
folder's name as a column (hive partitions). A descriptor's path has neither; the file stays the one that was opened.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from pathlib import Path

_LINK = re.compile(r"/proc/self/fd/(\d+)")


class LiteralFiles:
    """Open files, until ``close()`` or until nobody has it any more."""

    def __init__(self) -> None:
        self._files: dict[int, Path] = {}

    def open(self, file: Path, *, regular: bool = True) -> str:
        """What DuckDB is told instead of the file's path. Raises OSError, if ``regular`` for a FIFO or device too."""
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | (os.O_NONBLOCK if regular else 0))
        if regular and not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise OSError(errno.EINVAL, "Not a regular file")
        self._files[descriptor] = file
        return f"/proc/self/fd/{descriptor}"

    def paths(self) -> list[str]:
        """All that DuckDB was told."""
        return [f"/proc/self/fd/{descriptor}" for descriptor in self._files]

    def said(self, message: object) -> str:
        """What DuckDB says, with the files' own paths."""

        def name(link: re.Match[str]) -> str:
            file = self._files.get(int(link[1]))
            return link[0] if file is None else str(file)

        return _LINK.sub(name, str(message))

    def close(self) -> None:
        """Let go of the files."""
        while self._files:
            os.close(self._files.popitem()[0])

    __del__ = close
