# SPDX-License-Identifier: MIT
"""Ctrl-C, SIGTERM and SIGHUP end a command with 128 + n, soon, and through its ``finally``: no temporary file stays.

Each becomes a KeyboardInterrupt. Some code swallows one: Python itself in a callback of its own, an extension that is
being imported, DuckDB, which has an error of its own for it. So it is raised again until the command is on its way out.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_AGAIN_S = 0.1
WITHIN_S = 0.4

_taken: int | None = None
_held = False
_installed = False
_out = threading.Event()  # the command is out
_stops: list[Callable[[], object]] = []


def install() -> None:
    """From here on, in this process; a signal that is ignored (nohup, a shell's background job) stays ignored."""
    global _installed
    _installed = True
    sys.unraisablehook = _unraisable
    ours, theirs = os.pipe()
    os.set_blocking(theirs, False)
    # The thread takes no signal at all. The recorder waits for some with sigtimedwait(2) in the main thread, and the
    # kernel would give them to a thread that does not block them: SIGUSR1 of a session daemon would end the process.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    threading.Thread(target=_watch, args=(ours,), daemon=True).start()
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    signal.set_wakeup_fd(theirs, warn_on_full_buffer=False)
    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _take)


def taken() -> int | None:
    """The signal that has come first."""
    return _taken


def installed() -> bool:
    """Whether this process is the program's: a signal ends it."""
    return _installed


@contextmanager
def stopping(stop: Callable[[], object]) -> Iterator[None]:
    """``stop`` is called in another thread, again and again, when a signal has come: for a library that does not let
    Python hear of it.
    """
    _stops.append(stop)
    try:
        yield
    finally:
        _stops.remove(stop)


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
    _out.set()
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


def _watch(signals: int) -> None:
    """``signals``: the end of a pipe into which Python writes each signal's number."""
    while number := os.read(signals, 1)[0]:
        if number in ENDING and signal.getsignal(number) is _take:
            _end(number)


def _end(number: int) -> None:
    end = time.monotonic() + WITHIN_S
    while time.monotonic() < end:
        for stop in [*_stops]:
            with suppress(Exception):  # a connection that is closed by now
                stop()
        if _out.wait(_AGAIN_S / 2):
            return
    if (scratch := sys.modules.get("opline.scratch")) is not None:  # else there is nothing unfinished
        scratch.remove_unfinished()
    if not _out.is_set():
        os._exit(128 + number)


def _unraisable(lost: sys.UnraisableHookArgs) -> None:
    """What a callback swallowed. Of an interrupt there is nothing to say: it is raised again."""
    if _taken is None or lost.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(lost)


def _again(_number: int, _frame: FrameType | None) -> None:
    if (
        not _held and sys.exc_info()[0] is None
    ):  # else it is on its way, in one form or another, and what tidies up shall
        raise KeyboardInterrupt
