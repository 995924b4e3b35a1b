# SPDX-License-Identifier: MIT
"""Other tools' histograms over time: a column for each, or for what ends in the same --stepsec; a row each bucket."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opline.errors import OplineError
from opline_analyses.base.quantities import DURATIONS
from opline_analyses.counts.collected import grouped
from opline_analyses.intervals.intervals import Cell
from opline_analyses.pictures.heatmap import Map, Measure, check_columns

if TYPE_CHECKING:
    from opline_analyses.counts.collected import Collected


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
