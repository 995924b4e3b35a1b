# SPDX-License-Identifier: MIT
"""The engine ``processes``: a process per task on this machine, so many at once. An exit status is the answer."""

from __future__ import annotations

import os
import select
import subprocess
import tempfile
from contextlib import suppress
from typing import TYPE_CHECKING

from opline.interpreter import python
from opline_analyses.engine.interface import TOLD, failure_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path
    from typing import IO

    from opline_analyses.engine.interface import Failure, Item

REPEATS = 1


class _Running:
    """A task that runs: its process, where it writes, and how often it has been started."""

    def __init__(self, task: str, item: Item, out: Path, start: int = 1) -> None:
        self.item, self.out, self.start = item, out, start
        self.said: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (until close)
        with out.open("wb") as wrote:
            self.process = subprocess.Popen(
                python("-m", "opline_analyses.engine.task", task), stdin=subprocess.PIPE, stdout=wrote, stderr=self.said
            )
        self.ended = os.pidfd_open(self.process.pid)  # readable when it has ended
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):  # it ended at once, and its status says so
            self.process.stdin.write(item.request())
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

    def why_not(self) -> bytes:
        """What it said on standard error."""
        self.said.seek(0)
        return self.said.read()


class Processes:
    """``most`` tasks at once; ``folder`` gets their files."""

    def __init__(self, folder: Path, most: int) -> None:
        self._folder, self._most = folder, most
        self._running: dict[int, _Running] = {}

    def map(self, task: str, items: Sequence[Item]) -> Iterator[tuple[Item, Path | Failure]]:
        """See Engine. A task that crashed (a signal, a status that no task gives) is started once more."""
        waiting = [(number, item, 1) for number, item in reversed(list(enumerate(items)))]
        while waiting or self._running:
            while waiting and len(self._running) < self._most:
                number, item, start = waiting.pop()
                one = _Running(task, item, self._folder / f"{number}.json", start)
                self._running[one.ended] = one
            ready, _, _ = select.select(list(self._running), (), ())
            for descriptor in ready:
                one = self._running.pop(descriptor)
                status = one.process.wait()
                why = one.why_not()
                one.close()
                if status == 0:
                    yield one.item, one.out
                elif status in TOLD or one.start > REPEATS:
                    yield one.item, failure_of(status, why)
                else:
                    waiting.append((int(one.out.stem), one.item, one.start + 1))

    def close(self) -> None:
        """See Engine."""
        while self._running:
            self._running.popitem()[1].close()
