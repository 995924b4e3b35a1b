# SPDX-License-Identifier: MIT
"""The heat map of a run's I/Os: the axes that the options mean, the cells, the picture."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from opline.errors import UsageError
from opline_analyses.base.given import Given
from opline_analyses.base.quantities import DURATIONS, Limits, duration_ns, limits, round_up, seconds, size_bytes
from opline_analyses.block import io_filter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opline_analyses.block.io_filter import IoFilters
    from opline_analyses.block.io_series import Series
    from opline_analyses.pictures.heatmap import Line, Map, Measure, Scale
    from opline_analyses.runs.run import Run

SUBSECOND = "subsecond"  # when in its second an I/O completed, as FlameScope's maps have it
_SECOND_NS = 10**9


class HeatmapOptions(Given):
    """What of a heat map is wanted, as the options of `opline heatmap` say it. ``source``: the words that open the run,
    for the command that lists a cell's I/Os.
    """

    source: tuple[str, ...] = ()
    value: str = "latency"
    log: bool | None = None  # None: as ``logarithmic`` says
    map: str = "count"
    unit: str | None = None
    minlat: str | None = None
    maxlat: str | None = None
    steplat: str | None = None
    rows: int | None = None
    stepsec: str | None = None
    maxcol: int | None = None
    percentiles: str | None = None
    per_device: bool = False
    title: str | None = None
    grid: bool = False
    accstats: bool = False
    boxsize: int = 8
    fonttype: str = "Verdana"
    fontsize: int = 12

    @property
    def logarithmic(self) -> bool:
        """Whether the vertical axis is: of latencies and sizes, unless rows of one height are asked for."""
        if self.log is None:
            return self.value not in ("offset", SUBSECOND) and self.steplat is None
        return self.log

    @property
    def units(self) -> str:
        """The unit of the labels."""
        return self.unit or ("ms" if self.value == SUBSECOND else "us")

    def titled(self, heatmap: Map, device: str) -> str:
        """The title of a map."""
        return (self.title or f"{heatmap.measure.name} Heat Map") + (f": {device}" if device else "")


def measure_of(asked: HeatmapOptions, zero_ns: int = 0) -> Measure:
    """What the vertical axis is. ``zero_ns``: where seconds are counted from. Raises UsageError."""
    from opline_analyses.block.io_series import LATENCY
    from opline_analyses.pictures.heatmap import Measure

    if asked.value in ("latency", SUBSECOND):
        if asked.units not in DURATIONS:
            raise UsageError(f"--unit {asked.units}: one of ns, us, ms, s.")
        if asked.value == "latency":
            return Measure("Latency", LATENCY, asked.units, DURATIONS[asked.units])
    if asked.map == "waited":
        raise UsageError("--map waited is for --value latency.")
    if asked.value == SUBSECOND:
        return Measure("Subsecond", f"(end_ns - {zero_ns}) % {_SECOND_NS}", asked.units, DURATIONS[asked.units])
    if asked.value == "size":
        return Measure("Size", "bytes", "bytes", 1)
    return Measure("Offset", "sector::BIGINT * 512", "Mbytes", 1 << 20)


def number_of(asked: HeatmapOptions, name: str, unit: str) -> int | None:
    """A bound of the vertical axis. Raises UsageError."""
    text = getattr(asked, name)
    if text is None:
        return None
    if asked.value in ("latency", SUBSECOND):
        return duration_ns(text, f"--{name}", unit)
    return size_bytes(f"{text}m" if asked.value == "offset" and text.isdigit() else text, f"--{name}")


def _scale(run: Run, rows: io_filter.Rows, asked: HeatmapOptions, measure: Measure, number: int) -> Scale:
    from opline_analyses.pictures.heatmap import scale_of

    low, high = number_of(asked, "minlat", asked.units), number_of(asked, "maxlat", asked.units)
    if asked.value == SUBSECOND:
        low, high = low or 0, _SECOND_NS - 1 if high is None else high
    lowest = False  # the axis begins near the least value, at a round one
    if low is None or high is None:
        sql, parameters = io_filter.counted_sql(rows, f"min({measure.sql}), max({measure.sql})")
        least, most = run.row(sql, parameters)
        if low is None:
            low = int(least or 0) if asked.logarithmic or asked.value == "offset" else 0
            lowest = asked.value == "offset"
        high = int(most or 0) if high is None else high
    bounded = asked.minlat is not None, asked.maxlat is not None
    if bounded[1] and high <= (low if bounded[0] else 0):
        raise UsageError(f"--maxlat {asked.maxlat}: the axis ends where it begins, or before.")
    step = number_of(asked, "steplat", asked.units)
    if bounded[1]:
        high -= 1  # the axis ends there; what is not below is above it
    if step is None and asked.rows is None:
        step = -(-(max(high, low) - low + 1) // number)
        step = 1 << (step - 1).bit_length() if asked.value in ("size", "offset") else round_up(step)
        low -= low % step if lowest else 0
    return scale_of(low, max(high, low), number, step, asked.logarithmic, bounded, measure.scale)


def stepsec(asked: HeatmapOptions) -> int | None:
    step = None if asked.stepsec is None else duration_ns(asked.stepsec, "--stepsec")
    if step == 0:
        raise UsageError("--stepsec must be more than 0.")
    return step


def _series(rows: io_filter.Rows, asked: HeatmapOptions, columns: int) -> Series:
    from opline_analyses.block.io_series import round_interval, series_of
    from opline_analyses.pictures.heatmap import check_columns

    whole = series_of(rows, None)
    fitting = _SECOND_NS if asked.value == SUBSECOND else round_interval(whole.grid.step_ns, columns)
    found = series_of(rows, stepsec(asked) or fitting, asked.maxcol)
    check_columns(found.last - found.first + 1)
    return found


def _lister(asked: HeatmapOptions, filters: IoFilters) -> list[str]:
    """The command that lists the I/Os of a map, without the window and the range of the vertical axis."""
    words = ["opline", "log", *asked.source]
    given: list[tuple[str, Sequence[object] | None]] = [
        ("-d", filters.device), ("-i", filters.io), ("-n", filters.comm), ("-p", filters.pid),
        ("--tid", filters.tid), ("--cgroup", filters.cgroup), ("--object", filters.object),
        ("--class", filters.op_class), ("--stage", filters.stage), ("--from", [filters.start]),
        ("--to", [filters.end]), ("--of", [filters.of if filters.of != "requests" else None]),
        ("--size", [filters.size if asked.value != "size" else None]),
        ("--latency", [filters.latency if asked.value != "latency" else None]),
    ]  # fmt: skip
    for option, values in given:
        for value in values or ():
            if value is not None:
                words += [option, str(value)]
    return [*words, "--tainted"] if filters.tainted else words


def _of_cell(
    asked: HeatmapOptions, filters: IoFilters, rows: io_filter.Rows, heatmap: Map, column: int, row: int
) -> str:
    """The command that lists a cell's I/Os: by offset it can't tell rows apart, and lists the column's."""
    begin = heatmap.begin_ns + column * heatmap.step_ns
    end = begin + heatmap.step_ns
    if asked.value == SUBSECOND and heatmap.step_ns == _SECOND_NS and 0 <= row < heatmap.rows:
        begin, end = (begin + edge for edge in heatmap.edges[row])
    if rows.window.until_ns is not None:
        end = min(end, rows.window.until_ns - rows.zero_ns)
    words = [*_lister(asked, filters), "--window", f"{seconds(begin, 9)}:{seconds(end, 9)}"]
    if asked.value in ("offset", SUBSECOND):
        return shlex.join(words)
    option, unit, parse = ("--size", "b", size_bytes) if asked.value == "size" else ("--latency", "ns", _microseconds)
    text = filters.size if asked.value == "size" else filters.latency
    limited = limits(text, option, parse) if text else Limits()
    inside = 0 <= row < heatmap.rows
    low = heatmap.edges[row][0] if inside else None if row < 0 else heatmap.edges[-1][1]
    high = heatmap.edges[row][1] - 1 if inside else heatmap.edges[0][0] - 1 if row < 0 else None
    least = max((edge for edge in (low, limited.least) if edge is not None), default=None)
    most = min((edge for edge in (high, limited.most) if edge is not None), default=None)
    span = "..".join("" if edge is None else f"{edge}{unit}" for edge in (least, most))
    return shlex.join([*words, option, span])


def _microseconds(text: str, option: str) -> int:
    return duration_ns(text, option, "us")


def _lines(
    run: Run, rows: io_filter.Rows, series: Series, measure: Measure, wanted: Sequence[float]
) -> tuple[Line, ...]:
    """The percentiles of each column: the least value that so many per cent of its I/Os do not exceed."""
    from opline_analyses.pictures.heatmap import line_of

    if not wanted:
        return ()
    sql, parameters = io_filter.counted_sql(rows, f"end_ns, {measure.sql} AS value")
    shares = ", ".join(str(percent / 100) for percent in wanted)
    found = run.rows(
        f"""SELECT (end_ns - {series.grid.zero_ns}) // {series.grid.step_ns} - {series.first} AS place,
                   quantile_disc(value, [{shares}]) FROM ({sql}) GROUP BY place""",
        parameters,
    )
    columns = series.last - series.first + 1
    return tuple(
        line_of(percent, columns, {place: int(values[i]) for place, values in found})
        for i, percent in enumerate(wanted)
    )


def maps_of_run(
    run: Run, filters: IoFilters, asked: HeatmapOptions, picture: bool, width: int = 80
) -> tuple[io_filter.Rows, dict[str, Map]]:
    """The I/Os that are meant, and the map of them, or of each device's, by its name. ``picture``: as many columns and
    rows as one has, else as a terminal of this ``width`` has. Raises UsageError.
    """
    from opline_analyses.block.io_series import count_rows
    from opline_analyses.pictures.heatmap import map_of, percents

    rows = io_filter.rows_of(run, filters).placed_by(asked.value)
    measure = measure_of(asked, rows.zero_ns)
    series = _series(rows, asked, 110 if picture else max(20, width - 14))
    number = asked.rows or (50 if picture else 16)
    scale = _scale(run, rows, asked, measure, number)
    maps = {"": rows}
    if asked.per_device:
        maps = {name: rows.also(f"dev = {dev}") for dev, name in io_filter.devices_in(run, rows)}
    wanted = percents(asked.percentiles) if asked.percentiles is not None else ()
    found = {}
    for name, mine in maps.items():
        tally = count_rows(run, mine, series, scale.buckets, None, measure.sql)
        found[name] = map_of(tally, series, scale, measure, _lines(run, mine, series, measure, wanted))
    return rows, found


def picture(
    asked: HeatmapOptions, filters: IoFilters, rows: io_filter.Rows | None, heatmap: Map, device: str = ""
) -> str:
    """As SVG. ``rows``: those of the map, where a click is to show the command for a cell's I/Os."""
    from opline_analyses.pictures import heatmap_svg

    title = asked.titled(heatmap, device)
    look = heatmap_svg.Look(title, asked.fonttype, asked.fontsize, asked.boxsize, asked.grid, asked.accstats)
    lister = (lambda c, r: _of_cell(asked, filters, rows, heatmap, c, r)) if rows is not None else None
    return heatmap_svg.document(heatmap, look, lister)
