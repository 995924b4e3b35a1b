# SPDX-License-Identifier: MIT
"""The remote end of `opline record --hosts`: one recording on this machine for an opline on another machine, over the
standard input and output of ``opline record --serve`` (docs/internals/hosts.md, "Recording on several hosts").

Nothing stays here: the folder is temporary, and the end of standard input ends the recorder. Machines that only record
have this module and no native core.
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
from contextlib import closing, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from opline import __version__
from opline.capture.machine.processes import start
from opline.interpreter import python
from opline.readers.pings import FILE_NAME
from opline.scratch import scratch

if TYPE_CHECKING:
    from collections.abc import Sequence

ALIVE_S = 1.0
END_S = 60.0  # for a recorder to write its last data
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
    """Lines from standard input."""

    def __init__(self) -> None:
        self._rest = b""

    def line(self, patience_s: float | None) -> str | None:
        """The next line; None: no line within ``patience_s``. Raises _GoneError at the end."""
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
    """Records as told by the first line, and sends the recording. The exit status: 0, or 5 for another version."""
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
    argv = python("-m", "opline_analyses", "doctor", "--json")
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as said:
        child = start(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=said)
        while True:  # a busy machine takes longer than the other end waits for a word
            with suppress(subprocess.TimeoutExpired):
                status = child.wait(ALIVE_S)
                break
            _tell("alive")
        for file in (out, said):
            file.seek(0)
        try:
            _tell("doctor", report=json.loads(out.read()))
        except ValueError:
            _tell("failed", why=said.read().decode(errors="replace").strip() or f"doctor ended with {status}")


def _record(asked: _Asked, request: dict[str, Any], folder: Path) -> None:
    argv = python("-m", "opline_analyses", "record", *request["arguments"], "-o", str(folder))
    argv += ["--", *request["command"]] if request["command"] else []
    with tempfile.TemporaryFile() as said, closing(_Pings(request["peers"], folder, said)) as pings:
        recorder = start(argv, stdin=subprocess.DEVNULL, stdout=said, stderr=said, new_session=True)
        try:
            status = _attend(asked, recorder, folder, signal.SIGTERM if request["command"] else signal.SIGINT, pings)
        finally:
            _end(recorder)
        pings.close()
        said.seek(0)
        lines = said.read().decode(errors="replace").splitlines()
        if status < 0:  # after a kill: the recorder's processes end here
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
    asked.line(None)  # the other end has the recording, and goes


class _Pings:
    """This host's end of the pings between hosts (`opline ping`). ``peers``: addresses of the answering hosts; none:
    this host answers. Pings are optional: a recording without pings is complete.
    """

    def __init__(self, peers: Sequence[str] | None, folder: Path, said: IO[bytes]) -> None:
        self._peers, self._folder, self._said = peers, folder, said
        self._child: subprocess.Popen[bytes] | None = None
        if peers is None:
            self._answer()

    def _answer(self) -> None:
        """Announces where this host answers: at the address used by the asking host, if known."""
        connection = os.environ.get("SSH_CONNECTION", "").split()
        address = connection[2] if len(connection) == 4 else None
        words = ["--serve", *(["--address", address] if address else [])]
        self._child = start(
            python("-m", "opline_analyses", "ping", *words),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self._said,
        )  # fmt: skip
        assert self._child.stdout is not None
        line = self._child.stdout.readline().decode().strip()
        if line:
            _tell("answers", address=address, port_and_key=line.rpartition(":")[2])

    def send(self) -> None:
        """Pings the other hosts, as soon as the recording's folder exists."""
        if self._peers:
            self._child = start(
                python("-m", "opline_analyses", "ping", "-o", str(self._folder / FILE_NAME), *self._peers),
                stdin=subprocess.DEVNULL, stdout=self._said, stderr=self._said,
            )  # fmt: skip

    def close(self) -> None:
        """Ends the pings."""
        if self._child is not None:
            self._child.terminate()
            self._child.wait()
            if self._child.stdout is not None:
                self._child.stdout.close()
            self._child = None


def _attend(asked: _Asked, recorder: subprocess.Popen[bytes], folder: Path, how: signal.Signals, pings: _Pings) -> int:
    """Waits for the recorder's end, and ends the recorder on demand. Returns the exit status."""
    recording, alive_at = False, 0.0
    while recorder.poll() is None:
        if not recording and _state(folder) == "recording":
            recording = True
            pings.send()
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
    """Ends a running recorder and its command: the recorder writes its data and undoes its changes."""
    if recorder.poll() is None:
        recorder.terminate()
        with suppress(subprocess.TimeoutExpired):
            recorder.wait(END_S)
    with suppress(ProcessLookupError):
        os.killpg(recorder.pid, signal.SIGKILL)
    recorder.wait()
