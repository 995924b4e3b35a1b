# SPDX-License-Identifier: MIT
"""Histograms as text: SystemTap's @hist_log, DTrace's quantize and lquantize, bcc's and libbpf-tools' biolatency
and their other tools, perf-tools' iolatency, bpftrace's hist() and lhist().

    value |------------- count      value  --- Distribution --- count     usecs  : count  distribution
     1024 |@@@            17         1024 |@@@                  17       2 -> 3  : 7      |**      |     [2, 4)  7 |@@ |

Tables are of one interval until a title, a time of day, or a table of the same name begins the next one. SystemTap's
scripts say their unit and their interval; where nothing says the unit, it is SystemTap's us and DTrace's ns. Formats:
SystemTap's runtime/stat-common.c, libdtrace's dt_consume.c, bcc's src/python/bcc/table.py, bpftrace's src/output.cpp,
perf-tools' iolatency, whose buckets do not have their upper ends.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opline.readers.registry import CERTAIN, COUNTS, NO
from opline.talk import talk
from opline_analyses.base.quantities import DURATIONS
from opline_analyses.counts import map_units
from opline_analyses.counts.formats import records
from opline_analyses.counts.snapshot import SECOND_US, Snapshot

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from opline.readers.registry import Head
    from opline_analyses.counts.asked import Asked

CALLED, HAS = "histograms as text", COUNTS
SYSTEMTAP = re.compile(r"\s*value \|-+ count\s*")
DTRACE = re.compile(r"\s*value\s+-+ Distribution -+ count\s*")
BCC = re.compile(r"\s*+(\S[^|:]{0,60}?)\s*: count\s+distribution\s*")  # under a label of the script's own choice
IOLATENCY = re.compile(r"\s*>=\((ns|us|ms|s)\) \.\. <\(\1\)\s*: I/O\s*\|Distribution\s*\|\s*")
BPFTRACE = re.compile(
    r"\s*+[\[(](\.\.\.|-?\d{1,18}[KMGTPE]?)(?:, (\.\.\.|-?\d{1,18}[KMGTPE]?))?[\])]\s++(\d{1,18})\s++\|.*\|\s*+"
)
_BAR = re.compile(r"\s*+(<|>=)?\s*+(-?\d{1,18})\s*+\|[@\s]*+(\d{1,18})\s*+")
_ARROW = re.compile(r"\s*+(\d{1,18})\s*+->\s*+(\d{1,18})\s*+:\s*+(\d{1,18})\s*+\|.*+\s?")
_LINEAR = re.compile(r"\s*+(\d{1,18})\s*+:\s*+(\d{1,18})\s*+\|.*+\s?")  # bcc's _print_linear_hist: a bucket per value
_LENGTH = re.compile(r"measurement time: ([\d.]+) seconds")
_UNIT = re.compile(r"bucket \((nano|micro|milli)?seconds\)")
_TIME = re.compile(r"\s*(\d\d):(\d\d):(\d\d)\s*")
_PROBE = re.compile(r"\s*+\d++\s++\d++\s++[^\s:]*+:\S*+\s*+|\s*+CPU\s++ID\s++FUNCTION:NAME\s*+")
_EVERY = re.compile(r"Tracing block I/O.*\bevery (\d{1,6}) seconds\b.*")
# bcc's _print_log2_hist: a header and a key. SystemTap's scripts say their filters in this form.
_NAMED = re.compile(r"(?!avg |IO_)(?:Bucket )?(\w[\w ]{0,30}?) = (?:b?['\"])?+(.*?)['\"]?")
_MAP = re.compile(r"@(\w*)(?:\[(.*)\])?:\s*")
_PREFIXES = {"nano": "ns", "micro": "us", "milli": "ms", None: "s"}
_SCALES = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50, "E": 1 << 60}
_DAY_US = 86_400 * SECOND_US


class _Reader:
    def __init__(self, path: str, unit: str | None) -> None:
        self._path = path
        self._unit = unit  # that the user says
        self._told: str | None = None  # that the text says
        self._snapshot: Snapshot | None = None
        self._title: float | None = None
        self._every: float | None = None
        self._at_us: int | None = None
        self._last_us = 0
        self._name = ""  # of the next table
        self._map: str | None = None  # bpftrace's name of the next table's map, without its key
        self._left_out = False  # the table at hand has no times
        self._table_unit = "us"
        self.guessed: dict[str, str] = {}  # tables whose unit nothing says: the unit taken
        self.no_times: list[str] = []  # maps of sizes and numbers
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
            if fresh in ("bpftrace", "bcc") and self._is_left_out():
                kind, self._rows = fresh, []
                continue
            if fresh in ("systemtap", "dtrace", "bcc", "iolatency", "bpftrace"):
                self._left_out = False
                if self._snapshot is not None and self._name in self._snapshot.groups:
                    yield self._taken()
                if self._snapshot is None:
                    self._snapshot = Snapshot("", number, self._at_us, self._length_us())
                    self._at_us = self._title = None
                kind, self._group, self._name = fresh, self._name, ""
                self._table_unit = self._unit_of(kind)
                if not self._snapshot.groups:
                    self._snapshot.unit = self._table_unit
                self._snapshot.groups.setdefault(self._group, {})
                self._rows = self._row(kind, line) or []
            elif fresh in ("title", "time") and self._snapshot is not None:
                yield self._taken()
        self._end_table(kind)
        if self._snapshot is not None:
            yield self._taken()

    def _is_left_out(self) -> bool:
        """True for a map or a label that says that it has no times; a unit that the user gives is believed."""
        name, self._map = self._map or "", None
        self._left_out = self._unit is None and map_units.is_no_time(name)
        if self._left_out and name not in self.no_times:
            self.no_times.append(name)
        if not self._left_out:
            self._map = name
        return self._left_out

    def _unit_of(self, kind: str) -> str:
        """Of the table that begins: as the user, the text or the map's name says; else the tool's usual one."""
        name, self._map = self._map or "", None
        if found := self._unit or self._told or map_units.unit_of(name):
            return found
        usual = "ns" if kind == "dtrace" else "us"
        self.guessed.setdefault(name or self._group, usual)
        return usual

    def _length_us(self) -> int | None:
        seconds = self._every if self._title is None else self._title
        return round(seconds * SECOND_US) if seconds else None

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
            self._told, self._map = None, bcc[1]
            return "bcc"
        if (iolatency := IOLATENCY.fullmatch(line)) is not None:
            self._told = iolatency[1]
            return "iolatency"
        if every := _EVERY.fullmatch(line.strip()):
            self._every = float(every[1])
            return ""
        if time := _TIME.fullmatch(line):
            self._time(int(time[1]) * 3600 + int(time[2]) * 60 + int(time[3]))
            return "time"
        parts = [_NAMED.fullmatch(part) for part in line.strip().split("\t")]
        if all(parts):
            for part in filter(None, parts):  # a disk, and its flags: on one line or on two
                key = part[2] or part[0].rstrip(":")
                key = f"{part[1]} {key}" if key.isdecimal() else key
                self._name = f"{self._name}, {key}" if self._name else key
            return "name"
        if named := _MAP.fullmatch(line.strip()):
            self._map = f"@{named[1]}"
            self._name = named[2] or line.strip().rstrip(":")
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
        if kind == "bcc" and (linear := _LINEAR.fullmatch(line)):
            return [(int(linear[1]), int(linear[1]) + 1, int(linear[2]))]
        if kind == "iolatency" and (arrow := _ARROW.fullmatch(line)):
            return [(int(arrow[1]), int(arrow[2]), int(arrow[3]))]
        if kind == "bpftrace" and (span := BPFTRACE.fullmatch(line)):
            low = _number(span[1])
            if low is None:
                return [(-1, 0, int(span[3]))]
            high = low + 1 if span[2] is None else _number(span[2])
            return [(low, high, int(span[3]))]
        return None

    def _end_table(self, kind: str) -> None:
        if not kind or self._snapshot is None or self._left_out:
            return
        unit_ns = DURATIONS[self._table_unit]
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


def probe(head: Head) -> int:
    """CERTAIN where a table begins that is not in one of PyLatencyMap's records."""
    if records.probe(head):
        return NO
    return CERTAIN if any(head.has_line(pattern) for pattern in (SYSTEMTAP, DTRACE, BCC, IOLATENCY, BPFTRACE)) else NO


def read(asked: Asked) -> Iterator[Snapshot]:
    """A snapshot for each interval."""
    path = asked.path
    reader = _Reader(path, asked.counted_in)
    yield from reader.snapshots(asked.lines())
    for name in reader.no_times:
        what = "map" if name.startswith("@") else "table"
        talk(
            f"{path}: the {what} {name} has no times by its name: left out (--counted-in U: its values are of unit U)."
        )
    for name, taken in reader.guessed.items():
        where = f" of {name}" if name else ""
        talk(f"{path}: no unit{where} is said; {taken} is a guess. Set it with --counted-in (ns, us, ms, s).")
    if reader.below:
        talk(f"{reader.below} counts of {path} are in buckets below 0, of clocks that differ: left out.")
