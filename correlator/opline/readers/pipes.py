# SPDX-License-Identifier: MIT
"""What an input begins with, also of a pipe, which can be read only once: what was looked at is read again afterwards.

A pipe stays open between ``head`` and ``opened``, so that its writer does not notice. What was put around a text on
its way (carriage.py) is left out.
"""

from __future__ import annotations

import io
import os
import stat
from typing import TYPE_CHECKING

from opline.readers.carriage import LOOKED_AT as _SHOWS
from opline.readers.carriage import Carriage

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import BinaryIO

    from opline.paths import StrPath

LOOKED_AT = 1 << 16  # bytes, to find out what an input is
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
        _, first, whole = _pipes[path]
        return Carriage(first).plain(first), whole
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
    return Carriage(first).plain(first), whole


def _read(descriptor: int, enough: Callable[[bytes, bool], bool]) -> tuple[bytes, bool]:
    """The bytes as they are; ``enough`` is asked of them without what was put around them."""
    first, asked = b"", 0
    while len(first) < MOST:
        more = os.read(descriptor, LOOKED_AT - len(first) % LOOKED_AT)
        if not more:
            return first, True
        first += more
        if len(first) * 4 >= asked * 5:
            asked = len(first)
            if enough(Carriage(first).plain(first), False):
                break
    return first, False


def opened(path: StrPath) -> BinaryIO:
    """The input from its first byte. Raises OSError."""
    path = os.fspath(path)
    if path in _pipes:
        descriptor, first, _ = _pipes.pop(path)
        return Carriage(first).opened(io.BufferedReader(_Continued(descriptor, first)))
    file = open(path, "rb")  # noqa: SIM115 (the caller's)
    return Carriage(file.peek(_SHOWS)).opened(file)


def text_of(path: StrPath) -> str:
    """The whole text of an input. Raises OSError."""
    with opened(path) as file:
        return file.read().decode("utf-8", "replace")
