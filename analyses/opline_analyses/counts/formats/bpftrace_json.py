# SPDX-License-Identifier: MIT
"""bpftrace's histograms with `-f json`: a document on each line.

    {"type": "hist", "data": {"@usecs": {"sda": [{"max": 1, "count": 2}, {"min": 2, "max": 3, "count": 7}]}}}

A map without a key has its buckets at once. Ends are inside; without `min` a bucket is below 0 or 0, without `max` it
has no upper end. Other documents (map, printf, attached_probes) are skipped, a `time` is one. As of the text, the map's
name says the unit. Source of the format: bpftrace's src/output.cpp, JsonOutput (0.9.3 to 0.21).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from opline.errors import OplineError
from opline.readers.registry import CERTAIN, COUNTS, NO
from opline.shapes import parsed
from opline.talk import talk
from opline_analyses.base.quantities import DURATIONS
from opline_analyses.counts import map_units
from opline_analyses.counts.snapshot import SECOND_US, Snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opline.readers.registry import Head
    from opline_analyses.counts.asked import Asked

CALLED, HAS = "the histograms of bpftrace -f json", COUNTS
_LINE = re.compile(r'\s*+\{"type":\s*+"l?hist",\s*+"data":.*+')
_TIME = re.compile(r"(\d\d):(\d\d):(\d\d)\s*+")


def probe(head: Head) -> int:
    """CERTAIN where a line is a histogram."""
    return CERTAIN if head.has_line(_LINE) else NO


def read(asked: Asked) -> Iterator[Snapshot]:
    """A snapshot until a map is printed again. Raises OplineError."""
    found: Snapshot | None = None
    guessed: set[str] = set()
    left_out: set[str] = set()
    at_us: int | None = None
    below = 0
    for number, line in enumerate(asked.lines(), 1):
        document = _document(line, f"{asked.path}, line {number}")
        if document.get("type") == "time" and (time := _TIME.fullmatch(str(document.get("data")))):
            at_us = (int(time[1]) * 3600 + int(time[2]) * 60 + int(time[3])) * SECOND_US
        if document.get("type") not in ("hist", "lhist") or not isinstance(document.get("data"), dict):
            continue
        for name, groups in document["data"].items():
            bare = str(name).lstrip("@")
            if asked.counted_in is None and map_units.is_no_time(bare):
                left_out.add(str(name))
                continue
            unit = asked.counted_in or map_units.unit_of(bare)
            if unit is None:
                guessed.add(str(name))
            for key, buckets in (groups if isinstance(groups, dict) else {"": groups}).items():
                group = key or str(name)
                if found is not None and group in found.groups:
                    yield found
                    found = None
                if found is None:
                    found, at_us = Snapshot(unit or "us", number, at_us), None
                found.groups.setdefault(group, {})
                below += _add(found, group, buckets, DURATIONS[unit or "us"], f"{asked.path}, line {number}")
    if found is not None:
        yield found
    for name in sorted(left_out):
        talk(f"{asked.path}: the map {name} has no times by its name: left out (--counted-in U: it has, in U).")
    for name in sorted(guessed):
        talk(f"{asked.path}: no unit of {name} is said; us is a guess. Set it with --counted-in (ns, us, ms, s).")
    if below:
        talk(f"{below} counts of {asked.path} are in buckets below 0, of clocks that differ: left out.")


def _document(line: str, where: str) -> dict[str, Any]:
    if not line.strip():
        return {}
    try:
        found = parsed(line)
    except ValueError as error:
        raise OplineError(f"{where}: not a document of bpftrace -f json: {line.strip()[:60]}") from error
    return found if isinstance(found, dict) else {}


def _add(found: Snapshot, group: str, buckets: Any, unit_ns: int, where: str) -> int:
    """Adds the buckets; gives how many counts are below 0. Raises OplineError."""
    below = 0
    try:
        for row in buckets:
            low, high, count = row.get("min"), row.get("max"), int(row["count"])
            if low is None and (high is None or int(high) < 0):
                below += count
                continue
            begin, end = int(low or 0), None if high is None else int(high) + 1
            if begin < 0:
                below += count
                continue
            found.add(group, (begin * unit_ns, None if end is None else end * unit_ns), count)
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise OplineError(f"{where}: a bucket without its count or its ends.") from error
    return below
