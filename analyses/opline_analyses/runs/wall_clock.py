# SPDX-License-Identifier: MIT
"""The time of day of a run's instants, by the offset of the trace's clock (CTF: offset_s and offset, per trace)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import datetime

from opline.errors import OplineError

if TYPE_CHECKING:
    from opline_analyses.runs.run import Run


def offset_ns(run: Run) -> int | None:
    """What to add to a time of the run for ns since 1970; None where the trace's clock has no such offset."""
    for trace in run.manifest.get("environment") or []:
        clock = trace.get("clock") or {}
        frequency, cycles, whole = clock.get("frequency"), clock.get("offset_cycles"), clock.get("offset_s")
        if frequency and (cycles or whole):
            return int(whole or 0) * 10**9 + int(cycles or 0) * 10**9 // int(frequency)
    return None


def time_of_day(run: Run, at_ns: int, digits: int = 0) -> str:
    """HH:MM:SS, local, with so many decimals. Raises OplineError where the trace does not say."""
    offset = offset_ns(run)
    if offset is None:
        raise OplineError("The trace's clock is not bound to the time of day: leave out -T.")
    whole, rest = divmod(at_ns + offset, 10**9)
    text = datetime.datetime.fromtimestamp(whole).strftime("%H:%M:%S")
    return text + (f".{rest:09d}"[: digits + 1] if digits else "")
