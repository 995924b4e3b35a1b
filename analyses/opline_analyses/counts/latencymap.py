# SPDX-License-Identifier: MIT
"""The columns of PyLatencyMap's screen (counts/screen.py): from a run, from other tools' histograms, and from
latencies.

For single latencies bucket B has B to 2 B, and the waited time is exact. Lengths of time are nanoseconds.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from opline_analyses.base.quantities import DURATIONS, seconds
from opline_analyses.block.io_filter import rows_of
from opline_analyses.block.io_series import count_rows, series_of, told
from opline_analyses.counts.screen import Column, column_of, empty_column
from opline_analyses.counts.snapshot import intervals
from opline_analyses.intervals.buckets import PowerOfTwo
from opline_analyses.intervals.intervals import Grid, Tally, number_of_intervals

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opline_analyses.block.io_filter import IoFilters
    from opline_analyses.counts.asked import Asked
    from opline_analyses.counts.inputs import Kind
    from opline_analyses.intervals.intervals import Cell, Cells
    from opline_analyses.runs.run import Run


def of_counts(kind: Kind, given: Asked) -> Iterator[Column]:
    """A column for each interval of another tool's histograms, one after the other. Raises OplineError."""
    snapshots = kind.read(given)
    first = next(snapshots, None)
    if first is None:
        return
    if first.cumulative:
        yield empty_column(first)
    for interval in intervals(chain([first], snapshots)):
        yield column_of(interval)


def of_values(kind: Kind, given: Asked, unit: str, step_ns: int) -> Iterator[Column]:
    """A column for each ``step_ns`` of another tool's latencies. Raises OplineError."""
    batch, one = kind.read(given)
    first = int(batch.at_ns.min())
    number = number_of_intervals(int(batch.at_ns.max()) - first + 1, step_ns)
    tally = Tally(Grid(first, step_ns), PowerOfTwo(DURATIONS[unit]))
    tally.add(batch)
    for index, cells in tally.intervals(0, number - 1):
        yield _column(unit, cells, step_ns, seconds((index + 1) * step_ns, 3), f"{one}s")


def of_run(run: Run, filters: IoFilters, unit: str, step_ns: int, most: int | None) -> Iterator[Column]:
    """A column for each ``step_ns`` of a run's I/Os, ``most`` at most. Raises UsageError."""
    rows = rows_of(run, filters)
    series = series_of(rows, step_ns, most)
    label = f"{rows.source.name} {rows.source.measured}"
    for index, cells in told(count_rows(run, rows, series, PowerOfTwo(DURATIONS[unit])), series):
        yield _column(unit, cells, step_ns, series.shown(index + 1), label)


def _column(unit: str, cells: Cells, step_ns: int, end: str, label: str) -> Column:
    found = Column(unit, delta_us=step_ns // 1000, date=f"{end} s", label=label)
    rate = step_ns / 1e9
    for (_, place), cell in cells.items():
        exact: Cell = cell
        found.add(max(0, place - 1), exact.count / rate, exact.total / DURATIONS[unit] / rate)
    return found
