# SPDX-License-Identifier: MIT
"""The block devices of a run: their numbers by name, and the filter -d as SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opline.errors import UsageError
from opline_analyses.base.filters import devices_meant, number_among
from opline_analyses.base.text import device_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opline_analyses.runs.run import Run

_SEEN = "SELECT dev FROM (SELECT dev FROM requests UNION SELECT dev FROM ops) WHERE dev IS NOT NULL ORDER BY dev"


def device_number(run: Run, text: str) -> int:
    """A device by its name or as MAJOR:MINOR or MAJOR,MINOR, kernel-internal. Raises UsageError with those that the
    run has.
    """
    names = run.device_names()
    number = number_among(names, text)
    if number is not None:
        return number
    seen = [device_name(names, dev) for (dev,) in run.rows(_SEEN)]
    raise UsageError(f"No device {text}: the run has {', '.join(seen) or 'none'}.")


def devices_condition(run: Run, texts: Sequence[str], column: str = "dev") -> tuple[str, list[object]]:
    """What -d means, on this column. Raises UsageError."""
    parts: list[str] = []
    parameters: list[object] = []
    for negated, found in enumerate(devices_meant(texts, lambda text: device_number(run, text))):
        if found.numbers or found.majors:
            marks = [", ".join("?" * len(some)) for some in (found.numbers, found.majors)]
            sql = f"({column} IN ({marks[0]}) OR {column} >> 20 IN ({marks[1]}))"
            parts.append(f"NOT {sql}" if negated else sql)
            parameters += [*found.numbers, *found.majors]
    return " AND ".join(parts), parameters
