# SPDX-License-Identifier: MIT
"""A live view with a model: `opline record` as a child, into a temporary or a named folder; the recording's rows so
far. Memory grows only with ops in flight; the recording grows on the disk.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from opline.capture.directory import recording
from opline.capture.machine import processes
from opline.capture.machine.signals import Signals
from opline.errors import OplineError
from opline.following import Following
from opline.interpreter import python
from opline.losses import from_core
from opline.population import population_in
from opline.scratch import scratch
from opline.store.arrays import TableRows
from opline.store.schema import BY_NAME
from opline.talk import talk
from opline.values import Value
from opline_analyses.base.quantities import seconds
from opline_analyses.base.text import count_of
from opline_analyses.live.rows import CoreRows
from opline_analyses.live.snapshot import GIVEN
from opline_analyses.live.stream import Stream
from opline_analyses.live.view import tell_left_out, tell_missing
from opline_analyses.runs import ledger
from opline_analyses.runs.not_yours import left_out_line, names_in

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opline import _core
    from opline.population import Population
    from opline_analyses.live.rows import Tables
    from opline_analyses.live.stream import ViewOf
    from opline_analyses.live.watch import Wish

TABLES = ("ops", "stages", "requests")
TICK_S = 0.1
SUM_S = 1.0
MOST_TRIES = 5


class Asked(Value):
    """The recorded things: options of `opline record`."""

    model: str
    options: Sequence[str] = ()
    directory: Path | None = None  # None: removed in the end
    alone: Sequence[str] = TABLES  # in these tables only rows of the recorded programs count


class RecordingFeed:
    """A running recording: call ``step`` now and then. See Source for the rest; ``anew`` counts new beginnings: after
    each, all rows come again from the first.
    """

    def __init__(self, path: Path, model: str | None = None, alone: Sequence[str] = TABLES) -> None:
        """``alone``: tables that give only rows of the population, if the recording has one. Raises OplineError."""
        self._rows = CoreRows(TABLES)
        self._pending: list[Tables] = []
        self.following = Following(path, self, model, TABLES)
        self.first_ns: int | None = None
        self._finished = False
        self._alone = alone
        self.population: Population | None = None  # as far as known
        self.processes: dict[int, int] = {}
        self.lost = 0  # events discarded by the tracer, as far as known
        self._sum_at = 0.0

    @property
    def anew(self) -> int:
        """Number of new beginnings."""
        return max(0, self.following.anew)

    def clear(self) -> None:
        """See opline.following.Rows."""
        self._rows, self._pending = CoreRows(TABLES), []

    def add(self, core: _core.Core) -> None:
        """See opline.following.Rows."""
        self._pending.append(self._rows.take(core))

    def step(self, over: bool = False) -> bool:
        """Takes new data; returns whether there may be rows. ``over``: the recording has ended. Raises OplineError."""
        found = self.following.step(over)
        unknown = self.first_ns is None or self.population is None
        if found and (unknown or over or time.monotonic() >= self._sum_at):
            self._sum_up()
        return found

    def _sum_up(self) -> None:
        """Now and then: the summary has a line per process of the machine, and a look comes each 0.1 s."""
        if self.following.core is None:
            return
        summary = json.loads(self.following.core.summary())
        if self.first_ns is None:
            self.first_ns = summary["first_ns"]
        self.population = population_in(summary)
        self.lost = int(summary["losses"].get("discarded_events", 0))
        self._sum_at = time.monotonic() + SUM_S

    @property
    def until_ns(self) -> int | None:
        """See Source: an ended op waits for late events."""
        until_ns = self.following.until_ns
        return until_ns if until_ns is None or self._finished else until_ns - self.following.model.linger_ns

    def settled(self) -> Tables:
        """See Source."""
        parts, self._pending = self._pending, []
        if not parts:
            return self._rows.empty()
        return self._mine({n: TableRows(BY_NAME[n], [p for part in parts for p in part[n].pieces]) for n in TABLES})

    def under_way(self) -> Tables:
        """See Source."""
        if self.following.core is None:
            return self._rows.empty()
        self.following.core.show_open()
        return self._mine(self._rows.take(self.following.core))

    def _mine(self, tables: Tables) -> Tables:
        """The tables without rows of other programs. A stage's op settles with the stage."""
        if self.population is None or not self._alone:
            return tables
        only = dict.fromkeys(TABLES, "population")
        only["stages"] = f"op_id IN (SELECT op_id FROM {GIVEN}ops WHERE population)"
        for name in self._alone:
            tables[name].only = only[name]
        return tables

    def losses(self) -> dict[str, int]:
        """See Source."""
        return {} if self.following.core is None else from_core(json.loads(self.following.core.summary()), {})

    def finish(self) -> None:
        """See Source."""
        self._finished = True
        self._sum_up()
        self.following.finish()


class RecordingStream(Stream):
    """A recording through a view."""

    def __init__(
        self,
        view_of: ViewOf,
        write: Callable[[bytes], None],
        feed: RecordingFeed,
        names: Callable[[], dict[int, str]] | None = None,
    ) -> None:
        """See Stream."""
        super().__init__(view_of, write, feed, names)
        self.feed = feed
        self._anew = 0
        self.behind_s: float | None = None

    def rest(self) -> None:
        """Shows the rest of an ended recording."""
        tries = 0
        while tries < MOST_TRIES and not (self.view is not None and self.view.done):
            if not self._look(over=True):
                tries += 1  # a new beginning, or no data
            elif not self.feed.following.behind:
                return

    def look(self) -> None:
        """See Stream."""
        self._look(over=False)

    def _look(self, over: bool) -> bool:
        found = self.feed.step(over)
        self.begin()
        if self.view is None:
            return found
        if self.feed.anew != self._anew:
            self._anew = self.feed.anew
            self.view.again()
        if (until_ns := self.feed.until_ns) is not None:
            self.behind_s = time.monotonic() - until_ns / 1e9
        self.view.says = self._state()
        if found:
            super().look()
        else:
            self._say(self.view.take())
        return found

    def _state(self) -> str:
        """The state of the recording, in a few words."""
        ended = self.feed.following.recording.get("tracing_ended")
        parts = ["no event yet" if self.behind_s is None else f"{self.behind_s:.1f} s behind"]
        parts += [f"{count_of(self.feed.lost, 'event')} lost"] if self.feed.lost else []
        return ", ".join([*parts, *([f"TRACING ENDED: {ended}"] if ended else [])])


def watch_recorded(view_of: ViewOf, wish: Wish, write: Callable[[bytes], None], asked: Asked) -> tuple[int, int]:
    """As ``watch``: look on; the exit status, and how many events were lost. Raises OplineError."""
    signals = Signals()
    with ExitStack() as stack:
        stack.enter_context(signals.blocked())
        place = asked.directory or Path(stack.enter_context(scratch("top")), "recording")
        child = _start(place, asked, wish, signals)
        stack.callback(processes.end_child, child, 60.0)
        stream = _attend(view_of, write, place, wish, child, signals, asked.alone)
        goes_on = child.poll() is None and signals.ending is None
        done = stream is not None and stream.view is not None and stream.view.done
        done = done or (goes_on and bool(wish.command))  # the view's time is over, the command's time is not
        if child.poll() is None and not wish.command:
            child.send_signal(signal.SIGINT)  # the signal that ends a recording of running processes
        if stream is not None and done:
            stream.end()
        if goes_on and wish.command:
            talk(f"{wish.command[0]} goes on, and is recorded: Ctrl-C ends it.")
        while child.poll() is None:
            signals.wait(TICK_S, child)
        if stream is not None and not done:
            stream.rest()
            stream.end()
        sys.stdout.flush()
        if stream is None and child.returncode != 0:
            raise OplineError("Nothing could be recorded.", exit_code=processes.shell_status(child.returncode))
        lost = _tell(stream, place, asked.alone)
        if signals.ending is None or (signals.ending == signal.SIGINT and not wish.command):
            return processes.shell_status(child.returncode), lost
    return 128 + signals.ending, lost


def _start(place: Path, asked: Asked, wish: Wish, signals: Signals) -> subprocess.Popen[bytes]:
    argv = ["record", "--quiet", "-o", str(place), "--model", asked.model, *asked.options]
    for pid in wish.pids:
        argv += ["--pid", str(pid)]
    argv += ["--", *wish.command] if wish.command else []
    program, out = python("-m", "opline_analyses", *argv), wish.output or sys.stderr
    stdin = subprocess.DEVNULL if wish.output is not None else None  # the keys are ours
    more = processes.from_caller()
    return processes.start(program, stdin=stdin, stdout=out, stderr=out, mask=signals.mask, pass_fds=more)


def _attend(
    view_of: ViewOf,
    write: Callable[[bytes], None],
    place: Path,
    wish: Wish,
    child: subprocess.Popen[bytes],
    signals: Signals,
    alone: Sequence[str],
) -> RecordingStream | None:
    """Follows the recording to its end; None: the recording did not begin."""
    until = None if wish.duration_ns is None else time.monotonic() + wish.duration_ns / 1e9
    stream: RecordingStream | None = None
    look_at = 0.0
    while child.poll() is None:
        signals.wait(TICK_S, child)
        now = time.monotonic()
        if (until is not None and now >= until) or (signals.ending is not None and not wish.command):
            break
        if stream is None:
            if not (place / recording.FILE_NAME).exists():
                continue
            stream = RecordingStream(view_of, write, RecordingFeed(place, alone=alone))
        if now >= look_at or stream.feed.following.behind:
            stream.look()
            look_at = now + (stream.view.look_every_s if stream.view is not None else TICK_S)
            if stream.view is not None and stream.view.done:
                break
    return stream


def _tell(stream: RecordingStream | None, place: Path, alone: Sequence[str]) -> int:
    """Reports the result on standard error; returns the number of lost events."""
    note = recording.load(place)
    missing = [] if stream is None else stream.missing()
    lost = note["discarded_count"]
    lost = lost if lost is None else max(lost, ledger.bad_count(missing))
    counted = (
        "" if stream is None or stream.view is None else f"{count_of(stream.view.counted, stream.view.one)} counted; "
    )
    command = note["command"]
    begin, end = command.get("begin_monotonic_ns"), command.get("end_monotonic_ns")
    length = "" if begin is None or end is None else f"{seconds(end - begin, 3)} s, "
    events = "" if note["event_count"] is None else f"{count_of(note['event_count'], 'event')}, "
    told = "losses unknown" if lost is None else f"{lost} lost" if lost else "none lost"
    talk(f"{counted}recorded: {length}{events}{told}.")
    tell_missing(missing)
    if stream is not None and stream.feed.population is not None and alone:
        line = left_out_line(stream.feed.population, names_in(note))
        if line is not None:
            talk(line)
    if stream is not None and stream.view is not None:
        tell_left_out(stream.view)
    return int(lost or 0)
