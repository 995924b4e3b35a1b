# SPDX-License-Identifier: MIT
"""PyLatencyMap's screen: two maps one above the other, events per second and waited time per second, the newest right.

Takes one column after the other; gives lines. Layout, scales and options are those of LatencyMap.py 1.3
(LucaCanali/PyLatencyMap 253598b); a test compares both if LatencyMap.py is there. Differences: a column with restarted
counts is marked, a map without colours has characters, and the waited time is exact for single latencies.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from opline_analyses.pictures.heatmap_text import BLUE, RAMP, RED, RESET, step_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opline_analyses.counts.snapshot import Interval, Snapshot

UNITS = {"ms": "millisec", "us": "microsec", "ns": "nanosec", "s": "sec"}
_IN_US = {"ms": 1000.0, "us": 1.0, "ns": 0.001, "s": 1e6}
LOWEST = {"1.3": {"s": 0, "ms": 0, "us": 7, "ns": 17}, "1.2": {"s": 0, "ms": 0, "us": 8, "ns": 18}}
ROWS = 12
CLEAR = "\x1b[0m\x1b[2J\x1b[H"
_MARKS = "".join(RAMP[i] for i in (0, 1, 3, 5, 6, 8, 9))  # of a map without colours
_LEGEND = 7


@dataclass(slots=True)
class Column:
    """Rates per second by exponent of two; ``waited`` is in the unit of the buckets."""

    unit: str
    frequency: dict[int, float] = field(default_factory=dict)
    waited: dict[int, float] = field(default_factory=dict)
    delta_us: int = 0
    date: str = ""
    label: str = ""
    restarted: bool = False

    def add(self, exponent: int, count: float, waited: float) -> None:
        """More of a bucket."""
        self.frequency[exponent] = self.frequency.get(exponent, 0.0) + count
        self.waited[exponent] = self.waited.get(exponent, 0.0) + waited


@dataclass(slots=True)
class Options:
    """The options of LatencyMap.py."""

    columns: int = 90
    lowest: int = -1
    highest: int = 64
    frequency_most: float = -1
    waited_most: float = -1
    debug: int = 0
    compat: str = "1.3"
    colours: str = "256"  # or never

    def ends(self, unit: str) -> tuple[int, int]:
        """The exponents of the lowest and the highest row."""
        low = self.lowest if self.lowest != -1 else LOWEST[self.compat][unit]
        if self.highest == 64:
            return low, low + ROWS - 1
        return low, self.highest + (self.compat == "1.2")

    def scale(self, asked: float, found: float) -> float:
        """The least value of a cell with the last colour."""
        if asked == -1:
            return found
        return asked * 1.2 if self.compat == "1.2" else asked


def number(value: float) -> str:
    """A number in the maps' format: one digit up to 9, whole numbers, then two digits."""
    if value < 0:
        return "0"
    if value <= 9:
        return f"{value:.1g}"
    return str(round(value)) if value < 1_000_000 else f"{value:.2g}"


def milliseconds(exponent: int, unit: str) -> str:
    """A bucket's name in ms: .512, 1, 131."""
    value: float = 2**exponent * _IN_US[unit] / 1000
    return f"{value:.3f}".lstrip("0") if value < 1 else str(round(value))


def column_of(interval: Interval) -> Column:
    """The counts of an interval, per second; the waited time is about 0.75 B with B as a bucket's upper end, 1.5 B with
    B as the lower end.
    """
    from opline_analyses.base.quantities import DURATIONS
    from opline_analyses.counts.collected import power_of

    snapshot = interval.snapshot
    found = empty_column(snapshot)
    found.delta_us, found.restarted = interval.end_us - interval.begin_us, interval.restarted
    seconds = found.delta_us / 1e6
    factor, named = (0.75, 0) if snapshot.upper else (1.5, 1)
    for counts in interval.groups.values():
        for bucket, count in counts.items():
            exponent = max(0, power_of(bucket, DURATIONS[snapshot.unit]) - named)
            found.add(exponent, count / seconds, factor * count * 2**exponent / seconds)
    return found


def empty_column(snapshot: Snapshot) -> Column:
    """The first record's column: begins the counting."""
    return Column(snapshot.unit, date=snapshot.date, label=snapshot.label)


class Screen:
    """The last columns of a series."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.unit = "ms"
        self.samples = 0
        self._columns: list[Column] = [Column("ms") for _ in range(options.columns + 1)]
        self._ends: tuple[int, int] | None = None

    def add(self, column: Column) -> None:
        """One more column; the oldest goes. The first column's unit determines the rows."""
        if self._ends is None:
            self._ends = self.options.ends(column.unit)
        low, high = self._ends
        shown = Column(column.unit, {}, {}, column.delta_us, column.date, column.label, column.restarted)
        for exponent, count in column.frequency.items():
            shown.add(min(max(exponent, low), high), count, column.waited[exponent])
        self.unit = column.unit
        self._columns = [*self._columns[1:], shown]
        self.samples += 1

    def lines(self) -> Iterator[str]:
        """All of the screen."""
        frequencies = [column.frequency for column in self._columns]
        waits = [column.waited for column in self._columns]
        wide = f"({UNITS[self.unit]}/sec)"
        yield from self._map(
            frequencies, "Frequency Heatmap: events per sec", "(N#/sec)", BLUE, self.options.frequency_most,
            "wait frequency (IOPS)",
        )  # fmt: skip
        yield from self._map(
            waits, "Intensity Heatmap: time waited per sec", wide, RED, self.options.waited_most, "time waited"
        )
        yield from self._footer()

    def _map(
        self, columns: list[dict[int, float]], title: str, unit: str, palette: tuple[int, ...], asked: float, what: str
    ) -> Iterator[str]:
        width = self.options.columns
        head = "Latency bucket".ljust(max(16, width // 2 - 10)) + title
        yield head.ljust(width + 2) + "Latest values    Legend"
        yield "(millisec)".ljust(max(16, width - len(unit) + 14)) + unit
        low, high = self._ends or (0, ROWS - 1)
        found = max(max(column.values(), default=0.0) for column in columns)
        sums = [sum(column.values()) for column in columns]
        most = self.options.scale(asked, found)
        for row, exponent in enumerate(range(high, low - 1, -1)):
            label = milliseconds(exponent, self.unit)
            if exponent == high:
                label = ">" + milliseconds(exponent - 1, self.unit)
            elif exponent == low:
                label = "<" + label
            values = [column.get(exponent, 0.0) for column in columns]
            cells = "".join(self._cell(value, most, palette) for value in values)
            reset = RESET if self.options.colours != "never" else ""
            line = f"{label:>6} {cells}{reset}{number(values[-1]).rjust(7, '.')}"
            if row < _LEGEND:
                mark = self._colour(row, palette)
                line += f"    {mark}{reset} " + ("0" if row == 0 else ">" + number(int(most * (row - 1) / 6)))
            elif row == _LEGEND:
                line += f"    Max: {number(found)}"
            elif exponent == low:
                line += "    Max(Sum):"
            yield line
        if any(column.restarted for column in self._columns):
            marks = "".join("!" if column.restarted else " " for column in self._columns)
            yield f"       {marks}  ! the counts began again"
        line = f"      x=time, y=latency bucket (ms), color={what}".ljust(width + 3)
        yield f"{line}Sum:{number(sums[-1]).rjust(7, '.')}    {number(max(sums))}"
        yield ""

    def _cell(self, value: float, most: float, palette: tuple[int, ...]) -> str:
        token = step_of(value, most)
        return f"{token}:{value}, " if self.options.debug >= 2 else self._colour(token, palette)

    def _colour(self, token: int, palette: tuple[int, ...]) -> str:
        return _MARKS[token] if self.options.colours == "never" else f"\x1b[48;5;{palette[token]}m "

    def _footer(self) -> Iterator[str]:
        def mean(columns: list[Column]) -> float:
            count = sum(sum(column.frequency.values()) for column in columns)
            return sum(sum(column.waited.values()) for column in columns) / count if count > 0 else 0.0

        last = self._columns[-1]
        name = UNITS[self.unit]
        yield (
            f"Average latency: {number(mean(self._columns))} {name}. "
            f"Average latency of latest values: {number(mean([last]))} {name}"
        )
        yield f"Sample num: {self.samples}. Delta time: {round(last.delta_us / 1e6, 1)} sec. Date: {last.date.upper()}"
        if last.label:
            yield f"Label: {last.label}"
