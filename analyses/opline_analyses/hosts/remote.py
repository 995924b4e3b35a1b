# SPDX-License-Identifier: MIT
"""One other host: `opline record --serve` there, over the user's own ssh; its states, and the recording it sends."""

from __future__ import annotations

import json
import os
import select
import subprocess
import tarfile
import tempfile
import time
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Any

from opline import __version__
from opline.scratch import new_folder
from opline_analyses.hosts.nodes import name_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

#: BatchMode: a question on the terminal would come from several hosts at once. A dead network is noticed after 15 s.
SSH = (
    "ssh", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10",
    "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3",
)  # fmt: skip
SILENT_S = 30.0  # the other end says something each second while it records


class Remote:
    """A host that is asked for a recording, or what it can do. ``failed``: why it has none, once that is known."""

    def __init__(self, host: str, program: Sequence[str], request: dict[str, Any]) -> None:
        self.host, self.name = host, name_of(host)
        self.failed: str | None = None
        self.states: dict[str, dict[str, Any]] = {}
        self._rest = b""
        self._heard_at = time.monotonic()
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (until close)
        self._ssh = subprocess.Popen(
            [*SSH, "--", host, " ".join([*program, "record", "--serve"])],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, start_new_session=True, bufsize=0,
        )  # fmt: skip
        assert self._ssh.stdin is not None and self._ssh.stdout is not None
        self._in, self._out = self._ssh.stdin, self._ssh.stdout
        self.say(json.dumps({"opline": __version__, **request}))

    def fileno(self) -> int:
        """For select: something has come."""
        return self._out.fileno()

    def say(self, line: str) -> None:
        """A line to the other end; if that is gone, it is known when it is read from."""
        with suppress(BrokenPipeError):
            self._in.write(f"{line}\n".encode())

    def hear(self) -> None:
        """Takes what has come. Call it when there is something."""
        more = os.read(self._out.fileno(), 1 << 16)
        self._heard_at = time.monotonic()
        if not more:
            self._fail()
            return
        self._rest += more
        while b"\n" in self._rest:
            line, _, self._rest = self._rest.partition(b"\n")
            try:
                told = json.loads(line)
                state = told["state"]
            except (ValueError, KeyError, TypeError):
                continue  # what a shell's start-up file prints
            self.states[state] = told
            if state in ("refused", "failed"):
                self.failed = str(told.get("why"))

    def look(self) -> None:
        """Notices that nothing came for long."""
        if self.failed is None and "ended" not in self.states and time.monotonic() - self._heard_at > SILENT_S:
            self.failed = f"nothing was heard from it for {SILENT_S:.0f} s"

    def _fail(self) -> None:
        if self.failed is None:
            status = self._ssh.wait()
            self._errors.seek(0)
            lines = self._errors.read().decode(errors="replace").strip().splitlines()
            what = "ssh" if status == 255 else "its opline"
            self.failed = f"{what} ended with status {status}{': ' + lines[-1] if lines else ''}"

    def fetch(self, into: Path) -> None:
        """The recording becomes the folder ``into``, whole or not at all; else ``failed`` is set."""
        self.say("fetch")
        try:
            with new_folder(into) as beside, tarfile.open(fileobj=self._out, mode="r|") as tar:
                for member in tar:
                    _extract(tar, member, beside)
        except (OSError, tarfile.TarError, EOFError) as error:
            self.failed = f"its recording did not arrive: {error}"

    def close(self, kill: bool = False) -> None:
        """Lets the other end remove what it has, and waits for that. ``kill``: the connection ends at once, which the
        other end notices.
        """
        with suppress(OSError):
            self._in.close()
        if kill:
            self._ssh.kill()
        try:
            self._ssh.wait(SILENT_S)
        except subprocess.TimeoutExpired:
            self._ssh.kill()
            self._ssh.wait()
        self._out.close()
        self._errors.close()


def _extract(tar: tarfile.TarFile, member: tarfile.TarInfo, into: Path) -> None:
    """A file or a folder below ``into``, of this user. Raises TarError for what a recording does not have."""
    if not (member.isfile() or member.isdir()) or member.name.startswith("/") or ".." in member.name.split("/"):
        raise tarfile.TarError(f"{member.name!r} is no file of a recording")
    member.uid, member.gid, member.uname, member.gname = os.getuid(), os.getgid(), "", ""
    tar.extraction_filter = lambda found, _path: found  # checked above; Python before 3.11.4 has no filters
    tar.extract(member, into)


def hear(remotes: Sequence[Remote], patience_s: float) -> None:
    """Takes what comes from any of them, within so long."""
    listening = [one for one in remotes if one.failed is None]
    for one in select.select(listening, [], [], patience_s)[0]:
        one.hear()
    for one in listening:
        one.look()
