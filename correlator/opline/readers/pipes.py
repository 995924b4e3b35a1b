# SPDX-License-Identifier: MIT
"""What an input begins with, also of a pipe, which can be read only once: what was looked at is read again afterwards.

A pipe stays open between ``head`` and ``opened``, so that its writer does not notice. The mark of UTF-8 that some
editors put before a text (EF BB BF) is left out.
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
_MARK = b"\xef\xbb\xbf"
MOST = 1 << 20  # bytes, where the first ones do not show it
# What was looked into and is not opened yet: descriptor, its first bytes, whether these are all.
_pipes: dict[str, tuple[int, bytes, bool]] = {}


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


def head(path: StrPath, enough: Callable[[bytes, bool], bool]) -> tuple[bytes, bool]:
    """What an input begins with, and whether that is all of it: as many bytes as there must be until they are
    ``enough``, at most MOST. A file is read in pieces of LOOKED_AT. ``enough`` is asked of what a pipe has when that is
    a quarter more than before. Nothing of a folder. Raises OSError.
    """
    path = os.fspath(path)
    if path in _pipes:
        return _pipes[path][1:]
    mode = os.stat(path).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
        return b"", False
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    kept = stat.S_ISFIFO(mode)
    try:
        first, whole = _read(descriptor, enough)
        if kept:
            _pipes[path] = descriptor, first, whole
    except BaseException:
        kept = False
        raise
    finally:
        if not kept:
            os.close(descriptor)
    return first, whole


def _read(descriptor: int, enough: Callable[[bytes, bool], bool]) -> tuple[bytes, bool]:
    first, asked = b"", 0
    while len(first) < MOST:
        more = os.read(descriptor, LOOKED_AT - len(first) % LOOKED_AT)
        if not more:
            return first.removeprefix(_MARK), True
        first += more
        if len(first) * 4 >= asked * 5:
            asked = len(first)
            if enough(first.removeprefix(_MARK), False):
                break
    return first.removeprefix(_MARK), False


def opened(path: StrPath) -> BinaryIO:
    """The input from its first byte. Raises OSError."""
    path = os.fspath(path)
    if path in _pipes:
        return io.BufferedReader(_Continued(*_pipes.pop(path)[:2]))
    file = open(path, "rb")  # noqa: SIM115 (the caller's)
    if file.peek(len(_MARK)).startswith(_MARK):
        file.read(len(_MARK))
    return file
