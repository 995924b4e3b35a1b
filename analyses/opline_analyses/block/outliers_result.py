# SPDX-License-Identifier: MIT
"""I/Os above a threshold as a result: a row for each; for people statistics, and the suspect against a good device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opline.values import Value
from opline_analyses.base.quantities import seconds
from opline_analyses.base.result_table import Column, ResultTable, label, of_items, text, time
from opline_analyses.base.text import count_of, device_name, duration, percent, wrapped
from opline_analyses.block import io_filter, outliers
from opline_analyses.block.io_log import COLUMNS, ios
from opline_analyses.block.io_series import count_rows, series_of, told
from opline_analyses.block.io_steps import who
from opline_analyses.block.outliers import Threshold
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


class Asked(Value):
    """What of the outliers is wanted. ``threshold_ns``: None: as `of_latencies` finds it; ``order``: of io_log."""

    threshold_ns: int | None = None
    interval_ns: int | None = None
    limit: int | None = None
    order: str = "latency"
    style: str = "table"
    rows_only: bool = False  # neither text nor document is wanted


class Outliers(Value):
    """What was found: the cells of each interval by their index, those of the outliers alone, and the outliers."""

    kind: Kind
    names: dict[int, str]
    series: Series
    counted: list[tuple[int, Cells]]
    above: dict[int, Cells]
    threshold: Threshold
    listed: list[dict[str, Any]]
    order: str
    verdict: tuple[dict[str, object], list[Part]] | None = None

    @property
    def slow(self) -> dict[str, int]:
        """The number of outliers by device, class or stage, zero too."""
        found = dict.fromkeys(sorted({group for _, cells in self.counted for group, _ in cells}), 0)
        for cells in self.above.values():
            for (group, _), cell in cells.items():
                found[group] += cell.count
        return found

    @property
    def total(self) -> int:
        """How many I/Os are counted."""
        return sum(cell.count for _, cells in self.counted for cell in cells.values())


def result(run: Run, filters: IoFilters, asked: Asked) -> ResultTable:
    """The I/Os above the threshold, the first ``limit`` of them; statistics for each interval."""
    kind = outliers.KINDS[filters.of]
    rows = io_filter.rows_of(run, filters)
    threshold = outliers.of_latencies(run, rows) if asked.threshold_ns is None else Threshold(asked.threshold_ns)
    series = series_of(rows, asked.interval_ns)
    counted = list(told(count_rows(run, rows, series, None, kind.per), series))
    slow_rows = rows.also(outliers.is_outlier_sql(threshold.ns))
    tally = Tally(series.grid)
    for batch in io_filter.batches(run, slow_rows, kind.per):
        tally.add(batch)
    listed = list(ios(run, slow_rows, asked.order, asked.limit))
    above = dict(told(tally, series))
    found = Outliers(kind, run.device_names(), series, counted, above, threshold, listed, asked.order)
    more = sum(found.slow.values()) - len(listed)
    notes = [f"{count_of(more, f'more {kind.one}')} above the threshold: --limit shows more."] if more > 0 else []
    if asked.rows_only:
        return of_items(COLUMNS, listed, notes=notes)
    if kind.per == "device":
        found = Outliers(**vars(found) | {"verdict": _compared(run, rows, counted, found.slow, threshold.ns)})
    text = as_script if asked.style == "systemtap" else as_table
    return of_items(
        COLUMNS, listed, notes=notes, found=found.slow,
        text=lambda _: text(found), records=lambda _: (_document(found),),
    )  # fmt: skip


def as_script(found: Outliers) -> Iterator[Part]:
    """Each interval's outliers above its table, as SystemTap's script prints them."""
    kind, series, threshold = found.kind, found.series, found.threshold.ns
    yield from outliers.banner(kind, threshold, f"{series.length_ns(series.first) / 1e9:g}")
    warnings: dict[int, list[str]] = {}
    for row in found.listed:
        index = series.grid.index(row["end_ns"] + series.zero_ns)
        warnings.setdefault(index, []).append(outliers.warning(kind, row, found.names, threshold))
    for index, cells in found.counted:
        if index in warnings:
            yield from ("", *warnings[index])
        yield ""
        yield from outliers.table_lines(
            kind, {g: c for (g, _), c in cells.items()}, f"{series.length_ns(index) / 1e9:g}"
        )
    if found.verdict:
        yield from ("", *found.verdict[1])


def as_table(found: Outliers) -> Iterator[Part]:
    """What an outlier is, the outliers, the statistics, and the comparison."""
    number, one = sum(found.slow.values()), found.kind.one
    share = f" ({percent(number, found.total)} %)" if number else ""
    yield from wrapped(
        f"{number} of {count_of(found.total, one)}{share} take longer than {_limit(found.threshold, one)}."
    )
    if found.listed:
        some = number > len(found.listed) > 1 and found.order == "latency"
        yield f"The {len(found.listed)} slowest:" if some else ""
        yield _listed_table(found)
    for index, cells in found.counted:
        yield ""
        if found.series.last > found.series.first:
            yield f"{found.series.shown(index)} to {found.series.shown_end(index)} s"
        yield _statistics(found, cells, found.above.get(index, {}))
    if found.verdict:
        yield from ("", *found.verdict[1])


def _limit(threshold: Threshold, one: str) -> str:
    """The threshold in words."""
    if threshold.reason == "given":
        return duration(threshold.ns)
    if threshold.median_ns is None or not threshold.reason.startswith("p"):
        return f"{duration(threshold.ns)}, {threshold.reason}"
    most = duration(outliers.TIMES_MEDIAN * threshold.median_ns)
    return f"{duration(threshold.ns)}, {threshold.reason} (no {one} takes more than 10 times the median, {most})"


def _listed_table(found: Outliers) -> ResultTable:
    what: tuple[Column, ...]
    if found.kind.per == "device":
        where = text("dev", "device", lambda dev: device_name(found.names, dev)), text("kind", "I/O")
        what = (*where, Column("sector", "sector"), Column("bytes", "bytes"))
    else:
        stage = (label("stage", "stage"),) if found.kind.per == "stage" else ()
        what = (text("class", "class"), *stage, Column("op_id", "op"))
    columns = (
        Column("end_ns", "end (s)", lambda ns: seconds(ns, 6)), *what, label("thread", "thread"),
        time("latency_ns", "latency (us)"),
    )  # fmt: skip
    return of_items(columns, [row | {"thread": who(row)} for row in found.listed])


def _statistics(found: Outliers, cells: Cells, above: Cells) -> ResultTable:
    """A row per device, class or stage; the one with the greatest latency first."""
    slow = {group: cell.count for (group, _), cell in above.items()}
    rows = [
        (group, cell.count, slow.get(group, 0), cell.least, cell.mean, cell.most)
        for (group, _), cell in sorted(cells.items(), key=lambda item: (-(item[1].most or 0), item[0]))
    ]
    columns = (label("group", found.kind.per), Column("count", f"{found.kind.one}s"), Column("above", "above"))
    return ResultTable((*columns, *(time(f"{name}_ns", f"{name} (us)") for name in ("min", "mean", "max"))), rows)


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


def _document(found: Outliers) -> dict[str, object]:
    kind, series = found.kind, found.series
    return {
        "schema": "opline outliers 1",
        "zero_ns": series.zero_ns,
        "threshold_ns": found.threshold.ns,
        "threshold": found.threshold.reason,
        "outliers": found.listed,
        f"outliers_by_{kind.per}": {name: n for name, n in found.slow.items() if n},
        "intervals": [
            {
                "begin_ns": series.grid.begin_ns(i) - series.zero_ns,
                kind.several: listed(kind, {name: c for (name, _), c in cells.items()}),
            }
            for i, cells in found.counted
        ],
        "compared": found.verdict[0] if found.verdict else None,
    }


def listed(kind: Kind, groups: dict[str, Cell]) -> list[dict[str, object]]:
    """The table of an interval as a document has it."""
    return [
        {kind.per: name, "count": c.count, "min_ns": c.least, "max_ns": c.most, "sum_ns": c.total}
        for name, c in sorted(groups.items())
    ]
