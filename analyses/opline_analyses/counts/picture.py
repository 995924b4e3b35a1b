# SPDX-License-Identifier: MIT
"""Heat maps of other tools' data. Histograms: a column for each histogram, or for each --stepsec, and a row for each
bucket. Single latencies: the axes of a run's map.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opline.errors import OplineError
from opline_analyses.base.quantities import DURATIONS, round_up
from opline_analyses.block.io_series import Series, round_interval
from opline_analyses.counts.collected import grouped
from opline_analyses.counts.formats import two_columns
from opline_analyses.intervals.intervals import Cell, Grid, Tally
from opline_analyses.pictures import heatmap_of
from opline_analyses.pictures.heatmap import Map, Measure, check_columns, map_of, percents, scale_of

if TYPE_CHECKING:
    from opline_analyses.counts.asked import Asked
    from opline_analyses.counts.collected import Collected
    from opline_analyses.counts.inputs import Kind
    from opline_analyses.pictures.heatmap import Line
    from opline_analyses.pictures.heatmap_of import HeatmapOptions


def maps_of(found: Collected, step_ns: int | None, most: int | None, unit: str) -> list[tuple[str, Map]]:
    """A map for each group, with the same axes. Without ``step_ns`` a column's width is the mean interval's."""
    if not found.buckets.all:
        raise OplineError(f"{found.where} has histograms without a count: there is nothing to draw.")
    shown = found.intervals[:most] if step_ns is None else grouped(found, max(1, step_ns // 1000), most)
    check_columns(len(shown))
    width_ns = step_ns or max(1, (shown[-1].end_us - shown[0].begin_us) * 1000 // len(shown))
    measure = Measure("Latency", "", unit, DURATIONS[unit])
    edges = [found.buckets.edges(place) for place in range(len(found.buckets.all))]
    maps = []
    for group in found.groups:
        cells: dict[tuple[int, int], Cell] = {}
        for column, interval in enumerate(shown):
            for (name, place), cell in found.cells(interval).items():
                if name == group:
                    cells[column, place] = cell
        maps.append((group, Map(cells, len(shown), len(edges), 0, width_ns, edges, measure)))
    return maps


def map_of_values(kind: Kind, given: Asked, asked: HeatmapOptions, columns: int, number: int) -> Map:
    """The map of single latencies, in up to ``columns`` columns and ``number`` rows; times count from the first. Raises
    OplineError.
    """
    if kind is two_columns:
        batch = two_columns.rows(given)
        measure = Measure("Latency", "", asked.unit or "", two_columns.THOUSANDTHS, known=False)
    else:
        batch, _ = kind.read(given)
        measure = heatmap_of.measure_of(asked)
    first, length = int(batch.at_ns.min()), int(batch.at_ns.max()) - int(batch.at_ns.min()) + 1
    step = heatmap_of.stepsec(asked) or round_interval(length, columns)
    last = -(-length // step) - 1
    if asked.maxcol is not None:
        last = min(last, asked.maxcol - 1)
    check_columns(last + 1)

    def bound(name: str) -> int | None:
        text = None if measure.known else getattr(asked, name)
        return heatmap_of.number_of(asked, name, asked.units) if text is None else two_columns.value(text, f"--{name}")

    log = asked.logarithmic
    least = int(batch.values.min()) if log and asked.minlat is None else 0
    low, high = bound("minlat") or least, bound("maxlat")
    most = int(batch.values.max()) if high is None else high - 1
    rise = bound("steplat")
    if rise is None and asked.rows is None:
        rise = round_up(-(-(max(most, low) - low + 1) // number))
    bounded = asked.minlat is not None or int(batch.values.min()) < low, high is not None
    scale = scale_of(low, max(most, low), number, rise, log, bounded, measure.scale)
    tally = Tally(Grid(first, step), scale.buckets)
    tally.add(batch)
    lines: tuple[Line, ...] = ()
    if asked.percentiles is not None:
        lines = two_columns.percentiles(batch, first, step, last, percents(asked.percentiles))
    return map_of(tally, Series(tally.grid, 0, last, first), scale, measure, lines)
