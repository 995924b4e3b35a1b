# SPDX-License-Identifier: MIT
"""Children that do not outlive their recorder, and process identity that survives the reuse of PIDs.

A process is named by (pid, start time in clock ticks since boot): field 22 of ``/proc/PID/stat``, see proc(5).
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

_LIBC = ctypes.CDLL(None, use_errno=True)
_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_TERMINAL = (signal.SIGINT, signal.SIGHUP)  # what a terminal sends to its foreground group


@dataclass(frozen=True, slots=True)
class Process:
    """One process of this boot."""

    pid: int
    start_ticks: int

    def alive(self) -> bool:
        """Is this very process still there? A zombie counts as gone."""
        return start_ticks(self.pid) == self.start_ticks


def start_ticks(pid: int) -> int | None:
    """Start time of a process in clock ticks since boot, or None if it is gone or a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    fields = stat[stat.rindex(b")") + 2 :].split()  # comm may contain blanks and brackets
    return None if fields[0] in (b"Z", b"X") else int(fields[19])


def identify(pid: int) -> Process | None:
    """The process that has this PID now, or None."""
    ticks = start_ticks(pid)
    return None if ticks is None else Process(pid, ticks)


def named(comm: str) -> list[int]:
    """PIDs of the processes with this name (the first 15 characters count)."""
    found = []
    for path in Path("/proc").glob("[0-9]*/comm"):
        try:
            if path.read_text().rstrip("\n") == comm[:15]:
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def in_child(
    death_signal: int | None,
    mask: Iterable[int],
    new_session: bool = False,
    last: Callable[[], None] | None = None,
) -> Callable[[], None]:
    """What a child does between fork and exec: ask for a signal when its parent dies, ``last``, restore the mask.

    ``death_signal`` is sent by the kernel when the recorder dies, however it dies (prctl(2), PR_SET_PDEATHSIG).
    """
    parent = os.getpid()
    signals = set(mask)

    def prepare() -> None:
        for number in _TERMINAL:
            if callable(signal.getsignal(number)):  # Python's handler must not run here; what is ignored stays ignored
                signal.signal(number, signal.SIG_DFL)
        if new_session:
            os.setsid()  # out of the terminal's foreground group: Ctrl-C is the recorder's business
            while signal.sigtimedwait(_TERMINAL, 0) is not None:
                pass  # one that came between fork and setsid
        if death_signal is not None:
            _LIBC.prctl(_PR_SET_PDEATHSIG, int(death_signal), 0, 0, 0)
            if os.getppid() != parent:  # it died before prctl
                os._exit(1)
        if last is not None:
            last()
        signal.pthread_sigmask(signal.SIG_SETMASK, signals)

    return prepare


def start(
    argv: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    stdin: int | IO[Any] | None = None,
    stdout: int | IO[Any] | None = None,
    stderr: int | IO[Any] | None = None,
    death_signal: int | None = signal.SIGTERM,
    mask: Iterable[int] = (),
    new_session: bool = False,
    cwd: str | None = None,
    pass_fds: Sequence[int] = (),
    last: Callable[[], None] | None = None,
) -> subprocess.Popen[bytes]:
    """Start a child that gets ``death_signal`` when this process dies. ``last`` is what it does before it becomes the
    program. Raises OSError as ``subprocess.Popen``.
    """
    return subprocess.Popen(
        list(argv),
        env=None if env is None else dict(env),
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        cwd=cwd,
        pass_fds=pass_fds,
        preexec_fn=in_child(death_signal, mask, new_session, last),
    )


def end(process: Process, patience_s: float = 5.0) -> bool:
    """Terminate a process, with SIGKILL after ``patience_s``. True if it is gone."""
    for sig, wait_s in ((signal.SIGTERM, patience_s), (signal.SIGKILL, 2.0)):
        if not process.alive():
            return True
        try:
            os.kill(process.pid, sig)
        except ProcessLookupError:
            return True
        except PermissionError:
            return False
        until = time.monotonic() + wait_s
        while process.alive() and time.monotonic() < until:
            time.sleep(0.01)
    return not process.alive()


def end_child(child: subprocess.Popen[bytes], patience_s: float = 5.0) -> int:
    """Terminate a child of ours and reap it; its return code as ``Popen.returncode``."""
    if child.poll() is None:
        child.terminate()
        try:
            return child.wait(patience_s)
        except subprocess.TimeoutExpired:
            child.kill()
    return child.wait()
