# SPDX-License-Identifier: MIT
"""SIGPIPE for processes that write to a file in place of a pipe whose reader has gone.

A write to a pipe without readers ends the writer (pipe(7)); a write to a file never does. Which process wrote is not in
the file, so opline compares what each process with the file as its output has written in all: ``wchar`` of
/proc/PID/io (proc(5)).
"""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

_OUTPUTS = (1, 2)


class Writers:
    """The processes whose standard output or standard error is the open file ``descriptor``."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        about = os.fstat(descriptor)
        self._file, self._size = (about.st_dev, about.st_ino), about.st_size
        self._written = {pid: _written(pid) for pid in self._pids()}

    def end(self) -> bool:
        """Send SIGPIPE to the processes that have written since the last call. False if the file has not grown."""
        size, before = os.fstat(self._descriptor).st_size, self._size
        written = {pid: _written(pid) for pid in self._pids()}
        if size > before:
            for pid, count in written.items():
                if count is None or count != self._written.get(pid, 0):
                    self._send(pid)
        self._size, self._written = size, written
        return size > before

    def _pids(self) -> list[int]:
        return [pid for path in Path("/proc").glob("[0-9]*") if self._has(pid := int(path.name))]

    def _has(self, pid: int) -> bool:
        for number in _OUTPUTS:
            with contextlib.suppress(OSError):
                about = Path(f"/proc/{pid}/fd/{number}").stat()
                if (about.st_dev, about.st_ino) == self._file:
                    return True
        return False

    def _send(self, pid: int) -> None:
        with contextlib.suppress(OSError):  # it has ended, or is another user's
            process = os.pidfd_open(pid)
            try:
                if self._has(pid):  # the PID is still this process's
                    signal.pidfd_send_signal(process, signal.SIGPIPE)
            finally:
                os.close(process)


def _written(pid: int) -> int | None:
    """The bytes that the process has passed to write(2) and its like; None if the kernel does not say."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/io").read_text().splitlines():
            if line.startswith("wchar:"):
                return int(line.split()[1])
    return None
