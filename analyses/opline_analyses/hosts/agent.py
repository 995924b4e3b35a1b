# SPDX-License-Identifier: MIT
"""The other end of `opline record --hosts`: one recording on this machine for an opline on another one, over the
standard input and output of ``opline record --serve`` (docs/internals/hosts.md, "Recording on several hosts").

Nothing stays here: the folder is a temporary one, and the end of standard input ends the recorder. Machines that only
record have this, and no native core.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from opline import __version__
from opline.capture.machine.processes import start
from opline.interpreter import python
from opline.scratch import scratch

ALIVE_S = 1.0
END_S = 60.0  # a recorder writes what it has
REFUSED = 5
_TICK_S = 0.05


class _GoneError(Exception):
    """The other end is not there any more."""


def _tell(state: str, **more: Any) -> None:
    try:
        sys.stdout.buffer.write(json.dumps({"state": state, **more}).encode() + b"\n")
        sys.stdout.buffer.flush()
    except OSError as error:
        raise _GoneError from error


class _Asked:
    """Lines from standard input, as they come."""

    def __init__(self) -> None:
        self._rest = b""

    def line(self, patience_s: float | None) -> str | None:
        """The next one; None: none within so long. Raises _GoneError at the end."""
        while b"\n" not in self._rest:
            if not select.select([0], [], [], patience_s)[0]:
                return None
            try:
                more = os.read(0, 1 << 16)
            except OSError as error:
                raise _GoneError from error
            if not more:
                raise _GoneError
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode(errors="replace")


def serve() -> int:
    """Records as the first line asks, and sends the recording. The exit status: 0, or 5 for another version."""
    for number in (signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, _gone)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    asked = _Asked()
    try:
        request = json.loads(asked.line(None) or "null")
        if request["opline"] != __version__:
            _tell("refused", why=f"it has opline {__version__}, and opline {request['opline']} asks")
            return REFUSED
        if request["what"] == "doctor":
            _doctor()
            return 0
        if request["leave"] is not None:
            _record(asked, request, Path(request["leave"]))
            return 0
        with scratch("hosts") as folder:
            _record(asked, request, Path(folder) / "recording")
    except (_GoneError, KeyError, ValueError, OSError):
        return 1
    return 0


def _gone(_number: int, _frame: object) -> None:
    raise _GoneError


def _doctor() -> None:
    done = subprocess.run(
        python("-m", "opline_analyses", "doctor", "--json"), capture_output=True, stdin=subprocess.DEVNULL, check=False
    )
    try:
        _tell("doctor", report=json.loads(done.stdout))
    except ValueError:
        _tell("failed", why=done.stderr.decode(errors="replace").strip() or f"doctor ended with {done.returncode}")


def _record(asked: _Asked, request: dict[str, Any], folder: Path) -> None:
    argv = python("-m", "opline_analyses", "record", *request["arguments"], "-o", str(folder))
    argv += ["--", *request["command"]] if request["command"] else []
    with tempfile.TemporaryFile() as said:
        recorder = start(argv, stdin=subprocess.DEVNULL, stdout=said, stderr=said, new_session=True)
        try:
            status = _attend(asked, recorder, folder, signal.SIGTERM if request["command"] else signal.SIGINT)
        finally:
            _end(recorder)
        said.seek(0)
        lines = said.read().decode(errors="replace").splitlines()
        if status < 0:  # it was killed: what it has left running ends here
            subprocess.run(
                python("-m", "opline_analyses", "doctor", "--clean-up"), stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False,
            )  # fmt: skip
        there = (folder / "recording.json").exists()
        _tell("ended", status=status, there=there, lines=lines[-40:], folder=str(folder))
    while asked.line(None) != "fetch":  # "stop" may come after the end
        pass
    with tarfile.open(fileobj=sys.stdout.buffer, mode="w|", format=tarfile.PAX_FORMAT) as tar:
        tar.add(folder, arcname=".")
    sys.stdout.buffer.flush()
    asked.line(None)  # the other end has it, and goes


def _attend(asked: _Asked, recorder: subprocess.Popen[bytes], folder: Path, how: signal.Signals) -> int:
    """Waits for the recorder's end, and ends it when it is asked to. Its exit status."""
    recording, alive_at = False, 0.0
    while recorder.poll() is None:
        if not recording and _state(folder) == "recording":
            recording = True
            _tell("recording")
        if time.monotonic() >= alive_at:
            alive_at = time.monotonic() + ALIVE_S
            _tell("alive")
        if asked.line(_TICK_S) == "stop":
            recorder.send_signal(how)
    return recorder.returncode


def _state(folder: Path) -> object:
    try:
        return json.loads((folder / "recording.json").read_bytes()).get("state")
    except (OSError, ValueError):
        return None


def _end(recorder: subprocess.Popen[bytes]) -> None:
    """Ends the recorder and what it runs, if it still runs: it writes what it has, and takes back what it changed."""
    if recorder.poll() is None:
        recorder.terminate()
        with suppress(subprocess.TimeoutExpired):
            recorder.wait(END_S)
    with suppress(ProcessLookupError):
        os.killpg(recorder.pid, signal.SIGKILL)
    recorder.wait()
