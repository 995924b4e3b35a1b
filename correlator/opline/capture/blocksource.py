# SPDX-License-Identifier: MIT
"""Block events and system calls where no lttng-modules load, and uprobes: the BPF collector as a child process.

The contract is in :mod:`opline.capture.collector`.
"""

from __future__ import annotations

import importlib.util
import json
import os
import select
import socket
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
_FOLLOWED_WITHIN_S = 2.0


def lacking() -> str | None:
    """Why the collector cannot be started here, in a few words; None if it can."""
    if os.geteuid() != 0:
        return "not root"
    if importlib.util.find_spec(MODULE) is None or not BRIDGE.exists():
        return "the BPF collector is not built (make build)"
    if machine.bcc_version() is None:
        return "Python's bcc module is not installed (apt install python3-bpfcc)"
    return None


def running_osd() -> Path:
    """The program of the ceph-osd processes that run here. Raises OplineError if none runs, or several programs."""
    found: dict[tuple[int, int], Path] = {}
    for pid in processes.named("ceph-osd"):
        link = Path(f"/proc/{pid}/exe")
        try:
            seen, path = link.stat(), link.resolve()
            # another mount namespace's (a container's) path means nothing here
            same = path.exists() and path.samefile(link)
        except OSError:
            continue
        found[seen.st_dev, seen.st_ino] = path if same else link
    if not found:
        raise OplineError("--uprobes: no ceph-osd is running here")
    if len(found) > 1:
        raise OplineError(f"--uprobes: several ceph-osd programs are running: {', '.join(map(str, found.values()))}")
    return next(iter(found.values()))


def check() -> str | None:
    """Load and attach everything once: why block events cannot be captured here, or None. Takes half a second."""
    argv = [sys.executable, "-m", MODULE, "--check"]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=_READY_WITHIN_S, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    lines = done.stderr.strip().splitlines()
    return None if done.returncode == 0 else lines[-1] if lines else "no reason given"


class BlockSource:
    """A collector of one recording: of block events, or with ``uprobes`` of hits in that ceph-osd."""

    def __init__(self, calls: bool = False, uprobes: Path | None = None) -> None:
        """``calls``: the command's system calls, too."""
        self._role = "collector" if uprobes is None else "uprobes"
        self._arguments = [] if uprobes is None else ["--uprobes", str(uprobes)]
        self.wants_calls = calls
        self._ours: socket.socket | None = None
        self._theirs: socket.socket | None = None
        if calls:
            self._ours, self._theirs = socket.socketpair()
        self._child: subprocess.Popen[bytes] | None = None
        self._log: Path | None = None
        self._ready: dict[str, Any] = {}

    def start(self, daemon: Sessiond, state: State, mask: Iterable[int], exclude: Sequence[int]) -> None:
        """Start it and wait until it traces. Raises OplineError with its own words if it cannot."""
        argv = [sys.executable, "-m", MODULE, *self._arguments]
        for pid in exclude:
            argv += ["--exclude-pid", str(pid)]
        if self._theirs is not None:
            argv += ["--follow-fd", str(self._theirs.fileno())]
        self._log = state.folder / f"{self._role}.log"
        with self._log.open("wb") as log:
            self._child = processes.start(
                argv,
                env=daemon.environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                mask=mask,
                new_session=True,
                pass_fds=[] if self._theirs is None else [self._theirs.fileno()],
            )
        if self._theirs is not None:
            self._theirs.close()
        state.add(self._role, self._child.pid)
        self._ready = self._document(_READY_WITHIN_S)
        if not self._ready.get("ready"):
            why = self._ready.get("error") or self._last_words()
            self.kill()
            raise OplineError(str(why))

    @property
    def calls(self) -> bool:
        """Does it record system calls?"""
        return bool(self._ready.get("calls"))

    def announce(self) -> None:
        """What the command's process does before it becomes the command: says who it is, and waits until that is known.
        Never raises: without system calls the rest of the recording is worth having.
        """
        if self._ours is None:
            return
        try:
            self._ours.settimeout(_FOLLOWED_WITHIN_S)
            self._ours.sendall(b"%d\n" % os.getpid())
            self._ours.recv(32)
        except OSError:
            return

    def _document(self, patience_s: float) -> dict[str, Any]:
        """One line of JSON from the collector; empty if it ends without, or time is up."""
        try:
            document = json.loads(self._line(patience_s))
        except ValueError:
            return {}
        return document if isinstance(document, dict) else {}

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

    def ended(self) -> bool:
        """Has it ended by itself?"""
        return self._child is not None and self._child.poll() is not None

    def stop(self) -> dict[str, Any]:
        """Let it finish; its report. Raises OplineError if there is none."""
        assert self._child is not None
        if self._child.poll() is None:
            self._child.terminate()
        report = self._document(_DONE_WITHIN_S)
        words = self._last_words()
        self.kill()
        if not report:
            raise OplineError(f"the BPF collector ended without a report: {words}")
        return {**self._ready, **report}

    def kill(self) -> None:
        """End it, however. Never raises."""
        for end in (self._ours, self._theirs):
            if end is not None:
                end.close()
        if self._child is not None:
            processes.end_child(self._child)
            if self._child.stdout is not None:
                self._child.stdout.close()
            self._child = None


def for_uprobes() -> BlockSource:
    """A collector of uprobes' hits in the ceph-osd that runs here. Raises OplineError if there can be none."""
    why = lacking()
    if why is not None:
        raise OplineError(f"--uprobes: {why}")
    return BlockSource(uprobes=running_osd())
