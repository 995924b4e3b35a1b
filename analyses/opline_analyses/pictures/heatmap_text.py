# SPDX-License-Identifier: MIT
"""Heat maps for a terminal: plain characters, 256 colours or true colour, one character per cell."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from opline_analyses.base.quantities import decimals_of, seconds
from opline_analyses.base.text import count_of, duration
from opline_analyses.pictures.heatmap import round_marks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opline_analyses.pictures.heatmap import Map

RAMP = " .:-=+*#%@"
# Seven steps of xterm's 256 colours, from nothing to the most: blue for counts, yellow to red for time waited: those
# that PyLatencyMap made known.
BLUE = (15, 51, 45, 39, 33, 27, 21)
RED = (15, 226, 220, 214, 208, 202, 196)
RESET = "\x1b[0m"
LETTERS = "abcdefghijklmnopqrstuvwxyz"  # of percentiles
COLOURS = ("auto", "never", "256", "true")


def colours_wanted(option: str, terminal: bool) -> str:
    """never, 256 or true: what was asked for, else what the terminal says that it can. NO_COLOR says never."""
    if option != "auto":
        return option
    if not terminal or os.environ.get("NO_COLOR") or os.environ.get("TERM", "dumb") == "dumb":
        return "never"
    return "true" if os.environ.get("COLORTERM") in ("truecolor", "24bit") else "256"


def step_of(value: float, most: float) -> int:
    """0 for nothing, 1 to 6 for its share of the most."""
    return 0 if value <= 0 else 6 if value >= most else int(value * 6 / most) + 1


def heat(ratio: float) -> tuple[int, int, int]:
    """White for nothing, then a light colour to red: red, green, blue."""
    return (255, 255, 255) if ratio == 0 else (255, round(240 - 240 * ratio), round(220 - 220 * ratio))


def _cell(value: int, most: int, colours: str, palette: tuple[int, ...]) -> str:
    if colours == "256":
        return f"\x1b[48;5;{palette[step_of(value, most)]}m "
    if colours == "true":
        red, green, blue = heat(value / most)
        return f"\x1b[48;2;{red};{green};{blue}m "
    return RAMP[0 if value == 0 else min(9, 1 + 9 * (value - 1) // most)]


def lines(heatmap: Map, colours: str, waited: bool, one: str, title: str) -> Iterator[str]:
    """The map from the top, a row of times below, and what a mark means. ``waited``: time waited instead of counts."""

    def weight(place: tuple[int, int]) -> int:
        cell = heatmap.cells.get(place)
        return 0 if cell is None else cell.total if waited else cell.count

    most = max((weight(place) for place in heatmap.cells), default=0)
    labels = {row: heatmap.label(row) for row in heatmap.shown_rows()}
    width = max([len(label) for label in labels.values()] + [len(heatmap.measure.unit)])
    whole = heatmap.total
    yield f"{title}: {count_of(whole.count, one)}, a column is {duration(heatmap.step_ns)}"
    yield f"{heatmap.measure.unit:>{width}}"
    marks = _marks(heatmap)
    for row, label in labels.items():
        cells = "".join(
            _marked(
                _cell(weight((column, row)), max(1, most), colours, RED if waited else BLUE), marks.get((column, row))
            )
            for column in range(heatmap.columns)
        )
        yield f"{label:>{width}} |{cells}{'' if colours == 'never' else RESET}|"
    end = heatmap.begin_ns + heatmap.columns * heatmap.step_ns
    yield " " * (width + 2) + times_line(heatmap.begin_ns, end, heatmap.step_ns, heatmap.columns)
    if most:
        shown = duration(most) + " waited" if waited else count_of(most, one)
        yield f"{' ' * (width + 2)}{_legend(most, colours, waited)}  most in a cell: {shown}"
    if heatmap.lines:
        named = ", ".join(f"{letter} {line.name}" for line, letter in zip(heatmap.lines, LETTERS, strict=False))
        yield f"{' ' * (width + 2)}{named}"


def _marks(heatmap: Map) -> dict[tuple[int, int], str]:
    """The letter of the last line in each cell."""
    found: dict[tuple[int, int], str] = {}
    for line, letter in zip(heatmap.lines, LETTERS, strict=False):
        for column, value in enumerate(line.values):
            if value is not None:
                found[column, heatmap.row_of(value)] = letter
    return found


def _marked(cell: str, mark: str | None) -> str:
    """A cell with a letter in it; on a colour it is black."""
    if mark is None:
        return cell
    return mark if len(cell) == 1 else f"{cell[:-1]}\x1b[30m{mark}"


def _legend(most: int, colours: str, waited: bool) -> str:
    steps = [0, *(max(1, most * i // 6) for i in range(1, 7))]
    marks = "".join(_cell(value, most, colours, RED if waited else BLUE) for value in steps)
    return f"none [{marks}{'' if colours == 'never' else RESET}] most"


def times_line(begin_ns: int, end_ns: int, step_ns: int, columns: int) -> str:
    """Round times below their columns."""
    line = ""
    marks = round_marks(begin_ns, end_ns, max(1, columns // 10))
    digits = min(6, max([decimals_of(mark) for mark in marks], default=0))
    for mark in marks:
        column = (mark - begin_ns) // step_ns
        text = f"{seconds(mark, digits)}s"
        if column < columns and (not line or len(line) < column):
            line = f"{line:<{column}}{text}"
    return line
