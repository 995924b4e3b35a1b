# SPDX-License-Identifier: MIT
"""Sizes of issued I/Os, as a result: a row per bucket."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opline_analyses.base.result_table import Column, ResultTable, text
from opline_analyses.base.text import percent
from opline_analyses.block import io_filter
from opline_analyses.block.io_series import count_rows, series_of
from opline_analyses.block.io_sources import issued
from opline_analyses.intervals.buckets import Listed
from opline_analyses.intervals.hist import bar
from opline_analyses.intervals.intervals import by_group, merged

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opline_analyses.base.result_table import Part
    from opline_analyses.block.io_filter import IoFilters
    from opline_analyses.intervals.intervals import Cell
    from opline_analyses.runs.run import Run

COLUMNS = (Column("low_bytes"), Column("high_bytes"), Column("count"))


POWERS = tuple(1 << exponent for exponent in range(9, 41))  # from a sector to a tebibyte
KIB = 1024
BAR = 48


def buckets(limits: tuple[int, ...] | None) -> Listed:
    """Buckets between the ``limits`` in bytes, else between powers of two."""
    return Listed(limits or POWERS)


def of_issued(run: Run, filters: IoFilters, limits: tuple[int, ...] | None) -> ResultTable:
    """For the selected requests, in buckets with these ``limits`` in bytes; None: powers of two."""
    rows = io_filter.rows_of(run, filters, issued())
    tally = count_rows(run, rows, series_of(rows, None), buckets(limits), None, "bytes")
    cells: dict[int, Cell] = {}
    for _, found in tally.intervals():
        cells.update(by_group(found).get("", {}))
    return result(limits, cells)


def result(limits: tuple[int, ...] | None, cells: dict[int, Cell]) -> ResultTable:
    """A row per bucket; for powers of two from the first nonempty bucket to the last."""
    chosen = limits or POWERS
    edges = [(0, chosen[0]), *zip(chosen, (*chosen[1:], None), strict=True)]
    shown = range(len(edges)) if limits is not None else range(min(cells, default=0), max(cells, default=-1) + 1)
    counts = [cells[i].count if i in cells else 0 for i in shown]
    whole = merged({("", i): cell for i, cell in cells.items()})
    head = {"schema": "opline bitesize 1", "sum_bytes": whole.total}
    return ResultTable(
        COLUMNS, [(*edges[i], count) for i, count in zip(shown, counts, strict=True)],
        text=_table if limits is None else lambda _: _lines(limits, counts),
        document=lambda t: {**head, "buckets": list(t.items())},
    )  # fmt: skip


def _kib(value: int | None) -> str:
    return "" if value is None else f"{value / KIB:g}"


def _table(found: ResultTable) -> Iterator[Part]:
    """Shares and bars; sizes in KiB."""
    total, most = sum(found.column("count")), max(found.column("count"), default=0)
    if not total:
        yield "no I/O"
        return
    rows = [(low, high, n, percent(n, total), bar(n, most, BAR)) for low, high, n in found.rows]
    columns = (Column("", ">= KiB", _kib), Column("", "< KiB", _kib), Column("", "I/Os"), Column("", "share%"))
    yield ResultTable((*columns, text("", "")), rows)


def _lines(limits: Sequence[int], counts: Sequence[int]) -> Iterator[str]:

    def row(low: str, high: str, count: int) -> str:
        return f"   {low:>10} -> {high:<10}: {count:<8} |{bar(count, max(counts), 38):<38}|"

    yield f"            {'Kbytes':<15}: {'I/O':<8} Distribution"
    for index, count in enumerate(counts):
        low = f"{limits[index - 1] / 1024:.1f}" if index else ""
        high = f"{limits[index] / 1024 - 0.1:.1f}" if index < len(limits) else ""
        yield row(low, high, count)
