# SPDX-License-Identifier: MIT
"""From filtered rows to intervals: the list of intervals, and the tally of all rows.

The intervals begin at the run's first event, or at the begin of --window. The last interval ends at the end of
--window; without --window the last interval has the common length, although the run may end inside. Rates are per
second of the whole interval.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opline.talk import talk
from opline.values import Value
from opline_analyses.base.quantities import decimals_of, round_up, seconds
from opline_analyses.block.io_filter import batches, left_out, tell_nothing
from opline_analyses.block.io_sources import not_counted
from opline_analyses.intervals.intervals import Grid, Tally, number_of_intervals

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opline_analyses.block.io_filter import Rows
    from opline_analyses.intervals.buckets import Buckets
    from opline_analyses.intervals.intervals import Cells, Occupancy
    from opline_analyses.runs.run import Run

LATENCY = "end_ns - begin_ns"


class Series(Value):
    """Intervals ``first`` to ``last`` of a grid; times are shown from ``zero_ns``. One in which ``until_ns`` lies ends
    there: nothing after it is counted.
    """

    grid: Grid
    first: int
    last: int
    zero_ns: int
    until_ns: int | None = None

    @property
    def digits(self) -> int:
        """Decimals of seconds with which the intervals' edges are shown: what they need, at most 6."""
        edges = self.grid.step_ns, self.grid.zero_ns - self.zero_ns, self.end_ns(self.last) - self.zero_ns
        return min(6, max(map(decimals_of, edges)))

    def end_ns(self, index: int) -> int:
        """Where an interval ends."""
        end = self.grid.begin_ns(index + 1)
        return end if self.until_ns is None else min(end, max(self.until_ns, self.grid.begin_ns(index) + 1))

    def length_ns(self, index: int) -> int:
        """How long an interval is."""
        return self.end_ns(index) - self.grid.begin_ns(index)

    def shown(self, index: int) -> str:
        """Where an interval begins, in seconds from the run's first event."""
        return seconds(self.grid.begin_ns(index) - self.zero_ns, self.digits)

    def shown_end(self, index: int) -> str:
        """The end of an interval."""
        return seconds(self.end_ns(index) - self.zero_ns, self.digits)


def series_of(rows: Rows, interval_ns: int | None, count: int | None = None) -> Series:
    """The intervals of the rows' window; without ``interval_ns`` one, of all of it. At most ``count`` of them.

    Raises UsageError where they are more than anybody reads.
    """
    origin = rows.window.since_ns if rows.window.since_ns is not None else rows.zero_ns
    end = rows.window.until_ns if rows.window.until_ns is not None else max(rows.last_ns, origin) + 1
    step = interval_ns or max(1, end - origin)
    number = number_of_intervals(end - origin, step, count)
    return Series(Grid(origin, step), 0, number - 1, rows.zero_ns, rows.window.until_ns)


def count_rows(
    run: Run,
    rows: Rows,
    series: Series,
    buckets: Buckets | None = None,
    per: str | None = None,
    value: str = LATENCY,
    presence: Occupancy | None = None,
    with_kind: bool = False,
) -> Tally:
    """All rows through the engine. What can't be counted is said on stderr, by reason, and so is it where there is
    nothing to count.
    """
    tally = Tally(series.grid, buckets)
    for batch in batches(run, rows, per, value, with_kind):
        tally.add(batch)
        if presence is not None:
            presence.add(batch)
    tell_left_out(run, rows, tally.rows)
    return tally


def tell_left_out(run: Run, rows: Rows, counted: int) -> None:
    """Reports on stderr which rows are not counted."""
    out = left_out(run, rows)
    if out:
        talk(not_counted(out, counted, rows.source.one))
    if not counted:
        tell_nothing(run, rows)


def told(tally: Tally, series: Series) -> Iterator[tuple[int, Cells]]:
    """The intervals of the series in order, empty intervals too."""
    for index, cells in tally.intervals(series.first, series.last):
        if series.first <= index <= series.last:
            yield index, cells


def round_interval(length_ns: int, wanted: int) -> int:
    """1, 2 or 5 times a power of ten ns, so that ``length_ns`` has at most about so many intervals."""
    return round_up(length_ns // wanted)
