# SPDX-License-Identifier: MIT
"""What a recording says while it waits for a collector."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from opline.capture.directory.state import State
from opline.capture.machine.signals import ENDING, Signals
from opline.capture.sources import childsource
from opline.capture.sources.childsource import ChildSource
from opline.errors import OplineError

WAITS = 'import sys; open(sys.argv[1]).read(); print(\'{"ready": true, "calls": false}\', flush=True)'


class Stderr(io.StringIO):
    """Standard error; ``then`` happens as soon as something is said."""

    def __init__(self, terminal: bool, then: Callable[[], None]) -> None:
        super().__init__()
        self._terminal = terminal
        self._then: Callable[[], None] | None = then

    def isatty(self) -> bool:
        return self._terminal

    def write(self, text: str) -> int:
        if self._then is not None:
            self._then()
            self._then = None
        return super().write(text)


class Slow(ChildSource):
    """A collector that is ready when the file ``gate``, a FIFO, is closed."""

    def begin(self, state: State, gate: Path) -> None:
        self._start([sys.executable, "-c", WAITS, str(gate)], None, state, ())

    def wait(self) -> None:
        self._await_ready()


@pytest.mark.parametrize("terminal", [True, False])
def test_a_terminal_says_what_is_waited_for(terminal: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(childsource, "_LOOKS_IN_SILENCE", 1)
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    stderr = Stderr(terminal, lambda: gate.open("w").close())
    monkeypatch.setattr(sys, "stderr", stderr)
    state = State.create(tmp_path)
    source = Slow("test", "the collector")
    try:
        source.begin(state, gate)
        if not terminal:
            gate.open("w").close()
        source.wait()
    finally:
        source.kill()
        state.remove()
    said = "\rwaiting for the collector to start \r\x1b[K"
    assert stderr.getvalue() == (said if terminal else "")


@pytest.mark.parametrize("number", ENDING)
def test_a_signal_while_a_collector_starts_is_the_exit_status(number: signal.Signals, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    signals, state = Signals(), State.create(tmp_path)
    source = Slow("test", "the collector")
    try:
        with signals.blocked():
            source.begin(state, gate)
            signal.pthread_kill(threading.get_ident(), number)
            with pytest.raises(OplineError) as raised:
                source.wait()
            assert signals.pending() == number  # fetched: else it would end the tests
    finally:
        source.kill()
        state.remove()
    assert (raised.value.message, raised.value.exit_code) == ("interrupted", 128 + number)
