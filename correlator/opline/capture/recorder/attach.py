# SPDX-License-Identifier: MIT
"""Recording what runs already: which processes are meant, and for how long.

Nothing is done to them: the model's probes are on files, the block layer's programs are the kernel's, and the
collector of calls and states is told their numbers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from opline.capture.machine import processes
from opline.capture.machine.signals import Signals
from opline.errors import OplineError
from opline.scratch import start_ticks

_TICK_S = 0.1


def targets(pids: Sequence[int], names: Sequence[str], cgroups: Sequence[str] = ()) -> list[int]:
    """Those processes, those of these names or in these cgroups (GLOBs), and all their descendants, by PID. Raises
    OplineError if one of them is not there.
    """
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*"):
        pid = int(path.name)
        above = processes.parent(pid)
        if above is not None:
            children.setdefault(above, []).append(pid)
    found: dict[int, None] = {}
    waiting = list(pids)
    for pid in pids:
        if not Path(f"/proc/{pid}").is_dir():
            raise OplineError(f"--pid {pid}: there is no such process; `ps -e` lists those that run")
    for name in names:
        named = processes.named(name)
        if not named:
            raise OplineError(f"--comm {name}: no process of that name runs; `ps -e` lists those that do")
        waiting += named
    for glob in cgroups:
        inside = processes.in_cgroup(glob)
        if not inside:
            raise OplineError(f"--cgroup {glob}: no process is in such a cgroup; /proc/PID/cgroup says which there are")
        waiting += inside
    while waiting:
        pid = waiting.pop()
        if pid not in found:
            found[pid] = None
            waiting += children.get(pid, [])
    return sorted(found)


def attend(signals: Signals, look: Callable[[], None], pids: Iterable[int], duration_s: float | None) -> str | None:
    """Without a command: until the time is up, until a signal comes, or until none of the processes is left; then why.
    ``look`` is called ten times a second.
    """
    until = None if duration_s is None else time.monotonic() + duration_s
    watched = {pid: start_ticks(pid) for pid in pids}
    while signals.ending is None:
        left = _TICK_S if until is None else min(_TICK_S, until - time.monotonic())
        if left <= 0:
            return None
        signals.wait(left)
        look()
        if all(ticks is None or start_ticks(pid) != ticks for pid, ticks in watched.items()):
            return "all processes that were attached to have ended"
    return None
