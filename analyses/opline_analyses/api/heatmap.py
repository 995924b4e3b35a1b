# SPDX-License-Identifier: MIT
"""Heat maps: of a run's I/Os, of another tool's histograms or latencies; as text, as SVG, and the cells as numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opline.errors import UsageError
from opline_analyses.base.quantities import DURATIONS
from opline_analyses.base.screen import WIDTH
from opline_analyses.pictures import heatmap_cells
from opline_analyses.pictures.heatmap_of import HeatmapOptions, maps_of_run, measure_of, picture, stepsec

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from opline_analyses.base.result_table import ResultTable
    from opline_analyses.block.io_filter import IoFilters, Rows
    from opline_analyses.counts.asked import Asked
    from opline_analyses.counts.collected import Collected
    from opline_analyses.counts.inputs import Kind
    from opline_analyses.counts.screen import Column
    from opline_analyses.pictures.heatmap import Map
    from opline_analyses.runs.run import Run


class Heatmap:
    """How many I/Os fell into which interval of time and which range of latency, size or offset."""

    def __init__(
        self, options: HeatmapOptions, filters: IoFilters, rows: Rows | None, found: Map, device: str = ""
    ) -> None:
        """``rows``: what the map is of, None where it is of no run; ``device``: the map's own, where there is one for
        each.
        """
        self._options, self._filters, self._rows, self.map, self._device = options, filters, rows, found, device

    def svg(self) -> str:
        """The picture."""
        return picture(self._options, self._filters, self._rows, self.map, self._device)

    def text(self, colours: str = "never") -> str:
        """For a terminal; ``colours``: never, 256 or true."""
        from opline.talk import shown
        from opline_analyses.pictures.heatmap_text import lines

        one = self._rows.source.one if self._rows is not None else "event"
        title = shown(self._options.titled(self.map, self._device))
        found = lines(self.map, colours, self._options.map == "waited", one, title)
        return "".join(f"{line.rstrip() if colours == 'never' else line}\n" for line in found)

    def table(self) -> ResultTable:
        """A row per cell: the interval, the range, how many I/Os and their sum."""
        return heatmap_cells.table({"": self.map})

    def record(self) -> dict[str, Any]:
        """As `opline heatmap --json` has it: ``step_ns``, the edges of the ``rows`` (ns or bytes), the ``cells``."""
        return heatmap_cells.document(self.map)

    def __repr__(self) -> str:
        found = self.map
        return f"<opline.Heatmap of {found.total.count} I/Os: {found.columns} columns of {found.step_ns} ns>"

    def _repr_svg_(self) -> str:
        return self.svg()


def check(options: HeatmapOptions) -> None:
    """Raises UsageError for options that no run's map can have: before the run is opened."""
    measure_of(options)


def heatmap(
    run: Run, filters: IoFilters, options: HeatmapOptions, *, as_picture: bool = True, width: int = WIDTH
) -> dict[str, Heatmap]:
    """Of the I/Os of a run that are meant: a map, under an empty name; with ``per_device`` a map for each device, by
    its name. ``as_picture``: as many columns and rows as a picture has, else as a terminal of this ``width`` has.
    Raises UsageError.
    """
    rows, found = maps_of_run(run, filters, options, as_picture, width)
    return {name: Heatmap(options, filters, rows, one, name) for name, one in found.items()}


def heatmap_of_counts(found: Collected, filters: IoFilters, options: HeatmapOptions) -> dict[str, Heatmap]:
    """Of another tool's histograms: a map for each group. Raises OplineError."""
    from opline_analyses.counts.picture import maps_of

    unit = options.unit or found.unit
    if unit not in DURATIONS:
        raise UsageError(f"--unit {unit}: one of ns, us, ms, s.")
    title = options.title or (f"Latency Heat Map: {found.label}" if found.label else None)
    options = options.replaced(unit=unit, title=title)
    maps = maps_of(found, stepsec(options), options.maxcol, unit)
    return {name: Heatmap(options, filters, None, one, name) for name, one in maps}


def heatmap_of_values(
    kind: Kind, given: Asked, filters: IoFilters, options: HeatmapOptions, *, as_picture: bool = True
) -> dict[str, Heatmap]:
    """Of another tool's latencies: one map. Raises OplineError."""
    from opline_analyses.counts.picture import map_of_values

    columns, number = (110, 50) if as_picture else (66, 16)
    found = map_of_values(kind, given, options, columns, options.rows or number)
    return {"": Heatmap(options, filters, None, found)}


def cells(maps: Mapping[str, Heatmap]) -> ResultTable:
    """The cells of maps: a row per map, interval and range."""
    return heatmap_cells.table({name: one.map for name, one in maps.items()})


def latencymap(
    run: Run, filters: IoFilters, *, unit: str = "us", step_ns: int = DURATIONS["s"], most: int | None = None
) -> Iterator[Column]:
    """The columns of PyLatencyMap's screen: one for each ``step_ns``, ``most`` at most, in buckets of ``unit``."""
    from opline_analyses.counts.latencymap import of_run

    return of_run(run, filters, unit, step_ns, most)


def latencymap_of(kind: Kind, given: Asked, *, unit: str = "us", step_ns: int = DURATIONS["s"]) -> Iterator[Column]:
    """The same of another tool's histograms, whose own intervals and unit count, or latencies. Raises OplineError."""
    from opline.readers.registry import COUNTS
    from opline_analyses.counts import latencymap

    return latencymap.of_counts(kind, given) if kind.HAS == COUNTS else latencymap.of_values(kind, given, unit, step_ns)
