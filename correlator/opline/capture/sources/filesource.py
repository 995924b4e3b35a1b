# SPDX-License-Identifier: MIT
"""Where the files lie that the command opens: the watcher (collectors.openfiles) as a child of the recording."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from opline.capture.directory.state import State
from opline.capture.sources.childsource import ChildSource
from opline.interpreter import python

FILE_NAME = "extents.json"
MODULE = "opline.capture.collectors.openfiles"


class FileSource(ChildSource):
    """The watcher of one recording."""

    def __init__(self) -> None:
        # what of the files is still in memory is written before it is done
        super().__init__("openfiles", "the watcher of opened files", done_within_s=120.0)

    def start(self, directory: Path, state: State, mask: Iterable[int]) -> None:
        """Start it and wait until it watches: whom this process forks next. Raises OplineError with its own words."""
        argv = python("-m", MODULE, str(directory / FILE_NAME), "--recorder", str(os.getpid()))
        self._start(argv, None, state, mask)
        self._await_ready()

    def stop(self) -> dict[str, Any]:
        """Let it write out and map the files; its report. Raises OplineError if there is none."""
        report = super().stop()
        del report["ready"]
        return report
