# SPDX-License-Identifier: MIT
"""How large the I/Os are that were issued, as a result: a row per bucket."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opline_analyses.base.result_table import Column, ResultTable
from opline_analyses.block import io_filter
from opline_analyses.block.io_series import count_rows, series_of
from opline_analyses.block.io_sources import issued
from opline_analyses.intervals.buckets import Listed
from opline_analyses.intervals.hist import bar
from opline_analyses.intervals.intervals import by_group, merged

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opline_analyses.block.io_filter import IoFilters
    from opline_analyses.intervals.intervals import Cell
    from opline_analyses.runs.run import Run

COLUMNS = (Column("low_bytes"), Column("high_bytes"), Column("count"))


def of_issued(run: Run, filters: IoFilters, limits: tuple[int, ...]) -> ResultTable:
    """Of the requests that are meant, in buckets with these ``limits`` in bytes."""
    rows = io_filter.rows_of(run, filters, issued())
    tally = count_rows(run, rows, series_of(rows, None), Listed(limits), None, "bytes")
    cells: dict[int, Cell] = {}
    for _, found in tally.intervals():
        cells.update(by_group(found).get("", {}))
    return result(limits, cells)


def result(limits: tuple[int, ...], cells: dict[int, Cell]) -> ResultTable:
    """A row per bucket."""

    counts = [cells[i].count if i in cells else 0 for i in range(len(limits) + 1)]
    whole = merged({("", i): cell for i, cell in cells.items()})
    edges = [(0, limits[0]), *zip(limits, (*limits[1:], None), strict=True)]
    head = {"schema": "opline bitesize 1", "sum_bytes": whole.total}
    return ResultTable(
        COLUMNS, [(*edge, count) for edge, count in zip(edges, counts, strict=True)],
        text=lambda _: _lines(limits, counts), document=lambda t: {**head, "buckets": list(t.items())},
    )  # fmt: skip


def _lines(limits: Sequence[int], counts: Sequence[int]) -> Iterator[str]:

    def row(low: str, high: str, count: int) -> str:
        return f"   {low:>10} -> {high:<10}: {count:<8} |{bar(count, max(counts), 38):<38}|"

    yield f"            {'Kbytes':<15}: {'I/O':<8} Distribution"
    for index, count in enumerate(counts):
        low = f"{limits[index - 1] / 1024:.1f}" if index else ""
        high = f"{limits[index] / 1024 - 0.1:.1f}" if index < len(limits) else ""
        yield row(low, high, count)
