# SPDX-License-Identifier: MIT
"""Block events where no lttng-modules load: the BPF collector as a child process of the recording.

What the recorder relies on, of ``python -m opline.capture.collector --exclude-pid PID ...``:

- It is an LTTng-UST application: it finds the session daemon through its environment and emits ``block:*``.
- When its BPF programs are attached it writes the line ``ready`` to standard output. Before that it may fail: status
  not 0, the reason as the last line of standard error.
- On SIGTERM it detaches, emits what is still in its buffers, writes one line of JSON (counts, losses, cost) to standard
  output and exits with status 0. So it does when its parent dies, with or without a reader of that line.
- It leaves out what the processes given by ``--exclude-pid`` and itself do.
"""

from __future__ import annotations

import importlib.util
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from opline.capture import machine, processes
from opline.capture.leftovers import State
from opline.capture.sessiond import Sessiond
from opline.errors import OplineError

MODULE = "opline.capture.collector"
BRIDGE = Path(__file__).with_name("_bridge.so")
_READY_WITHIN_S = 30.0
_DONE_WITHIN_S = 30.0


def lacking() -> str | None:
    """Why the collector cannot be used here, in a few words; None if it can."""
    if os.geteuid() != 0:
        return "not root"
    if importlib.util.find_spec(MODULE) is None or not BRIDGE.exists():
        return "the BPF collector is not built (make build)"
    if machine.bcc_version() is None:
        return "Python's bcc module is not installed (apt install python3-bpfcc)"
    return None


class BlockSource:
    """The collector of one recording."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        self._log: Path | None = None

    def start(self, daemon: Sessiond, state: State, mask: Iterable[int], exclude: Sequence[int]) -> None:
        """Start it and wait until it traces. Raises OplineError with its own words if it cannot."""
        argv = [sys.executable, "-m", MODULE]
        for pid in exclude:
            argv += ["--exclude-pid", str(pid)]
        self._log = state.folder / "collector.log"
        with self._log.open("wb") as log:
            self._child = processes.start(
                argv,
                env=daemon.environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                mask=mask,
                new_session=True,
            )
        state.add("collector", self._child.pid)
        if self._line(_READY_WITHIN_S).strip() != b"ready":
            processes.end_child(self._child)
            self._child = None
            raise OplineError(f"The BPF collector did not start: {self._last_words()}.")

    def _line(self, patience_s: float) -> bytes:
        """One line of the collector's standard output; what came of it if it ends or time is up."""
        assert self._child is not None and self._child.stdout is not None
        pipe = self._child.stdout.fileno()
        until = time.monotonic() + patience_s
        line = b""
        while not line.endswith(b"\n"):
            left = until - time.monotonic()
            if left <= 0 or not select.select([pipe], [], [], left)[0]:
                break
            piece = os.read(pipe, 65536)
            if not piece:
                break
            line += piece
        return line

    def _last_words(self) -> str:
        assert self._log is not None
        lines = self._log.read_text(errors="replace").strip().splitlines()
        return lines[-1].removeprefix("opline: ").rstrip(".") if lines else "it gave no reason"

    def died(self) -> str | None:
        """Its last words if it has ended by itself."""
        return self._last_words() if self._child is not None and self._child.poll() is not None else None

    def stop(self) -> dict[str, Any]:
        """Let it finish; its report. Raises OplineError if there is none."""
        assert self._child is not None
        if self._child.poll() is None:
            self._child.terminate()
        line = self._line(_DONE_WITHIN_S)
        self.kill()
        try:
            report = json.loads(line)
        except ValueError:
            report = None
        if not isinstance(report, dict):
            raise OplineError(f"The BPF collector ended without a report: {self._last_words()}.")
        return report

    def kill(self) -> None:
        """End it, however. Never raises."""
        if self._child is not None:
            processes.end_child(self._child)
            if self._child.stdout is not None:
                self._child.stdout.close()
            self._child = None
