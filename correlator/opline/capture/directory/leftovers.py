# SPDX-License-Identifier: MIT
"""What a recording would leave behind if its recorder were killed, written down while it runs and swept afterwards.

Each recording has a folder ``RUNTIME/PID-START`` with ``state.json``: the recorder, the processes that it started, its
session. A folder whose recorder is gone is a leftover: its processes are ended, its session is destroyed, the
folder is removed. The trace that it wrote stays where it is.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from opline.capture.directory.buffers import Buffers
from opline.capture.directory.place import ROOM_NAME
from opline.capture.directory.recording import TRACE_NAME
from opline.capture.directory.runtime import folder_mode, is_ours, open_runtime, read_own, runtime_dir
from opline.capture.machine.processes import Process, boot_id, end, identify
from opline.errors import OplineError
from opline.folder import OURS, Folder
from opline.scratch import session_name
from opline.scratch import sweep as sweep_scratch

_STATE = "state.json"
_NAME = re.compile(r"(\d{1,10})-(\d{1,20})", re.ASCII)


@dataclass(slots=True)
class State:
    """One recording's state file, kept up to date while it runs."""

    folder: Path
    recorder: Process
    boot: str
    output: str = ""
    session: str = ""
    shared_sessiond: bool = False
    processes: dict[str, Process] = field(default_factory=dict)

    @classmethod
    def create(cls, output: Path) -> State:
        """Make the folder of this process's recording. Raises OplineError."""
        me = identify(os.getpid())
        assert me is not None
        folder = runtime_dir() / f"{me.pid}-{me.start_ticks}"
        runtime = open_runtime(make=True)
        try:
            if runtime is None:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
            with runtime:
                shutil.rmtree(folder.name, ignore_errors=True, dir_fd=runtime.descriptor)
                os.mkdir(folder.name, 0o700, dir_fd=runtime.descriptor)
                with Folder(folder.name, runtime, follow=False) as made:
                    os.fchmod(made.descriptor, folder_mode())  # whatever the umask is
        except OSError as error:
            raise OplineError(f"cannot make {folder}: {error.strerror}; set OPLINE_RUNTIME_DIR") from error
        state = cls(folder, me, boot_id(), str(output))
        state.write()
        return state

    def add(self, role: str, pid: int, programs: Sequence[str] = ()) -> None:
        """Write down a process that must not outlive the recording; ``programs``: what else it is going to run."""
        process = identify(pid, programs)
        if process is not None:
            self.processes[role] = process
            self.write()

    def write(self) -> None:
        """Replace the state file."""
        document = {
            "recorder": [self.recorder.pid, self.recorder.start_ticks],
            "boot": self.boot,
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
                shutil.rmtree(self.folder.name, ignore_errors=True, dir_fd=runtime.descriptor)


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
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    named = session_name(state.recorder.pid, state.recorder.start_ticks)
    return state if state.session in ("", named) else None


def _states() -> Iterator[State]:
    """All recordings of this user. Raises OplineError if the runtime directory is not ours."""
    runtime = open_runtime()
    if runtime is None:
        return
    with runtime:
        for name in runtime.names():
            named = _NAME.fullmatch(name)
            if named is None:
                continue
            try:
                with Folder(name, runtime, follow=False) as folder:
                    if not is_ours(folder.descriptor):
                        continue
                    path = runtime_dir() / name
                    by_name = State(path, Process(int(named[1]), int(named[2])), boot_id())
                    yield _read(folder, path) or by_name
            except OSError:
                continue


def find() -> list[State]:
    """Leftovers: recordings of this user whose recorder is gone. Raises OplineError if the runtime directory is not
    ours.
    """
    return [state for state in _states() if state.boot != boot_id() or not state.recorder.alive()]


def _session_exists(name: str) -> bool:
    try:
        return subprocess.run(["lttng", "list", name], capture_output=True, timeout=30).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def describe(state: State) -> str:
    """One line about a leftover."""
    alive = ", ".join(f"{role} {p.pid}" for role, p in state.processes.items() if p.alive())
    return f"recorder {state.recorder.pid} of {state.output or '?'} was killed; still running: {alive or 'nothing'}"


def _save(state: State) -> str:
    """What the tracer's buffers still have goes into the trace; what to add to the line about it."""
    buffers = Buffers(state.recorder)
    trace = Path(state.output) / TRACE_NAME
    try:
        packets = buffers.rescue(trace) if state.output and trace.is_dir() else 0
    except OplineError as error:
        return f"; {error.message}"
    finally:
        buffers.remove()
        with contextlib.suppress(OSError):
            (trace.parent / ROOM_NAME).unlink()
    return f"; {packets} packets saved from its buffers" if packets else ""


def sweep() -> list[str]:
    """End and remove every leftover; a line about each. What cannot be ended stays listed for the next time.

    Raises OplineError if the runtime directory is not ours.
    """
    sweep_scratch()
    lines = []
    for state in find():
        line = describe(state)
        same_boot = state.boot == boot_id()
        gone = True
        if same_boot:
            # The BPF collector first: its session's daemon would wait for it.
            for role in sorted(state.processes, key=lambda r: r == "sessiond"):
                gone = end(state.processes[role]) and gone
            if state.shared_sessiond and state.session and _session_exists(state.session):
                done = subprocess.run(["lttng", "destroy", state.session], capture_output=True, timeout=60)
                gone = gone and done.returncode == 0
        if gone:
            if same_boot:
                line += _save(state)
            state.remove()
            lines.append(f"{line}; cleaned up")
        else:
            lines.append(f"{line}; could not be cleaned up")
    return lines
