# SPDX-License-Identifier: MIT
"""What an input begins with, also of a pipe, which can be read only once: what was looked at is read again afterwards.

A pipe stays open between ``head`` and ``opened``, so that its writer does not notice.
"""

from __future__ import annotations

import io
import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import BinaryIO

    from opline.paths import StrPath

LOOKED_AT = 1 << 16  # bytes, to find out what an input is
_pipes: dict[str, tuple[int, bytes]] = {}  # what was looked into and is not opened yet: descriptor, its first bytes


class _Continued(io.RawIOBase):
    """The bytes that were looked at, then what the pipe has."""

    def __init__(self, descriptor: int, first: bytes) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._first = first

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        found = self._first[: len(buffer)] or os.read(self._descriptor, len(buffer))
        self._first = self._first[len(found) :]
        buffer[: len(found)] = found
        return len(found)

    def fileno(self) -> int:
        return self._descriptor

    def close(self) -> None:
        if not self.closed:
            os.close(self._descriptor)
        super().close()


def head(path: StrPath, enough: Callable[[bytes], bool]) -> bytes:
    """The first bytes of a file, at most LOOKED_AT; of a pipe as many as there must be until they are ``enough``.
    Nothing of a folder. Raises OSError.
    """
    path = os.fspath(path)
    if path in _pipes:
        return _pipes[path][1]
    mode = os.stat(path).st_mode
    if stat.S_ISREG(mode):
        with open(path, "rb") as file:
            return file.read(LOOKED_AT)
    if not stat.S_ISFIFO(mode):
        return b""
    descriptor, first = os.open(path, os.O_RDONLY), b""
    while len(first) < LOOKED_AT and (more := os.read(descriptor, LOOKED_AT - len(first))):
        first += more
        if enough(first):
            break
    _pipes[path] = descriptor, first
    return first


def opened(path: StrPath) -> BinaryIO:
    """The input from its first byte. Raises OSError."""
    path = os.fspath(path)
    if path in _pipes:
        return io.BufferedReader(_Continued(*_pipes.pop(path)))
    return open(path, "rb")
