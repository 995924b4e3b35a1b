# SPDX-License-Identifier: MIT
"""The traced command's output: kept in files, passed through live.

The command writes to the files themselves and the recorder follows them. So nothing is lost when the recorder is
killed, a server that outlives the command keeps its standard output, and a slow terminal does not slow the command.
"""

from __future__ import annotations

import os
import select
from typing import BinaryIO

from opline.folder import TRACERS, Folder

_CHUNK = 64 << 10


class Follower:
    """Copies what is appended to a file to a file descriptor, never blocking for longer than asked."""

    def __init__(self, folder: Folder, name: str, target: int) -> None:
        """Of a new file of this name; as few may read it as the trace."""
        # O_APPEND: a command and its children share the file without overwriting each other.
        sink = folder.create(name, TRACERS, os.O_WRONLY | os.O_APPEND)
        self.sink: BinaryIO = os.fdopen(sink, "ab", buffering=0)
        self._source = os.open(f"/proc/self/fd/{sink}", os.O_RDONLY | os.O_CLOEXEC)
        self._target = target
        self._open = True
        self._pending = b""

    def copy(self, patience_s: float = 0.0) -> bool:
        """Pass on what is new; False if the target takes no more within ``patience_s``."""
        while self._open:
            if not self._pending:
                self._pending = os.read(self._source, _CHUNK)
                if not self._pending:
                    return True
            poll = select.poll()
            poll.register(self._target, select.POLLOUT)
            if not poll.poll(patience_s * 1000):
                return False
            try:
                # A pipe that polls as writable takes PIPE_BUF bytes without blocking (pipe(7)).
                written = os.write(self._target, self._pending[: select.PIPE_BUF])
            except OSError:  # nobody reads any more: the file still gets everything
                self._open = False
                return True
            self._pending = self._pending[written:]
        return True

    def close(self) -> None:
        """Let go of the file."""
        self.sink.close()
        os.close(self._source)
        self._open = False
