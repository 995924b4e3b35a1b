# SPDX-License-Identifier: MIT
"""Other tools' histograms for `opline hist`: opline's table with the tool's buckets, the other layouts with powers of
two, CSV and JSON. Sums and means are estimates from the middle of each bucket, and marked as estimates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opline.errors import UsageError
from opline_analyses.base.result_table import Column, ResultTable
from opline_analyses.base.result_table import text as text_column
from opline_analyses.base.text import count_of, duration
from opline_analyses.intervals import hist
from opline_analyses.intervals.intervals import by_group, merged

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opline_analyses.base.result_table import Part
    from opline_analyses.block.hist_result import HistOptions
    from opline_analyses.block.io_filter import IoFilters
    from opline_analyses.counts.asked import Asked
    from opline_analyses.counts.collected import Collected
    from opline_analyses.counts.inputs import Kind
    from opline_analyses.counts.snapshot import Interval
    from opline_analyses.intervals.intervals import Cell

BESIDE = 4  # histograms side by side


def _about(total: Cell) -> str:
    if not total.count or total.mean is None:
        return "nothing counted"
    return f"{count_of(total.count, 'event')}, mean about {duration(total.mean)}, from the middles of the buckets"


def _seconds(us: int) -> str:
    return f"{us / 1e6:.6f}".rstrip("0").rstrip(".")


def text(found: Collected, shown: Sequence[Interval], style: str, unit: str) -> Iterator[Part]:
    """The histograms in the layout of --style, except records. Raises UsageError."""
    names = found.groups
    zero = shown[0].begin_us
    if found.label:
        yield found.label
    for number, interval in enumerate(shown):
        if number:
            yield ""
        if interval.restarted:
            yield "the tool began to count again in this interval: counts since then"
        if style == "table":
            yield f"{_seconds(interval.begin_us - zero)} to {_seconds(interval.end_us - zero)} s"
            groups = by_group(found.cells(interval))
            for at in range(0, len(names), BESIDE):
                some = {name: groups.get(name, {}) for name in names[at : at + BESIDE]}
                for name, cells in some.items():
                    yield f"{name + ': ' if name else ''}{_about(hist.whole(cells))}"
                yield from hist.table_lines(some, found.buckets, unit)
            continue
        groups = by_group(found.powers(interval, unit))
        for name in names:
            if name:
                yield name
            cells = groups.get(name, {})
            if style == "iolatency":
                yield from hist.iolatency_lines(cells, unit)
            elif style == "biolatency":
                yield from hist.biolatency_lines(cells, unit)
            else:
                length = _seconds(interval.end_us - interval.begin_us)
                yield from hist.hist_log_title(length, hist.whole(cells).count, unit)
                yield from hist.hist_log_lines(cells)


def records(found: Collected, shown: Sequence[Interval], unit: str) -> Iterator[str]:
    """PyLatencyMap's records, with growing counts, after an empty record. Raises UsageError for more than one group."""
    if len(found.groups) > 1:
        raise UsageError("--style latencymap has one histogram: " + ", ".join(found.groups) + " are several.")
    source = "oracle" if found.intervals[0].snapshot.upper else "systemtap"
    sums: dict[int, Any] = {}
    begin = shown[0].begin_us
    yield from hist.latencymap_record({}, begin, _seconds(0) + " s", found.label, unit, source)
    for interval in shown:
        for (_, place), cell in found.powers(interval, unit).items():
            sums.setdefault(place, type(cell)()).add(cell)
        date = interval.snapshot.date or f"{_seconds(interval.end_us - begin)} s"
        yield from hist.latencymap_record(sums, interval.end_us, date, found.label, unit, source)


COLUMNS = (
    *(Column("begin_ns"), Column("end_ns"), text_column("group"), Column("low_ns"), Column("high_ns"), Column("count")),
    Column("about_ns"),
)


def result(found: Collected, shown: Sequence[Interval], style: str, unit: str) -> ResultTable:
    """The histograms, for people, in the layout of --style. Raises UsageError."""

    def lines(_: ResultTable) -> Iterator[Part]:
        return records(found, shown, unit) if style == "latencymap" else text(found, shown, style, unit)

    return ResultTable(COLUMNS, _cells(found, shown), text=lines, document=lambda _: document(found, shown))


def _cells(found: Collected, shown: Sequence[Interval]) -> Iterator[tuple[object, ...]]:
    """A row for each nonempty bucket of each interval; an empty interval is a row, too."""
    zero = shown[0].begin_us
    for interval in shown:
        times = ((interval.begin_us - zero) * 1000, (interval.end_us - zero) * 1000)
        cells = found.cells(interval)
        for (group, place), cell in sorted(cells.items()):
            low, high = found.buckets.edges(place)
            yield (*times, group, low, high, cell.count, cell.total)
        if not cells:
            yield (*times, None, None, None, 0, None)


def document(found: Collected, shown: Sequence[Interval]) -> dict[str, object]:
    """The intervals for JSON."""
    zero = shown[0].begin_us

    def bucket(place: int, cell: Cell) -> dict[str, int]:
        low, high = found.buckets.edges(place)
        return {"low_ns": low, "high_ns": high, "count": cell.count, "about_ns": cell.total}

    listed = []
    for interval in shown:
        groups = by_group(found.cells(interval))
        listed.append(
            {
                "begin_ns": (interval.begin_us - zero) * 1000,
                "end_ns": (interval.end_us - zero) * 1000,
                "count": merged(found.cells(interval)).count,
                "restarted": interval.restarted,
                "groups": [
                    {"group": name, "buckets": [bucket(place, cell) for place, cell in sorted(groups[name].items())]}
                    for name in sorted(groups)
                ],
            }
        )
    return {"schema": "opline hist of counts 1", "label": found.label, "intervals": listed}


def of_values(
    kind: Kind, given: Asked, filters: IoFilters, options: HistOptions, interval_ns: int | None, count: int | None
) -> ResultTable:
    """The histograms of single latencies, in opline's buckets; times count from the first. Raises OplineError."""
    from opline_analyses.base.quantities import Limits
    from opline_analyses.block.hist_result import Histograms, buckets_of, summed, table, unit_of
    from opline_analyses.block.io_filter import Rows, Window
    from opline_analyses.block.io_series import Series, told
    from opline_analyses.block.io_sources import Source
    from opline_analyses.intervals.intervals import Grid, Tally, number_of_intervals

    unit = unit_of(options)
    buckets = buckets_of(options, unit)
    batch, one = kind.read(given)
    first, last = int(batch.at_ns.min()), int(batch.at_ns.max())
    step = interval_ns or last - first + 1
    number = number_of_intervals(last - first + 1, step, count)
    series = Series(Grid(first, step), 0, number - 1, first)
    tally = Tally(series.grid, buckets)
    tally.add(batch)
    rows = Rows(Source(one + "s", "", one, "latency"), "", (), Limits(), Window(), first, last)
    counted = summed(list(told(tally, series))) if options.sums else list(told(tally, series))
    return table(None, options, filters, Histograms(counted, series, buckets, unit, rows))
