# SPDX-License-Identifier: MIT
"""`biolatency -j` of bcc: a dictionary on each line, as Python prints one or as JSON, a histogram in each.

    {'ts': '2024-05-01 10:00:00', 'val_type': 'usecs', 'data': [{'interval-start': 0, 'interval-end': 1, 'count': 3}]}

Format: bcc's src/python/bcc/table.py, _print_json_hist. Ends are inside; 'disk' or 'flags' names a histogram.
"""

from __future__ import annotations

import ast
import calendar
import re
import time
from typing import TYPE_CHECKING, Any

from opline.errors import OplineError
from opline.readers.registry import CERTAIN, COUNTS, NO
from opline.shapes import parsed
from opline_analyses.base.quantities import DURATIONS
from opline_analyses.counts.snapshot import SECOND_US, Snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opline.readers.registry import Head
    from opline_analyses.counts.asked import Asked

CALLED, HAS = "the dictionaries of biolatency -j", COUNTS
_LINE = re.compile(r"""\s*+\{(?>.*?["']val_type["']).*\}\s*+""")
_UNITS = {"nsecs": "ns", "usecs": "us", "msecs": "ms", "secs": "s"}


def _document(line: str, where: str) -> dict[str, Any]:
    try:
        found = parsed(line)
    except ValueError:
        try:
            found = ast.literal_eval(line.strip())
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            found = None
    if not isinstance(found, dict) or not isinstance(found.get("data"), list):
        raise OplineError(f"{where}: no dictionary of biolatency -j: {line.strip()[:60]}")
    return found


def probe(head: Head) -> int:
    """CERTAIN where a line is a dictionary."""
    return CERTAIN if head.has_line(_LINE) else NO


def read(asked: Asked) -> Iterator[Snapshot]:
    """A snapshot for each second that the dictionaries name. Raises OplineError."""
    open_one: Snapshot | None = None
    stamp = None
    for number, line in enumerate(asked.lines(), 1):
        if not line.strip() or not line.lstrip().startswith("{"):
            continue
        where = f"{asked.path}, line {number}"
        document = _document(line, where)
        unit = _UNITS.get(document.get("val_type", ""))
        if unit is None:
            raise OplineError(f"{where}: the unit val_type is none of {', '.join(_UNITS)}.")
        group = str(document.get("disk", document.get("flags", "")))
        if open_one is not None and (document.get("ts") != stamp or group in open_one.groups):
            yield open_one
            open_one = None
        if open_one is None:
            stamp = document.get("ts")
            open_one = Snapshot(unit, number, _at_us(stamp), date=str(stamp or ""))
        open_one.groups.setdefault(group, {})
        for row in document["data"]:
            try:
                low, high, count = (int(row[key]) for key in ("interval-start", "interval-end", "count"))
            except (KeyError, TypeError, ValueError, OverflowError) as error:
                raise OplineError(f"{where}: a bucket without begin, end and count: {row}") from error
            open_one.add(group, (low * DURATIONS[unit], (high + 1) * DURATIONS[unit]), count)
    if open_one is not None:
        yield open_one


def _at_us(stamp: Any) -> int | None:
    try:
        return calendar.timegm(time.strptime(str(stamp), "%Y-%m-%d %H:%M:%S")) * SECOND_US
    except ValueError:
        return None
