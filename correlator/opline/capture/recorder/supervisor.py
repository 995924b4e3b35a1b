# SPDX-License-Identifier: MIT
"""Watches over the tracing of a recording: says at once what has died or has no room, saves what can be saved, and
notes what is missing. The traced command is none of its business.

``look()`` is called some ten times a second, ``finish()`` once. What is missing becomes a gap of the recording: from
the last look at which all was well, less what is on its way to the disk.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from opline.capture.directory.buffers import Buffers
from opline.capture.directory.recording import Recording
from opline.capture.lttng import ctfindex
from opline.capture.lttng.session import SWITCH_TIMER_US, Session
from opline.capture.lttng.sessiond import Sessiond
from opline.capture.machine import space
from opline.capture.machine.processes import Watch
from opline.capture.recorder.clock_log import ClockLog
from opline.capture.recorder.keeper import Keeper
from opline.capture.sources.childsource import ChildSource
from opline.errors import OplineError
from opline.losses import Gap

_SPACE_EVERY_S = 0.25
_FLUSH_WITHIN_S = 5.0  # consumer daemons write what they have when their session daemon is gone: measured, 60 ms
#: What a collector has not passed on yet, and a daemon not written: the switch timer, and half a second for the disk.
_ON_ITS_WAY_NS = 20_000_000
_UNWRITTEN_NS = SWITCH_TIMER_US * 1000 + 500_000_000
_WRITE_FAILED = re.compile(r"No space left|Error consuming|Error in write|Input/output error|Disk quota exceeded")


@dataclass(slots=True)
class Source:
    """A collector of the recording; ``report``: where its report goes. It is ``lag_ns`` behind the events."""

    report: str  # a field of Recording
    what: str
    child: ChildSource
    lag_ns: int
    events: bool = True  # what it brings are events of the trace

    @property
    def loss(self) -> str:
        """What its death is."""
        return "collector_died" if self.events else "maps_missing"

    def ended_ns(self, note: Recording) -> int | None:
        """When it ended, as its report says: the last moment at which it recorded. None without a report."""
        report = getattr(note, self.report)
        return report.get("end_ns") if isinstance(report, dict) else None

    def stop(self, note: Recording) -> str | None:
        """Let it finish; what it says becomes part of the recording. Why there is nothing, if there is nothing."""
        try:
            setattr(note, self.report, self.child.stop())
        except OplineError as error:
            return f"{self.what} are missing: {error.message}"
        return None


@dataclass(slots=True)
class Limits:
    """When to stop tracing: at this size of the trace, and with less than ``reserve_bytes`` on the disk."""

    size_bytes: int | None
    reserve_bytes: int


class Supervisor:
    """One recording's, from the moment that everything traces. ``complain`` takes a line for the user."""

    def __init__(
        self,
        directory: Path,
        note: Recording,
        daemon: Sessiond,
        session: Session,
        buffers: Buffers | None,
        sources: list[Source],
        limits: Limits,
        clocks: ClockLog,
        complain: Callable[[str], None],
        keeper: Keeper | None = None,
    ) -> None:
        self._directory, self._note, self._daemon, self._session = directory, note, daemon, session
        self._buffers, self._sources, self._limits, self._complain = buffers, sources, limits, complain
        self._clocks, self._keeper = clocks, keeper
        self._watch = Watch(daemon.tracers())
        self._sound_ns = time.monotonic_ns()
        self._space_at = 0.0
        self._early = False  # tracing has ended before the command
        self._said: dict[str, None] = {}

    def close(self) -> None:
        """Let go of the daemons' handles, and of the clocks' file."""
        self._clocks.close()
        self._watch.close()

    def look(self) -> None:
        """Say so when something has died, or has no room; the command goes on."""
        self._clocks.look()
        now_ns = time.monotonic_ns()
        sound = not self._watch.exiting() and not any(s.child.ending() for s in self._sources)
        for source in [s for s in self._sources if s.child.ended()]:
            self._source_died(source)
        if not self._session.exists:
            return
        if gone := self._watch.gone():
            self._tracer_died(gone)
        elif self._session.active and not self._early and time.monotonic() >= self._space_at:
            self._space_at = time.monotonic() + _SPACE_EVERY_S
            self._look_for_failed_writes()
            self._look_for_room()
        if sound:
            self._sound_ns = now_ns
        if self._keeper is not None:
            self._keeper.look(any(source.events for source in self._sources))

    def finish(self) -> dict[tuple[str, str], int]:
        """Stop everything; the tracer's own discarded counts per (domain, channel). What fails is said."""
        self.look()
        self._stop_sources(all_of_them=True)
        counts = self._stop_session()
        self._clocks.close()
        self._look_for_failed_writes()
        if self._session.exists and any(gap.loss in ("writes_failed", "streams_stuck") for gap in self._note.gaps):
            self._rescue()
        self._look_into_indexes()
        self._note.notes += [f"session daemon: {line}" for line in self._said]
        return counts

    # ---- what has died -----------------------------------------------------------------------------------------------

    def _source_died(self, source: Source) -> None:
        self._sources.remove(source)
        why = source.stop(self._note)
        from_ns = source.ended_ns(self._note)
        self._gap(
            source.loss,
            f"no {source.what}: their collector died",
            self._sound_ns - source.lag_ns if from_ns is None else from_ns,
        )
        if why is not None:
            self._complain(why)
        else:
            self._complain(f"{source.what}: their collector ended before the command did")

    def _tracer_died(self, gone: list[str]) -> None:
        """First of all what is in the buffers is saved: whatever the daemon is told to do takes it away."""
        self._session.exists = self._session.active = False
        name = "session daemon" if "session daemon" in gone else "consumer daemon"
        if name == "session daemon":
            self._watch.wait("consumer daemon", _FLUSH_WITHIN_S)  # they write what they have, and end
            if self._daemon.child is not None:
                self._watch.kill("consumer daemon")
        saved = self._rescue() if self._buffers is not None else False
        self._note.tracing_ended = "sessiond_died" if name == "session daemon" else "consumerd_died"
        if self._daemon.child is not None:
            self._said |= dict.fromkeys(self._daemon.complaints())
            self._daemon.stop()
        elif name != "session daemon":
            self._session.exists = True  # somebody's daemon: not ours to end, but our session is
            self._session.destroy()
        self._gap("tracer_died", f"the {name} died", self._sound_ns - (_ON_ITS_WAY_NS if saved else _UNWRITTEN_NS))
        self._complain(f"tracing stopped: the {name} has died; the command goes on, untraced")

    def _rescue(self) -> bool:
        """Put what is in the buffers into the trace; has all been saved?"""
        if self._buffers is None or not self._session.output.is_dir():
            return False
        try:
            packets = self._buffers.rescue(self._session.output)
        except OplineError as error:
            self._complain(error.message)
            return False
        if packets:
            self._note.notes.append(f"{packets} packets were saved from the tracer's buffers")
        return True

    # ---- what has no room --------------------------------------------------------------------------------------------

    def _look_for_failed_writes(self) -> None:
        """What the daemon and its consumers log. After a failed write nobody knows how many events are missing."""
        if self._daemon.log is None or self._daemon.child is None:
            return
        new = [line for line in self._daemon.complaints() if line not in self._said]
        self._said |= dict.fromkeys(new)
        failed = next((line for line in new if _WRITE_FAILED.search(line)), None)
        if failed is not None and not self._note.write_failed:
            self._note.write_failed = True
            self._gap("writes_failed", "LTTng could not write all events", self._sound_ns - _UNWRITTEN_NS)
            self._complain(f"events are missing, LTTng could not write them: {failed}")

    def _look_for_room(self) -> None:
        """Stop tracing, not the command, when the trace is as large as allowed or the disk is nearly full."""
        limit = self._limits.size_bytes
        try:
            free = space.free_bytes(self._directory)
            if not self._session.output.is_dir():
                raise FileNotFoundError
        except OSError:
            self._note.write_failed = True
            self._gap("writes_failed", "the output directory is gone", None)
            self._stop_early(f"{self._directory} is gone, and with it the trace")
            return
        size = space.tree_bytes(self._session.output) if limit is not None else 0
        if limit is not None and size >= limit:
            self._end("size_limit", "--size-limit was reached")
            self._stop_early(f"the trace has reached {space.format_bytes(size)} (--size-limit)")
        elif free < self._limits.reserve_bytes:
            if free == 0 and not self._note.write_failed:
                self._note.write_failed = True
                self._gap("writes_failed", "the disk was full", self._sound_ns - _UNWRITTEN_NS)
            self._end("disk_space", "the disk was nearly full")
            self._stop_early(f"only {space.format_bytes(free)} left on the disk of {self._directory}")

    def _end(self, word: str, why: str) -> None:
        self._note.tracing_ended = word
        self._gap("recording_cut_short", why, time.monotonic_ns())

    def _stop_early(self, why: str) -> None:
        """The collectors first: what they know of the time before is in the trace then."""
        self._complain(f"tracing stopped: {why}; the command goes on, untraced")
        self._early = True
        self._stop_sources(all_of_them=False)
        try:
            self._session.stop(wait=False)
        except OplineError as error:
            self._session.active = True  # once more at the end
            self._complain(error.message)

    # ---- the end -----------------------------------------------------------------------------------------------------

    def _stop_sources(self, all_of_them: bool) -> None:
        """In their order: the maps of files first, as what the file systems still have to write is recorded as well."""
        self._session.rotate_no_longer()
        for source in [s for s in self._sources if all_of_them or s.events]:
            self._sources.remove(source)
            why = source.stop(self._note)
            if why is not None:
                self._complain(why)
                self._gap(source.loss, f"no {source.what}: their collector died", self._sound_ns - source.lag_ns)

    def _stop_session(self) -> dict[tuple[str, str], int]:
        if self._session.exists and (gone := self._watch.gone()):
            self._tracer_died(gone)
        if not self._session.exists:
            return {}
        try:
            self._session.stop()
            return {(c.domain, c.channel): c.discarded_events for c in self._session.counts()}
        except OplineError as error:
            self._complain(f"the session did not stop cleanly: {error.message}")
        time.sleep(0.05)  # a daemon that has just died
        if gone := self._watch.gone():
            self._tracer_died(gone)
            return {}
        ends = [end for index in ctfindex.read(self._session.output) for end in index.ends_ns]
        self._gap("streams_stuck", "LTTng did not hand over all that it had", min(ends, default=None))
        if self._daemon.child is not None:  # it would not end in order, either
            self._watch.kill("consumer daemon")
            self._rescue()
            self._session.exists = False
        return {}

    def _look_into_indexes(self) -> None:
        """A packet that the index has and the file has not could not be written."""
        short = [end for index in ctfindex.read(self._session.output) for end in index.short_from_ns]
        if short and not self._note.write_failed:
            self._note.write_failed = True
            self._gap("writes_failed", "LTTng could not write all events", min(short))
            self._complain("events are missing, LTTng could not write them: files are shorter than their indexes say")

    def _gap(self, loss: str, why: str, from_ns: int | None) -> None:
        self._note.gaps.append(Gap(loss, why, from_ns))
