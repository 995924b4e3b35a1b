# SPDX-License-Identifier: MIT
"""`opline live iostat`: a row per interval, or per device (or another group) and interval."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from opline.errors import UsageError
from opline.talk import talk
from opline_analyses.base.result_table import ResultTable, encoded
from opline_analyses.block import io_filter
from opline_analyses.block.io_sources import Source
from opline_analyses.block.iostat import EXTENDED, columns
from opline_analyses.block.iostat_result import text
from opline_analyses.block.iostat_rows import merges_of, present, rows_of
from opline_analyses.commands import iostat
from opline_analyses.commands.common import interval_ns
from opline_analyses.intervals.intervals import Occupancy, Tally
from opline_analyses.live.view import SECOND, Intervals, formed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opline_analyses.block.iostat import Row
    from opline_analyses.intervals.intervals import Batch, Cells
    from opline_analyses.live.snapshot import Snapshot

MOST_HELD = 1 << 18  # limit of begins and ends of I/Os in memory, per interval


class Iostat(Intervals):
    """Queue and utilisation count settled I/Os and I/Os in flight."""

    def __init__(self, args: argparse.Namespace, settled: Snapshot, under_way: Snapshot) -> None:
        self.style, self.by = iostat.style_of(args)
        if self.style != "dtrace":  # as in iostat's await; BPF has these events
            args.start, args.end = args.start or "getrq", args.end or "end"
        if self.by is not None and args.latency:
            raise UsageError("--latency is not known of I/Os that are under way: leave it out, or record first.")
        self.others = 0
        super().__init__(args, (settled, under_way), interval_ns(args) or SECOND, args.count)
        waits_from = args.start if self.style == "solaris" else None
        self._present = [] if self.by is None else present(self.rows, waits_from)
        self._parts = [Occupancy(self.grid) for _ in self._present]
        self._merges = Tally(self.grid) if self.style == EXTENDED else None

    def _tally(self) -> Tally:
        return Tally(self.grid)

    def again(self) -> None:
        """See View."""
        super().again()
        self._parts = [Occupancy(self.grid) for _ in self._present]
        self._merges = None if self._merges is None else Tally(self.grid)

    def _take(self) -> None:
        self.count(io_filter.batches(self.settled, self.rows, self.by, with_kind=True))
        if self._merges is not None:
            for batch in merges_of(self.settled, self.rows, self.by):
                self._merges.add(batch)
        for rows, part in zip(self._present, self._parts, strict=True):
            for batch in io_filter.batches(self.settled, rows, self.by):
                part.add(batch)

    def close_until(self, until_ns: int) -> Iterator[bytes]:
        """See View. In a long interval, the known first part is summed."""
        yield from super().close_until(until_ns)
        for rows, part in zip(self._present, self._parts, strict=True):
            if part.held > MOST_HELD:
                part.sum_until(until_ns, self._others(rows, until_ns))

    def _others(self, rows: io_filter.Rows, at_ns: int) -> Iterator[Batch]:
        """The I/Os in flight, as if ended at ``at_ns``."""
        return io_filter.batches(self.under_way, _as_if_ended(rows, at_ns), self.by)

    def rows_in(self, index: int, cells: Cells) -> list[Row]:
        """The rows of a finished interval."""
        series, end_ns = self.series(index), self.grid.begin_ns(index + 1)
        both = zip(self._present, self._parts, strict=True)
        parts = [part.with_more(self._others(rows, end_ns)) for rows, part in both]
        merges = None if self._merges is None else dict(self._merges.take(end_ns))
        found = rows_of(self.settled, {index: cells}, parts, series, self.by, merges)
        for part in self._parts:
            part.forget_before(end_ns)
        return found

    def interval(self, index: int, cells: Cells, begins: bool) -> bytes:
        """See Intervals."""
        series, found = self.series(index), self.rows_in(index, cells)
        self.others += sum(row.others.count for row in found)
        table = ResultTable(
            columns(self.by), [tuple(row.record(self.by).values()) for row in found], records=lambda t: t.items()
        )
        if self.args.json or self.args.csv:
            return formed(self.args, table, begins)
        shown = encoded(text(found, series, self.style, self.by, begins, single=False))
        return shown if begins or self.style == "dtrace" else b"\n" + shown

    def summary(self) -> bytes:
        """The rows have no sum; I/Os not in the rows are reported."""
        if self.style == "dtrace" and self.others:
            talk(f"{self.others} flushes and discards are neither reads nor writes: --style linux has them in o/s.")
        return b""


def _as_if_ended(rows: io_filter.Rows, at_ns: int) -> io_filter.Rows:
    """Rows begun and not ended, as if ended at ``at_ns``."""
    sql = f"""SELECT * REPLACE (greatest(coalesce(end_ns, {at_ns}), begin_ns) AS end_ns,
                                CASE WHEN begin_ns IS NULL THEN 'not begun' END AS why) FROM ({rows.source.sql})"""
    return rows.replaced(source=Source(**vars(rows.source) | {"sql": sql}))
