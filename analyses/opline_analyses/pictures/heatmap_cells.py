# SPDX-License-Identifier: MIT
"""The cells of heat maps as a document, and as rows of CSV."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opline_analyses.base.result_table import Column, ResultTable, text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from opline_analyses.intervals.intervals import Cell
    from opline_analyses.pictures.heatmap import Map, Measure


def document(heatmap: Map) -> dict[str, object]:
    """A map as JSON has it."""
    cells = [
        {
            "column": column, "row": row, "count": cell.count, "sum": cell.total,
            "begin_ns": heatmap.begin_ns + column * heatmap.step_ns,
        }
        for (column, row), cell in sorted(heatmap.cells.items())
    ]  # fmt: skip
    return {
        "schema": "opline heatmap 1", "measure": heatmap.measure.name.lower(), "columns": heatmap.columns,
        "step_ns": heatmap.step_ns, "rows": [list(edge) for edge in heatmap.edges], "cells": cells,
        "percentiles": {line.name: list(line.values) for line in heatmap.lines},
    }  # fmt: skip


def table(maps: Mapping[str, Map]) -> ResultTable:
    """The cells of maps by their groups' names, those of a column from below; a column without any is a row, too. Names
    say ns or bytes; numbers of two columns of text are what they were there, in a unit that nobody knows.
    """
    unit, divisor = _unit(next(iter(maps.values())).measure)
    kind = "i64" if divisor == 1 else "f64"
    low, high, whole = (Column(f"{name}{unit}", type=kind) for name in ("low", "high", "sum"))

    def number(value: int | None) -> float | None:
        return value if value is None or divisor == 1 else value / divisor

    def rows() -> Iterator[tuple[object, ...]]:
        for group, found in maps.items():
            columns: list[list[tuple[int, Cell]]] = [[] for _ in range(found.columns)]
            for (column, row), cell in sorted(found.cells.items()):
                columns[column].append((row, cell))
            for column, cells in enumerate(columns):
                begin = found.begin_ns + column * found.step_ns
                when = (group, begin, begin + found.step_ns)
                for row, cell in cells:
                    yield (*when, *map(number, found.edges_of(row)), cell.count, number(cell.total))
                if not cells:
                    yield (*when, None, None, 0, 0)

    return ResultTable((text("group"), Column("begin_ns"), Column("end_ns"), low, high, Column("count"), whole), rows())


def _unit(measure: Measure) -> tuple[str, int]:
    """What the names of columns end in, and how many of ours one is there."""
    if not measure.known:
        return "", measure.scale
    return ("_bytes", 1) if measure.name in ("Size", "Offset") else ("_ns", 1)
