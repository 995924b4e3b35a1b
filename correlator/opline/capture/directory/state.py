# SPDX-License-Identifier: MIT
"""What a recording would leave behind if its recorder were killed, written down while it runs.

Each recording has a folder ``RUNTIME/PID-START-TOKEN``. The recorder holds the lock of the file ``lock`` in it for as
long as it lives (opline.locks): who is alive is told by that lock alone, in whatever PID namespace the recorder runs.
``state.json`` has the processes that it started, their PID namespace, and its session. It is made last and removed
first: in a folder without it nothing runs, whether its recorder is about to begin, is over, or was killed in between.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from opline import locks
from opline.capture.directory.runtime import folder_mode, is_ours, open_runtime, read_own, runtime_dir
from opline.capture.machine.processes import Process, boot_id, identify, namespace
from opline.errors import OplineError
from opline.folder import OURS, Folder

_STATE = "state.json"
_LOCK = "lock"
_NAME = re.compile(r"(\d{1,10})-(\d{1,20})-[0-9a-f]{8}", re.ASCII)
_TRIES = 100
_AGAIN_S = 0.01


@dataclass(slots=True)
class State:
    """One recording's state file, kept up to date while it runs. ``namespace``: the PID namespace of the PIDs."""

    folder: Path
    recorder: Process
    boot: str
    output: str = ""
    session: str = ""
    shared_sessiond: bool = False
    processes: dict[str, Process] = field(default_factory=dict)
    namespace: tuple[int, int] | None = None
    lock: int = -1  # its descriptor, while it is held

    @classmethod
    def create(cls, output: Path) -> State:
        """Make the folder of this process's recording, and hold its lock. Raises OplineError."""
        pid = os.getpid()
        me = identify(pid) or Process(pid, 0)
        folder = runtime_dir()
        try:
            runtime = open_runtime(make=True)
            if runtime is None:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
            with runtime:
                name, lock = _make(runtime, f"{me.pid}-{me.start_ticks}")
        except OSError as error:
            raise OplineError(f"cannot make {folder}: {error.strerror}; set OPLINE_RUNTIME_DIR") from error
        state = cls(folder / name, me, boot_id(), str(output), namespace=namespace(), lock=lock)
        state.write()
        return state

    @property
    def name(self) -> str:
        """Of the recording on this machine: no other one has the same, from whatever PID namespace."""
        return self.folder.name

    @property
    def session_name(self) -> str:
        """What its LTTng session is called."""
        return f"opline-{self.folder.name}"

    def add(self, role: str, pid: int, programs: Sequence[str] = ()) -> Process | None:
        """Write down a process that must not outlive the recording, and give it; None if it has ended. ``programs``:
        what else it and its helpers are going to run.
        """
        process = identify(pid, programs)
        if process is not None:
            self.processes[role] = process
            self.write()
        return process

    def write(self) -> None:
        """Replace the state file."""
        document = {
            "recorder": [self.recorder.pid, self.recorder.start_ticks],
            "boot": self.boot,
            "namespace": None if self.namespace is None else list(self.namespace),
            "output": self.output,
            "session": self.session,
            "shared_sessiond": self.shared_sessiond,
            "processes": {role: [p.pid, p.start_ticks, sorted(p.executables)] for role, p in self.processes.items()},
        }
        with Folder(self.folder, follow=False) as folder:
            folder.write(_STATE, json.dumps(document), OURS)

    def remove(self) -> None:
        """The recording is over and cleaned up. Never raises."""
        with contextlib.suppress(OplineError), open_runtime() or contextlib.nullcontext() as runtime:
            if runtime is not None:
                with contextlib.suppress(OSError), Folder(self.folder.name, runtime, follow=False) as folder:
                    folder.remove(_STATE)
                shutil.rmtree(self.folder.name, ignore_errors=True, dir_fd=runtime.descriptor)
        self.release()

    def release(self) -> None:
        """Let go of the lock. Never raises."""
        if self.lock >= 0:
            os.close(self.lock)
            self.lock = -1


def _make(runtime: Folder, prefix: str) -> tuple[str, int]:
    """A new folder of this user and the descriptor of its lock. Until the lock is held another recorder may take the
    folder for a dead one's, and remove it: then the next one is made. Raises OSError.
    """
    for _ in range(_TRIES):
        name = f"{prefix}-{secrets.token_hex(4)}"
        os.mkdir(name, 0o700, dir_fd=runtime.descriptor)
        with contextlib.suppress(FileNotFoundError), Folder(name, runtime, follow=False) as made:
            os.fchmod(made.descriptor, folder_mode())  # whatever the umask is
            lock = locks.make(_LOCK, made.descriptor)
            if lock is None:
                continue
            return name, lock
        time.sleep(_AGAIN_S)
    raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))


def _process(found: Any) -> Process:
    """A process as a state file names it; nothing else gets a signal. Raises TypeError, ValueError."""
    pid, start_ticks, *more = found
    executables = frozenset((_number(dev), _number(inode)) for dev, inode in (more[0] if more else ()))
    if _number(pid) < 1:
        raise ValueError(pid)
    return Process(pid, _number(start_ticks), executables)


def _number(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 1 << 64:
        raise ValueError(value)
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _namespace(value: Any) -> tuple[int, int] | None:
    if value is None:
        return None
    dev, inode = value
    return _number(dev), _number(inode)


def _read(folder: Folder, path: Path) -> State | None:
    """None for a state that is not there, not ours, or that no recorder wrote."""
    try:
        document = json.loads(read_own(folder, _STATE))
        state = State(
            path,
            _process(document["recorder"]),
            _text(document["boot"]),
            _text(document["output"]),
            _text(document["session"]),
            document["shared_sessiond"] is True,
            {role: _process(found) for role, found in document["processes"].items()},
            _namespace(document["namespace"]),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return state if state.session in ("", state.session_name) else None


def _folders(runtime: Folder) -> Iterator[tuple[re.Match[str], Folder]]:
    """The folders of this user's recordings, open, with their names."""
    for name in runtime.names():
        named = _NAME.fullmatch(name)
        if named is None:
            continue
        with contextlib.suppress(OSError), Folder(name, runtime, follow=False) as folder:
            if is_ours(folder.descriptor):
                yield named, folder


def _has_state(folder: Folder) -> bool:
    """Whether there was a recording here, and its recorder has not ended it."""
    return _STATE in folder.names()


def _state_of(named: re.Match[str], folder: Folder) -> State:
    path = runtime_dir() / named[0]
    return _read(folder, path) or State(path, Process(int(named[1]), int(named[2])), boot_id(), namespace=namespace())


def dead() -> Iterator[State]:
    """Recordings of this user whose recorder is gone, each with its lock held meanwhile, for cleaning up: nobody else
    does so at the same time. Folders in which nothing was begun, or all is over, are removed. Raises OplineError if the
    runtime directory is not ours.
    """
    runtime = open_runtime()
    if runtime is None:
        return
    with runtime:
        for named, folder in _folders(runtime):
            try:
                lock = locks.take_dead(_LOCK, folder.descriptor)
            except FileNotFoundError:
                # one that is about to make the lock finds it taken, and takes another folder
                lock = locks.make(_LOCK, folder.descriptor)
            if lock is None:
                continue
            state = _state_of(named, folder)
            state.lock = lock
            try:
                if _has_state(folder):
                    yield state
                else:
                    state.remove()
            finally:
                state.release()


def look() -> list[State]:
    """The same, only looked at: nothing is locked or changed. Raises OplineError.

    A recorder that lives holds its lock from before the state is there until after it is gone: one that begins or ends
    at this moment is not taken for a dead one.
    """
    runtime = open_runtime()
    if runtime is None:
        return []
    with runtime:
        return [
            _state_of(named, folder)
            for named, folder in _folders(runtime)
            if _has_state(folder) and not locks.is_held(_LOCK, folder.descriptor) and _has_state(folder)
        ]
