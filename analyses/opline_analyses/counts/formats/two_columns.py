# SPDX-License-Identifier: MIT
"""Text with two columns, a time and a value: what trace2heatmap.pl draws. A first line with letters is a header; blank
and short lines are skipped; times need not be in order.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np

from opline.errors import OplineError, UsageError
from opline.readers.registry import LIKELY, NO, VALUES
from opline.talk import talk
from opline_analyses.base.quantities import DURATIONS
from opline_analyses.counts.values import batch_of, too_large

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opline.readers.registry import Head
    from opline_analyses.counts.asked import Asked
    from opline_analyses.intervals.intervals import Batch
    from opline_analyses.pictures.heatmap import Line

CALLED, HAS = "two columns, a time and a value", VALUES
UNITS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
#: Values are kept in thousandths of the unit that the text has, whichever that is.
THOUSANDTHS = 1000
_NUMBER = r"[-+]?(?:\d{1,64}+(?:\.\d{0,64}+)?|\.\d{1,64}+)(?:[eE][-+]?\d{1,3})?"
_LINE = re.compile(rf"\s*+({_NUMBER})\s++({_NUMBER})(?:\s.*+)?")
#: A table of more than two numbers is another tool's: which column is the value is not known.
_ONLY_TWO = re.compile(rf"\s*+{_NUMBER}\s++{_NUMBER}(?!\s++(?:.*\s)?{_NUMBER}(?:\s|$))(?:\s.*+)?")


def _unit_ns(text: str | None) -> int:
    """The unit of the times that --unitstime names. Raises UsageError."""
    unit = text or "s"
    if unit not in UNITS:
        raise UsageError(f"--unitstime {unit}: one of {', '.join(UNITS)}.")
    return UNITS[unit]


def value(text: str, option: str) -> int:
    """A value of the second column that an option has. Raises UsageError."""
    if re.fullmatch(_NUMBER, text) is None or abs(found := Decimal(text) * THOUSANDTHS) >= 1 << 62:
        raise UsageError(f"{option} {text}: not a number as in the second column.")
    return int(found)


def _scaled(text: str, factor: int) -> int:
    return int(text) * factor if text.isdecimal() else round(Decimal(text) * factor)


def probe(head: Head) -> int:
    """LIKELY where the first or the second line, under a header, has two numbers."""
    return LIKELY if any(_ONLY_TWO.fullmatch(line) for line in head.begun(2)) else NO


def read(asked: Asked) -> tuple[Batch, str]:
    """All rows, in ns. Raises OplineError."""
    unit = asked.unit or "us"
    if unit not in DURATIONS:
        raise UsageError(f"--unit {unit}: one of {', '.join(UNITS)}.")
    batch = rows(asked)
    if max(abs(int(batch.values.min())), int(batch.values.max())) * DURATIONS[unit] >= 2**63:
        raise too_large(asked.path)
    batch.values = batch.values * DURATIONS[unit] // THOUSANDTHS
    return batch, "event"


def rows(asked: Asked) -> Batch:
    """All rows, times in ns, values in thousandths of the unit that the text has. Raises OplineError."""
    path, time_ns = asked.path, _unit_ns(asked.unitstime)
    times: list[int] = []
    values: list[int] = []
    skipped = 0
    for number, line in enumerate(asked.lines()):
        found = _LINE.fullmatch(line.rstrip("\r\n"))
        if found:
            times.append(_scaled(found[1], time_ns))
            values.append(_scaled(found[2], THOUSANDTHS))
        elif len(line.split()) > 1 and not (number == 0 and re.search("[a-zA-Z]", line)):
            skipped += 1
    if not times:
        raise OplineError(f"{path} has no line with two numbers, a time and a value.")
    if skipped:
        talk(f"{skipped} lines of {path} have no two numbers: left out.")
    return batch_of(times, values, path)


def percentiles(batch: Batch, first_ns: int, step_ns: int, last: int, wanted: Sequence[float]) -> tuple[Line, ...]:
    """Of each column up to ``last`` the least value that so many per cent of its values do not exceed."""

    from opline_analyses.pictures.heatmap import line_of

    columns = (batch.at_ns - first_ns) // step_ns
    order = np.lexsort((batch.values, columns))
    values, numbers = batch.values[order], columns[order]
    places, begins, counts = np.unique(numbers, return_index=True, return_counts=True)
    found = []
    for percent in wanted:
        ranks = begins + np.maximum(np.ceil(counts * (percent / 100) - 1e-9).astype(np.int64), 1) - 1
        found.append(line_of(percent, last + 1, dict(zip(places.tolist(), values[ranks].tolist(), strict=True))))
    return tuple(found)
