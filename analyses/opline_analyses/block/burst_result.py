# SPDX-License-Identifier: MIT
"""Bursts as a result: a row for each; for people also the period, and commands for a closer look."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from opline_analyses.base.quantities import round_up, seconds
from opline_analyses.base.result_table import Column, ResultTable, of_items, share, text
from opline_analyses.base.text import count_of, duration
from opline_analyses.block import io_filter
from opline_analyses.block.bursts import FEWEST_IOS, bursts, period
from opline_analyses.block.io_series import count_rows, round_interval, series_of, told
from opline_analyses.intervals.intervals import Cell

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from opline_analyses.base.result_table import Part
    from opline_analyses.block.bursts import Burst
    from opline_analyses.block.io_filter import IoFilters
    from opline_analyses.block.io_series import Series
    from opline_analyses.intervals.intervals import Cells
    from opline_analyses.runs.run import Run

COUNTED = {"bytes": "bytes", "ios": "I/Os", "waited": "time waited"}
INTERVAL_NS = 100_000_000
FEWEST = 20  # intervals, of a short run
LISTED = 20


def result(run: Run, filters: IoFilters, interval_ns: int | None, by: str, words: Sequence[str]) -> ResultTable:
    """For the selected I/Os, in intervals of ``interval_ns``; a burst has more of ``by``. ``words`` open the run."""
    rows = io_filter.rows_of(run, filters)
    step = interval_ns or min(INTERVAL_NS, round_interval(series_of(rows, None).grid.step_ns, FEWEST))
    series = series_of(rows, step)
    counted = [cells for _, cells in told(count_rows(run, rows, series, None, "io"), series)]
    found = _found(by, counted, series)
    document = {"schema": "opline burst 1", "zero_ns": series.zero_ns, "interval_ns": step, "kinds": found}
    return of_items(
        columns_of(max(1, series.digits)), [{"kind": k["kind"]} | burst for k in found for burst in k["bursts"]],
        text=lambda _: _text(found, series, by, words, not filters.io), document=lambda _: document,
    )  # fmt: skip


SEEN = (
    "kind", "begin_ns", "end_ns", "count", "bytes", "share", "peak_to_mean", "read_in_mean_ns", "read_out_mean_ns",
    "write_in_mean_ns", "write_out_mean_ns",
)  # fmt: skip


def columns_of(digits: int) -> list[Column]:
    """``digits`` of the seconds."""

    def mean(ns: int | None) -> str:
        return "" if ns is None else duration(ns, 3)

    means = {"read_in": "read in", "read_out": "out", "write_in": "write in", "write_out": "out"}
    return [
        text("kind", "kind"),
        Column("begin_ns", "from s", lambda ns: seconds(ns, digits)),
        Column("end_ns", "to s", lambda ns: seconds(ns, digits)),
        Column("count", "I/Os"),
        Column("bytes", "MiB", lambda size: f"{size / 2**20:.1f}"),
        *(Column(f"{name}_mean_ns", head, mean) for name, head in means.items()),
        share(),
        Column("peak_to_mean", "peak", lambda peak: f"{peak:.1f}x", "f64"),
    ]


def _number(cell: Cell, by: str) -> int:
    return cell.size if by == "bytes" else cell.count if by == "ios" else cell.total


def _measured(counted: Sequence[Cells], of: str, first: int, last: int, series: Series) -> dict[str, Any]:
    """A stretch in exact numbers: the I/Os of a kind in it; means of reads and writes, in it and outside."""
    sums = {name: Cell() for name in ("read_in", "read_out", "write_in", "write_out")}
    inside = Cell()
    for index, cells in enumerate(counted):
        where = "in" if first <= index <= last else "out"
        for (kind, _), cell in cells.items():
            if where == "in" and kind == of:
                inside.add(cell)
            if f"{kind}_{where}" in sums:
                sums[f"{kind}_{where}"].add(cell)
    begin = series.grid.begin_ns(series.first + first) - series.zero_ns
    end = series.end_ns(series.first + last) - series.zero_ns
    return {"begin_ns": begin, "end_ns": end, "count": inside.count, "bytes": inside.size} | {
        f"{name}_mean_ns": None if cell.mean is None else round(cell.mean) for name, cell in sums.items()
    }


def _found(by: str, counted: Sequence[Cells], series: Series) -> list[dict[str, Any]]:
    """Per kind of I/O its bursts and their period."""
    kinds = sorted({kind for cells in counted for kind, _ in cells})
    found = []
    for kind in kinds:
        values = [_number(cells[kind, 0], by) if (kind, 0) in cells else 0 for cells in counted]
        counts = [cells[kind, 0].count if (kind, 0) in cells else 0 for cells in counted]
        whole, these = sum(values), bursts(values, counts)
        apart = period(these)
        step = series.grid.step_ns

        def told(burst: Burst, kind: str = kind, whole: int = whole) -> dict[str, Any]:
            share, peak = burst.total / whole, burst.peak * len(counted) / whole
            return _measured(counted, kind, burst.first, burst.last, series) | {"share": share, "peak_to_mean": peak}

        times = None
        if apart is not None:
            times = {"median_ns": round(apart.median * step), "least_ns": apart.least * step}
            times |= {"most_ns": apart.most * step, "regular": apart.regular}
        most = max(values) * len(values) / whole if whole else 0.0
        found.append(
            {"kind": kind, "count": sum(counts), "bursts": [told(b) for b in these], "period": times}
            | {"peak_to_mean": most}
        )
    return found


def _none(kind: dict[str, Any], by: str) -> str:
    """Why there is no burst."""
    if kind["count"] < FEWEST_IOS:
        return f"{count_of(kind['count'], 'I/O')}, too few for a burst (fewer than {FEWEST_IOS})."
    if not kind["peak_to_mean"]:
        return f"{count_of(kind['count'], 'I/O')} without any {COUNTED[by]}: no burst."
    return f"no burst, the greatest interval has {kind['peak_to_mean']:.1f} times the mean."


def _text(
    found: list[dict[str, Any]], series: Series, by: str, words: Sequence[str], every_kind: bool
) -> Iterator[Part]:
    step, digits = series.grid.step_ns, max(1, series.digits)
    shown = []
    for kind in found:
        for burst in sorted(kind["bursts"], key=lambda b: -b["share"])[:LISTED]:
            shown.append({"kind": kind["kind"]} | burst)
    shown.sort(key=lambda burst: burst["begin_ns"])
    yield f"intervals of {duration(step)}, by {COUNTED[by]}"
    if shown:
        yield of_items(columns_of(digits), shown, gap=" ", people=SEEN)
    there = {kind["kind"] for kind in found}
    for missing in ("read", "write"):
        if missing not in there and every_kind:
            yield f"{missing}: no I/O."
    for kind in found:
        number, more = len(kind["bursts"]), max(0, len(kind["bursts"]) - LISTED)
        if not number:
            yield f"{kind['kind']}: {_none(kind, by)}"
            continue
        text = f"{kind['kind']}: {count_of(number, 'burst')}"
        if more:
            text += f", {more} of them not shown"
        if times := kind["period"]:
            span = f"{duration(times['least_ns'])} to {duration(times['most_ns'])}"
            text += f", every {duration(times['median_ns'])}" if times["regular"] else ", not regular"
            text += f" ({span} apart)"
        yield text + "."
    if shown:
        first = max(shown, key=lambda burst: burst["share"])
        begin, end = max(0, first["begin_ns"] - step), first["end_ns"] + step
        window = f"{seconds(begin, digits)}:{seconds(end, digits)}"
        fine = f"{round_up((end - begin) // 60) / 1e6:g}ms"
        yield f"look at: {shlex.join(['opline', 'iostat', *words, fine, '--window', window])}"
        yield f"         {shlex.join(['opline', 'heatmap', *words, '--window', window])}"
