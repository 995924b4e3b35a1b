# SPDX-License-Identifier: MIT
"""What killed recordings have left behind, and cleaning up after them.

A recording whose lock is free (directory.state) is a leftover: its processes are ended, its session is destroyed, its
folder is removed. The trace that it wrote stays where it is. Processes of another PID namespace are found where they
can be seen; where that is not certain the leftover stays for an opline that sees them.
"""

from __future__ import annotations

import contextlib
import subprocess
from pathlib import Path

from opline.capture.directory.buffers import Buffers
from opline.capture.directory.place import ROOM_NAME
from opline.capture.directory.recording import TRACE_NAME
from opline.capture.directory.removal import remove_chunk
from opline.capture.directory.state import State, dead, look
from opline.capture.machine.processes import Process, boot_id, end, kill_session, namespace, seen_here, sees_all
from opline.errors import OplineError
from opline.paths import LOCK_NAME
from opline.readers.chunks import REMOVING
from opline.scratch import sweep as sweep_scratch

_ELSEWHERE = "its processes are those of another PID namespace: clean up there, or outside of all containers"


def _session_exists(name: str) -> bool:
    try:
        return subprocess.run(["lttng", "list", name], capture_output=True, timeout=30).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _here(state: State) -> dict[str, Process] | None:
    """The processes of a leftover by their numbers in this PID namespace; None if they can't be seen from here."""
    if state.boot != boot_id():
        return {}
    if state.namespace in (None, namespace()):
        return state.processes
    found = {}
    for role, process in state.processes.items():
        pid = seen_here(process.pid, state.namespace)
        if pid is not None:
            found[role] = Process(pid, process.start_ticks, process.executables)
    return found if found or sees_all() else None


def describe(state: State) -> str:
    """One line about a leftover."""
    here = _here(state)
    alive = ", ".join(f"{role} {p.pid}" for role, p in (here or {}).items() if p.alive())
    running = "not known" if here is None else alive or "nothing"
    return f"recorder {state.recorder.pid} of {state.output or '?'} was killed; still running: {running}"


def found() -> list[str]:
    """A line about each leftover; nothing is changed. Raises OplineError if the runtime directory is not ours."""
    return [describe(state) for state in look()]


def _save(state: State) -> str:
    """What the tracer's buffers still have goes into the trace; what to add to the line about it."""
    buffers = Buffers(state.name)
    trace = Path(state.output) / TRACE_NAME
    try:
        packets = buffers.rescue(trace) if state.output and trace.is_dir() else 0
    except OplineError as error:
        return f"; {error.message}"
    finally:
        buffers.remove()
        if state.output:
            with contextlib.suppress(OSError):
                remove_chunk(trace.parent / REMOVING)
        for name in (ROOM_NAME, LOCK_NAME) if state.output else ():
            with contextlib.suppress(OSError):
                (trace.parent / name).unlink()
    return f"; {packets} packets saved from its buffers" if packets else ""


def _clean_up(state: State) -> str:
    """End and remove one leftover; a line about it."""
    line, here = describe(state), _here(state)
    if here is None:
        return f"{line}; could not be cleaned up: {_ELSEWHERE}"
    same_boot = state.boot == boot_id()
    gone = True
    if same_boot:
        # The BPF collector first: its session's daemon would wait for it.
        for role in sorted(here, key=lambda r: r == "sessiond"):
            gone = end(here[role]) and kill_session(here[role]) and gone
        if state.shared_sessiond and state.session and _session_exists(state.session):
            done = subprocess.run(["lttng", "destroy", state.session], capture_output=True, timeout=60)
            gone = gone and done.returncode == 0
    if not gone:
        return f"{line}; could not be cleaned up"
    if same_boot:
        line += _save(state)
    state.remove()
    return f"{line}; cleaned up"


def sweep() -> list[str]:
    """End and remove every leftover; a line about each. What cannot be ended stays listed for the next time.

    Raises OplineError if the runtime directory is not ours.
    """
    lines = [_clean_up(state) for state in dead()]
    sweep_scratch()  # now that its processes have ended
    return lines


def sweep_seen() -> list[str]:
    """The same, without a line about what only an opline elsewhere can clean up: a recorder is no place to say so."""
    return [line for line in sweep() if not line.endswith(_ELSEWHERE)]
