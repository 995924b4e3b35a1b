# SPDX-License-Identifier: MIT
"""What ``opline record`` says at its end: counts, losses with advice, where the trace is, what to type next."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from opline.capture.recording import Recording
from opline.capture.space import format_bytes


def _counts(note: Recording) -> str:
    parts = [
        f"{channel.name} {'not counted' if channel.event_count is None else format(channel.event_count, ',')}"
        for channel in note.channels
    ]
    total = note.event_count()
    if total is None:
        return f"events: {', '.join(parts)}"
    return f"{total:,} events ({', '.join(parts)})" if len(parts) > 1 else f"{total:,} events"


def _losses(note: Recording) -> list[str]:
    lines = []
    counted = {channel.name: channel.event_count for channel in note.channels}
    # the shim's events are in the one or in the other
    elsewhere = {"shim", "app"} if counted.get("shim") else {"shim"}
    for channel in note.channels:
        if channel.discarded_count:
            seen = channel.event_count
            share = f" ({100 * channel.discarded_count / (seen + channel.discarded_count):.2g} %)" if seen else ""
            larger = format_bytes(2 * channel.subbuf_bytes).replace(".0 ", "").removesuffix("iB")
            lines.append(
                f"warning: {channel.discarded_count:,} events discarded in channel {channel.name}{share}: "
                f"ops at those times are incomplete; record again with --subbuf-size {larger}, or fewer events"
            )
        if channel.lost_packet_count:
            lines.append(f"warning: {channel.lost_packet_count:,} packets lost in channel {channel.name}")
        if channel.event_count == 0 and channel.name not in elsewhere:
            lines.append(f"warning: no events in channel {channel.name}{_why_empty(channel.name)}")
    return lines


def _why_empty(channel: str) -> str:
    if channel == "probe":
        return ": did an OSD have anything to do?"
    if channel == "app":
        return ": does the command have these tracepoints (lttng list --userspace while it runs)?"
    return ""


def _collector_losses(note: Recording) -> list[str]:
    lines = []
    for report, what, effect in (
        (note.collector, "block events", "requests at those times are cut"),
        (note.uprobes, "hits of uprobes", "ops at those times lack points"),
        (note.rings, "events of the shim", "ops at those times lack points"),
    ):
        names = ("lost_ring", "lost_nested", "lost_killed", "broken")
        lost = sum(int((report or {}).get(name, 0)) for name in names)
        if lost:
            lines.append(f"warning: {lost:,} {what} lost on their way into the session: {effect}")
    return lines


def _uprobes(report: dict[str, Any]) -> list[str]:
    """What was probed and what it has cost the probed threads."""
    hits, cost_ns = int(report["hits"]), int(report["cost_ns"])
    text = (
        f"uprobes: {len(report['functions'])} probes in {report['binary']}, {hits:,} hits at "
        f"{report['entry_ns'] / 1000:.1f} us ({report['return_ns'] / 1000:.1f} us at a return), measured here: "
        f"{cost_ns / 1e9:.2f} s of its threads' time"
    )
    return [text, f"uprobes: this build has no {', '.join(report['absent'])}"] if report["absent"] else [text]


def summary_lines(note: Recording, directory: Path) -> list[str]:
    """Lines for standard error."""
    discarded = note.discarded_count()
    loss = "discarded unknown" if discarded is None else f"{discarded:,} discarded" if discarded else "none discarded"
    begin, end = note.command.begin_monotonic_ns, note.command.end_monotonic_ns
    ran = "" if begin is None or end is None else f", {(end - begin) / 1e9:.2f} s"
    size = "" if note.trace_bytes is None else f", {format_bytes(note.trace_bytes)}"
    lines = [*_losses(note), *_collector_losses(note)]
    if note.uprobes is not None:
        lines += _uprobes(note.uprobes)
    lines.append(f"{_counts(note)}, {loss}{size}{ran}")
    lines.append(f"trace: {directory / note.trace}")
    if note.event_count() != 0:
        model = "" if note.model else " --model MODEL"
        lines.append(f"next:  opline ops {directory}{model}")
    return lines
