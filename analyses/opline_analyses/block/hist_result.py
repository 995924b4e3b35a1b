# SPDX-License-Identifier: MIT
"""Distributions of latencies over time, as a result: a row per interval, group and bucket; text in any layout."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opline.errors import UsageError
from opline.talk import talk
from opline.values import Value
from opline_analyses.base.filters import major_of
from opline_analyses.base.given import Given
from opline_analyses.base.quantities import DURATIONS, duration_ns
from opline_analyses.base.result_table import Column, ResultTable
from opline_analyses.base.result_table import text as text_column
from opline_analyses.block import io_filter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from opline_analyses.base.result_table import Part
    from opline_analyses.block.io_filter import IoFilters
    from opline_analyses.block.io_series import Series
    from opline_analyses.block.io_sources import Source
    from opline_analyses.intervals.buckets import Buckets
    from opline_analyses.intervals.intervals import Cell, Cells
    from opline_analyses.runs.run import Run

OF_IOLATENCY = ("iolatency", "iolatency_micro")
NARROW = 6  # limit of powers of two with all latencies; then people see each power split in four


class HistOptions(Given):
    """The wanted histograms, by the options of `opline hist`."""

    per: str | None = None
    buckets: str = "auto"
    step: str | None = None
    unit: str | None = None
    style: str = "table"
    cumulative: bool = False
    timestamps: bool = False
    compat: bool = False
    beside: str | None = None

    @property
    def fits(self) -> bool:
        """The text's rows fit the range of the data."""
        return self.buckets == "auto" and self.style == "table"

    @property
    def sums(self) -> bool:
        """Each histogram includes the earlier counts."""
        return self.cumulative or self.style == "latencymap"

    @property
    def groups(self) -> str | None:
        """The kind of groups, with a histogram for each."""
        return self.per if self.beside is None else "stage"


class Histograms(Value):
    """The counts: the cells of each interval by its index, and their meaning."""

    intervals: list[tuple[int, Cells]]
    series: Series
    buckets: Buckets
    unit: str  # of the edges
    rows: io_filter.Rows
    named: Sequence[str] = ()  # groups shown without I/Os, too, in this order; the others follow

    def in_order(self, groups: Iterable[str]) -> list[str]:
        """The named groups, then the others by name."""
        return [*self.named, *sorted(set(groups) - set(self.named))]

    @property
    def spread(self) -> int:
        """Number of buckets from the least to the greatest nonempty bucket, both included."""
        used = [bucket for _, cells in self.intervals for _, bucket in cells]
        return max(used, default=-1) - min(used, default=0) + 1

    def in_powers_of_two(self) -> Histograms:
        """The same with the quarters of each power of two together."""
        from opline_analyses.intervals.buckets import PowerOfTwo
        from opline_analyses.intervals.intervals import Cell

        whole = PowerOfTwo(DURATIONS[self.unit])
        intervals: list[tuple[int, Cells]] = []
        for index, cells in self.intervals:
            found: Cells = {}
            for (group, bucket), cell in cells.items():
                place = int(whole.index(self.buckets.edges(bucket)[0]))
                found.setdefault((group, place), Cell()).add(cell)
            intervals.append((index, found))
        return Histograms(intervals, self.series, whole, self.unit, self.rows, self.named)


def result(
    run: Run, filters: IoFilters, asked: HistOptions, interval_ns: int | None = None, count: int | None = None
) -> ResultTable:
    """For the selected I/Os, for each interval (None: a single one), at most ``count``. Raises UsageError."""
    from opline_analyses.block.io_series import series_of

    unit = unit_of(asked)
    buckets = counting_buckets(asked, unit)
    if asked.compat and asked.style not in OF_IOLATENCY:
        raise UsageError("--compat is for --style iolatency and iolatency_micro.")
    rows = io_filter.rows_of(run, filters, source_beside(asked, filters))
    series = series_of(rows, interval_ns, count)
    if asked.style == "hist_log" and filters.of == "requests":  # as the scripts: `if (size <= 0) next`
        without = io_filter.count_of_rows(run, rows.also("coalesce(bytes, 0) = 0"))
        rows = rows.also("coalesce(bytes, 0) > 0")
        if without:
            talk(f"{without} requests without a size (flushes) are not in it, as in SystemTap's scripts.")
    counted = counted_of(run, asked, rows, series, buckets)
    return fitted(run, asked, filters, Histograms(counted, series, buckets, unit, rows))


def fitted(run: Run | None, asked: HistOptions, filters: IoFilters, found: Histograms) -> ResultTable:
    """The table of the counts; to fit the range, the counts are in quarters of powers of two."""
    if not asked.fits:
        return table(run, asked, filters, found)
    coarse = found.in_powers_of_two()
    return table(run, asked, filters, coarse, shown=found if coarse.spread <= NARROW else coarse)


def table(
    run: Run | None,
    asked: HistOptions,
    filters: IoFilters,
    found: Histograms,
    begins: bool = True,
    shown: Histograms | None = None,
) -> ResultTable:
    """The intervals. ``run``: None of single latencies; ``begins``: the text has what a layout begins with; ``shown``:
    what people see, if that is not what machines get.
    """
    return ResultTable(
        COLUMNS, _cells(found),
        text=lambda _: _text(run, asked, filters, shown or found, begins), document=lambda _: _document(found),
    )  # fmt: skip


def buckets_of(asked: HistOptions, unit: str) -> Buckets:
    """The options' buckets, powers of two by default. Raises UsageError."""
    from opline_analyses.intervals.buckets import Fine, Linear, PowerOfTwo

    if asked.style != "table" and asked.buckets not in ("auto", "log2"):
        raise UsageError(f"--style {asked.style} has powers of two: leave out --buckets {asked.buckets}.")
    if asked.step is not None and asked.buckets != "linear":
        raise UsageError("--step is for --buckets linear.")
    if asked.buckets == "linear":
        step = duration_ns(asked.step, "--step", unit) if asked.step is not None else 0
        if step <= 0:
            raise UsageError("--buckets linear: how long is a step? --step 10us.")
        return Linear(step)
    return Fine(DURATIONS[unit]) if asked.buckets == "fine" else PowerOfTwo(DURATIONS[unit])


def counting_buckets(asked: HistOptions, unit: str) -> Buckets:
    """The buckets to count in: where rows are to fit the range, those are quarters of powers of two. Raises UsageError
    as ``buckets_of``.
    """
    from opline_analyses.intervals.buckets import Fine

    meant = buckets_of(asked, unit)
    return Fine(DURATIONS[unit]) if asked.fits else meant


def unit_of(asked: HistOptions) -> str:
    """The unit of the edges. Raises UsageError."""
    unit = str(asked.unit or ("ms" if asked.style == "iolatency" else "us"))
    if asked.style == "latencymap" and (asked.per is not None or unit == "s"):
        raise UsageError("--style latencymap has one histogram, in ns, us or ms: leave out --per.")
    return unit


def source_beside(asked: HistOptions, filters: IoFilters) -> Source | None:
    """What --beside means: a group for each of the two start points. Raises UsageError."""
    from opline_analyses.block.io_sources import beside, source_of

    if asked.beside is None:
        return None
    if asked.per is not None or asked.style == "latencymap":
        raise UsageError("--beside has two histograms: leave out --per and --style latencymap.")
    starts = (filters.start, asked.beside)
    return beside(*(source_of(filters.of, start, filters.end, filters.tainted) for start in starts))


def counted_of(
    run: Run, asked: HistOptions, rows: io_filter.Rows, series: Series, buckets: Buckets
) -> list[tuple[int, Cells]]:
    """The cells of each interval."""
    from opline_analyses.block.io_series import LATENCY, count_rows, told

    value = LATENCY
    if asked.compat:  # its loop compares with `>`: what is a power of two exactly is in the bucket below
        value = "greatest(end_ns - begin_ns - 1, 0)"
        step, origin = series.grid.step_ns, series.grid.zero_ns
        rows = rows.also(f"(begin_ns - {origin}) // {step} = (end_ns - {origin}) // {step}")
    found = list(told(count_rows(run, rows, series, buckets, asked.groups, value), series))
    return summed(found) if asked.sums else found


def summed(counted: list[tuple[int, Cells]]) -> list[tuple[int, Cells]]:
    """Each interval with all earlier counts."""
    from opline_analyses.intervals.intervals import Cell

    sums: dict[tuple[str, int], Cell] = {}
    found = []
    for index, cells in counted:
        for key, cell in cells.items():
            sums.setdefault(key, Cell()).add(cell)
        found.append((index, {key: Cell(c.count, c.total, c.least, c.most, c.size) for key, c in sums.items()}))
    return found


def _text(run: Run | None, asked: HistOptions, filters: IoFilters, found: Histograms, begins: bool) -> Iterator[Part]:
    """The intervals as --style has them. ``begins``: what a style prints before its first one is wanted."""
    from opline_analyses.intervals import hist
    from opline_analyses.intervals.intervals import by_group
    from opline_analyses.runs.wall_clock import time_of_day

    counted, series, unit = found.intervals, found.series, found.unit
    names = found.in_order(group for _, cells in counted for group, _ in cells) or [""]
    if asked.style == "hist_log" and begins:
        yield from _filters(run, filters, found.rows.source.one)
    if asked.style == "latencymap":
        yield from _records([*([(series.first - 1, {})] if begins else []), *counted], series, unit, found.rows)
        return
    for number, (index, cells) in enumerate(counted):
        end = series.end_ns(index)
        if number or asked.style in OF_IOLATENCY:
            yield ""
        if asked.timestamps and run is not None:
            colon = ":" if asked.style in OF_IOLATENCY else ""
            yield time_of_day(run, end, series.digits if series.last else 0) + colon
        groups = by_group(cells)
        if asked.style == "table":
            yield f"{series.shown(index)} to {series.shown_end(index)} s"
            yield from _tables(groups, names, found)
            continue
        for group in names:
            if group:
                yield f"{asked.groups} = {group}"
            mine = groups.get(group, {})
            if asked.style == "iolatency":
                yield from hist.iolatency_lines(mine, unit)
            elif asked.style == "iolatency_micro":
                yield from hist.iolatency_micro_lines(mine, unit, series.length_ns(index), guessed=asked.compat)
            elif asked.style == "biolatency":
                yield from hist.biolatency_lines(mine, unit)
            else:
                length = f"{series.length_ns(index) / 1e9:g}"
                yield from hist.hist_log_title(length, hist.whole(mine).count, unit, found.rows.source.one)
                yield from hist.hist_log_lines(mine)


def _records(counted: list[tuple[int, Cells]], series: Series, unit: str, rows: io_filter.Rows) -> Iterator[str]:
    """For LatencyMap.py, which shows differences: the first one is to be empty."""
    from opline_analyses.intervals import hist
    from opline_analyses.intervals.intervals import by_group

    label = f"{rows.source.name} {rows.source.measured}"
    for index, cells in counted:
        end = series.end_ns(index)
        date = f"{series.shown_end(index)} s"
        yield from hist.latencymap_record(by_group(cells).get("", {}), end // 1000, date, label, unit)


def _tables(groups: dict[str, dict[int, Cell]], names: list[str], found: Histograms) -> Iterator[Part]:
    from opline_analyses.intervals import hist

    beside = 4  # more groups do not fit into a line
    for at in range(0, len(names), beside):
        shown = {name: groups.get(name, {}) for name in names[at : at + beside]}
        for name, mine in shown.items():
            label = f"{name}: " if name else ""
            yield f"{label}{hist.sums_line(hist.whole(mine), found.rows.source.one, found.rows.source.measured)}"
        yield from hist.table_lines(shown, found.buckets, found.unit)
        if at + beside < len(names):
            yield ""


def _filters(run: Run | None, filters: IoFilters, one: str) -> Iterator[str]:
    from opline_analyses.intervals import hist
    from opline_analyses.runs.devices import device_number

    operation = {"reads": 0, "writes": 1}.get(" ".join(filters.io or ()), -1)
    device = filters.device[0] if run and filters.device and len(filters.device) == 1 else None
    if device is not None and (major := major_of(device)) is not None:
        yield from hist.filters_header(filters.size, operation, major, -1, one)
        return
    dev = device_number(run, device) if run and device is not None else None
    numbers = (-1, -1) if dev is None else (dev >> 20, dev & 0xFFFFF)
    yield from hist.filters_header(filters.size, operation, *numbers, one)


COLUMNS = (
    *(Column("begin_ns"), Column("end_ns"), text_column("group"), Column("low_ns"), Column("high_ns"), Column("count")),
    Column("sum_ns"),
)


def _cells(found: Histograms) -> Iterator[tuple[object, ...]]:
    """A row per bucket; an idle interval is a row, too."""
    series = found.series
    for index, cells in found.intervals:
        times = [at_ns - series.zero_ns for at_ns in (series.grid.begin_ns(index), series.end_ns(index))]
        place = {group: n for n, group in enumerate(found.in_order(group for group, _ in cells))}
        for (group, bucket), cell in sorted(cells.items(), key=lambda one: (place[one[0][0]], one[0][1])):
            yield (*times, group, *found.buckets.edges(bucket), cell.count, cell.total)
        if not cells:
            yield (*times, "", None, None, 0, 0)


def _document(found: Histograms) -> dict[str, object]:
    """The intervals as JSON has them."""
    series = found.series

    def bucket(index: int, cell: Cell) -> dict[str, int]:
        low, high = found.buckets.edges(index)
        return {"low_ns": low, "high_ns": high, "count": cell.count, "sum_ns": cell.total}

    def group(cells: Cells, name: str) -> dict[str, object]:
        mine = sorted((b, cell) for (g, b), cell in cells.items() if g == name)
        least = min((c.least for _, c in mine if c.least is not None), default=None)
        most = max((c.most for _, c in mine if c.most is not None), default=None)
        return {
            "group": name,
            "count": sum(c.count for _, c in mine),
            "sum_ns": sum(c.total for _, c in mine),
            "min_ns": least,
            "max_ns": most,
            "buckets": [bucket(b, c) for b, c in mine],
        }

    return {
        "schema": "opline hist 1",
        "of": found.rows.source.name,
        "measured": found.rows.source.measured,
        "zero_ns": series.zero_ns,
        "intervals": [
            {
                "begin_ns": series.grid.begin_ns(index) - series.zero_ns,
                "end_ns": series.end_ns(index) - series.zero_ns,
                "groups": [group(cells, name) for name in found.in_order(g for g, _ in cells)],
            }
            for index, cells in found.intervals
        ],
    }
