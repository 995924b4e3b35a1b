# SPDX-License-Identifier: MIT
"""PyLatencyMap's records: lines between `<begin record>` and `<end record>`, in any order, with cumulative counts.

    timestamp,microsec,1426348439000000,Sat Mar 14 2015    latencyunit,microsec    label,...    datasource,oracle
    1024,17

Also with the histograms of SystemTap's @hist_log and DTrace's quantize in them, which PyLatencyMap has connectors for.
What lies between records is skipped. Format: LatencyMap.py 1.3 (LucaCanali/PyLatencyMap 253598b), class LatencyRecord.
"""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

from opline.errors import OplineError
from opline.readers.registry import CERTAIN, COUNTS, NO
from opline.talk import talk
from opline_analyses.base.quantities import DURATIONS
from opline_analyses.counts.snapshot import Bucket, Snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opline.readers.registry import Head
    from opline_analyses.counts.asked import Asked

CALLED, HAS = "PyLatencyMap's records", COUNTS
SOURCES = ("bpf", "systemtap", "dtrace", "oracle")
_BEGIN = re.compile(r"\s*<\s*begin\s+record\s*>\s*", re.IGNORECASE)
_END = re.compile(r"\s*<\s*end\s+record\s*>\s*", re.IGNORECASE)
_UNITS = {"millisec": "ms", "microsec": "us", "nanosec": "ns"}
_BAR = re.compile(r"\s*+(-?\d{1,18})\s*+\|[@\s]*+(\d{1,18})\s*+")
_PAIR = re.compile(r"\s*(-?\d{1,18})\s*,\s*(\d{1,18})\s*")


def bucket_of(value: int, unit_ns: int, upper: bool) -> Bucket:
    """The bucket that a power of two names; 0 is the lowest one."""
    if upper:
        return (value // 2 * unit_ns, max(1, value) * unit_ns)
    return (value * unit_ns, (2 * value or 1) * unit_ns)


def probe(head: Head) -> int:
    """CERTAIN where a record begins."""
    return CERTAIN if head.has_line(_BEGIN) else NO


def read(asked: Asked) -> Iterator[Snapshot]:
    """A snapshot for each record. Raises OplineError."""
    path, datasource = asked.path, asked.datasource
    begin: int | None = None
    body: list[tuple[int, str]] = []
    assumed = negative = 0
    for number, line in enumerate(asked.lines(), 1):
        if _BEGIN.fullmatch(line):
            if begin is not None:
                talk(f"{path}, line {begin}: the record has no end: left out.")
            begin, body = number, []
        elif begin is None:
            continue
        elif _END.fullmatch(line):
            snapshot, said, below = _record(body, begin, path, datasource)
            assumed, negative = assumed + (not said), negative + below
            yield snapshot
            begin = None
        elif line.strip():
            body.append((number, line.strip()))
    if begin is not None:
        talk(f"{path}, line {begin}: the record has no end: left out.")
    if assumed and datasource is None:
        talk(
            f"{assumed} records of {path} do not say their datasource: a bucket B is taken for B to 2 B, as of BPF. "
            "--datasource oracle says that it is B/2 to B."
        )
    if negative:
        talk(f"{negative} counts of {path} are in buckets below 0, of clocks that differ: left out.")


def _record(body: list[tuple[int, str]], begin: int, path: str, datasource: str | None) -> tuple[Snapshot, bool, int]:
    found = Snapshot("ms", begin, cumulative=True)
    rows: list[tuple[int, int, int]] = []
    source, named = None, False  # SystemTap's and DTrace's own tables name buckets by their lower ends
    for number, text in body:
        key, comma, value = (part.strip() for part in text.partition(","))
        key, where = key.lower(), f"{path}, line {number}"
        bar = _BAR.fullmatch(text)
        if row := (bar or _PAIR.fullmatch(text)):
            named = named or bar is not None
            rows.append((number, int(row[1]), int(row[2])))
        elif key == "timestamp" and comma:
            unit, _, rest = value.partition(",")
            at, _, date = rest.partition(",")
            try:
                found.at_us, found.date = int(Decimal(at.strip())), date.strip()
            except (InvalidOperation, ValueError, OverflowError):
                unit = ""
            if unit.strip().lower() != "microsec":
                raise OplineError(f"{where}: no time in microseconds: {text}")
        elif key == "label" and comma:
            found.label = value
        elif key == "latencyunit" and comma:
            if value.lower() not in _UNITS:
                raise OplineError(f"{where}: the latency unit {value} is none of {', '.join(_UNITS)}.")
            found.unit = _UNITS[value.lower()]
        elif key == "datasource" and comma:
            source = value.lower()
            if source not in SOURCES:
                raise OplineError(f"{where}: the data source {value} is none of {', '.join(SOURCES)}.")
        elif (comma or "|" in text) and not (key.startswith("value ") and "---" in text):
            raise OplineError(f"{where}: not a bucket and its count: {text}")
    found.upper = (source or ("systemtap" if named else datasource)) == "oracle"
    negative = 0
    for number, value_of, count in rows:
        if value_of & (value_of - 1) and value_of > 0:
            raise OplineError(f"{path}, line {number}: the bucket {value_of} is not a power of two.")
        if value_of < 0:
            negative += count
        else:
            found.add("", bucket_of(value_of, DURATIONS[found.unit], found.upper), count)
    return found, source is not None or named, negative
