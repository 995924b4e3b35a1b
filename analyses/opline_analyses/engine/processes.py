# SPDX-License-Identifier: MIT
"""Tasks as processes of this machine, and the engine ``processes``: so many at once. An exit status is the answer."""

from __future__ import annotations

import os
import select
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from opline.interpreter import python
from opline_analyses.engine.interface import TOLD, failure_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import IO

    from opline_analyses.engine.interface import Failure, Item

REPEATS = 1


class _Running:
    """A task that runs: its process, where it writes, and how often it has been started. ``request``: of an Item."""

    def __init__(self, task: str, request: bytes, out: Path, start: int = 1) -> None:
        self.out, self.start = out, start
        self.said: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (until close)
        with out.open("wb") as wrote:
            self.process = subprocess.Popen(
                python("-m", "opline_analyses.engine.task", task), stdin=subprocess.PIPE, stdout=wrote, stderr=self.said
            )
        self.ended = os.pidfd_open(self.process.pid)  # readable when it has ended
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):  # it ended at once, and its status says so
            self.process.stdin.write(request)
            self.process.stdin.flush()

    def close(self) -> None:
        """Ends it, if it still runs. The pipe's end is what the task waits for; SIGKILL makes sure."""
        os.close(self.ended)
        self.process.kill()
        self.process.wait()
        if self.process.stdin is not None:
            with suppress(BrokenPipeError):
                self.process.stdin.close()
        self.said.close()

    def result(self) -> Path | Failure | None:
        """Waits for its end: what it wrote, or why not; None: it crashed (a signal, a status that no task gives), and
        is to be started once more.
        """
        status = self.process.wait()
        self.said.seek(0)
        why = self.said.read()
        self.close()
        if status == 0:
            return self.out
        return failure_of(status, why) if status in TOLD or self.start > REPEATS else None


def run_here(task: str, request: bytes) -> tuple[int | None, bytes, bytes]:
    """One task, for workers of engines that call a function: its exit status, what it wrote, and in lines why not."""
    with tempfile.TemporaryFile() as wrote:  # without a name: nothing stays if the worker is killed
        out = Path(f"/proc/self/fd/{wrote.fileno()}")
        for start in range(1, REPEATS + 2):
            found = _Running(task, request, out, start).result()
            if found is not None:
                break
        assert found is not None
        if isinstance(found, Path):
            return 0, found.read_bytes(), b""
        return found.status, b"", found.why.encode()


class Processes:
    """``most`` tasks at once; ``folder`` gets their files."""

    def __init__(self, folder: Path, most: int) -> None:
        self._folder, self._most = folder, most
        self._running: dict[int, tuple[int, _Running]] = {}

    def map(self, task: str, items: Sequence[Item]) -> Iterator[tuple[Item, Path | Failure]]:
        """See Engine."""
        waiting = [(number, 1) for number in reversed(range(len(items)))]
        while waiting or self._running:
            while waiting and len(self._running) < self._most:
                number, start = waiting.pop()
                one = _Running(task, items[number].request(), self._folder / f"{number}.json", start)
                self._running[one.ended] = number, one
            ready, _, _ = select.select(list(self._running), (), ())
            for descriptor in ready:
                number, one = self._running.pop(descriptor)
                if (result := one.result()) is not None:
                    yield items[number], result
                else:
                    waiting.append((number, one.start + 1))

    def close(self) -> None:
        """See Engine."""
        while self._running:
            self._running.popitem()[1][1].close()
