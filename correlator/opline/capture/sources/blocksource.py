# SPDX-License-Identifier: MIT
"""The BPF collector as a child process: block events, system calls and threads' states where no lttng-modules load.

The contract is in :mod:`opline.capture.collectors.collector`.
"""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from opline.capture.bpf import request_trace
from opline.capture.directory.state import State
from opline.capture.lttng.sessiond import Sessiond
from opline.capture.sources.childsource import COLLECTOR, ChildSource, collector_lacking
from opline.interpreter import python
from opline.readers import stacks

BRIDGE = Path(__file__).parent.with_name("_bridge.so")
_CHECKED_WITHIN_S = 120.0  # half a second, if no other program wants the CPU
_FOLLOWED_WITHIN_S = 2.0


def lacking() -> str | None:
    """Why the collector cannot be started here, in a few words; None if it can."""
    if os.geteuid() != 0:
        return "not root (sudo)"
    return collector_lacking(BRIDGE)


def check() -> str | None:
    """Load and attach everything once: why block events cannot be captured here, or None. Takes half a second."""
    argv = python("-m", COLLECTOR, "--check")
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=_CHECKED_WITHIN_S, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    lines = done.stderr.strip().splitlines()
    return None if done.returncode == 0 else lines[-1] if lines else "no reason given"


class BlockSource(ChildSource):
    """A collector of block events, for one recording."""

    def __init__(
        self,
        calls: bool = False,
        states: bool = False,
        chains: bool = False,
        stack_ns: int | None = None,
        pids: Sequence[int] = (),
        records: bool = False,
        tcp: bool = False,
        rotated: bool = False,
        user_stacks: bool = False,
    ) -> None:
        """Of the command's processes and of ``pids``. ``calls``, ``states``: with their system calls, and with what
        their threads did; ``chains``: and with the threads that these wait for; ``stack_ns``: with the kernel stacks
        of waits of that length and more, ``user_stacks``: and those of their programs; ``tcp``: with positions in TCP
        streams; ``rotated``: in chunks.
        """
        super().__init__("collector", "the BPF collector")
        self.wants_records = records  # of whole requests, in a trace of their own, instead of single block events
        self._arguments = ["--rotated"] if rotated else []
        if calls:
            self._arguments.append("--calls")
        if tcp:
            self._arguments.append("--tcp")
        if states:
            self._arguments += ["--states", *(["--chains"] if chains else [])]
        self._arguments += [text for pid in pids for text in ("--attach-pid", str(pid))]
        self.wants_calls, self.wants_states, self.wants_chains = calls, states, states and chains
        self.wants_tcp = tcp
        self._stack_ns = stack_ns if self.wants_chains else None
        self._user_stacks = user_stacks
        self._ours: socket.socket | None
        self._theirs: socket.socket | None
        self._ours, self._theirs = socket.socketpair()

    def start(self, daemon: Sessiond, state: State, mask: Iterable[int], exclude: Sequence[int], trace: Path) -> None:
        """Start it and wait until it traces. ``trace``: the session's. Raises OplineError with its words if not."""
        argv = python("-m", COLLECTOR, *self._arguments)
        argv += ["--trace", str(trace)]
        if self._stack_ns is not None:
            argv += ["--stacks", str(trace.parent / stacks.FILE_NAME), "--stack-ns", str(self._stack_ns)]
            argv += ["--user-stacks"] if self._user_stacks else []
        if self.wants_records:
            argv += ["--requests", str(trace / request_trace.CHANNEL)]
        for pid in exclude:
            argv += ["--exclude-pid", str(pid)]
        if self._theirs is not None:
            argv += ["--follow-fd", str(self._theirs.fileno())]
        self._start(argv, daemon.environment(), state, mask, [] if self._theirs is None else [self._theirs.fileno()])
        if self._theirs is not None:
            self._theirs.close()
        self._await_ready()

    @property
    def calls(self) -> bool:
        """Does it record system calls?"""
        return bool(self._ready.get("calls"))

    @property
    def states(self) -> bool:
        """Does it record what threads did?"""
        return bool(self._ready.get("states"))

    @property
    def chains(self) -> bool:
        """Does it record who woke them, and what those did?"""
        return bool(self._ready.get("chains"))

    @property
    def tcp(self) -> bool:
        """Does it record positions in TCP streams?"""
        return bool(self._ready.get("tcp"))

    @property
    def no_stacks(self) -> str | None:
        """Why stacks that are wanted can't be had, in a few words."""
        return self._ready.get("no_stacks")

    @property
    def no_user_stacks(self) -> str | None:
        """The same of user stacks."""
        return self._ready.get("no_user_stacks")

    def announce(self) -> None:
        """What the command's process does before it becomes the command: says who it is, and waits until that is known.
        Never raises: without calls and states the rest of the recording is worth having.
        """
        if self._ours is None:
            return
        try:
            self._ours.settimeout(_FOLLOWED_WITHIN_S)
            # a collector that has just ended must not end the command: in a child SIGPIPE is deadly
            self._ours.send(b"%d\n" % os.getpid(), socket.MSG_NOSIGNAL)
            self._ours.recv(32)
        except OSError:
            return

    def kill(self) -> None:
        """End it, however. Never raises."""
        for end in (self._ours, self._theirs):
            if end is not None:
                end.close()
        super().kill()
