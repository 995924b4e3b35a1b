# SPDX-License-Identifier: MIT
"""`opline live log` and `outliers`: I/Os, ops or stages one by one, at completion."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from opline.errors import UsageError
from opline.talk import talk
from opline_analyses.base.quantities import duration_ns
from opline_analyses.base.result_table import encoded, json_text, of_items
from opline_analyses.base.text import count_of
from opline_analyses.block import io_filter, io_log
from opline_analyses.block.outliers import KINDS, THRESHOLD_US, banner, is_outlier_sql, table_lines, warning
from opline_analyses.block.outliers_result import compared, listed
from opline_analyses.commands.log import lines_of
from opline_analyses.commands.outliers import WARNINGS, threshold_ns
from opline_analyses.intervals.buckets import PowerOfTwo
from opline_analyses.intervals.intervals import Cell, Tally, by_group
from opline_analyses.live.due import Due
from opline_analyses.live.view import SECOND, Intervals, View, formed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opline_analyses.intervals.intervals import Cells
    from opline_analyses.live.snapshot import Snapshot


class Log(View):
    """A line for each completed I/O, op or stage."""

    def __init__(self, args: argparse.Namespace, settled: Snapshot, under_way: Snapshot) -> None:
        if args.sort != "time":
            raise UsageError(f"--sort {args.sort}: they are shown as they complete; record first to sort them.")
        super().__init__(args, settled, under_way)
        self._due = Due()
        self._begun = False

    def again(self) -> None:
        """See View. Shown lines stay."""
        self._due.again()
        self.left_out = {}

    def _take(self) -> None:
        self._due.add(_when_due(self.settled, self.rows))

    def close_until(self, until_ns: int) -> Iterator[bytes]:
        """See View."""
        yield self._shown(self._due.take(until_ns - self.zero_ns))

    def end(self, until_ns: int) -> Iterator[bytes]:
        """See View."""
        del until_ns
        if not self.done:
            yield self._shown(self._due.take())
        tell_never_due(self._due, self.one)

    def _shown(self, found: list[dict[str, Any]]) -> bytes:
        if self.args.limit is not None:
            found = found[: self.args.limit - self.counted]
        self.counted += len(found)
        self.done = self.args.limit is not None and self.counted >= self.args.limit
        begins, self._begun = not self._begun, True
        return formed(self.args, io_log.result(found, lines_of(self.args, begins)), begins)


def _when_due(settled: Snapshot, rows: io_filter.Rows) -> Iterator[tuple[int, dict[str, Any]]]:
    """The settled rows, each with its due time: a stage is known at the end of its op."""
    ends: dict[int, int] = {}
    if rows.source.name == "stages":
        ends = dict(settled.rows(f"SELECT op_id, end_ns - {rows.zero_ns} FROM ops WHERE end_ns IS NOT NULL"))
    for row in io_log.ios(settled, rows):
        yield ends.get(row["op_id"], row["end_ns"]), row


def tell_never_due(due: Due, one: str) -> None:
    """Reports rows that came too late for the view, on standard error."""
    if due.never_due:
        talk(f"{count_of(due.never_due, one)} came too late to be shown: a recording that is kept has them (--keep).")


class Outliers(Intervals):
    """Warnings, a table per device for each interval, and in the end the suspect against a good device."""

    def __init__(self, args: argparse.Namespace, settled: Snapshot, under_way: Snapshot) -> None:
        step = duration_ns(args.interval, "INTERVAL") if args.interval is not None else 10 * SECOND
        if step == 0:
            raise UsageError(f"INTERVAL {args.interval}: must be more than 0.")
        given = threshold_ns(args)
        self.threshold = THRESHOLD_US * 1000 if given is None else given
        args.limit = WARNINGS if args.limit is None else args.limit
        self.kind = KINDS[args.of]
        self.whole: Cells = {}
        self.slow: dict[str, int] = {}
        self.warned = 0
        super().__init__(args, (settled, under_way), step)
        self._slow_rows = self.rows.also(is_outlier_sql(self.threshold))
        self._due = Due()
        self._length = f"{step / 1e9:g}"
        self._begins = True

    def _tally(self) -> Tally:
        return Tally(self.grid, PowerOfTwo(1000))

    def again(self) -> None:
        """See View."""
        super().again()
        self._due.again()
        self.slow = {}

    def _take(self) -> None:
        self.count(io_filter.batches(self.settled, self.rows, self.kind.per))
        for batch in io_filter.batches(self.settled, self._slow_rows, self.kind.per):
            for group in batch.groups.tolist():
                self.slow[batch.names[group]] = self.slow.get(batch.names[group], 0) + 1
        self._due.add(_when_due(self.settled, self._slow_rows))

    def close_until(self, until_ns: int) -> Iterator[bytes]:
        """See View. Slow I/Os of the current interval are reported at once."""
        yield from super().close_until(until_ns)
        yield self._warnings(self._due.take(until_ns - self.zero_ns))

    def _warnings(self, found: list[dict[str, Any]]) -> bytes:
        found = found[: max(0, self.args.limit - self.warned)]
        self.warned += len(found)
        begins, self._begins = self._begins, False
        if self.args.json:
            return "".join(json_text(row, indent=None) for row in found).encode()
        if self.args.csv:
            return "".join(of_items(io_log.COLUMNS, found).csv(begins)).encode()
        names = self.settled.device_names()
        head = [*banner(self.kind, self.threshold, self._length), ""] if begins else []
        return encoded([*head, *(warning(self.kind, row, names, self.threshold) for row in found)])

    def interval(self, index: int, cells: Cells, begins: bool) -> bytes:
        """See Intervals."""
        del begins
        above = self._warnings(self._due.take(self.grid.begin_ns(index + 1) - self.zero_ns))
        groups: dict[str, Cell] = {}
        for (group, bucket), cell in cells.items():
            groups.setdefault(group, Cell()).add(cell)
            self.whole.setdefault((group, bucket), Cell()).add(cell)
        if self.args.csv:
            return above
        if not self.args.json:
            return above + encoded(["", *table_lines(self.kind, groups, self._length), ""])
        document: dict[str, Any] = {"begin_ns": self.grid.begin_ns(index) - self.zero_ns}
        document |= {self.kind.several: listed(self.kind, groups)}
        return above + json_text(document, indent=None).encode()

    def summary(self) -> bytes:
        """The comparison, and how many warnings there were more."""
        tell_never_due(self._due, self.one)
        if (more := sum(self.slow.values()) - self.warned - self._due.never_due) > 0:
            talk(f"{count_of(more, f'more {self.kind.one}')} above the threshold: --limit shows more.")
        if self.kind.per != "device" or self.args.csv:
            return b""
        found = compared(by_group(self.whole), self.slow, self.threshold)
        if found is None:
            return b""
        return json_text({"compared": found[0]}, indent=None).encode() if self.args.json else encoded(found[1])
