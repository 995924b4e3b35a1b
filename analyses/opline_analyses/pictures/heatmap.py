# SPDX-License-Identifier: MIT
"""Heat maps: how many I/Os fell into which interval of time and which range of latency, size or offset.

Takes a tally of the engine; gives a `Map` that the terminal and SVG draw. No I/O is left out: the greatest value lies
in a row, the last moment in a column, and what --minlat and --maxlat exclude is in a row below or above.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opline.errors import UsageError
from opline.values import Value
from opline_analyses.base.quantities import round_up
from opline_analyses.intervals.buckets import Fine, Linear, Within
from opline_analyses.intervals.intervals import Cell

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opline_analyses.block.io_series import Series
    from opline_analyses.intervals.intervals import Tally

MOST_COLUMNS = 10_000  # as trace2heatmap.pl
MOST_ROWS = 2_000


class Measure(Value):
    """What the vertical axis is: SQL over a source's columns, the unit of its labels, and how many of ours one is.
    ``known``: whether ours are ns or bytes.
    """

    name: str
    sql: str
    unit: str
    scale: int
    known: bool = True


class Scale(Value):
    """The vertical axis: buckets ``first`` to ``last``, with one row for each, and one more below and above where
    values are outside.
    """

    buckets: Any  # Within
    first: int
    last: int


def scale_of(
    least: int, most: int, rows: int, step: int | None, log: bool, bounded: tuple[bool, bool], unit: int = 1
) -> Scale:
    """An axis from ``least`` to ``most``, both inside. ``step``: of a row, else so that there are at most ``rows``; a
    logarithmic one has powers of two of the ``unit``, or these split in 2, 4, 8 or 16.
    ``bounded``: whether somebody chose the lower and the upper end, so that values may lie outside.

    Raises UsageError.
    """
    if most < least:
        raise UsageError("--maxlat is below --minlat.")
    if log:
        inner: Any = Fine(unit, 4)
        while inner.bits and int(inner.index(most) - inner.index(least)) >= rows:
            inner = Fine(unit, inner.bits - 1)
        first, last = int(inner.index(least)), int(inner.index(most))
    else:
        if step is not None and step < 1:
            raise UsageError("Row resolution too high: a row is less than a nanosecond, or a byte.")
        inner = Linear(step if step is not None else max(1, -(-(most - least + 1) // rows)), least)
        first, last = 0, int(inner.index(most))
    if last - first + 1 > MOST_ROWS:
        raise UsageError(f"{last - first + 1} rows: too many (> {MOST_ROWS}). Choose a larger --steplat, or --rows.")
    return Scale(Within(inner, first if bounded[0] else 0, last if bounded[1] else 1 << 62), first, last)


class Line(Value):
    """A percentile of what was measured, per column; None where nothing was."""

    name: str
    values: tuple[int | None, ...]


class Map(Value):
    """Cells by (column, row), both from 0; row -1 and row ``rows`` hold what is below and above the axis."""

    cells: dict[tuple[int, int], Cell]
    columns: int
    rows: int
    begin_ns: int  # of the first column, from the run's first event
    step_ns: int
    edges: list[tuple[int, int]]  # of each row
    measure: Measure
    lines: tuple[Line, ...] = ()

    @property
    def total(self) -> Cell:
        """All I/Os of the map."""
        whole = Cell()
        for cell in self.cells.values():
            whole.add(cell)
        return whole

    def shown_rows(self) -> list[int]:
        """From the top: the row above, if it has something, then the last to the first, then the one below."""
        used = {row for _, row in self.cells}
        top = [self.rows] if self.rows in used else []
        return [*top, *range(self.rows - 1, -1, -1), *([-1] if -1 in used else [])]

    def label(self, row: int) -> str:
        """The lower edge of a row, in the measure's unit; `<` and `>` for what is outside."""
        if row < 0:
            return f"<{self.number(self.edges[0][0])}"
        if row >= self.rows:
            return f">{self.number(self.edges[-1][1])}"
        return self.number(self.edges[row][0])

    def edges_of(self, row: int) -> tuple[int | None, int | None]:
        """Where a row begins and where it ends; None: nowhere."""
        if row < 0:
            return None, self.edges[0][0]
        return self.edges[row] if row < self.rows else (self.edges[-1][1], None)

    def row_of(self, value: int) -> int:
        """The row that a value falls into; -1 and ``rows`` are outside."""
        if value < self.edges[0][0]:
            return -1
        return next((row for row, (_, high) in enumerate(self.edges) if value < high), self.rows)

    def number(self, value: int) -> str:
        """A value in the measure's unit."""
        whole, rest = divmod(value, self.measure.scale)
        return str(whole) if not rest else f"{value / self.measure.scale:.6g}"


def map_of(tally: Tally, series: Series, scale: Scale, measure: Measure, lines: tuple[Line, ...] = ()) -> Map:
    """What was counted, as a map."""
    cells: dict[tuple[int, int], Cell] = {}
    for index, found in tally.intervals(series.first, series.last):
        if series.first <= index <= series.last:
            for (_, bucket), cell in found.items():
                row = min(max(bucket, scale.first - 1), scale.last + 1) - scale.first
                cells.setdefault((index - series.first, row), Cell()).add(cell)
    edges = [scale.buckets.edges(b) for b in range(scale.first, scale.last + 1)]
    begin = series.grid.begin_ns(series.first) - series.zero_ns
    columns = series.last - series.first + 1
    return Map(cells, columns, len(edges), begin, series.grid.step_ns, edges, measure, lines)


def percents(text: str) -> tuple[float, ...]:
    """The percentiles that somebody wants: 50,99,99.9. Raises UsageError."""
    try:
        found = tuple(sorted({float(part) for part in text.split(",")}))
    except ValueError as error:
        raise UsageError(f"--percentiles {text}: numbers with commas between them, like 50,99.") from error
    if not all(0 < percent <= 100 for percent in found):
        raise UsageError(f"--percentiles {text}: each is above 0, and 100 at most.")
    return found


def line_of(percent: float, columns: int, values: Mapping[int, int]) -> Line:
    """A percentile's line, of its values by column."""
    return Line(f"p{percent:g}", tuple(values.get(column) for column in range(columns)))


def check_columns(number: int) -> None:
    """Raises UsageError where there are more than anybody can look at."""
    if number > MOST_COLUMNS:
        raise UsageError(
            f"Too many columns ({number} > {MOST_COLUMNS}): a longer --stepsec? Or is --unitstime another one?"
        )


def round_marks(begin_ns: int, end_ns: int, wanted: int) -> list[int]:
    """Round times in [begin, end], at most about so many: 1, 2 or 5 times a power of ten ns apart."""
    step = round_up((end_ns - begin_ns) // max(1, wanted))
    return list(range(-(-begin_ns // step) * step, end_ns + 1, step))
