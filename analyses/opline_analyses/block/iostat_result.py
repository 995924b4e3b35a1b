# SPDX-License-Identifier: MIT
"""iostat's figures over time as a result: exact numbers per interval and group; whose columns people read."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from opline.talk import talk
from opline_analyses.base.quantities import seconds
from opline_analyses.base.result_table import Column, ResultTable
from opline_analyses.base.text import duration
from opline_analyses.block import io_filter, iostat
from opline_analyses.block.io_series import round_interval, series_of
from opline_analyses.block.iostat_rows import await_begins, merges_over_time, rows_over_time
from opline_analyses.runs.ran import time_of_most

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from opline_analyses.base.result_table import Part
    from opline_analyses.block.io_filter import IoFilters
    from opline_analyses.block.io_series import Series
    from opline_analyses.block.iostat import Row
    from opline_analyses.runs.run import Run

_OF_POPULATION = """SELECT queue_tid AS who, kind AS what, coalesce(queue_ns, getrq_ns, issue_ns) AS begin_ns, end_ns
    FROM requests WHERE population AND end_ns IS NOT NULL AND coalesce(queue_ns, getrq_ns, issue_ns) IS NOT NULL"""
_COLUMNS: dict[str, tuple[tuple[str, ...], Callable[[Row], list[str]]]] = {
    "linux": (iostat.LINUX_HEADER, iostat.linux_cells),
    iostat.EXTENDED: (iostat.EXTENDED_HEADER, partial(iostat.linux_cells, extended=True)),
    "solaris": (iostat.SOLARIS_HEADER, iostat.solaris_cells),
}
ROWS = 20  # about so many, where no interval is asked for


def result(
    run: Run,
    filters: IoFilters,
    interval_ns: int | None = None,
    count: int | None = None,
    style: str = "linux",
    by: str | None = "device",
) -> ResultTable:
    """Of the I/Os that are meant, for each of ``count`` intervals at most; `Row`s were found. ``by``: a key of
    io_filter.PER; None: all I/Os in one row. Raises UsageError.
    """
    found, series = rows_and_series(run, filters, interval_ns, count, style, by)
    return table(found, series, style, by)


def table(found: list[Row], series: Series, style: str, by: str | None) -> ResultTable:
    """The rows as a result."""
    head = {"schema": "opline iostat 1", "zero_ns": series.zero_ns}
    return ResultTable(
        iostat.columns(by), [tuple(row.record(by).values()) for row in found], found=found,
        text=lambda _: text(found, series, style, by),
        document=lambda t: {**head, "rows": list(t.items())},
    )  # fmt: skip


def rows_and_series(
    run: Run, filters: IoFilters, interval_ns: int | None, count: int | None, style: str, by: str | None
) -> tuple[list[Row], Series]:
    """The rows, and the intervals that they are of. Raises UsageError."""
    if filters.of == "requests" and style != "dtrace":
        start = filters.start or await_begins(run)
        filters = filters.replaced(start=start, end=filters.end or "end")
    rows = io_filter.rows_of(run, filters)
    if interval_ns is None and by is not None and rows.window == io_filter.Window():
        rows = rows.replaced(window=_while_they_ran(run))
    whole = series_of(rows, None)
    if interval_ns is None and by is None:
        interval_ns = round_interval(whole.grid.step_ns, ROWS)
    series = series_of(rows, interval_ns, count)
    waits_from = filters.start if style == "solaris" else None
    merges = merges_over_time(run, rows, series, by) if style == iostat.EXTENDED else None
    found = rows_over_time(run, rows, series, by, waits_from, merges)
    others = sum(row.others.count for row in found)
    if style == "dtrace" and others:
        talk(f"{others} flushes and discards are neither reads nor writes: --style linux has them in o/s.")
    return found, series


def _while_they_ran(run: Run) -> io_filter.Window:
    """The time of the recorded programs' I/O, for the rates of a single row; open where all programs count."""
    alone = run.population is not None and run.population.counts_alone  # iostat itself counts all programs
    ran = time_of_most(run, _OF_POPULATION) if alone else None
    if ran is None:
        return io_filter.Window()
    whole_ns = run.core("last_ns") - run.start_ns()
    talk(
        f"rates are over the {duration(ran.end_ns - ran.begin_ns)} in which the recorded programs did I/O, of "
        f"{duration(whole_ns)} (--window 0: is all of it)."
    )
    return io_filter.Window(ran.begin_ns, ran.end_ns + 1)


def text(
    found: list[Row], series: Series, style: str, by: str | None, begins: bool = True, single: bool | None = None
) -> Iterator[Part]:
    """The rows as --style has them; ``begins``: with the header, which a table of groups has always; ``single``: there
    is one interval only, whose time is not shown (default: as the series says).
    """

    single = series.first == series.last if single is None else single
    digits = series.digits
    if style == "dtrace" and by is None:
        if begins:
            yield iostat.DTRACE_HEADER
        for row in found:
            yield iostat.dtrace_line(row, seconds(row.end_ns, digits))
    elif style == "dtrace":
        if begins:
            yield f"{iostat.DTRACE_HEADER}  {by}"
        for row in found:
            yield f"{iostat.dtrace_line(row, seconds(row.end_ns, digits))}  {row.name}"
    else:
        header, cells_of = _COLUMNS[style]
        names = by or "device"
        header = (names, *header)
        rows: list[list[object]] = [[*cells_of(row)] for row in found]
        times = [seconds(row.end_ns, digits) for row in found]
        if not single:
            header, rows = ("time", *header), [[t, *cells] for t, cells in zip(times, rows, strict=True)]
        yield ResultTable([Column("", head, left=head == names) for head in header], rows, gap=" ")
