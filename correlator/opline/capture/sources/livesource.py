# SPDX-License-Identifier: MIT
"""Block events while they happen: the BPF collector as a child process, its records through a pipe.

LTTng has no part in it. The pipe's other end is in this process; opline.readers.ring reads what comes out of it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from opline.capture.directory.state import State
from opline.capture.sources.childsource import COLLECTOR, ChildSource, collector_lacking
from opline.errors import OplineError
from opline.interpreter import python

BRIDGE = Path(__file__).parent.with_name("_livebridge.so")
_READ_BYTES = 1 << 20


def lacking() -> str | None:
    """Why there is nothing to look at here, in a few words; None if there is."""
    if os.geteuid() != 0:
        return "block events through BPF need root"
    return collector_lacking(BRIDGE)


class LiveSource(ChildSource):
    """The collector; ``pipe`` is what its records come out of, once it has been started."""

    def __init__(self) -> None:
        super().__init__("live", "the BPF collector")
        self.pipe = -1

    def start(self, state: State, mask: Iterable[int], exclude: Sequence[int]) -> None:
        """Start it; what takes time can be done before `await_ready`. Raises OplineError if it cannot be started."""
        why = lacking()
        if why is not None:
            raise OplineError(f"{why}.")
        self.pipe, theirs = os.pipe()
        argv = python("-m", COLLECTOR, "--records-fd", str(theirs))
        for pid in exclude:
            argv += ["--exclude-pid", str(pid)]
        try:
            self._start(argv, None, state, mask, [theirs])
        finally:
            os.close(theirs)

    def await_ready(self) -> None:
        """Wait until it traces. Raises OplineError with its own words if it cannot."""
        self._await_ready()

    def stop_and_read(self, take: Callable[[bytes], None]) -> dict[str, Any]:
        """Let it finish, take what is left in the pipe; its report. Raises OplineError if there is none."""
        assert self._child is not None
        self._child.terminate()
        while data := os.read(self.pipe, _READ_BYTES):
            take(data)
        return self.stop()

    def close(self) -> None:
        """End it, and let go of the pipe. Never raises."""
        if self.pipe >= 0:  # first: a collector that waits for room in the pipe goes on, and ends
            os.close(self.pipe)
            self.pipe = -1
        self.kill()
