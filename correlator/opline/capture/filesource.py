# SPDX-License-Identifier: MIT
"""Where the files lie that the command opens: the watcher (opline.capture.openfiles) as a child of the recording."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from opline.capture import processes
from opline.capture.leftovers import State
from opline.errors import OplineError

FILE_NAME = "extents.json"
MODULE = "opline.capture.openfiles"
_READY_WITHIN_S = 10.0
_DONE_WITHIN_S = 120.0  # what of the files is still in memory is written first


class FileSource:
    """The watcher of one recording."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None

    def start(self, directory: Path, state: State, mask: Iterable[int]) -> None:
        """Start it and wait until it watches: whom this process forks next. Raises OplineError with its own words."""
        argv = [sys.executable, "-m", MODULE, str(directory / FILE_NAME), "--recorder", str(os.getpid())]
        self._child = processes.start(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            mask=mask,
            new_session=True,
        )
        state.add("openfiles", self._child.pid)
        line = self._line(_READY_WITHIN_S)
        if line != "ready":
            self.kill()
            raise OplineError(line or "the watcher of opened files did not start")

    def _line(self, patience_s: float) -> str:
        assert self._child is not None and self._child.stdout is not None
        if not select.select([self._child.stdout], [], [], patience_s)[0]:
            return ""
        return self._child.stdout.readline().decode(errors="replace").strip()

    def stop(self) -> dict[str, Any]:
        """Let it write out and map the files; its report. Raises OplineError if there is none."""
        assert self._child is not None
        self._child.terminate()
        line = self._line(_DONE_WITHIN_S)
        self.kill()
        try:
            report = json.loads(line)
        except ValueError:
            report = None
        if not isinstance(report, dict):
            raise OplineError("the watcher of opened files ended without a report")
        return report

    def kill(self) -> None:
        """End it, however. Never raises."""
        if self._child is not None:
            processes.end_child(self._child)
            if self._child.stdout is not None:
                self._child.stdout.close()
            self._child = None
