# SPDX-License-Identifier: MIT
"""The traced command's output: kept in files, passed through live.

The command writes to the files themselves and the recorder follows them. So nothing is lost when the recorder is
killed, a server that outlives the command keeps its standard output, and a slow terminal does not slow the command.
A reader that goes (``| head``) ends the command as it would without the recorder: see ``machine.writers``.
"""

from __future__ import annotations

import os
import select
import time
from typing import BinaryIO

from opline.capture.machine.writers import Writers
from opline.folder import TRACERS, Folder

_CHUNK = 64 << 10
_TURN_S = 0.1  # so long at most the recorder copies before it looks at everything else
_STUBBORN = 10  # looks at which a file that nothing reads had grown: then SIGPIPE does not end its writers


class Follower:
    """Copies what is appended to a file to a file descriptor, never blocking for longer than asked."""

    def __init__(self, folder: Folder, name: str, target: int) -> None:
        """Of a new file of this name; as few may read it as the trace."""
        self.name = name
        self.more = False  # the last copy ended because its time was over
        self.failed: OSError | None = None  # the target takes nothing any more: the file still gets everything
        # O_APPEND: a command and its children share the file without overwriting each other.
        sink = folder.create(name, TRACERS, os.O_WRONLY | os.O_APPEND)
        self.sink: BinaryIO = os.fdopen(sink, "ab", buffering=0)
        self._source = os.open(f"/proc/self/fd/{sink}", os.O_RDONLY | os.O_CLOEXEC)
        self._target = target
        self._pending = b""
        self._writers: Writers | None = None
        self._went_on = 0

    def copy(self, patience_s: float = 0.0) -> bool:
        """Pass on what is new; False if there is more, as time is over or the target takes no more within
        ``patience_s``.
        """
        until = time.monotonic() + _TURN_S
        self.more = False
        while self.failed is None:
            if not self._pending:
                self._pending = os.read(self._source, _CHUNK)
                if not self._pending:
                    return True
            if time.monotonic() > until:
                self.more = True
                return False
            poll = select.poll()
            poll.register(self._target, select.POLLOUT)
            if not poll.poll(patience_s * 1000):
                return False
            try:
                # A pipe that polls as writable takes PIPE_BUF bytes without blocking (pipe(7)).
                written = os.write(self._target, self._pending[: select.PIPE_BUF])
            except OSError as error:
                self.failed = error
                return True
            self._pending = self._pending[written:]
        return True

    def end_writers(self) -> bool:
        """Where the reader has gone: end those who go on writing. True once, if SIGPIPE does not end them."""
        if not isinstance(self.failed, BrokenPipeError):
            return False
        if self._writers is None:
            self._writers = Writers(self._source)
        elif self._writers.end():
            self._went_on += 1
            return self._went_on == _STUBBORN
        return False

    def close(self) -> None:
        """Let go of the file."""
        self.sink.close()
        os.close(self._source)


class Output:
    """Standard output and standard error of the traced command, followed while it runs."""

    def __init__(self, folder: Folder, names: tuple[str, str], targets: tuple[int, int]) -> None:
        self.out, self.err = (Follower(folder, name, target) for name, target in zip(names, targets, strict=True))

    def copy(self, patience_s: float = 0.0) -> bool:
        """Pass on what is new of both; False if there is more."""
        out, err = (one.copy(patience_s) for one in (self.out, self.err))
        return out and err

    @property
    def more(self) -> bool:
        """Is there more that a target would take at once?"""
        return self.out.more or self.err.more

    def end_writers(self) -> list[str]:
        """End those who write what nothing reads. The files of those who went on; each file once."""
        return [one.name for one in (self.out, self.err) if one.end_writers()]

    def unwritten(self) -> list[tuple[str, str]]:
        """The file, and why what it has could not be passed on; not of a reader that has gone."""
        both = (self.out, self.err)
        return [
            (one.name, os.strerror(one.failed.errno or 0))
            for one in both
            if one.failed is not None and not isinstance(one.failed, BrokenPipeError)
        ]

    def close(self) -> None:
        """Let go of the files."""
        self.out.close()
        self.err.close()
