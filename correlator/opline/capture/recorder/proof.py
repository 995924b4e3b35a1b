# SPDX-License-Identifier: MIT
"""Promises of a recording (directory.promises): made when its sources are ready, proved when they have ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from opline.capture.directory.promises import (
    APP,
    BLOCK,
    CALLS,
    CLOCK,
    FILES,
    PROBES,
    SHIM,
    STATES,
    TCP,
    WORDS,
    Promise,
)  # fmt: skip
from opline.capture.directory.recording import ChannelNote, Recording
from opline.capture.lttng import recipe
from opline.capture.lttng.ctfindex import ChannelIndex
from opline.losses import BY_NAME, Gap, too_many_unseen

#: Where a source's report is in the manifest, and its channel.
_REPORTS = {**dict.fromkeys((BLOCK, CALLS, STATES, TCP), "collector"), PROBES: "probes", SHIM: "rings"}
_CHANNELS = {
    APP: recipe.APP_CHANNEL,
    BLOCK: recipe.BLOCK_CHANNEL,
    CALLS: recipe.BLOCK_CHANNEL,
    STATES: recipe.BLOCK_CHANNEL,
    TCP: recipe.BLOCK_CHANNEL,
    PROBES: "probes",
    SHIM: recipe.RING_CHANNEL,
}
#: Of the kinds of events that the BPF collector sends; all others are block events.
_EVENTS = {
    STATES: ("off_cpu", "follow", "ran_instead", "lock_wait"),
    CALLS: ("syscall_entry", "syscall_exit", "uring"),
    TCP: ("tcp",),
}
_LOST = ("lost_ring", "lost_nested", "lost_killed", "broken")
_DIED = ("tracer_died", "writes_failed", "streams_stuck")


def not_had(what: str, source: str, why: str) -> Promise:
    """A promise that was broken before the command began."""
    promise = Promise(what, source)
    promise.break_(why)
    return promise


def tell_not_had(note: Recording) -> None:
    """What was asked for and can't be recorded is a gap from the start."""
    for promise in note.promises:
        if promise.kept is False:
            note.gaps.append(Gap("not_recorded", f"no {WORDS[promise.what]}: {promise.why}"))


def prove(note: Recording, indexes: Mapping[tuple[str, str], ChannelIndex]) -> None:
    """Judge every promise by what its source left; what is not proved becomes a gap of the recording."""
    counted: set[str] = set()
    for promise in note.promises:
        if promise.kept is False:
            continue
        promise.kept = True
        if promise.what == CLOCK:
            _prove_clock(promise, note)
        elif promise.what == FILES:
            _prove_report(promise, note, note.files, "maps_missing")
        elif promise.source == "lttng-modules":
            _prove_channel(promise, note, _channel(note, recipe.KERNEL_CHANNEL), indexes)
        elif promise.what == APP:
            _prove_channel(promise, note, _channel(note, recipe.APP_CHANNEL), indexes)
        else:
            _prove_collector(promise, note, counted)


def _channel(note: Recording, name: str) -> ChannelNote | None:
    return next((channel for channel in note.channels if channel.name == name), None)


def _gap(promise: Promise, note: Recording, gap: Gap) -> None:
    """It is not kept; said once, however many promises the source has broken with it."""
    promise.break_(gap.why)
    if all((known.loss, known.why) != (gap.loss, gap.why) for known in note.gaps):
        note.gaps.append(gap)


def _expected_end_ns(note: Recording) -> int | None:
    """Until when a source must have recorded: the command's end, or when tracing was cut short and said so."""
    ends = [gap.from_ns for gap in note.gaps if gap.loss == "recording_cut_short"]
    return min((ns for ns in (*ends, note.command.end_monotonic_ns) if ns is not None), default=None)


def _prove_clock(promise: Promise, note: Recording) -> None:
    promise.begin_ns = note.clocks_before.monotonic_ns
    promise.end_ns = None if note.clocks_after is None else note.clocks_after.monotonic_ns


def _prove_channel(
    promise: Promise,
    note: Recording,
    channel: ChannelNote | None,
    indexes: Mapping[tuple[str, str], ChannelIndex],
) -> None:
    """LTTng's: stopping the session ends the last packet of every stream, after the command's end."""
    died = next((gap for gap in note.gaps if gap.loss in _DIED), None)
    if died is not None:
        promise.break_(died.why)
    if channel is None:
        return
    promise.recorded, promise.lost = channel.event_count, channel.discarded_count
    index = indexes.get((channel.domain, channel.name))
    if index is None or not index.ends_ns:
        return  # no program has registered: there is no stream
    if note.removed is not None and promise.lost is not None:  # as what was recorded: in what is kept
        promise.lost -= index.discarded_before
    promise.begin_ns, promise.end_ns = min(index.begins_ns), min(index.ends_ns)
    end_ns = _expected_end_ns(note)
    if died is None and end_ns is not None and promise.end_ns < end_ns:
        why = f"a stream of channel {channel.name} ends {_seconds(end_ns - promise.end_ns)} before the command"
        _gap(promise, note, Gap("streams_stuck", why, promise.end_ns))
    if index.lost_packets:
        promise.break_(f"{index.lost_packets:,} packets of channel {channel.name} are missing")
    if index.damaged:
        promise.break_(f"{index.damaged:,} index files of channel {channel.name} are damaged")


def _prove_report(promise: Promise, note: Recording, report: Mapping[str, Any] | None, loss: str) -> None:
    """Of a source that says when it began and ended: that encloses the command's time."""
    what = WORDS[BLOCK if promise.what in _EVENTS else promise.what]  # one collector brings all
    begin_ns, expected_ns = note.command.begin_monotonic_ns, _expected_end_ns(note)
    died = next((gap for gap in note.gaps if gap.loss == loss and what in gap.why), None)
    if died is not None:
        promise.break_(died.why)
    if report is None:
        if died is None:
            _gap(promise, note, Gap(loss, f"no {what}: their collector ended without a report"))
        return
    promise.begin_ns, promise.end_ns = report.get("begin_ns"), report.get("end_ns")
    promise.first_ns, promise.last_ns = report.get("first_ns") or None, report.get("last_ns") or None
    if died is not None or expected_ns is None:
        return
    if promise.end_ns is None or promise.end_ns < expected_ns:
        early = "" if promise.end_ns is None else f" {_seconds(expected_ns - promise.end_ns)}"
        _gap(
            promise, note, Gap(loss, f"no {what}: their collector ended{early} before the command did", promise.end_ns)
        )
    if promise.begin_ns is not None and begin_ns is not None and promise.begin_ns > begin_ns:
        late = _seconds(promise.begin_ns - begin_ns)
        why = f"no {what}: their collector began {late} after the command did"
        _gap(promise, note, Gap(loss, why, None, promise.begin_ns))


def _prove_collector(promise: Promise, note: Recording, counted: set[str]) -> None:
    """What a collector has passed on is in its channel, or counted as discarded there."""
    field = _REPORTS[promise.what]
    report = getattr(note, field)
    _prove_report(promise, note, report, "collector_died")
    channel = _channel(note, _CHANNELS[promise.what])
    if report is None or channel is None:
        return
    sent = report.get("sent") or {}
    if not isinstance(sent, dict):
        sent = {"": int(sent)}
    passed_on = sum(sent.values()) + int(report.get("watermarks", 0)) + int(report.get("lost_events", 0))
    passed_on += int(report.get("paths", 0))
    seen, discarded = channel.event_count, channel.discarded_count
    beside = _channel(note, recipe.REQUESTS_CHANNEL) if field == "collector" else None  # what it writes by itself
    if beside is not None:
        seen = None if seen is None or beside.event_count is None else seen + beside.event_count
    if note.removed is not None:
        seen = None  # of what was removed it is not known
    if field not in counted and seen is not None and discarded is not None and seen + discarded < passed_on:
        missing = passed_on - seen - discarded
        why = f"{missing:,} events that the collector of channel {channel.name} passed on are not in the trace"
        _gap(promise, note, Gap("events_unaccounted", why, count=missing))
    elif field == "collector" and field not in counted and seen is not None and seen > passed_on:
        why = (
            f"{seen - passed_on:,} events of channel {channel.name} are another recorder's: both use one daemon "
            "(--sessiond private starts another)"
        )
        _gap(promise, note, Gap("events_of_others", why, count=seen - passed_on))
    counted.add(field)
    promise.recorded, promise.lost = _share(promise, sent, report, discarded or 0)
    if promise.what == BLOCK and too_many_unseen({field: report}):
        promise.break_(BY_NAME["completions_missing"].words)


def _share(promise: Promise, sent: Mapping[str, int], report: Mapping[str, Any], discarded: int) -> tuple[int, int]:
    """How many events of a promise were recorded, and how many were lost. What a channel discarded is shared out as
    what was passed on: which events those were is not known.
    """
    lost = sum(int(report.get(name, 0)) for name in _LOST)
    whole = sum(sent.values())
    others = {what: sum(sent.get(name, 0) for name in names) for what, names in _EVENTS.items()}
    mine = {**others, BLOCK: whole - sum(others.values())}.get(promise.what, whole)
    gone = -(-(lost + discarded) * mine // whole) if whole else lost + discarded
    out = -(-discarded * mine // whole) if whole else discarded
    given_up = int(report.get("lost_states", 0)) if promise.what == STATES else 0
    return max(0, mine - out), gone + given_up


def _seconds(ns: int) -> str:
    return f"{ns / 1e9:.3f} s"


def made(
    *, app: bool, kernel: bool, states: bool, collector: Sequence[str], probes: bool, shim: bool, files: bool
) -> list[Promise]:
    """The promises of a recording whose sources are ready. ``kernel``: lttng-modules are there; ``collector``: what the
    BPF collector says that it records.
    """
    found = [Promise(APP, "lttng-ust")] if app else []
    if kernel:
        found += [Promise(what, "lttng-modules") for what in (BLOCK, CALLS, *((STATES,) if states else ()))]
    found += [Promise(what, "bpf") for what in collector]
    found += [Promise(PROBES, "bpf")] if probes else []
    found += [Promise(SHIM, "shim")] if shim else []
    found += [Promise(FILES, "fanotify")] if files else []
    return [*found, Promise(CLOCK, "clock")]
