# SPDX-License-Identifier: MIT
"""What ``opline record`` says at its end: counts, losses with advice, where the trace is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from opline.capture.bpf.bridge import pid_namespace
from opline.capture.directory.recording import Recording
from opline.capture.lttng.recipe import DEFAULT_GLOBS
from opline.capture.machine.space import format_bytes
from opline.cost import cost_of


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
    elsewhere = {"shim", "app"} if counted.get("shim") or counted.get("probes") else {"shim"}
    for channel in note.channels:
        if channel.discarded_count:
            seen = channel.event_count
            share = f" ({100 * channel.discarded_count / (seen + channel.discarded_count):.2g} %)" if seen else ""
            larger = format_bytes(2 * channel.subbuf_bytes).replace(".0 ", "").removesuffix("iB")
            advice = f"--subbuf-size {larger}, or fewer events" if channel.subbuf_bytes else "fewer probes"
            lines.append(
                f"warning: {channel.discarded_count:,} events discarded in channel {channel.name}{share}: "
                f"ops at those times are incomplete; record again with {advice}"
            )
        if channel.lost_packet_count:
            lines.append(f"warning: {channel.lost_packet_count:,} packets lost in channel {channel.name}")
        asked = note.model is not None or channel.events != list(DEFAULT_GLOBS)
        if channel.event_count == 0 and channel.name not in elsewhere and asked:
            lines.append(f"warning: no events in channel {channel.name}{_why_empty(channel.name)}")
    if note.event_count() == 0 and not lines:
        lines.append("warning: nothing was recorded: the command has none of the tracepoints that opline asks for")
    return lines


def _why_empty(channel: str) -> str:
    if channel == "probes":
        return ": does anything run these programs, and pass these places?"
    if channel == "app":
        asks = ": does the command have these tracepoints (lttng list --userspace while it runs)?"
        # lttng-sessiond 2.13 closes the connection of an application whose PID it cannot see (sessiond_peers.c)
        elsewhere = (
            " An application in another container needs Linux 6.9 and --sessiond private; else record on the host, or"
            " in that container."
        )
        return asks + (elsewhere if pid_namespace() else "")
    return ""


def _collector_losses(note: Recording) -> list[str]:
    lines = []
    for report, what, effect in (
        (note.collector, "block events", "requests at those times are cut"),
        (note.probes, "hits of the model's probes", "ops at those times lack points"),
        (note.rings, "events of the shim", "ops at those times lack points"),
    ):
        names = ("lost_ring", "lost_nested", "lost_killed", "broken")
        lost = sum(int((report or {}).get(name, 0)) for name in names)
        if lost:
            lines.append(f"warning: {lost:,} {what} lost on their way into the session: {effect}")
    refused = int((note.rings or {}).get("refused", 0))
    if refused:
        lines.append(
            f"warning: rings of threads refused: {refused:,}, not of this recording's users, or too many; "
            "the first events of these threads are missing, later ones they write by themselves"
        )
    if int((note.collector or {}).get("calls_32bit", 0)):
        lines.append("warning: system calls of 32-bit programs are not recorded: they number them otherwise")
    given_up = int((note.collector or {}).get("lost_states", 0))
    if given_up:
        lines.append(f"warning: {given_up:,} scheduler events given up, too many at once: stages then have no states")
    if why := (note.collector or {}).get("stacks_unwritten"):
        lines.append(f"warning: the kernel stacks of waits are missing: {why}")
    if followed := int((note.collector or {}).get("lost_followed", 0)):
        lines.append(
            f"warning: {followed:,} waits of threads outside of the command given up, too many at once: "
            "why the command's threads waited is not known at these times"
        )
    return lines


def _probes(report: dict[str, Any]) -> list[str]:
    """What was probed for the model and what it has cost the probed threads."""
    hits, hit_ns, cost_s = int(report["hits"]), report["hit_ns"], f"{int(report['cost_ns']) / 1e9:.3f} s"
    each = f"about {hit_ns:,} ns" if hit_ns is not None else f"at least {report['entry_ns']:,} ns"
    least = "" if hit_ns is not None else "at least "
    places = sum(report["placed"].values())
    lines = [f"probes: {hits:,} hits at {places} places, {each} each: {least}{cost_s} of the probed threads' time"]
    if report.get("in_kernel"):
        lines.append(f"probes: {report['in_kernel']:,} of the hits in the kernel; what they cost is not measured")
    if report["stepped"]:
        stepped = ", ".join(report["stepped"])
        lines.append(f"probes: {report['stepped_ns']:,} ns at {stepped}, whose instructions the kernel single-steps")
    for refused in report.get("refused", []):
        lines.append(
            f"warning: probe {refused['event']} refused: {refused['hits_per_s']:,} hits a second are "
            f"{refused['share']:.1%} of a processor, too hot for --probe-budget; leave it out of the model, or raise it"
        )
    if report["unwritten"]:
        lines.append(f"warning: {report['unwritten']:,} packets of hits could not be written")
    return lines


def _cost(note: Recording) -> list[str]:
    """What the recording came to per second and event, and what its collectors took. What is not known is absent."""
    text = cost_of(note.document()).text()
    return [f"cost: {text}"] if text else []


def summary_lines(note: Recording, directory: Path) -> list[str]:
    """Lines for standard error."""
    discarded = note.discarded_count()
    loss = "discarded unknown" if discarded is None else f"{discarded:,} discarded" if discarded else "none discarded"
    begin, end = note.command.begin_monotonic_ns, note.command.end_monotonic_ns
    ran = "" if begin is None or end is None else f", {(end - begin) / 1e9:.2f} s"
    size = "" if note.trace_bytes is None else f", {format_bytes(note.trace_bytes)}"
    lines = [*_losses(note), *_collector_losses(note)]
    if note.probes is not None:
        lines += _probes(note.probes)
    if note.gaps or note.failed():
        whys = "; ".join(dict.fromkeys([*(gap.why for gap in note.gaps), *note.failed()]))
        lines.append(f"warning: the recording is not whole: {whys} (`opline losses` says what that means)")
    lines += _cost(note)
    lines.append(f"{_counts(note)}, {loss}{size}{ran}")
    lines.append(f"trace: {directory / note.trace}")
    return lines
