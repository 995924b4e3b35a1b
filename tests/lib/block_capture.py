# SPDX-License-Identifier: MIT
"""A real LTTng session with the BPF collector in it, and a loop device: for tests and measurements of block capture."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import bt2

from opline.capture.directory.state import State
from opline.capture.lttng.recipe import Channel
from opline.capture.lttng.session import Session
from opline.capture.lttng.sessiond import Sessiond, attach

MODULE = [sys.executable, "-m", "opline.capture.collectors.collector"]


@contextlib.contextmanager
def loop_device(size_bytes: int = 64 << 20, sector_size: int = 512, folder: str = "/dev/shm") -> Iterator[str]:
    """Path of a loop device on a file, in memory if nothing else is asked for."""
    with tempfile.NamedTemporaryFile(dir=folder, prefix="opline-loop-") as backing:
        backing.truncate(size_bytes)
        argv = ["losetup", "--find", "--show", f"--sector-size={sector_size}", backing.name]
        device = subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()
        try:
            yield device
        finally:
            subprocess.run(["losetup", "--detach", device], check=True)


def dev_of(device: str) -> int:
    """As block events have it: major << 20 | minor."""
    number = Path(device).stat().st_rdev
    return os.major(number) << 20 | os.minor(number)


@dataclass(slots=True)
class Capture:
    """A session that records, and its collector. ``counts`` comes when it has ended."""

    daemon: Sessiond
    session: Session
    trace: Path
    pid: int = 0  # of the collector
    ready: dict[str, Any] = field(default_factory=dict)
    counts: dict[str, Any] = field(default_factory=dict)
    discarded: int = 0

    def events(self) -> Iterator[tuple[str, int, dict[str, Any]]]:
        """(name without provider, UST time in ns, payload), in the order in which they were recorded."""
        for message in bt2.TraceCollectionMessageIterator(str(self.trace)):
            if isinstance(message, bt2._EventMessageConst):
                payload = {name: _plain(value) for name, value in message.event.payload_field.items()}
                yield message.event.name.removeprefix("block:"), message.default_clock_snapshot.value, payload


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, bt2._StringFieldConst) else int(value)


def start_collector(env: dict[str, str], *arguments: str) -> tuple[subprocess.Popen[bytes], dict[str, Any]]:
    """The process and its ready line."""
    reader, writer = os.pipe()
    child = subprocess.Popen(
        [*MODULE, f"--ready-fd={writer}", *arguments], env=env, pass_fds=[writer], stdout=subprocess.PIPE
    )
    os.close(writer)
    with os.fdopen(reader) as lines:
        return child, json.loads(lines.readline() or '{"error": "no line"}')


@contextlib.contextmanager
def standing_still(pid: int) -> Iterator[None]:
    """The process does nothing while the body runs."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@contextlib.contextmanager
def capture(
    folder: Path, *arguments: str, collect: bool = True, enable: tuple[str, ...] = ("block:*",)
) -> Iterator[Capture]:
    """Record block events while the body runs; ``collect`` False: the same session without a collector."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGCHLD})
    state = State.create(folder)
    daemon = attach("private", state, before, kernel=False)
    child = None
    try:
        session = Session(daemon, f"test-{os.getpid()}", folder / "trace")
        session.create()
        session.enable(Channel("block", False, enable), {})
        session.start()
        running = Capture(daemon, session, folder / "trace")
        if collect:
            traced = [f"--trace={folder / 'trace'}", *arguments]
            child, running.ready = start_collector(daemon.environment(), *traced)
            running.pid = child.pid
        yield running
        if child is not None:
            child.send_signal(signal.SIGTERM)
            said, _ = child.communicate(timeout=20)
            running.counts = json.loads(said)
        session.stop()
        running.discarded = sum(count.discarded_events for count in session.counts())
        session.destroy()
    finally:
        if child is not None and child.poll() is None:
            child.kill()
            child.wait()
        daemon.stop()
        state.remove()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
