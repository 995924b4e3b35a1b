# SPDX-License-Identifier: MIT
"""Children that do not outlive their recorder, and process identity that survives the reuse of PIDs.

A process is named by (pid, start time in clock ticks since boot): field 22 of ``/proc/PID/stat``, see proc(5). Before
it gets a signal it must run one of the programs that it was started with, too, and it is held by a pidfd
(pidfd_open(2)).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import IO, Any

from opline.scratch import start_ticks, stat_fields
from opline.values import Value

_LIBC = ctypes.CDLL(None, use_errno=True)
_ENDING_S = 0.5
_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_INITIAL_PID_NAMESPACE = 0xEFFFFFFC  # PROC_PID_INIT_INO, include/linux/proc_ns.h
_PF_EXITING = 0x4  # linux/sched.h; of the flags, field 9 of stat
_TERMINAL = (signal.SIGINT, signal.SIGHUP)  # what a terminal sends to its foreground group


class Process(Value):
    """One process of this boot. ``executables``: device and inode of what it may run; empty: not known."""

    pid: int
    start_ticks: int
    executables: frozenset[tuple[int, int]] = frozenset()

    def alive(self) -> bool:
        """Is this very process still there? A zombie counts as gone."""
        return start_ticks(self.pid) == self.start_ticks

    def is_the_one(self) -> bool:
        """Does it run what it was started as?"""
        return self.alive() and bool(self.executables & _executables([f"/proc/{self.pid}/exe"]))


def _executables(paths: Iterable[str]) -> frozenset[tuple[int, int]]:
    """Device and inode of files, of those that are there: they mean the same in every mount namespace and chroot."""
    found = set()
    for path in paths:
        with contextlib.suppress(OSError):
            about = Path(path).stat()
            found.add((about.st_dev, about.st_ino))
    return frozenset(found)


def exiting(pid: int) -> bool:
    """Has the process ended, or begun to? It is there for a while yet, but its descriptors may be closed already."""
    fields = stat_fields(pid)
    return fields is None or bool(int(fields[6]) & _PF_EXITING)


def parent(pid: int) -> int | None:
    """The PID of a process' parent, or None if it is gone."""
    fields = stat_fields(pid)
    return None if fields is None else int(fields[1])


class Watch:
    """Some processes, held until they are gone: ``close()`` lets go of them."""

    def __init__(self, names: Mapping[int, str]) -> None:
        """``names``: what each PID is called."""
        self._held = [(name, _pidfd(pid), identify(pid)) for pid, name in names.items()]

    def gone(self) -> list[str]:
        """The names of those that are gone."""
        return [name for name, handle, process in self._held if _ended(handle, process)]

    def exiting(self) -> bool:
        """Has any of them ended, or begun to?"""
        return any(process is None or exiting(process.pid) for _, _, process in self._held)

    def wait(self, name: str, patience_s: float) -> None:
        """Until all of this name are gone, or time is up."""
        until = time.monotonic() + patience_s
        while time.monotonic() < until:
            if all(_ended(handle, process) for known, handle, process in self._held if known == name):
                return
            time.sleep(0.01)

    def kill(self, name: str) -> None:
        """SIGKILL to all of this name that are there."""
        for known, handle, process in self._held:
            if known == name and not _ended(handle, process):
                with contextlib.suppress(OSError):
                    if handle is not None:
                        signal.pidfd_send_signal(handle, signal.SIGKILL)
                    elif process is not None:
                        os.kill(process.pid, signal.SIGKILL)

    def close(self) -> None:
        """Let go of them."""
        for _, handle, _ in self._held:
            if handle is not None:
                os.close(handle)
        self._held = []


def _ended(handle: int | None, process: Process | None) -> bool:
    """A pidfd can be read when its process has ended, reaped or not (pidfd_open(2))."""
    if handle is None:
        return process is None or not process.alive()
    return bool(select.select([handle], [], [], 0)[0])


def namespace(pid: int | str = "self") -> tuple[int, int] | None:
    """The PID namespace that a process is in (device and inode of its file in /proc); None if it can't be seen."""
    try:
        about = Path(f"/proc/{pid}/ns/pid").stat()
    except OSError:
        return None
    return about.st_dev, about.st_ino


def seen_here(pid: int, within: tuple[int, int]) -> int | None:
    """The number that a process of another PID namespace has in this one; None if it is gone, or not seen from here."""
    for path in Path("/proc").glob("[0-9]*"):
        if namespace(path.name) != within:
            continue
        with contextlib.suppress(OSError, ValueError):
            for line in (path / "status").read_text().splitlines():
                if line.startswith("NSpid:") and int(line.split()[-1]) == pid:
                    return int(path.name)
    return None


def sees_all() -> bool:
    """Is this the machine's first PID namespace, from which every process is seen?"""
    here = namespace()
    return here is not None and here[1] == _INITIAL_PID_NAMESPACE


def identify(pid: int, programs: Iterable[str] = ()) -> Process | None:
    """The process that has this PID now, or None; ``programs``: what it is going to run besides what it runs now.

    None as well where /proc is another PID namespace's: the process of that number there is a stranger.
    """
    ticks = start_ticks(pid)
    if ticks is None or namespace(pid) not in (None, namespace()):
        return None
    found = [path for path in map(shutil.which, programs) if path is not None]
    return Process(pid, ticks, _executables([f"/proc/{pid}/exe", *found]))


def boot_id() -> str:
    """The boot's id: PIDs and start times mean something within one boot only."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return "unknown"


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


def cgroup_of(text: str) -> str | None:
    """The path of the cgroup, of /proc/PID/cgroup (cgroups(7)): in cgroup2 or, in the root there, in the memory
    controller's hierarchy of version 1, as recordings have it (tracepoints/cgroups.bpf.c).
    """
    parts = [line.split(":", 2) for line in text.splitlines() if line.count(":") >= 2]
    paths = {controllers: path for _, controllers, path in parts}
    memory = next((path for controllers, path in paths.items() if "memory" in controllers.split(",")), None)
    found = paths.get("")
    return found if found not in (None, "/") else memory or found


def in_cgroup(glob: str) -> list[int]:
    """PIDs of the processes in cgroups that the GLOB means: by the path or the last name of the cgroup, or of one that
    it is in.
    """
    globs = [glob, f"*/{glob}", f"{glob}/*", f"*/{glob}/*"]
    found = []
    for path in Path("/proc").glob("[0-9]*/cgroup"):
        try:
            cgroup = cgroup_of(os.fsdecode(path.read_bytes()))
        except OSError:
            continue
        if cgroup and any(fnmatchcase(cgroup, one) for one in globs):
            found.append(int(path.parent.name))
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
        for number in (*_TERMINAL, signal.SIGTERM):
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


def from_caller() -> list[int]:
    """Descriptors that this process got from the one that started it, besides the standard ones. Python's own are
    closed at an exec, so they are none of these.
    """
    found = []
    for number in sorted(int(path.name) for path in Path("/proc/self/fd").iterdir()):
        with contextlib.suppress(OSError):  # the one of the folder itself
            if number > 2 and os.get_inheritable(number):
                found.append(number)
    return found


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
    """Terminate a process, with SIGKILL after ``patience_s``. True if it is gone; one that runs something else than it
    was started with gets no signal.
    """
    handle = _pidfd(process.pid)
    try:
        for sig, wait_s in ((signal.SIGTERM, patience_s), (signal.SIGKILL, 2.0)):
            if not process.alive():
                return True
            if not process.is_the_one():
                time.sleep(_ENDING_S)  # one that is ending has no executable any more
                return not process.alive()
            try:
                if handle is None:
                    os.kill(process.pid, sig)
                else:
                    signal.pidfd_send_signal(handle, sig)
            except ProcessLookupError:
                return True
            except PermissionError:
                return False
            until = time.monotonic() + wait_s
            while process.alive() and time.monotonic() < until:
                time.sleep(0.01)
        return not process.alive()
    finally:
        if handle is not None:
            os.close(handle)


def _pidfd(pid: int) -> int | None:
    """Holds a process, so that a signal can't go to another one that gets its PID; None if that can't be (before Linux
    5.3, or forbidden).
    """
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


def _session(leader: int) -> list[int]:
    """PIDs of the processes of a session (setsid(2)) that have not ended. The leader may have."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        fields = stat_fields(int(path.name))
        if fields is not None and fields[0] not in (b"Z", b"X") and int(fields[3]) == leader:
            found.append(int(path.name))
    return found


def kill_session(leader: Process, patience_s: float = 2.0) -> bool:
    """SIGKILL to what is left of the session of a process of ours that has ended. True when it is gone.

    A daemon's helpers are to end with it, and it has no way to see to that if it is killed. The kernel gives the number
    of a session to no other process while the session has one.
    """
    until = time.monotonic() + patience_s
    while left := [one for one in map(identify, _session(leader.pid)) if one is not None and _helps(one, leader)]:
        if time.monotonic() > until:
            return False
        for one in left:
            with contextlib.suppress(OSError):
                os.kill(one.pid, signal.SIGKILL)
        time.sleep(0.01)
    return True


def _helps(process: Process, leader: Process) -> bool:
    """Was it started by the leader of its session, as far as that can be known?"""
    return process.start_ticks >= leader.start_ticks and bool(process.executables & leader.executables)


def shell_status(code: int) -> int:
    """A child's return code as a shell tells it: 128 + n of the signal that ended it."""
    return code if code >= 0 else 128 - code


def end_child(child: subprocess.Popen[bytes], patience_s: float = 5.0) -> int:
    """Terminate a child of ours and reap it; its return code as ``Popen.returncode``."""
    if child.poll() is None:
        child.terminate()
        try:
            return child.wait(patience_s)
        except subprocess.TimeoutExpired:
            child.kill()
    return child.wait()
