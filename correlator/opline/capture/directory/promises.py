# SPDX-License-Identifier: MIT
"""What a recording promises at its start, and what proves at its end that the promise was kept.

A promise is one kind of events from one source (``recording.json``, ``promises``). A source proves itself by its own
begin and end, which must enclose the command's, and by its counts: what it says that it passed on must be in the trace,
or be counted as discarded. What is not proved is a gap, and the recording is ``incomplete``.
"""

from __future__ import annotations

from dataclasses import dataclass

#: A recording of which more than this share (1 / _LOST_OF) of the events of a promise were lost is incomplete.
_LOST_OF = 1000

BLOCK, CALLS, STATES = "block_events", "system_calls", "thread_states"
TCP = "tcp_positions"
APP, PROBES, SHIM, FILES, CLOCK = "application_events", "probe_hits", "shim_events", "file_maps", "clock"
#: In messages.
WORDS = {
    BLOCK: "block events",
    CALLS: "system calls",
    STATES: "states of threads",
    TCP: "positions in TCP streams",
    APP: "events of the application",
    PROBES: "hits of the model's probes",
    SHIM: "events of the shim",
    FILES: "maps of files",
    CLOCK: "clock samples",
}


@dataclass(slots=True)
class Promise:
    """One kind of events that is to be recorded. Times are ns of the monotonic clock; None: not known.

    ``source``: lttng-ust, lttng-modules, bpf, shim, fanotify, clock. ``kept``: None while it records. ``begin_ns``,
    ``end_ns``: from when to when the source recorded, as it says itself; ``first_ns``, ``last_ns``: its first and last
    event. ``recorded``, ``lost``: how many events.
    """

    what: str
    source: str
    kept: bool | None = None
    why: str = ""
    begin_ns: int | None = None
    end_ns: int | None = None
    first_ns: int | None = None
    last_ns: int | None = None
    recorded: int | None = None
    lost: int | None = None

    def break_(self, why: str) -> None:
        """It is not kept, for this reason; the first one stays."""
        self.kept, self.why = False, self.why or why

    def lost_too_much(self) -> str | None:
        """What to say if more than 0.1 % of the events were lost; None if no more were."""
        if not self.lost or self.recorded is None or self.lost * _LOST_OF <= self.recorded + self.lost:
            return None
        of = self.recorded + self.lost
        return f"{self.lost:,} of {of:,} {WORDS[self.what]} were lost ({100 * self.lost / of:.2g} %)"
