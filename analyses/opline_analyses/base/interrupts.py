# SPDX-License-Identifier: MIT
"""Ctrl-C, SIGTERM and SIGHUP end a command with 128 + n, soon, and through its ``finally``: no temporary file stays.

Each becomes a KeyboardInterrupt. Some code swallows one: Python itself in a callback of its own, an extension that is
being imported, DuckDB, which has an error of its own for it. So it is raised again until the command is on its way out.
"""

from __future__ import annotations

import signal
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_AGAIN_S = 0.1

_taken: int | None = None
_held = False


def install() -> None:
    """From here on, in this process; a signal that is ignored (nohup, a shell's background job) stays ignored."""
    sys.unraisablehook = _unraisable
    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _take)


def taken() -> int | None:
    """The signal that has come first."""
    return _taken


@contextmanager
def held() -> Iterator[None]:
    """A signal is taken, and raised behind this: for what ends the process where an exception meets it."""
    global _held
    _held = True
    try:
        yield
    finally:
        _held = False


def disarm() -> None:
    """The command is out: nothing is raised any more, whatever comes."""
    signal.setitimer(signal.ITIMER_REAL, 0)
    for number in (*ENDING, signal.SIGALRM):
        if signal.getsignal(number) in (_take, _again):
            signal.signal(number, signal.SIG_IGN)


def _take(number: int, _frame: FrameType | None) -> None:
    global _taken
    if _taken is None:
        _taken = number
        signal.signal(signal.SIGALRM, _again)
        signal.setitimer(signal.ITIMER_REAL, _AGAIN_S, _AGAIN_S)
        if not _held:
            raise KeyboardInterrupt


def _unraisable(lost: sys.UnraisableHookArgs) -> None:
    """What a callback swallowed. Of an interrupt there is nothing to say: it is raised again."""
    if _taken is None or lost.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(lost)


def _again(_number: int, _frame: FrameType | None) -> None:
    if (
        not _held and sys.exc_info()[0] is None
    ):  # else it is on its way, in one form or another, and what tidies up shall
        raise KeyboardInterrupt
