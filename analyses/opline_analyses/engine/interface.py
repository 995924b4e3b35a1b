# SPDX-License-Identifier: MIT
"""The interface of an engine: runs a task for each recording, and gives a file or the reason for a missing file.

A task is a name (`summaries.TASKS`), run in a process ``python -m opline_analyses.engine.task``: no function and no
object travels. Other packages add engines by an entry point of the group ``opline.engines``.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from opline import __version__
from opline.errors import UsageError
from opline.values import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import Any, Protocol

    class Engine(Protocol):
        """Runs tasks. ``map`` gives each item once, at its end, in any order; ``close`` ends running tasks."""

        def map(self, task: str, items: Sequence[Item]) -> Iterator[tuple[Item, Path | Failure]]:
            """For each item a file written by the task (`task.py`), or the reason for a missing file."""
            ...

        def close(self) -> None:
            """Ends all tasks. Never raises."""
            ...


ENTRY_POINTS = "opline.engines"  # NAME = a function of (the words after NAME:, a folder for files) that gives an Engine
REFUSED = 5  # exit status of a task: asked by another version of opline
OURS = "opline: "  # begin of a task's lines for people (opline.talk)
TOLD = (1, 2, 3, REFUSED)  # exit statuses of tasks with a reason: a repetition changes nothing


class Item(Value):
    """One recording, run or trace. ``path``: for the worker; ``options``: the question, for JSON; ``absent``: the
    reason for a missing recording, None for an existing recording; ``argument``: the number of the user's path.
    """

    name: str
    path: str
    options: Mapping[str, Any]
    host: str | None = None  # the recording's host: an engine with a worker there asks this worker
    absent: str | None = None
    argument: int = 0

    def request(self) -> bytes:
        """The question, as a line of JSON."""
        told = {"opline": __version__, "path": self.path, "options": self.options}
        return json.dumps(told).encode() + b"\n"


def with_task(request: bytes, task: str, out: str) -> bytes:
    """The line for a process: an Item's request, with the task and the file to write."""
    return json.dumps({**json.loads(request), "task": task, "out": out}).encode() + b"\n"


class Failure(Value):
    """The reason for an item's missing answer: the last line. The lines before report losses. ``status``: the task's
    exit status, None without one.
    """

    why: str
    status: int | None = None


def failure_of(status: int, said: bytes) -> Failure:
    """The failure of a task with this status and this text on standard error."""
    lines = said.decode(errors="backslashreplace").strip().splitlines()
    if status in TOLD and lines:
        told = [line.removeprefix(OURS) for line in lines if line.startswith(OURS)]
        return Failure("\n".join(told) or lines[-1], status)
    ended = f"signal {-status} ended its task" if status < 0 else f"its task ended with status {status}"
    return Failure(f"{ended}, twice{': ' + lines[-1] if lines else ''}", status)


def engine_of(text: str, folder: Path) -> Engine:
    """The engine of ``--engine``; ``folder`` is for the tasks' files. Raises OplineError."""
    name, _, rest = text.partition(":")
    makers: dict[str, Callable[[str, Path], Engine]] = {"processes": _processes, "dask": _dask}
    if name not in makers:
        from importlib.metadata import entry_points

        makers |= {found.name: found.load() for found in entry_points(group=ENTRY_POINTS, name=name)}
    if name not in makers:
        raise UsageError(f"--engine {text}: there are {', '.join(makers)}, and those of other packages.")
    return makers[name](rest, folder)


def _processes(rest: str, folder: Path) -> Engine:
    from opline_analyses.engine.processes import Processes

    if rest and not (rest.isascii() and rest.isdecimal() and 0 < int(rest) <= 1024):
        raise UsageError(f"--engine processes:{rest}: a number of processes is wanted, as processes:4.")
    return Processes(folder, int(rest) if rest else len(os.sched_getaffinity(0)))


def _dask(rest: str, folder: Path) -> Engine:
    from opline_analyses.engine.on_dask import Dask

    return Dask(rest, folder)
