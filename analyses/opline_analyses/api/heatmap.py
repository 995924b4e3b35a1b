# SPDX-License-Identifier: MIT
"""A heat map for a notebook: the picture of `opline heatmap -o FILE.svg`, and its cells as numbers."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from opline_analyses.commands.heatmap import drawn, maps_of_run, measure_of

if TYPE_CHECKING:
    from opline_analyses.block import io_filter
    from opline_analyses.pictures.heatmap import Map
    from opline_analyses.runs.run import Run


class Heatmap:
    """How many I/Os fell into which interval of time and which range of latency, size or offset."""

    def __init__(self, args: argparse.Namespace, rows: io_filter.Rows, found: Map) -> None:
        """As heatmap_of makes it."""
        self._args, self._rows, self.map = args, rows, found

    def svg(self) -> str:
        """The picture."""
        return drawn(self._args, self._rows, self.map, "", True)

    def record(self) -> dict[str, Any]:
        """As `opline heatmap --json` has it: ``step_ns``, the edges of the ``rows`` (ns or bytes), the ``cells``."""
        args = argparse.Namespace(**{**vars(self._args), "json": True})
        found: dict[str, Any] = json.loads(drawn(args, self._rows, self.map, "", False))
        return found

    def __repr__(self) -> str:
        found = self.map
        return f"<opline.Heatmap of {found.total.count} I/Os: {found.columns} columns of {found.step_ns} ns>"

    def _repr_svg_(self) -> str:
        return self.svg()


def heatmap_of(run: Run, args: argparse.Namespace) -> Heatmap:
    """Of a run, as the options of `opline heatmap` say. Raises UsageError."""
    rows, found = maps_of_run(run, args, measure_of(args), True)
    (heatmap,) = found.values()
    return Heatmap(args, rows, heatmap)
