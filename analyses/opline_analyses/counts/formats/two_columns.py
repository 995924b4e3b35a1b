# SPDX-License-Identifier: MIT
"""Text with two columns, a time and a value: what trace2heatmap.pl draws. A first line with letters is a header; blank
and short lines are skipped; times need not be in order.

    0.001 12.5        0.001,12.5        0,001;12,5        0,001 12,5        "0.001","12.5"

Columns are apart by blanks, or as in CSV by a comma, a semicolon or a tab. A comma inside of a number is the decimal
sign where something else separates the columns, which is said. The header may say the units: time_s,latency_ms.
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
from opline_analyses.counts.map_units import unit_of
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
_COMMAS = _NUMBER.replace(r"\.", ",")
#: Other forms: with decimal commas, and CSV, of which a third number is another tool's, too.
_SEPARATED = re.compile(
    rf"\s*+({_COMMAS})(?:\s*+;\s*+|\s++)({_COMMAS})(?=[;\s]|$)(?![;\s]++(?:.*[;\s])?{_COMMAS}(?:[;\s]|$)).*+"
)
_FIELD = rf'"?({_NUMBER})"?\s*+'
_CSV = re.compile(
    rf'\s*+{_FIELD}[,;]\s*+{_FIELD}(?=[,;]|$)(?!(?:[,;][^,;]{{0,80}}){{0,8}}[,;]\s*+"?{_NUMBER}"?\s*+(?:[,;]|$)).*+'
)
#: Names of a column that is a time itself: such a table has begins and ends, and no values.
_MOMENTS = {"begin", "start", "end", "stop", "finish", "issue", "complete", "ts", "timestamp", "date"}
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


def _numbers(line: str) -> tuple[str, str, bool] | None:
    """Both numbers of a line, with decimal points; and whether these were commas."""
    if found := _LINE.fullmatch(line):
        return found[1], found[2], False
    if found := _CSV.fullmatch(line):
        return found[1], found[2], False
    if found := _SEPARATED.fullmatch(line):
        return found[1].replace(",", "."), found[2].replace(",", "."), "," in found[1] + found[2]
    return None


def _names(line: str) -> list[str]:
    apart = r"\s*[,;\t]\s*" if re.search("[,;\t]", line.strip()) else r"\s+"
    return [name.strip('"').lower() for name in re.split(apart, line.strip())]


def probe(head: Head) -> int:
    """LIKELY where the first or the second line, under a header, has two numbers."""
    begun = head.begun(2)
    if any(_ONLY_TWO.fullmatch(line) for line in begun):
        return LIKELY
    if len(begun) == 2 and re.search("[a-zA-Z]", begun[0]) and _numbers(begun[0]) is None:
        names = _names(begun[0])
        csv = re.split("[,;\t]", begun[0])
        if len(csv) != 2 or not _MOMENTS.isdisjoint(re.split("[^a-z]+", names[-1])):
            return NO
        begun = begun[1:]
    return LIKELY if any(_CSV.fullmatch(line) or _SEPARATED.fullmatch(line) for line in begun) else NO


def read(asked: Asked) -> tuple[Batch, str]:
    """All rows, in ns. Raises OplineError."""
    if asked.unit is not None and asked.unit not in DURATIONS:
        raise UsageError(f"--unit {asked.unit}: one of {', '.join(UNITS)}.")
    batch, said = _rows(asked)
    unit = asked.unit or said
    if unit is None:
        unit = "us"
        talk(f"{asked.path}: no unit of the values is said; us is a guess. Set it with --unit (ns, us, ms, s).")
    if max(abs(int(batch.values.min())), int(batch.values.max())) * DURATIONS[unit] >= 2**63:
        raise too_large(asked.path)
    batch.values = batch.values * DURATIONS[unit] // THOUSANDTHS
    return batch, "event"


def rows(asked: Asked) -> Batch:
    """All rows, times in ns, values in thousandths of the unit that the text has. Raises OplineError."""
    return _rows(asked)[0]


def _rows(asked: Asked) -> tuple[Batch, str | None]:
    """The same, and the unit of the values that the header says."""
    path, time_ns = asked.path, _unit_ns(asked.unitstime)
    unit: str | None = None
    commas = False
    times: list[int] = []
    values: list[int] = []
    skipped = 0
    for number, line in enumerate(asked.lines()):
        if found := _numbers(line.rstrip("\r\n")):
            times.append(_scaled(found[0], time_ns))
            values.append(_scaled(found[1], THOUSANDTHS))
            commas = commas or found[2]
        elif number == 0 and re.search("[a-zA-Z]", line):
            names = _names(line)
            unit = unit_of(names[1]) if len(names) == 2 else None
            if len(names) == 2 and asked.unitstime is None:
                time_ns = DURATIONS[unit_of(names[0]) or "s"]
        elif len(re.split(r"[\s,;]+", line.strip())) > 1:
            skipped += 1
    if not times:
        raise OplineError(f"{path} has no line with two numbers, a time and a value.")
    if skipped:
        talk(f"{skipped} lines of {path} have no two numbers: left out.")
    if commas:
        talk(f"{path}: a comma is taken for the decimal sign.")
    return batch_of(times, values, path), unit


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
