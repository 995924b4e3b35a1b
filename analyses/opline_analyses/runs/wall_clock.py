# SPDX-License-Identifier: MIT
"""The time of day of a run's instants, by the offset of the trace's clock (CTF: offset_s and offset, per trace)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import datetime

from opline.errors import OplineError
from opline.readers.clock import wall_offset_ns

if TYPE_CHECKING:
    from opline_analyses.runs.run import Run


def offset_ns(run: Run) -> int | None:
    """The offset from a time of the run to ns since 1970; None if the trace's clock has no such offset."""
    for trace in run.manifest.get("environment") or []:
        if (offset := wall_offset_ns(trace.get("clock") or {})) is not None:
            return offset
    return None


def time_of_day(run: Run, at_ns: int, digits: int = 0) -> str:
    """HH:MM:SS, local, with so many decimals. Raises OplineError where the trace does not say."""
    offset = offset_ns(run)
    if offset is None:
        raise OplineError("The trace's clock is not bound to the time of day: leave out -T.")
    whole, rest = divmod(at_ns + offset, 10**9)
    text = datetime.datetime.fromtimestamp(whole).strftime("%H:%M:%S")
    return text + (f".{rest:09d}"[: digits + 1] if digits else "")
