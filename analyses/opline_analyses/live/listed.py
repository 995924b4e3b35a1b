# SPDX-License-Identifier: MIT
"""`opline live log` and `outliers`: I/Os one by one, as they complete."""

from __future__ import annotations

import argparse
import csv
import io
import json
from typing import TYPE_CHECKING

from opline.errors import UsageError
from opline.talk import shown, talk
from opline_analyses.base.quantities import duration_ns
from opline_analyses.base.text import count_of, device_name, encoded
from opline_analyses.block import io_filter, io_log
from opline_analyses.block.outliers import banner, is_outlier_sql, table_lines, warning
from opline_analyses.commands import outliers as command
from opline_analyses.intervals.buckets import PowerOfTwo
from opline_analyses.intervals.intervals import Cell, Tally, by_group
from opline_analyses.live.view import SECOND, Intervals, View

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opline_analyses.intervals.intervals import Cells
    from opline_analyses.live.snapshot import Snapshot


class Log(View):
    """A line for each I/O, when it has completed."""

    def __init__(self, args: argparse.Namespace, settled: Snapshot, under_way: Snapshot) -> None:
        if args.sort != "time":
            raise UsageError(f"--sort {args.sort}: I/Os are shown as they complete; record first to sort them.")
        if args.limit is not None and args.limit < 1:
            raise UsageError("--limit must be 1 or more.")
        super().__init__(args, settled, under_way)
        self._begun = False

    def take(self) -> Iterator[bytes]:
        """See View."""
        yield from super().take()
        left = None if self.args.limit is None else self.args.limit - self.counted
        found = list(io_log.ios(self.settled, self.rows, "time", left))
        self.counted += len(found)
        self.done = self.args.limit is not None and self.counted >= self.args.limit
        yield self._lines(found)

    def _take(self) -> None:
        """The lines are all there is."""

    def _lines(self, found: list[dict[str, object]]) -> bytes:
        args, begins, self._begun = self.args, not self._begun, True
        if args.json:
            return "".join(json.dumps(row) + "\n" for row in found).encode()
        if args.pairs:
            pairs = ((row["end_ns"], row["latency_ns"]) for row in found)
            return "".join(f"{int(str(end)) / 1000:.3f} {int(str(ns)) / 1000:.3f}\n" for end, ns in pairs).encode()
        if args.csv:
            text = io.StringIO()
            writer = csv.writer(text, lineterminator="\r\n")
            writer.writerows([io_log.COLUMNS] if begins else [])
            writer.writerows(["" if value is None else value for value in row.values()] for row in found)
            return text.getvalue().encode()
        head = [io_log.header(args.start_time, args.end_time)] if begins else []
        return encoded([*head, *(shown(io_log.line(row, args.start_time, args.end_time)) for row in found)])


class Outliers(Intervals):
    """Warnings at once, a table per device for each interval, and in the end the suspect against a good device."""

    def __init__(self, args: argparse.Namespace, settled: Snapshot, under_way: Snapshot) -> None:
        step = duration_ns(args.interval, "INTERVAL") if args.interval is not None else 10 * SECOND
        if step == 0:
            raise UsageError(f"INTERVAL {args.interval}: must be more than 0.")
        self.threshold = command.threshold_ns(args)
        self.whole: Cells = {}
        self.slow: dict[str, int] = {}
        self.warned = 0
        super().__init__(args, (settled, under_way), step)
        self._slow_rows = self.rows.also(is_outlier_sql(self.threshold))
        self._length = f"{step / 1e9:g}"
        self._banner = not args.json

    def _tally(self) -> Tally:
        return Tally(self.grid, PowerOfTwo(1000))

    def take(self) -> Iterator[bytes]:
        """See View."""
        yield from super().take()
        if self._banner:
            self._banner = False
            yield encoded([*banner(self.threshold, self._length), ""])
        for batch in io_filter.batches(self.settled, self._slow_rows, "device"):
            for group in batch.groups.tolist():
                self.slow[batch.names[group]] = self.slow.get(batch.names[group], 0) + 1
        names = self.settled.device_names()
        for row in io_log.ios(self.settled, self._slow_rows, "time", max(0, self.args.limit - self.warned)):
            self.warned += 1
            line = warning(device_name(names, row["dev"]), row["sector"], row["latency_ns"], self.threshold)
            yield (json.dumps(row) + "\n").encode() if self.args.json else encoded([line])

    def _take(self) -> None:
        self.count(io_filter.batches(self.settled, self.rows, "device"))

    def interval(self, index: int, cells: Cells, begins: bool) -> bytes:
        """See Intervals."""
        del begins
        devices: dict[str, Cell] = {}
        for (group, bucket), cell in cells.items():
            devices.setdefault(group, Cell()).add(cell)
            self.whole.setdefault((group, bucket), Cell()).add(cell)
        if not self.args.json:
            return encoded(["", *table_lines(devices, self._length), ""])
        listed = [
            {"device": name, "count": c.count, "min_ns": c.least, "max_ns": c.most, "sum_ns": c.total}
            for name, c in sorted(devices.items())
        ]
        begin = self.grid.begin_ns(index) - self.zero_ns
        return (json.dumps({"begin_ns": begin, "devices": listed}) + "\n").encode()

    def summary(self) -> bytes:
        """The comparison, and how many warnings there were more."""
        if (more := sum(self.slow.values()) - self.warned) > 0:
            talk(f"{count_of(more, 'more I/O')} above the threshold: --limit shows more.")
        found = command.compared(by_group(self.whole), self.slow, self.threshold)
        if found is None:
            return b""
        return (json.dumps({"compared": found[0]}) + "\n").encode() if self.args.json else encoded(found[1])
