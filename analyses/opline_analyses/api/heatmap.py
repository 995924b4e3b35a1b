# SPDX-License-Identifier: MIT
"""A heat map for a notebook: the picture of `opline heatmap -o FILE.svg`, and its cells as numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opline_analyses.pictures.heatmap_cells import document, table
from opline_analyses.pictures.heatmap_of import HeatmapOptions, maps_of_run, measure_of, picture

if TYPE_CHECKING:
    from opline_analyses.base.result_table import ResultTable
    from opline_analyses.block.io_filter import IoFilters, Rows
    from opline_analyses.pictures.heatmap import Map
    from opline_analyses.runs.run import Run


class Heatmap:
    """How many I/Os fell into which interval of time and which range of latency, size or offset."""

    def __init__(self, options: HeatmapOptions, filters: IoFilters, rows: Rows, found: Map) -> None:
        """As heatmap_of makes it."""
        self._options, self._filters, self._rows, self.map = options, filters, rows, found

    def svg(self) -> str:
        """The picture."""
        return picture(self._options, self._filters, self._rows, self.map)

    def table(self) -> ResultTable:
        """A row per cell: the interval, the range, how many I/Os and their sum."""
        return table({"": self.map})

    def record(self) -> dict[str, Any]:
        """As `opline heatmap --json` has it: ``step_ns``, the edges of the ``rows`` (ns or bytes), the ``cells``."""
        return document(self.map)

    def __repr__(self) -> str:
        found = self.map
        return f"<opline.Heatmap of {found.total.count} I/Os: {found.columns} columns of {found.step_ns} ns>"

    def _repr_svg_(self) -> str:
        return self.svg()


def heatmap(run: Run, filters: IoFilters, options: HeatmapOptions) -> Heatmap:
    """Of the I/Os of a run that are meant. Raises UsageError."""
    rows, found = maps_of_run(run, filters, options, measure_of(options), True)
    (map_of_all,) = found.values()
    return Heatmap(options, filters, rows, map_of_all)
