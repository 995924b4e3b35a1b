# SPDX-License-Identifier: MIT
"""What a recording would leave behind if its recorder were killed, written down while it runs and swept afterwards.

Each recording has a folder ``RUNTIME/PID-START`` with ``state.json``: the recorder, the processes that it started, its
session. A folder whose recorder is gone is a leftover: its processes are ended, its session is destroyed, the
folder is removed. The trace that it wrote stays where it is.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from opline.capture.processes import Process, end, identify
from opline.errors import OplineError

_STATE = "state.json"


def runtime_dir() -> Path:
    """``$OPLINE_RUNTIME_DIR``, else ``/run/opline`` (root), ``$XDG_RUNTIME_DIR/opline``, ``/tmp/opline-UID``.

    Short on purpose: the path of a Unix socket below it must fit into 108 bytes.
    """
    chosen = os.environ.get("OPLINE_RUNTIME_DIR")
    if chosen:
        return Path(chosen)
    if os.geteuid() == 0:
        return Path("/run/opline")
    user = os.environ.get("XDG_RUNTIME_DIR")
    if user and os.access(user, os.W_OK):
        return Path(user) / "opline"
    return Path(f"/tmp/opline-{os.geteuid()}")


def boot_id() -> str:
    """The boot's id: PIDs and start times mean something within one boot only."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return "unknown"


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
        try:
            runtime_dir().mkdir(mode=0o755, parents=True, exist_ok=True)
            if runtime_dir().stat().st_uid != os.geteuid():
                raise OplineError(
                    f"{runtime_dir()} belongs to somebody else; set OPLINE_RUNTIME_DIR to your own folder"
                )
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(mode=0o755)
        except OSError as error:
            raise OplineError(f"cannot make {folder}: {error.strerror}; set OPLINE_RUNTIME_DIR") from error
        state = cls(folder, me, boot_id(), str(output))
        state.write()
        return state

    def add(self, role: str, pid: int) -> None:
        """Write down a process that must not outlive the recording."""
        process = identify(pid)
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
            "processes": {role: [p.pid, p.start_ticks] for role, p in self.processes.items()},
        }
        part = self.folder / f"{_STATE}.part"
        part.write_text(json.dumps(document))
        part.replace(self.folder / _STATE)

    def remove(self) -> None:
        """The recording is over and cleaned up."""
        shutil.rmtree(self.folder, ignore_errors=True)


def _read(folder: Path) -> State | None:
    try:
        document = json.loads((folder / _STATE).read_text())
        return State(
            folder,
            Process(*document["recorder"]),
            document["boot"],
            document["output"],
            document["session"],
            document["shared_sessiond"],
            {role: Process(*pair) for role, pair in document["processes"].items()},
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _folders() -> Iterator[Path]:
    try:
        yield from sorted(p for p in runtime_dir().iterdir() if p.is_dir())
    except OSError:
        return


def find() -> list[State]:
    """Leftovers: recordings of this user whose recorder is gone."""
    found = []
    for folder in _folders():
        state = _read(folder)
        if state is None:
            pid, _, ticks = folder.name.partition("-")
            if not (pid.isdigit() and ticks.isdigit()):
                continue
            state = State(folder, Process(int(pid), int(ticks)), boot_id())
        if state.boot != boot_id() or not state.recorder.alive():
            found.append(state)
    return found


def _session_exists(name: str) -> bool:
    try:
        return subprocess.run(["lttng", "list", name], capture_output=True, timeout=30).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def describe(state: State) -> str:
    """One line about a leftover."""
    alive = ", ".join(f"{role} {p.pid}" for role, p in state.processes.items() if p.alive())
    return f"recorder {state.recorder.pid} of {state.output or '?'} was killed; still running: {alive or 'nothing'}"


def sweep() -> list[str]:
    """End and remove every leftover; a line about each. What cannot be ended stays listed for the next time."""
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
            state.remove()
            lines.append(f"{line}; cleaned up")
        else:
            lines.append(f"{line}; could not be cleaned up")
    return lines
