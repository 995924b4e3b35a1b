# SPDX-License-Identifier: MIT
"""A collector as a child of the recording: one line of JSON when it is ready, another one with what came of it.

How each is started is its own: :mod:`opline.capture.sources.blocksource`, :mod:`opline.capture.sources.shims`,
:mod:`opline.capture.sources.filesource`.
"""

from __future__ import annotations

import importlib.util
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from opline.capture.directory.state import State
from opline.capture.machine import machine, processes
from opline.capture.machine.patience import Patience
from opline.capture.machine.signals import ENDING
from opline.errors import OplineError
from opline.folder import OURS, Folder

COLLECTOR = "opline.capture.collectors.collector"  # of BPF's events
_READY_WITHIN_S = 30.0
_LOOK_EVERY_S = 0.1
_LOOKS_IN_SILENCE = 10  # then a terminal says what is waited for


def collector_lacking(bridge: Path) -> str | None:
    """Why the collector of BPF's events, which loads ``bridge``, cannot be started here; None if root can."""
    if importlib.util.find_spec(COLLECTOR) is None or not bridge.exists():
        return "the BPF collector is not built (make build)"
    if importlib.util.find_spec("bcc") is None:  # the collector loads it, if it has to compile
        return f"Python's bcc module is not found ({machine.how_to_get('bcc', 'python3-bpfcc')})"
    return None


class ChildSource:
    """A collector of one recording; ``name`` in messages, ``role`` in the recording's state."""

    def __init__(self, role: str, name: str, done_within_s: float = 30.0) -> None:
        self._role = role
        self._name = name
        self._done_within_s = done_within_s
        self._child: subprocess.Popen[bytes] | None = None
        self._log: Path | None = None
        self._ready: dict[str, Any] = {}

    def _start(
        self,
        argv: Sequence[str],
        env: Mapping[str, str] | None,
        state: State,
        mask: Iterable[int],
        pass_fds: Sequence[int] = (),
        cwd: str | None = None,
    ) -> None:
        """Start it with its standard output to us and its standard error to a log; ``env`` None: our environment. Its
        temporary files are in the recording's folder: what ends the recording removes them, however the collector ends.
        """
        self._log = state.folder / f"{self._role}.log"
        with Folder(state.folder, follow=False) as folder, os.fdopen(folder.create(self._log.name, OURS), "wb") as log:
            self._child = processes.start(
                argv,
                env={**(os.environ if env is None else env), "TMPDIR": str(state.folder)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                mask=mask,
                new_session=True,
                pass_fds=pass_fds,
                cwd=cwd,
            )
        state.add(self._role, self._child.pid)

    def _await_ready(self) -> None:
        """Wait for its first line. Raises OplineError with its own words if it cannot, or with the exit status of a
        signal that came meanwhile.
        """
        self._ready = self._document(_READY_WITHIN_S)
        if not self._ready.get("ready"):
            interrupted = min(set(ENDING) & signal.sigpending(), default=None)
            why = self._ready.get("error") or ("interrupted" if interrupted else self._last_words())
            self.kill()
            raise OplineError(str(why), exit_code=128 + interrupted if interrupted else 1)

    def _document(self, patience_s: float) -> dict[str, Any]:
        """One line of JSON from the collector; empty if it ends without, or time is up."""
        try:
            document = json.loads(self._line(patience_s))
        except ValueError:
            return {}
        return document if isinstance(document, dict) else {}

    def _line(self, patience_s: float) -> bytes:
        """One line of the collector's standard output; what came of it if it ends or patience does. What it is waited
        for at the begin ends with a signal to this process, too.
        """
        assert self._child is not None and self._child.stdout is not None
        pipe = self._child.stdout.fileno()
        patience = Patience(self._child.pid, patience_s)
        line = b""
        looks = 0
        while not line.endswith(b"\n"):
            left = patience.left_s
            if left <= 0 or (not self._ready and set(ENDING) & signal.sigpending()):
                break
            if not select.select([pipe], [], [], min(left, _LOOK_EVERY_S))[0]:
                looks += 1
                self._say_waiting(looks)
                continue
            piece = os.read(pipe, 65536)
            if not piece:
                break
            line += piece
        if looks >= _LOOKS_IN_SILENCE:
            self._say_waiting(0)
        return line

    def _say_waiting(self, looks: int) -> None:
        """On a terminal: what is waited for, from the look on at which silence has lasted long enough; 0: no more."""
        if looks in (0, _LOOKS_IN_SILENCE) and sys.stderr.isatty():
            until = "finish" if self._ready else "start"
            sys.stderr.write(f"\rwaiting for {self._name} to {until} " if looks else "\r\x1b[K")
            sys.stderr.flush()

    def _last_words(self) -> str:
        assert self._log is not None
        lines = self._log.read_text(errors="replace").strip().splitlines()
        return (
            lines[-1].removeprefix("opline: ").rstrip(".") if lines else "it gave no reason, or was not ready in time"
        )

    def ended(self) -> bool:
        """Has it ended by itself?"""
        return self._child is not None and self._child.poll() is not None

    def ending(self) -> bool:
        """Has it ended, or begun to? What it brings may be missing from then on."""
        return self._child is not None and processes.exiting(self._child.pid)

    def stop(self) -> dict[str, Any]:
        """Let it finish; its report. Raises OplineError if there is none."""
        assert self._child is not None
        if self._child.poll() is None:
            self._child.terminate()
        report = self._document(self._done_within_s)
        words = self._last_words()
        self.kill()
        if not report:
            raise OplineError(f"{self._name} ended without a report: {words}")
        return {**self._ready, **report}

    def kill(self) -> None:
        """End it, however. Never raises."""
        if self._child is not None:
            if not self._ready:  # it has nothing to tell yet, and no ear for SIGTERM
                self._child.kill()
            processes.end_child(self._child)
            if self._child.stdout is not None:
                self._child.stdout.close()
            self._child = None
