# SPDX-License-Identifier: MIT
"""The common part of live views: filtered rows, intervals closed one after the other, a summary.

An interval closes when everything that ended in the interval is settled: the same rows as in the same interval of a
run.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from opline.errors import UsageError
from opline.talk import talk
from opline_analyses.base.result_table import encoded
from opline_analyses.base.text import count_of
from opline_analyses.block import io_filter
from opline_analyses.block.io_series import Series
from opline_analyses.block.io_sources import not_counted
from opline_analyses.commands.options import io_filters
from opline_analyses.intervals.intervals import Grid, Tally, merged
from opline_analyses.runs import ledger

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opline_analyses.base.result_table import ResultTable
    from opline_analyses.block.io_sources import Source
    from opline_analyses.intervals.intervals import Batch, Cells
    from opline_analyses.live.snapshot import Snapshot

HOLD_NS = 1_000_000_000  # an interval waits so long for ended and unsettled rows (a write with FUA)
SECOND = 1_000_000_000


def formed(args: argparse.Namespace, found: ResultTable, begins: bool = True) -> bytes:
    """A result in the wanted form. ``begins``: CSV with its header."""
    if args.csv:
        return "".join(found.csv(begins)).encode()
    return "".join(found.json()).encode() if args.json else encoded(found.parts())


class View:
    """One live view. ``settled``: final rows; ``under_way``: all other rows."""

    def __init__(
        self, args: argparse.Namespace, settled: Snapshot, under_way: Snapshot, source: Source | None = None
    ) -> None:
        self.args = args
        self.settled, self.under_way = settled, under_way
        self.rows = io_filter.rows_of(settled, io_filters(args), source)
        self.zero_ns = self.rows.zero_ns
        self.counted = 0  # I/Os
        self.left_out: dict[str, int] = {}
        self.done = False  # has shown everything asked for
        self.look_every_s = 0.25
        self.says = ""  # the state of the watched recording, in a few words

    @property
    def one(self) -> str:
        """The name of a single counted thing."""
        return self.rows.source.one

    def begun(self) -> bytes:
        """Text before everything else."""
        return b""

    def again(self) -> None:
        """All rows come once more, from the first: in a recording some came late. A view without this method only takes
        rows of the BPF ring.
        """
        raise NotImplementedError

    def take(self) -> Iterator[bytes]:
        """Other rows have been settled; gives the text to show at once."""
        for reason, number in io_filter.left_out(self.settled, self.rows).items():
            self.left_out[reason] = self.left_out.get(reason, 0) + number
        self._take()
        yield from ()

    def _take(self) -> None:
        raise NotImplementedError

    def close_until(self, until_ns: int) -> Iterator[bytes]:
        """All rows with an earlier end have been taken: gives the text of the intervals that end by then."""
        del until_ns
        yield from ()

    def end(self, until_ns: int) -> Iterator[bytes]:
        """The end of the rows: the unfinished interval, and the summary."""
        del until_ns
        yield from ()

    def settled_until(self, until_ns: int) -> int:
        """The time up to which all ended rows have been taken."""
        if self.under_way.nothing_ended and self.rows.source.measured.endswith("C"):
            return until_ns  # the usual case, without a question to the database
        sql = f"SELECT min(end_ns) FROM ({self.rows.source.sql}) WHERE why IS NULL AND {self.rows.where}"
        (oldest,) = self.under_way.row(sql, self.rows.parameters)
        return until_ns if oldest is None else max(min(until_ns, oldest), until_ns - HOLD_NS)

    @property
    def late(self) -> int:
        """I/Os counted in an interval later than their end."""
        return 0


class Intervals(View):
    """A view with intervals."""

    def __init__(
        self,
        args: argparse.Namespace,
        snapshots: tuple[Snapshot, Snapshot],
        step_ns: int,
        count: int | None = None,
        source: Source | None = None,
    ) -> None:
        super().__init__(args, *snapshots, source)
        if count is not None and count < 1:
            raise UsageError("COUNT must be 1 or more.")
        self.grid = Grid(self.zero_ns, step_ns)
        self.look_every_s = min(max(step_ns / 2e9, 0.1), 0.5)
        self.tally = self._tally()
        self._next, self._last = 0, None if count is None else count - 1
        self._shown = 0

    def _tally(self) -> Tally:
        raise NotImplementedError

    def interval(self, index: int, cells: Cells, begins: bool) -> bytes:
        """The text of one interval; ``begins``: the first one shown."""
        raise NotImplementedError

    def summary(self) -> bytes:
        """The text at the end."""
        return b""

    def count(self, batches: Iterator[Batch]) -> None:
        """Take rows in."""
        for batch in batches:
            self.tally.add(batch)

    def series(self, index: int) -> Series:
        """A single interval."""
        return Series(self.grid, index, index, self.zero_ns)

    def again(self) -> None:
        """See View. Shown intervals stay as shown."""
        self.tally = self._tally()
        self.left_out = {}

    @property
    def late(self) -> int:
        """See View."""
        return self.tally.late

    def close_until(self, until_ns: int) -> Iterator[bytes]:
        """See View."""
        end = self.grid.index(until_ns)
        taken = dict(self.tally.take(self.grid.begin_ns(end)))
        for index in range(self._next, end):
            if self.done:
                return
            cells = taken.get(index, {})
            self.counted += merged(cells).count
            yield self.interval(index, cells, begins=self._shown == 0)
            self._shown += 1
            self.done = index == self._last
        self._next = max(self._next, end)

    def end(self, until_ns: int) -> Iterator[bytes]:
        """See View."""
        if not self.done:
            yield from self.close_until(self.grid.begin_ns(self.grid.index(until_ns) + 1))
        yield self.summary()


def tell_missing(found: list[ledger.Entry]) -> None:
    """Reports losses that make the figures doubtful, on standard error, as for a recording."""
    for line in ledger.warnings(found, more="docs/losses.md"):
        talk(line)


def tell_left_out(view: View) -> None:
    """Reports rows not counted, and rows counted late, on standard error."""
    if view.left_out:
        talk(not_counted(view.left_out, view.counted, view.one))
    if view.late:
        talk(f"{count_of(view.late, view.one)} settled more than a second late: counted in a later interval.")
