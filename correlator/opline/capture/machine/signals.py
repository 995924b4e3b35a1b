# SPDX-License-Identifier: MIT
"""Signals of a recording, taken one at a time, and what of them is passed on to the traced command.

They are blocked and fetched with sigtimedwait(2): a Ctrl-C can never hit between two steps of the set-up, and who
sent it is known. A terminal's Ctrl-C reaches the command by itself; a SIGINT sent to the recorder alone is passed on.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import time
from collections.abc import Iterator

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_BLOCKED = (*ENDING, signal.SIGCHLD, signal.SIGUSR1)  # SIGUSR1: the session daemon is ready
_SI_USER = 0  # si_code of kill(2); a terminal's Ctrl-C has SI_KERNEL
_GRACE_S = 1.0  # for a command that got the SIGINT too, being in the same process group
_PATIENCE_S = 10.0  # until a command that ignores SIGTERM is killed


class Signals:
    """The signals of one recording, between ``with signals.blocked():`` and its end."""

    def __init__(self) -> None:
        self.mask: frozenset[int] = frozenset()  # for children: the caller's
        self.ending: int | None = None  # the signal that ends the recording
        self._count = 0
        self._due: list[tuple[float, int]] = []

    @contextlib.contextmanager
    def blocked(self) -> Iterator[None]:
        """Block, and at the end restore what was, without anything pending."""
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _BLOCKED)
        self.mask = frozenset(int(s) for s in before)
        ignored = signal.getsignal(signal.SIGCHLD)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if it is ignored, the kernel drops exit statuses
        try:
            yield
        finally:
            signal.signal(signal.SIGCHLD, ignored)
            while signal.sigtimedwait(_BLOCKED, 0) is not None:
                pass
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def wait(self, patience_s: float, command: subprocess.Popen[bytes] | None = None) -> None:
        """Sleep until a signal comes (a child's end is one) or ``patience_s`` is over; pass on what is due."""
        info = signal.sigtimedwait(_BLOCKED, patience_s)
        if info is not None and info.si_signo in ENDING:
            self._note(info)
        now = time.monotonic()
        due = [number for at, number in self._due if at <= now]
        self._due = [entry for entry in self._due if entry[0] > now]
        for number in due:
            if command is not None and command.poll() is None:
                command.send_signal(number)

    def _note(self, info: signal.struct_siginfo) -> None:
        now = time.monotonic()
        self._count += 1
        if self.ending is None:
            self.ending = info.si_signo
        if self._count > 1:
            self._due += [(now, signal.SIGTERM), (now + _PATIENCE_S, signal.SIGKILL)]
        elif info.si_signo != signal.SIGINT:
            self._due += [(now, info.si_signo), (now + _PATIENCE_S, signal.SIGKILL)]
        elif info.si_code == _SI_USER:
            self._due.append((now + _GRACE_S, signal.SIGINT))

    def pending(self) -> int | None:
        """The signal that has come, wants an end, and was not taken yet."""
        return next((int(number) for number in ENDING if number in signal.sigpending()), None)
