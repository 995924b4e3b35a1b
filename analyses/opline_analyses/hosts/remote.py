# SPDX-License-Identifier: MIT
"""One other host: `opline record --serve` there, over the user's own ssh; the host's states and recording."""

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
SILENT_S = 30.0  # during a recording the other end sends a line each second


class Remote:
    """A host asked for a recording, or for its abilities. ``failed``: the reason for a missing recording, as soon as
    known.
    """

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
        """Sends a line to the other end; a lost connection shows at the next read."""
        with suppress(BrokenPipeError):
            self._in.write(f"{line}\n".encode())

    def hear(self) -> None:
        """Takes the received data. Call only with data ready."""
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
                continue  # output of a shell's start-up file
            self.states[state] = told
            if state in ("refused", "failed"):
                self.failed = str(told.get("why"))

    def look(self) -> None:
        """Notices a long silence."""
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
        """Lets the other end remove its files, and waits for the end. ``kill``: ends the connection at once; the other
        end notices.
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
    """A file or a folder below ``into``, with this user as owner. Raises TarError for any other member."""
    if not (member.isfile() or member.isdir()) or member.name.startswith("/") or ".." in member.name.split("/"):
        raise tarfile.TarError(f"{member.name!r} is no file of a recording")
    member.uid, member.gid, member.uname, member.gname = os.getuid(), os.getgid(), "", ""
    tar.extraction_filter = lambda found, _path: found  # checked above; Python before 3.11.4 has no filters
    tar.extract(member, into)


def hear(remotes: Sequence[Remote], patience_s: float) -> None:
    """Takes data from any of the hosts, within ``patience_s``."""
    listening = [one for one in remotes if one.failed is None]
    for one in select.select(listening, [], [], patience_s)[0]:
        one.hear()
    for one in listening:
        one.look()
