# SPDX-License-Identifier: MIT
"""Heat maps as SVG that opens anywhere: no file beside it, names escaped. The details of a cell are shown when the
mouse is over it, and the command that lists its I/Os when it is clicked; both also without scripts, as its tooltip.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

from opline.talk import shown
from opline.values import Value
from opline_analyses.base.quantities import decimals_of, seconds
from opline_analyses.base.text import duration
from opline_analyses.pictures.heatmap import round_marks
from opline_analyses.pictures.heatmap_text import heat

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from opline_analyses.pictures.heatmap import Map


class Look(Value):
    """What trace2heatmap.pl lets one choose."""

    title: str = "Latency Heat Map"
    font: str = "Verdana"
    font_size: int = 12
    box: int = 8
    grid: bool = False
    accumulated: bool = False


_SCRIPT = """<script type="text/ecmascript"><![CDATA[
(function () {
  var svg = document.documentElement, details = document.getElementById("details"), kept = null;
  function say(text) { details.textContent = text; }
  svg.addEventListener("mouseover", function (e) {
    var t = e.target.getAttribute("data-told"); if (t && !kept) say(t); });
  svg.addEventListener("mouseout", function () { if (!kept) say(" "); });
  svg.addEventListener("click", function (e) {
    var t = e.target.getAttribute("data-list");
    if (kept) kept.removeAttribute("stroke");
    kept = t && e.target !== kept ? e.target : null;
    if (kept) kept.setAttribute("stroke", "black");
    say(kept ? t : " "); });
})();
]]></script>
"""


def _text(x: float, y: float, text: str, look: Look, more: str = "", size: int | None = None) -> str:
    return (
        f'<text x="{x:g}" y="{y:g}" font-size="{size or look.font_size}" '
        f"font-family={quoteattr(shown(f'{look.font}, DejaVu Sans, sans-serif'))} {more}>{escape(shown(text))}</text>\n"
    )


def _told(heatmap: Map, column: int, row: int, look: Look, sums: dict[int, int], running: int) -> str:
    begin = heatmap.begin_ns + column * heatmap.step_ns
    digits = min(9, max(decimals_of(heatmap.step_ns), decimals_of(heatmap.begin_ns)))
    time = f"{seconds(begin, digits)}-{seconds(begin + heatmap.step_ns, digits)}s"
    cell, unit = heatmap.cells[column, row], heatmap.measure.unit
    if row < 0:
        where = f"below {heatmap.number(heatmap.edges[0][0])}{unit}"
    elif row >= heatmap.rows:
        where = f"{heatmap.number(heatmap.edges[-1][1])}{unit} and above"
    else:
        where = "-".join(heatmap.number(edge) for edge in heatmap.edges[row]) + unit
    told = f"time {time}, range {where}, count: {cell.count}, colpct: {100 * cell.count // sums[column]}%"
    if look.accumulated:
        told += f", acc: {running}, acc pct: {100 * running // sums[column]}%"
    return told


def _boxes(
    heatmap: Map, look: Look, x0: float, tops: dict[int, float], command: Callable[[int, int], str] | None
) -> Iterator[str]:
    most = max((cell.count for cell in heatmap.cells.values()), default=1)
    sums: dict[int, int] = {}
    for (column, _), cell in heatmap.cells.items():
        sums[column] = sums.get(column, 0) + cell.count
    running: dict[int, int] = {}
    for column, row in sorted(heatmap.cells):
        cell = heatmap.cells[column, row]
        running[column] = running.get(column, 0) + cell.count
        told = _told(heatmap, column, row, look, sums, running[column])
        colour = "rgb({},{},{})".format(*heat(cell.count / most))
        listed = f"data-list={quoteattr(shown(command(column, row)))}" if command is not None else ""
        yield (
            f'<rect class="cell" x="{x0 + column * look.box:g}" y="{tops[row]:g}" width="{look.box}" '
            f'height="{look.box}" fill="{colour}" data-count="{cell.count}" data-told={quoteattr(shown(told))} '
            f"{listed}><title>{escape(shown(told))}</title></rect>\n"
        )


def _legend(look: Look, x: float, y: float, most: int) -> Iterator[str]:
    steps = 6
    yield _text(x - 4, y + look.font_size - 2, "1", look, 'text-anchor="end" fill="rgb(60,60,60)"', look.font_size - 2)
    for i in range(steps):
        colour = "rgb({},{},{})".format(*heat((i + 1) / steps))
        yield f'<rect x="{x + i * 14:g}" y="{y:g}" width="14" height="{look.font_size - 2}" fill="{colour}"/>\n'
    label = f"{most} in a cell"
    at = x + steps * 14 + 4
    yield _text(at, y + look.font_size - 2, label, look, 'fill="rgb(60,60,60)"', look.font_size - 2)


def _lines(heatmap: Map, look: Look, x0: float, tops: dict[int, float], y_end: float) -> Iterator[str]:
    """Percentiles: through the middle of each column, at the value's own height in its row."""
    y_top = min(tops.values())

    def place(column: int, value: int) -> str:
        row = heatmap.row_of(value)
        if 0 <= row < heatmap.rows:
            low, high = heatmap.edges[row]
            y = tops[row] + look.box * (1 - (value - low) / (high - low))
        else:
            y = y_end if row < 0 else y_top
        return f"{x0 + (column + 0.5) * look.box:g},{y:g}"

    for number, line in enumerate(heatmap.lines):
        stretches: list[list[str]] = [[]]
        for column, value in enumerate(line.values):
            if value is None:
                stretches.append([])
            else:
                stretches[-1].append(place(column, value))
        colour = f"rgb(0,{40 + 50 * (number % 3)},{160 - 50 * (number % 3)})"
        for points in filter(None, stretches):
            if len(points) == 1:  # a point alone is seen, too
                points.append(points[0])
            yield (
                f'<polyline class="percentile" data-name="{line.name}" points="{" ".join(points)}" fill="none" '
                f'stroke="{colour}" stroke-width="1.5" stroke-linecap="round" pointer-events="none"/>\n'
            )
        last = next((i for i in reversed(range(len(line.values))) if line.values[i] is not None), None)
        if last is not None:
            x, y = place(last, line.values[last] or 0).split(",")
            yield _text(float(x) + 3, float(y) - 2, line.name, look, f'fill="{colour}"', look.font_size - 2)


def _about(heatmap: Map) -> str:
    """What the axis below is, and how much is drawn."""
    return f"time, a column is {duration(heatmap.step_ns)}; {heatmap.total.count} in all"


def _labelled(heatmap: Map, each: int) -> set[int]:
    """Rows with a label, ``each`` rows apart at least: from the lowest on; of a logarithmic axis powers of two."""
    edges, scale = heatmap.edges, heatmap.measure.scale
    if len({high - low for low, high in edges}) > 1:
        wholes = [low // scale if low % scale == 0 else 0 for low, _ in edges]
        powers = [row for row, whole in enumerate(wholes) if whole and whole & (whole - 1) == 0]
        if len(powers) > 2:
            return set(powers[:: -(-each // max(1, powers[-1] - powers[-2]))])
    return set(range(0, heatmap.rows, each))


def document(heatmap: Map, look: Look, command: Callable[[int, int], str] | None) -> str:
    """The SVG. ``command``: what lists the I/Os of a column and row, if anything does."""
    size = look.font_size
    rows = heatmap.shown_rows()
    labels = [heatmap.label(row) for row in rows]
    left = 14 + max(map(len, [*labels, heatmap.measure.unit])) * size * 0.65
    top, bottom = size * 5.2, size * 5.6
    width = max(500.0, left + heatmap.columns * look.box + 14)
    height = top + len(rows) * look.box + bottom
    tops = {row: top + i * look.box for i, row in enumerate(rows)}
    most = max((cell.count for cell in heatmap.cells.values()), default=0)
    x_end, y_end = left + heatmap.columns * look.box, top + len(rows) * look.box
    head = (
        '<?xml version="1.0" encoding="UTF-8" standalone="no"?>\n'
        f'<svg version="1.1" width="{width:g}" height="{height:g}" viewBox="0 0 {width:g} {height:g}" '
        'xmlns="http://www.w3.org/2000/svg">\n'
        "<style>.cell:hover { stroke: black; stroke-width: 0.5; } .cell { cursor: pointer; }</style>\n"
        f'<rect width="{width:g}" height="{height:g}" fill="white"/>\n'
    )
    parts = [
        head,
        _text(width / 2, size * 2, look.title, look, 'text-anchor="middle" fill="black"', size + 5),
        _text(left, size * 4.4, heatmap.measure.unit, look, 'text-anchor="end" fill="rgb(60,60,60)"'),
        _text(width / 2, height - size * 2.4, _about(heatmap), look, 'text-anchor="middle" fill="black"'),
        _text(10, height - size, " ", look, 'id="details" fill="black"'),
    ]
    if most:
        parts += _legend(look, width - 200, size * 3.4, most)
    begin, end = heatmap.begin_ns, heatmap.begin_ns + heatmap.columns * heatmap.step_ns
    marks = round_marks(begin, end, max(2, int((x_end - left) // 70)))
    digits = min(9, max([decimals_of(mark) for mark in marks], default=0))
    for mark in marks:
        x = left + (mark - begin) / heatmap.step_ns * look.box
        if look.grid:
            parts.append(f'<line x1="{x:g}" y1="{top:g}" x2="{x:g}" y2="{y_end:g}" stroke="rgb(230,230,230)"/>\n')
        text = f"{seconds(mark, digits)}s"
        parts.append(_text(x, y_end + size * 1.3, text, look, 'text-anchor="middle" fill="rgb(100,100,100)"', size - 1))
    each = max(1, -(-int(size * 1.2) // look.box))
    labelled = _labelled(heatmap, each)
    for place, row in enumerate(rows):
        if row in labelled or row < 0 or row >= heatmap.rows:
            y = tops[row] + look.box
            if look.grid:
                parts.append(f'<line x1="{left:g}" y1="{y:g}" x2="{x_end:g}" y2="{y:g}" stroke="rgb(230,230,230)"/>\n')
            parts.append(_text(left - 4, y, labels[place], look, 'text-anchor="end" fill="rgb(100,100,100)"', size - 2))
    frame = f'<path d="M{left:g},{top:g}V{y_end:g}H{x_end:g}" fill="none" stroke="rgb(160,160,160)"/>\n'
    drawn = [*_boxes(heatmap, look, left, tops, command), *_lines(heatmap, look, left, tops, y_end)]
    return "".join([*parts, frame, *drawn, _SCRIPT, "</svg>\n"])
