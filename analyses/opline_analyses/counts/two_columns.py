# SPDX-License-Identifier: MIT
"""Text with two columns, a time and a value: what trace2heatmap.pl draws. A first line with letters is a header; blank
and short lines are skipped; times need not be in order.
"""

from __future__ import annotations

import io
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from opline.errors import OplineError, UsageError
from opline.readers import pipes
from opline_analyses.intervals.intervals import Batch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opline.paths import StrPath
    from opline_analyses.pictures.heatmap import Line

UNITS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
#: Values are kept in thousandths of the unit that the text has, whichever that is.
THOUSANDTHS = 1000
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
LINE = re.compile(rf"\s*({_NUMBER})\s+({_NUMBER})(?:\s.*)?")


def unit_ns(text: str | None) -> int:
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


def read(path: StrPath, time_ns: int) -> tuple[Batch, int]:
    """All rows, times in units of ``time_ns``, and how many lines were no two numbers (the header is none of them).

    Raises OplineError.
    """
    times: list[int] = []
    values: list[int] = []
    skipped = 0
    try:
        with io.TextIOWrapper(pipes.opened(path), encoding="utf-8", errors="replace") as file:
            for number, line in enumerate(file):
                found = LINE.fullmatch(line.rstrip("\r\n"))
                if found:
                    times.append(_scaled(found[1], time_ns))
                    values.append(_scaled(found[2], THOUSANDTHS))
                elif len(line.split()) > 1 and not (number == 0 and re.search("[a-zA-Z]", line)):
                    skipped += 1
    except OSError as error:
        raise OplineError(f"Cannot read {path}: {error.strerror}.") from error
    if not times:
        raise OplineError(f"{path} has no line with two numbers, a time and a value.")
    return batch_of(times, values, path), skipped


def batch_of(times: Sequence[int], values: Sequence[int], path: StrPath) -> Batch:
    """Times and values that nothing else is known of. Raises OplineError for a number that no column holds."""
    nothing: Any = np.zeros(len(times), np.int64)
    try:
        if max(times) - min(times) >= 2**63:
            raise OverflowError
        return Batch(np.array(times, np.int64), np.array(values, np.int64), nothing, nothing, [""])
    except OverflowError as error:
        raise too_large(path) from error


def too_large(path: StrPath) -> OplineError:
    """Of a number that no column holds."""
    return OplineError(f"{path} has a number that is too large: 2^63 ns are 292 years.")


def percentiles(batch: Batch, first_ns: int, step_ns: int, last: int, wanted: Sequence[float]) -> tuple[Line, ...]:
    """Of each column up to ``last`` the least value that so many per cent of its values do not exceed."""
    import numpy as np

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
