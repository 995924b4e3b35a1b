# SPDX-License-Identifier: MIT
"""Histograms as text: SystemTap's @hist_log, DTrace's quantize and lquantize, bcc's and libbpf-tools' biolatency,
bpftrace's hist() and lhist().

    value |------------- count      value  --- Distribution --- count     usecs  : count  distribution
     1024 |@@@            17         1024 |@@@                  17       2 -> 3  : 7      |**      |     [2, 4)  7 |@@ |

Tables are of one interval until a title, a time of day, or a table of the same name begins the next one. SystemTap's
scripts say their unit and their interval; where nothing says the unit, it is SystemTap's us and DTrace's ns. Formats:
SystemTap's runtime/stat-common.c, libdtrace's dt_consume.c, bcc's src/python/bcc/table.py, bpftrace's src/output.cpp.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opline.talk import talk
from opline_analyses.base.quantities import DURATIONS
from opline_analyses.counts.snapshot import SECOND_US, Snapshot

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SYSTEMTAP = re.compile(r"\s*value \|-+ count\s*")
DTRACE = re.compile(r"\s*value\s+-+ Distribution -+ count\s*")
BCC = re.compile(r"\s*(nsecs|usecs|msecs|secs)\s+: count\s+distribution\s*")
BPFTRACE = re.compile(r"\s*[\[(](\.\.\.|-?\d+[KMGT]?)(?:, (\.\.\.|-?\d+[KMGT]?))?[\])]\s+(\d+)\s+\|.*\|\s*")
_BAR = re.compile(r"\s*(<|>=)?\s*(-?\d+)\s*\|[@\s]*?\s*(\d+)\s*")
_ARROW = re.compile(r"\s*(\d+)\s*->\s*(\d+)\s*:\s*(\d+)\s*\|.*\|?\s*")
_LENGTH = re.compile(r"measurement time: ([\d.]+) seconds")
_UNIT = re.compile(r"bucket \((nano|micro|milli)?seconds\)")
_TIME = re.compile(r"\s*(\d\d):(\d\d):(\d\d)\s*")
_PROBE = re.compile(r"\s*\d+\s+\d+\s+\S*:\S*\s*|\s*CPU\s+ID\s+FUNCTION:NAME\s*")
_NAMED = re.compile(r"(?:disk|flags) = '?(.*?)'?\s*")
_MAP = re.compile(r"@\w*(?:\[(.*)\])?:\s*")
_PREFIXES = {"nano": "ns", "micro": "us", "milli": "ms", None: "s"}
_SCALES = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_DAY_US = 86_400 * SECOND_US


class _Reader:
    def __init__(self, path: str, unit: str | None) -> None:
        self._path = path
        self._unit = unit  # that the user says
        self._told: str | None = None  # that the text says
        self._snapshot: Snapshot | None = None
        self._title: float | None = None
        self._at_us: int | None = None
        self._last_us = 0
        self._name = ""  # of the next table
        self._rows: list[tuple[int, int | None, int]] = []
        self._group = ""
        self._linear = False
        self.below = 0

    def snapshots(self, lines: Iterable[str]) -> Iterator[Snapshot]:
        """All of them, in order."""
        kind = ""
        number = 0
        for number, line in enumerate(lines, 1):
            if (found := self._row(kind, line)) is not None:
                self._rows += found
                continue
            if line.strip() in ("~", ""):
                continue
            fresh = "bpftrace" if BPFTRACE.fullmatch(line) else self._begins(line)
            if fresh or kind == "bpftrace":
                self._end_table(kind)
                kind = ""
            if fresh in ("systemtap", "dtrace", "bcc", "bpftrace"):
                if self._snapshot is not None and self._name in self._snapshot.groups:
                    yield self._taken()
                if self._snapshot is None:
                    self._snapshot = Snapshot("", number, self._at_us, self._length_us())
                    self._at_us = self._title = None
                kind, self._group, self._name = fresh, self._name, ""
                self._snapshot.unit = self._unit or self._told or ("ns" if kind == "dtrace" else "us")
                self._snapshot.groups.setdefault(self._group, {})
                self._rows = self._row(kind, line) or []
            elif fresh in ("title", "time") and self._snapshot is not None:
                yield self._taken()
        self._end_table(kind)
        if self._snapshot is not None:
            yield self._taken()

    def _length_us(self) -> int | None:
        return round(self._title * SECOND_US) if self._title is not None else None

    def _taken(self) -> Snapshot:
        assert self._snapshot is not None
        taken, self._snapshot = self._snapshot, None
        return taken

    def _begins(self, line: str) -> str:
        """What a line that is no row begins, and what it says."""
        if title := _LENGTH.search(line):
            self._title = float(title[1])
            return "title"
        if unit := _UNIT.search(line):
            self._told = _PREFIXES[unit[1]]
            return ""
        if SYSTEMTAP.fullmatch(line):
            return "systemtap"
        if DTRACE.fullmatch(line):
            return "dtrace"
        if bcc := BCC.fullmatch(line):
            self._told = {"nsecs": "ns", "usecs": "us", "msecs": "ms", "secs": "s"}[bcc[1]]
            return "bcc"
        if time := _TIME.fullmatch(line):
            self._time(int(time[1]) * 3600 + int(time[2]) * 60 + int(time[3]))
            return "time"
        if named := (_NAMED.fullmatch(line.strip()) or _MAP.fullmatch(line.strip())):
            self._name = named[1] or line.strip().rstrip(":")
            return "name"
        if not _PROBE.fullmatch(line) and not line.lstrip().startswith(("avg =", "Tracing", "Filters:", "IO_")):
            self._name = line.strip() if line.startswith("  ") and len(line.split()) == 1 else ""
        return ""

    def _time(self, seconds: int) -> None:
        at_us = seconds * SECOND_US
        while at_us < self._last_us:  # midnight
            at_us += _DAY_US
        self._last_us = self._at_us = at_us

    def _row(self, kind: str, line: str) -> list[tuple[int, int | None, int]] | None:
        """Low, high (None: the next row's low, or open) and count; None of a line that is no row."""
        if kind in ("systemtap", "dtrace") and (bar := _BAR.fullmatch(line)):
            value, count = int(bar[2]), int(bar[3])
            return [(-1, 0, count)] if bar[1] == "<" and value <= 0 else [(value, None, count)]
        if kind == "bcc" and (arrow := _ARROW.fullmatch(line)):
            return [(int(arrow[1]), int(arrow[2]) + 1, int(arrow[3]))]
        if kind == "bpftrace" and (span := BPFTRACE.fullmatch(line)):
            low = _number(span[1])
            if low is None:
                return [(-1, 0, int(span[3]))]
            high = low + 1 if span[2] is None else _number(span[2])
            return [(low, high, int(span[3]))]
        return None

    def _end_table(self, kind: str) -> None:
        if not kind or self._snapshot is None:
            return
        unit_ns = DURATIONS[self._snapshot.unit]
        lows = sorted({low for low, _, _ in self._rows if low >= 0})
        powers = all(low & (low - 1) == 0 for low in lows)
        for low, high, count in self._rows:
            if low < 0:
                self.below += count
                continue
            if high is None and kind in ("systemtap", "dtrace"):
                after = next((other for other in lows if other > low), None)
                high = (2 * low or 1) if powers else after
            self._snapshot.add(self._group, (low * unit_ns, None if high is None else high * unit_ns), count)
        self._rows = []


def _number(text: str) -> int | None:
    if text == "...":
        return None
    return int(text[:-1]) * _SCALES[text[-1]] if text[-1] in _SCALES else int(text)


def snapshots(lines: Iterable[str], path: str, unit: str | None = None) -> Iterator[Snapshot]:
    """A snapshot for each interval. ``unit``: of tables that do not say theirs."""
    reader = _Reader(path, unit)
    yield from reader.snapshots(lines)
    if reader.below:
        talk(f"{reader.below} counts of {path} are in buckets below 0, of clocks that differ: left out.")
