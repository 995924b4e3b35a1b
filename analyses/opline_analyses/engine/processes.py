# SPDX-License-Identifier: MIT
"""Processes of this machine for tasks, one task after another, and the engine ``processes``: several at once."""

from __future__ import annotations

import json
import select
import subprocess
import tempfile
from contextlib import suppress
from typing import TYPE_CHECKING

from opline.interpreter import python
from opline_analyses.engine.interface import TOLD, failure_of, with_task

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path
    from typing import IO

    from opline_analyses.engine.interface import Failure, Item

STARTS = 2  # of a task with a crashing process


class _Worker:
    """A process for tasks. ``ready``: readable after an answer, or after the process's end."""

    def __init__(self, *inherited: int) -> None:
        """``inherited``: descriptors passed to the process."""
        self._said: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (until close)
        self._process = subprocess.Popen(
            python("-m", "opline_analyses.engine.task"),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said, pass_fds=inherited,
        )  # fmt: skip
        assert self._process.stdin is not None and self._process.stdout is not None
        self._asks, self._answers = self._process.stdin, self._process.stdout
        self.ready = self._answers.fileno()

    def ask(self, task: str, request: bytes, out: str) -> None:
        """Begins a task with the output ``out``. ``request``: of an Item."""
        with suppress(BrokenPipeError):  # ended at once; the status tells the reason
            self._asks.write(with_task(request, task, out))
            self._asks.flush()

    def answer(self) -> Failure | int:
        """Waits for the answer: 0, ``out`` is written; or the failure. Another number: ended without an answer, by a
        signal or with a status that no task gives.
        """
        line = self._answers.readline()
        if line.endswith(b"\n"):
            status, said = json.loads(line)
            return failure_of(status, said.encode(errors="backslashreplace")) if status else 0
        status = self._process.wait()
        return self.failure(status) if status in TOLD or status == 0 else status

    def failure(self, status: int) -> Failure:
        """The failure of the process with this status."""
        self._said.seek(0)
        return failure_of(status, self._said.read())

    def close(self) -> None:
        """Ends a running process. The process waits for the pipe's end; SIGKILL makes sure."""
        self._process.kill()
        self._process.wait()
        with suppress(BrokenPipeError):
            self._asks.close()
        self._answers.close()
        self._said.close()


def run_here(task: str, request: bytes) -> tuple[int | None, bytes, bytes]:
    """One task, for workers of engines that call a function: exit status, output, and lines about a failure."""
    for start in range(1, STARTS + 1):
        with tempfile.TemporaryFile() as out:  # without a name: nothing stays if the worker is killed
            worker = _Worker(out.fileno())
            try:
                worker.ask(task, request, f"/proc/self/fd/{out.fileno()}")
                found = worker.answer()
                if found == 0:
                    return 0, out.read(), b""
                if isinstance(found, int):
                    if start < STARTS:
                        continue
                    found = worker.failure(found)
                return found.status, b"", found.why.encode()
            finally:
                worker.close()
    raise AssertionError


class Processes:
    """``most`` tasks at once; ``folder`` gets their files. If possible, one process does all questions about a
    recording: the process may still have the recording's values.
    """

    def __init__(self, folder: Path, most: int) -> None:
        self._folder, self._most = folder, most
        self._idle: list[_Worker] = []
        # by the ready descriptor: the item's number, the number of the start, the worker
        self._busy: dict[int, tuple[int, int, _Worker]] = {}
        self._asked: dict[str, _Worker] = {}  # by path

    def map(self, task: str, items: Sequence[Item]) -> Iterator[tuple[Item, Path | Failure]]:
        """See Engine."""
        waiting = dict.fromkeys(range(len(items)), 1)
        while waiting or self._busy:
            while waiting and len(self._busy) < self._most:
                worker = self._idle.pop() if self._idle else _Worker()
                number = self._best(worker, items, waiting)
                self._asked[items[number].path] = worker
                worker.ask(task, items[number].request(), str(self._folder / f"{number}.json"))
                self._busy[worker.ready] = number, waiting.pop(number), worker
            ready, _, _ = select.select(list(self._busy), (), ())
            for descriptor in ready:
                number, start, worker = self._busy.pop(descriptor)
                found = worker.answer()
                if found == 0:
                    self._idle.append(worker)
                    yield items[number], self._folder / f"{number}.json"
                    continue
                if isinstance(found, int) and start < STARTS:
                    waiting[number] = start + 1
                    worker.close()
                    continue
                yield items[number], worker.failure(found) if isinstance(found, int) else found
                worker.close()

    def _best(self, worker: _Worker, items: Sequence[Item], waiting: dict[int, int]) -> int:
        """The number of an item already asked of this worker, or asked of no other worker, or any."""
        others = set(self._idle) | {worker for _, _, worker in self._busy.values()}
        unasked = None
        for number in waiting:
            asked = self._asked.get(items[number].path)
            if asked is worker:
                return number
            if unasked is None and asked not in others:
                unasked = number
        return next(iter(waiting)) if unasked is None else unasked

    def close(self) -> None:
        """See Engine."""
        for worker in self._idle:
            worker.close()
        for _, _, worker in self._busy.values():
            worker.close()
        self._idle, self._busy = [], {}
