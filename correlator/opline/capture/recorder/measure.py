# SPDX-License-Identifier: MIT
"""Fill in what is known of a recording once its trace is complete: counts, discarded events, sizes, clocks."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from opline.capture.directory.recording import Recording
from opline.capture.lttng import counting, ctfindex
from opline.capture.machine import machine, space
from opline.capture.recorder import proof
from opline.losses import Gap
from opline.readers.trace import undeclared


def measure(
    directory: Path,
    note: Recording,
    tracer: Mapping[tuple[str, str], int],
    budget_s: float,
    cancelled: Callable[[], bool],
) -> list[str]:
    """Complete the manifest from the trace below ``directory``; lines that the user should read.

    ``tracer``: LTTng's own discarded counts per (domain, channel). Counting stops after ``budget_s`` or when cancelled.
    """
    complaints = []
    begin_ns = note.command.begin_monotonic_ns or 0
    for refused in (note.probes or {}).get("refused", []):
        if refused["at_ns"] > begin_ns:  # else it was before the recording
            why = f"no {refused['event']} any more: its probe was beyond --probe-budget"
            note.gaps.append(Gap("probes_refused", why, refused["at_ns"]))
    trace = directory / note.trace
    note.clocks_after = machine.sample_clocks()
    from_ns = time.monotonic_ns()
    counts = counting.count(trace, budget_s, cancelled) if trace.is_dir() else None
    note.took_ns["count"] = time.monotonic_ns() - from_ns
    indexes = {(i.domain, i.channel): i for i in ctfindex.read(trace)}
    # After a failed write, or where a daemon died, nobody knows.
    note.gaps += undeclared(trace)
    counts_unknown = note.write_failed or any(g.loss in ("tracer_died", "streams_stuck") for g in note.gaps)
    for channel in note.channels:
        where = (channel.domain, channel.name)
        channel.event_count = None if counts is None else counts.get(where, 0)
        index = indexes.get(where)
        seen = [] if index is None else [index.discarded_events]
        # What is discarded after a stream's last packet is only in the tracer's own count.
        if not counts_unknown:
            channel.discarded_count = max(seen + ([tracer[where]] if where in tracer else []), default=None)
            more = tracer.get(where, 0) - sum(seen)
            if more > 0:
                ends_ns = [] if index is None else index.ends_ns
                why = f"events were discarded in channel {channel.name} after its last packets"
                note.gaps.append(Gap("discarded_at_end", why, min(ends_ns, default=None), None, more))
        if index is not None:
            channel.lost_packet_count = index.lost_packets
            channel.packet_count = index.packets
            channel.content_bytes = index.content_bytes
            if index.damaged:
                complaints.append(f"{index.damaged} index files of channel {channel.name} are damaged")
    proof.prove(note, indexes)
    note.trace_bytes = space.tree_bytes(trace)
    note.state = "incomplete" if note.failed() else "complete"
    return complaints
