# SPDX-License-Identifier: MIT
"""I/Os above a threshold as a result: a row for each; for people statistics, and the suspect against a good device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opline_analyses.base.result_table import ResultTable, of_items
from opline_analyses.base.text import count_of, duration, percent
from opline_analyses.block import io_filter, outliers
from opline_analyses.block.io_log import COLUMNS, ios
from opline_analyses.block.io_series import count_rows, series_of, told
from opline_analyses.intervals import hist
from opline_analyses.intervals.buckets import PowerOfTwo
from opline_analyses.intervals.intervals import Cell, Grid, Tally, by_group

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opline_analyses.base.result_table import Part
    from opline_analyses.block.io_filter import IoFilters
    from opline_analyses.block.io_series import Series
    from opline_analyses.block.outliers import Kind
    from opline_analyses.intervals.intervals import Cells
    from opline_analyses.runs.run import Run


def result(
    run: Run, filters: IoFilters, threshold_ns: int, interval_ns: int | None, limit: int | None, rows_only: bool = False
) -> ResultTable:
    """The first ``limit`` I/Os above the threshold; statistics for each interval. ``rows_only``: neither text nor
    document is wanted.
    """
    kind = outliers.KINDS[filters.of]
    rows = io_filter.rows_of(run, filters)
    series = series_of(rows, interval_ns)
    counted = list(told(count_rows(run, rows, series, None, kind.per), series))
    slow_rows = rows.also(outliers.is_outlier_sql(threshold_ns))
    slow = dict.fromkeys({group for _, cells in counted for group, _ in cells}, 0)
    for batch in io_filter.batches(run, slow_rows, kind.per):
        for group in batch.groups.tolist():
            slow[batch.names[group]] += 1
    found = list(ios(run, slow_rows, "time", limit))
    more = sum(slow.values()) - len(found)
    notes = [f"{count_of(more, f'more {kind.one}')} above the threshold: --limit shows more."] if more > 0 else []
    if rows_only:
        return of_items(COLUMNS, found, notes=notes)
    names = run.device_names()
    verdict = _compared(run, rows, counted, slow, threshold_ns) if kind.per == "device" else None
    return of_items(
        COLUMNS, found, notes=notes, found=slow,
        text=lambda _: _lines(kind, names, series, counted, found, threshold_ns, verdict),
        records=lambda _: (_document(kind, series, counted, slow, found, threshold_ns, verdict),),
    )  # fmt: skip


def _lines(
    kind: Kind,
    names: dict[int, str],
    series: Series,
    counted: list[tuple[int, Cells]],
    found: list[dict[str, Any]],
    threshold: int,
    verdict: tuple[dict[str, object], list[Part]] | None,
) -> Iterator[Part]:
    """Each interval's outliers above its table."""

    yield from outliers.banner(kind, threshold, f"{series.length_ns(series.first) / 1e9:g}")
    warnings: dict[int, list[str]] = {}
    for row in found:
        index = series.grid.index(row["end_ns"] + series.zero_ns)
        warnings.setdefault(index, []).append(outliers.warning(kind, row, names, threshold))
    for index, cells in counted:
        if index in warnings:
            yield from ("", *warnings[index])
        yield ""
        yield from outliers.table_lines(
            kind, {g: c for (g, _), c in cells.items()}, f"{series.length_ns(index) / 1e9:g}"
        )
    if verdict:
        yield from ("", *verdict[1])


def _compared(
    run: Run, rows: io_filter.Rows, counted: list[tuple[int, Cells]], slow: dict[str, int], threshold: int
) -> tuple[dict[str, object], list[Part]] | None:

    devices: dict[str, Cell] = {}
    for _, cells in counted:
        for (group, _), cell in cells.items():
            devices.setdefault(group, Cell()).add(cell)
    if outliers.suspect_and_good(devices, {name: n for name, n in slow.items() if n}) is None:
        return None
    tally = Tally(Grid(0, 1 << 62), PowerOfTwo(1000))
    for batch in io_filter.batches(run, rows, "device"):
        tally.add(batch)
    return compared(by_group(next(iter(tally.intervals()))[1]), slow, threshold)


def compared(
    groups: dict[str, dict[int, Cell]], slow: dict[str, int], threshold: int
) -> tuple[dict[str, object], list[Part]] | None:
    """The suspect and a good device, of histograms (powers of two of 1 us) and numbers of outliers by device: as a
    document, and as lines. None where there is no such pair.
    """

    devices = {name: hist.whole(histogram) for name, histogram in groups.items()}
    pair = outliers.suspect_and_good(devices, {name: n for name, n in slow.items() if n})
    if pair is None:
        return None
    suspect, good = pair
    numbers = [(slow[name], devices[name].count) for name in pair]
    chance = outliers.probability(*numbers[0], *numbers[1])
    shares = [f"{n} of {name}'s {of} I/Os ({percent(n, of)} %)" for name, (n, of) in zip(pair, numbers, strict=True)]
    verdict = "They differ" if chance < outliers.BY_CHANCE else "That may be chance"
    lines: list[Part] = [f"The suspect {suspect} against {good}, all I/Os of both on one scale:"]
    lines += hist.table_lines({name: groups[name] for name in pair}, PowerOfTwo(1000), "us")
    lines += [f"Above {duration(threshold)}: {' and '.join(shares)}."]
    lines += [f"{verdict} ({'p < 0.000001' if chance < 1e-6 else f'p = {chance:.2g}'}, Fisher's exact test)."]
    document: dict[str, object] = {"suspect": suspect, "good": good, "probability": chance}
    return document, lines


def _document(
    kind: Kind,
    series: Series,
    counted: list[tuple[int, Cells]],
    slow: dict[str, int],
    found: list[dict[str, Any]],
    threshold: int,
    verdict: tuple[dict[str, object], list[Part]] | None,
) -> dict[str, object]:
    return {
        "schema": "opline outliers 1",
        "zero_ns": series.zero_ns,
        "threshold_ns": threshold,
        "outliers": found,
        f"outliers_by_{kind.per}": {name: n for name, n in sorted(slow.items()) if n},
        "intervals": [
            {
                "begin_ns": series.grid.begin_ns(i) - series.zero_ns,
                kind.several: listed(kind, {name: c for (name, _), c in cells.items()}),
            }
            for i, cells in counted
        ],
        "compared": verdict[0] if verdict else None,
    }


def listed(kind: Kind, groups: dict[str, Cell]) -> list[dict[str, object]]:
    """The table of an interval as a document has it."""
    return [
        {kind.per: name, "count": c.count, "min_ns": c.least, "max_ns": c.most, "sum_ns": c.total}
        for name, c in sorted(groups.items())
    ]
