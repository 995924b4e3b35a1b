# SPDX-License-Identifier: MIT
"""What a recorder knew to be missing from its trace: the gaps that ``recording.json`` names, as losses and intervals.

Takes the manifest as plain JSON types; an older one has no ``gaps``, but says that tracing ended early, that a write
failed, or that a collector gave no report, without a time: then the whole recording is concerned.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opline.errors import OplineError
from opline.losses import BY_NAME, Gap

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

#: A stream's data is on disk this long after the event at the latest (the recorder's switch timer, and some slack).
FLUSHED_WITHIN_NS = 1_500_000_000
_ENDED = {
    "size_limit": ("recording_cut_short", "--size-limit was reached"),
    "disk_space": ("recording_cut_short", "the disk was nearly full"),
    "sessiond_died": ("tracer_died", "the session daemon died"),
    "consumerd_died": ("tracer_died", "the consumer daemon died"),
}


def gaps_of(
    recording: Mapping[str, Any] | None,
    last_packet_ns: Callable[[], int | None],
    closed_ns: Callable[[], int | None] = lambda: None,
) -> list[Gap]:
    """The gaps of a recording. ``last_packet_ns``: when the last packet of its trace ends; asked only where the
    manifest has no time. ``closed_ns``: until when a recording that goes on is whole, as only its closed chunks are
    read; None: all of it is read. Raises OplineError for a manifest that says no such thing.
    """
    if recording is None:
        return []
    found = _removed(recording.get("removed"))
    if recording.get("state") == "recording":
        from_ns = closed_ns()
        if from_ns is None and (end_ns := last_packet_ns()) is not None:
            from_ns = end_ns - FLUSHED_WITHIN_NS
        found.append(Gap("recording_unfinished", "the recorder was killed, or is still at it", from_ns))
    if "gaps" in recording:
        return [*_named(recording["gaps"]), *found]
    ended = recording.get("tracing_ended")
    if ended:
        loss, why = _ENDED.get(str(ended), ("recording_cut_short", str(ended)))
        # the session was stopped in order then: what is in the trace is whole up to there
        found.append(Gap(loss, why, last_packet_ns() if loss == "recording_cut_short" else None))
    if recording.get("write_failed") and not (found and found[-1].loss == "tracer_died"):
        found.append(Gap("writes_failed", "LTTng could not write some packets"))
    if (
        recording.get("block_source") == "bpf"
        and recording.get("collector", "") is None
        and recording.get("state") != "recording"
    ):
        found.append(Gap("collector_died", "the BPF collector ended without a report"))
    return found


def _removed(told: Any) -> list[Gap]:
    """What `record --keep` has removed."""
    if told is None:
        return []
    try:
        count, until_ns = told["chunks"], told["until_ns"]
    except (TypeError, KeyError) as error:
        raise _nonsense() from error
    if type(count) is not int or type(until_ns) is not int:
        raise _nonsense()
    return [Gap("chunks_removed", f"{count:,} older chunks were removed (--keep)", None, until_ns, count)]


def _named(gaps: Any) -> list[Gap]:
    try:
        found = [Gap(g["loss"], str(g["why"]), g["from_ns"], g["to_ns"], g["count"]) for g in gaps]
    except (TypeError, KeyError) as error:
        raise _nonsense() from error
    for gap in found:
        times = (gap.from_ns, gap.to_ns)
        if gap.loss not in BY_NAME or type(gap.count) is not int or not all(t is None or type(t) is int for t in times):
            raise _nonsense()
    return found


def _nonsense() -> OplineError:
    return OplineError("Cannot read recording.json: its gaps are not what a recorder writes.")


def closing_line(gaps: Sequence[Gap], recording: Mapping[str, Any] | None) -> str | None:
    """What an analysis says last of a recording that is not whole; None of one that is."""
    gaps = [gap for gap in gaps if gap.loss != "chunks_removed"]  # as the user has asked
    if not gaps:
        return None
    command = (recording or {}).get("command")
    begin_ns = command.get("begin_monotonic_ns") if isinstance(command, dict) else None
    said = dict.fromkeys(f"{_when(gap, begin_ns)}{gap.why}" for gap in gaps)
    return f"the recording is not whole: {'; '.join(said)}. `opline losses` says what that means."


def _when(gap: Gap, begin_ns: object) -> str:
    if gap.from_ns is None or not isinstance(begin_ns, int):
        return ""
    from_s = max(0, gap.from_ns - begin_ns) / 1e9
    if gap.to_ns is None:
        return f"from {from_s:.3f} s on "
    return f"from {from_s:.3f} to {max(0, gap.to_ns - begin_ns) / 1e9:.3f} s "
