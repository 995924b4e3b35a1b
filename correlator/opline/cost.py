# SPDX-License-Identifier: MIT
"""What a recording came to: events per second, bytes per event, CPU time of its collectors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opline.values import Value

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class Cost(Value):
    """None: not known. ``cpu_ns_per_event``: per event that the collectors sent."""

    events_per_s: int | None
    bytes_per_event: float | None
    cpu_ns: int | None
    cpu_ns_per_event: int | None

    def text(self) -> str:
        """What is known, with commas between; empty if nothing is."""
        parts = []
        if self.events_per_s is not None:
            parts.append(f"{self.events_per_s:,} events/s")
        if self.bytes_per_event is not None:
            parts.append(f"{self.bytes_per_event:.0f} bytes each")
        if self.cpu_ns is not None:
            each = f"{self.cpu_ns_per_event:,} ns for each of their events"
            parts.append(f"the collectors took {self.cpu_ns / 1e9:.3f} s of CPU, {each}")
        return ", ".join(parts)


def cost_of(recording: Mapping[str, Any]) -> Cost:
    """Of a recording.json."""
    command = recording.get("command") or {}
    begin_ns, end_ns = command.get("begin_monotonic_ns"), command.get("end_monotonic_ns")
    lasted_ns = None if begin_ns is None or end_ns is None else end_ns - begin_ns
    events, size = recording.get("event_count"), recording.get("trace_bytes")
    known = [report for report in map(recording.get, ("collector", "probes", "rings")) if report]
    cpu_ns = sum(int(report.get("cpu_ns") or 0) for report in known)
    sent = sum(sum(report["sent"].values()) for report in known if isinstance(report.get("sent"), dict))
    told = bool(cpu_ns and sent)
    return Cost(
        events * 1_000_000_000 // lasted_ns if events and lasted_ns and lasted_ns > 0 else None,
        size / events if events and size is not None else None,
        cpu_ns if told else None,
        cpu_ns // sent if told else None,
    )
