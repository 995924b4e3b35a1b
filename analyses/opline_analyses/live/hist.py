# SPDX-License-Identifier: MIT
"""`opline live hist`: a histogram for each interval, and one of all intervals."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from opline.errors import UsageError
from opline_analyses.base.result_table import json_text
from opline_analyses.block import hist_result as hist
from opline_analyses.block import io_filter
from opline_analyses.block.io_series import Series
from opline_analyses.commands.common import interval_ns
from opline_analyses.commands.hist import hist_options
from opline_analyses.commands.options import io_filters
from opline_analyses.intervals.intervals import Cell, Grid, Tally
from opline_analyses.live.view import SECOND, Intervals, formed

if TYPE_CHECKING:
    from opline_analyses.intervals.intervals import Cells
    from opline_analyses.live.snapshot import Snapshot


class Hist(Intervals):
    """In every layout of a run's histogram."""

    def __init__(self, args: argparse.Namespace, settled: Snapshot, under_way: Snapshot) -> None:
        if args.compat:
            raise UsageError("--compat is for what has been recorded.")
        self.asked = hist_options(args)
        self.unit = hist.unit_of(self.asked)
        self.buckets = hist.buckets_of(self.asked, self.unit)
        self.whole: Cells = {}
        super().__init__(args, (settled, under_way), interval_ns(args) or SECOND, args.count)

    def begun(self) -> bytes:
        """See View: iolatency's first line."""
        if not self._as_iolatency:
            return b""
        until = "" if self.args.count is not None else " Ctrl-C to end."
        return f"Tracing block I/O. Output every {self.grid.step_ns / 1e9:g} seconds.{until}\n".encode()

    @property
    def _as_iolatency(self) -> bool:
        return self.args.style == "iolatency" and not (self.args.json or self.args.csv)

    def _tally(self) -> Tally:
        return Tally(self.grid, self.buckets)

    def _take(self) -> None:
        self.count(io_filter.batches(self.settled, self.rows, self.args.per))

    def interval(self, index: int, cells: Cells, begins: bool) -> bytes:
        """See Intervals."""
        for key, cell in cells.items():
            self.whole.setdefault(key, Cell()).add(cell)
        shown = self.whole if self.asked.sums else cells
        return self._drawn([(index, shown)], self.series(index), begins)

    def _drawn(self, counted: list[tuple[int, Cells]], series: Series, begins: bool) -> bytes:
        args = self.args
        histograms = hist.Histograms(counted, series, self.buckets, self.unit, self.rows)
        found = hist.table(self.settled, self.asked, io_filters(args), histograms, begins)
        if args.json:
            return json_text(found.document(), indent=None).encode()
        apart = not (begins or args.csv or args.style in ("iolatency", "latencymap"))
        return (b"\n" if apart else b"") + formed(args, found, begins)

    def summary(self) -> bytes:
        """All intervals as one, unless the last interval already showed the same."""
        args = self.args
        if self._as_iolatency:
            return b"\nEnding tracing...\n"
        if self.asked.sums or args.json or args.csv or args.style != "table" or self._shown < 2:
            return b""
        whole = Series(Grid(self.zero_ns, self.grid.step_ns * self._next), 0, 0, self.zero_ns)
        return b"\nin all:\n" + self._drawn([(0, self.whole)], whole, begins=True)
