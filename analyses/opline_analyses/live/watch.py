# SPDX-License-Identifier: MIT
"""A live view without a model: records from the collector's pipe into a view, until a signal, the time limit, or the
end of the watched processes.

Takes the view's options and the end's conditions; writes the view's text at once. Leaves nothing behind.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import IO, TYPE_CHECKING

from opline.capture.directory.leftovers import sweep
from opline.capture.directory.state import State
from opline.capture.machine import processes
from opline.capture.machine.signals import Signals
from opline.capture.sources.livesource import LiveSource
from opline.errors import OplineError
from opline.scratch import scratch, start_ticks
from opline.talk import talk
from opline.values import Value
from opline_analyses.base.quantities import seconds
from opline_analyses.base.text import count_of
from opline_analyses.live.feed import Feed
from opline_analyses.live.stream import Stream
from opline_analyses.live.view import tell_left_out, tell_missing
from opline_analyses.runs import ledger
from opline_analyses.runs.database import load

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opline_analyses.live.stream import ViewOf

READ_BYTES = 1 << 20
TICK_S = 0.1
TOLD_EVERY_S = 1.0  # losses, at most so often
MOST_EVENTS = 1 << 15  # between two looks: a backlog is worked off in pieces, so that memory stays bounded


class Wish(Value):
    """The condition of the end: a command's end, the end of processes, or a time."""

    command: Sequence[str] = ()
    pids: Sequence[int] = ()
    duration_ns: int | None = None
    # for the command's output; None: standard error, and the command inherits standard input
    output: IO[bytes] | None = None
    begun: str = ""  # text as soon as everything traces


class RingStream(Stream):
    """Records through a view: ``feed`` records."""

    def __init__(
        self, view_of: ViewOf, write: Callable[[bytes], None], names: Callable[[], dict[int, str]] | None = None
    ) -> None:
        """See Stream."""
        load()  # needed for the first look
        feed = Feed()
        super().__init__(view_of, write, feed, names)
        self.ring = feed.ring
        self._looked = 0  # events, at the last look

    def feed(self, data: bytes) -> None:
        """Records in pieces of any size; many records since the last look cause a look."""
        self.ring.feed(data)
        self.begin()
        if self.ring.events - self._looked >= MOST_EVENTS:
            self.look()

    def look(self) -> None:
        """See Stream."""
        self._looked = self.ring.events
        super().look()


def watch(view_of: ViewOf, wish: Wish, write: Callable[[bytes], None]) -> tuple[int, int]:
    """Runs the view; returns the exit status and the number of lost events. The status is the command's status, or 128
    + n after signal n; without a command, Ctrl-C is the regular end. Raises OplineError if nothing can be captured.
    """
    signals = Signals()
    with ExitStack() as stack:
        stack.enter_context(signals.blocked())
        sweep()
        folder = Path(stack.enter_context(scratch("live")))
        state = State.create(folder)
        stack.callback(state.remove)
        source = LiveSource()
        stack.callback(source.close)
        source.start(state, signals.mask, [os.getpid()])
        stream = RingStream(view_of, write)  # loads DuckDB, while the collector starts
        source.await_ready()
        if (ending := signals.pending()) is not None:
            return 128 + ending, 0
        if wish.begun:
            talk(wish.begun)
            sys.stderr.flush()
        child = _started(wish, signals)
        if child is not None:
            stack.callback(processes.end_child, child)
        why = _attend(stream, source, signals, wish, child)
        source.stop_and_read(stream.feed)
        stream.end()
        sys.stdout.flush()
        if why is not None:
            talk(why)
        lost = _tell(stream)
        if child is not None and signals.ending is None:
            code = child.wait()
            return processes.shell_status(code), lost
    if signals.ending is None or (signals.ending == signal.SIGINT and child is None):
        return 0, lost
    return 128 + signals.ending, lost


def _started(wish: Wish, signals: Signals) -> subprocess.Popen[bytes] | None:
    """Starts the command; its standard output goes to standard error, as standard output has only the view."""
    if not wish.command:
        return None
    more = processes.from_caller()
    try:
        if wish.output is None:
            return processes.start(wish.command, stdout=sys.stderr, mask=signals.mask, pass_fds=more)
        both, none = wish.output, subprocess.DEVNULL
        return processes.start(wish.command, stdin=none, stdout=both, stderr=both, mask=signals.mask, pass_fds=more)
    except OSError as error:
        code = 127 if isinstance(error, FileNotFoundError) else 126
        raise OplineError(f"{wish.command[0]}: {error.strerror}", exit_code=code) from error


def _attend(
    stream: RingStream, source: LiveSource, signals: Signals, wish: Wish, child: subprocess.Popen[bytes] | None
) -> str | None:
    """Watches until the end; returns the reason, if worth a message."""
    now = time.monotonic()
    until = None if wish.duration_ns is None else now + wish.duration_ns / 1e9
    watched = {pid: start_ticks(pid) for pid in wish.pids}
    look_at = tell_at = now
    told = 0
    while True:
        signals.wait(0, child)
        now = time.monotonic()
        left = TICK_S if until is None else min(TICK_S, until - now)
        if left <= 0 or (child is None and signals.ending is not None) or (child and child.poll() is not None):
            return None
        if watched and all(start_ticks(pid) != ticks for pid, ticks in watched.items()):
            return "all processes of --pid have ended"
        if select.select([source.pipe], [], [], left)[0]:
            data = os.read(source.pipe, READ_BYTES)
            if not data:
                raise OplineError("the BPF collector has ended by itself: nothing more can be seen.")
            stream.feed(data)
        now = time.monotonic()
        if now >= look_at:
            stream.look()
            look_at = now + (stream.view.look_every_s if stream.view is not None else TICK_S)
            if stream.view is not None and stream.view.done:
                return None
        if stream.ring.lost > told and now >= tell_at:
            talk(f"{count_of(stream.ring.lost - told, 'event')} lost: the ring buffer was full. See docs/losses.md.")
            told, tell_at = stream.ring.lost, now + TOLD_EVERY_S


def _tell(stream: RingStream) -> int:
    """Reports the result on standard error; returns the number of missing events."""
    missing = stream.missing()
    lost = ledger.bad_count(missing)
    if (view := stream.view) is not None:
        length = seconds((stream.ring.until_ns or view.zero_ns) - view.zero_ns, 3)
        told = f"{count_of(lost, 'event')} lost" if lost else "none lost"
        talk(f"{count_of(view.counted, view.one)} in {length} s, {count_of(stream.ring.events, 'event')}, {told}.")
        tell_missing(missing)
        tell_left_out(view)
    return lost
