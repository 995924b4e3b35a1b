# SPDX-License-Identifier: MIT
"""`opline live bitesize` and `heatmap`: the sums at the end; a terminal shows the growing heat map."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from opline.errors import UsageError
from opline_analyses.api.heatmap import Heatmap as Drawn
from opline_analyses.base.quantities import duration_ns
from opline_analyses.block import io_filter
from opline_analyses.block.bitesize_result import buckets, result
from opline_analyses.block.io_series import Series
from opline_analyses.block.io_sources import issued
from opline_analyses.commands import heatmap
from opline_analyses.commands.bitesize import limits_of
from opline_analyses.commands.options import io_filters
from opline_analyses.intervals.intervals import Grid, Tally
from opline_analyses.live.view import SECOND, View, formed
from opline_analyses.pictures.heatmap import MOST_COLUMNS, Scale, map_of, scale_of
from opline_analyses.pictures.heatmap_cells import table
from opline_analyses.pictures.heatmap_of import measure_of, number_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opline_analyses.live.snapshot import Snapshot

COLUMNS = 66
CLEAR = b"\x1b[H\x1b[2J"
MOST = {"latency": 1000 * SECOND, "size": 1 << 40, "offset": 1 << 60}  # logarithmic axes have room up to here


class Bitesize(View):
    """The sizes of issued I/Os, completed or not."""

    def __init__(self, args: argparse.Namespace, settled: Snapshot, under_way: Snapshot) -> None:
        self.limits = limits_of(args)
        super().__init__(args, settled, under_way, issued())
        self.tally = Tally(Grid(0, 1 << 62), buckets(self.limits))

    def again(self) -> None:
        """See View."""
        self.tally = Tally(self.tally.grid, self.tally.buckets)
        self.counted, self.left_out = 0, {}

    def _take(self) -> None:
        for batch in io_filter.batches(self.settled, self.rows, None, "bytes"):
            self.tally.add(batch)
            self.counted += len(batch)

    def end(self, until_ns: int) -> Iterator[bytes]:
        """See View."""
        del until_ns
        cells = {bucket: cell for _, found in self.tally.intervals() for (_, bucket), cell in found.items()}
        yield formed(self.args, result(self.limits, cells))


class Heatmap(View):
    """At most so many columns as fit: full columns are merged in pairs, so that the whole time stays visible.

    The rows are powers of two, or parts of powers of two, as the greatest value is unknown; with --maxlat and --linear
    all rows are equal.
    """

    def __init__(self, args: argparse.Namespace, settled: Snapshot, under_way: Snapshot) -> None:
        if args.per_device or any(value is not None for value in (args.unitstime, args.maxcol, args.percentiles)):
            raise UsageError("--unitstime, --per-device, --maxcol and --percentiles are for what has been recorded.")
        asked = heatmap.heatmap_options(args)
        if args.value not in MOST:
            raise UsageError(f"--value {args.value} is for `opline heatmap RUN`: here the width of a column grows.")
        self.measure = measure_of(asked)
        number = args.rows or 16
        if number < 1:
            raise UsageError("--rows must be 1 or more.")
        low, high = (number_of(asked, name, asked.units) for name in ("minlat", "maxlat"))
        rise = number_of(asked, "steplat", asked.units)
        log = asked.logarithmic or high is None
        bounded = low is not None, high is not None
        most = MOST[args.value] if high is None else high - 1
        self._trims = high is None
        rows = 64 if self._trims else number
        self.scale = scale_of(low or 0, most, rows, rise, log, bounded, self.measure.scale)
        super().__init__(args, settled, under_way)
        self.rows = self.rows.placed_by(args.value)
        step = duration_ns(args.stepsec, "--stepsec") if args.stepsec is not None else SECOND // 10
        if step == 0:
            raise UsageError("--stepsec must be more than 0.")
        self._fixed = args.stepsec is not None
        self.tally = Tally(Grid(self.zero_ns, step), self.scale.buckets)
        self._until_ns = self.zero_ns
        self._redraws = sys.stdout.isatty() and args.output is None and not args.json and not args.csv

    def again(self) -> None:
        """See View."""
        self.tally = Tally(self.tally.grid, self.tally.buckets)
        self.counted, self.left_out = 0, {}

    def _take(self) -> None:
        for batch in io_filter.batches(self.settled, self.rows, None, self.measure.sql):
            self.tally.add(batch)
            self.counted += len(batch)

    def close_until(self, until_ns: int) -> Iterator[bytes]:
        """See View."""
        grid = self.tally.grid
        while grid.index(until_ns) >= (MOST_COLUMNS if self._fixed else COLUMNS):
            self.tally = self.tally.coarser()
            grid = self.tally.grid
        if self._redraws and until_ns - self._until_ns >= SECOND:
            self._until_ns = until_ns
            yield CLEAR + self._drawn(until_ns)

    def end(self, until_ns: int) -> Iterator[bytes]:
        """See View."""
        yield (CLEAR if self._redraws else b"") + self._drawn(until_ns)

    def _drawn(self, until_ns: int) -> bytes:
        scale = self.scale
        if self._trims:  # rows up to the greatest value, from the least
            used = [bucket for _, cells in self.tally.intervals() for _, bucket in cells]
            if used:
                scale = Scale(scale.buckets, max(scale.first, min(used)), max(used))
            else:
                scale = Scale(scale.buckets, scale.first, scale.first)
        series = Series(self.tally.grid, 0, max(0, self.tally.grid.index(until_ns)), self.zero_ns)
        picture = self.args.output is not None and self.args.output.suffix.lower() == ".svg"
        found = map_of(self.tally, series, scale, self.measure)
        if self.args.csv:
            return "".join(table({"": found}).csv()).encode()
        asked, rows = heatmap.heatmap_options(self.args), None if picture else self.rows
        return heatmap.drawn(self.args, Drawn(asked, io_filters(self.args), rows, found), picture).encode()
