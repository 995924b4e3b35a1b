# SPDX-License-Identifier: MIT
"""Who had the I/Os of a run, as a result: a row per interval and thread, process, device, file, cgroup or class, with
counts, bytes, exact percentiles, and the share of all that was measured.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opline_analyses.base.result_table import Column, ResultTable, share, text, time
from opline_analyses.block import io_filter
from opline_analyses.block.io_owners import with_owner
from opline_analyses.block.io_series import series_of, tell_left_out

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opline_analyses.base.result_table import Part
    from opline_analyses.block.io_filter import IoFilters, Rows
    from opline_analyses.block.io_series import Series
    from opline_analyses.runs.run import Run

#: The order of the rows, in SQL; names break ties.
SORTS = {"ios": "n DESC", "bytes": "size DESC", "latency": "mean DESC", "name": "", "share": "total DESC"}
DIRECTIONS = ("reads", "writes")


def columns(by: str, rows: Rows) -> tuple[Column, ...]:
    """``by``: a key of io_filter.PER."""
    return (
        Column("begin_ns"), Column("end_ns"), text("name", f"{by} (us)"), Column("count", f"{rows.source.one}s"),
        *(Column(name, name) for name in DIRECTIONS), Column("bytes", "MiB", _mib),
        *(time(f"{name}_ns", name, 1, "f64" if name == "mean" else "i64") for name in ("mean", "p50", "p99", "max")),
        Column("sum_ns"), share(),
    )  # fmt: skip


def _mib(size: int | None) -> str:
    return "" if size is None else f"{size / 2**20:.1f}"


def result(
    run: Run,
    filters: IoFilters,
    by: str = "thread",
    interval_ns: int | None = None,
    count: int | None = None,
    order: str = "ios",
    limit: int | None = None,
) -> ResultTable:
    """Of the I/Os, ops or stages that are meant, for each of ``count`` intervals at most (None: one, of all of it), in
    the ``order`` of a key of SORTS, ``limit`` rows in each. The share is of the sum of what was measured in the
    interval. Raises UsageError.
    """
    rows = io_filter.rows_of(run, filters)
    series = series_of(rows, interval_ns, count)
    rows = rows.replaced(source=with_owner(rows.source, by))
    found = _by_interval(run, rows, series, by, order)
    tell_left_out(run, rows, sum(row[3] for row in found))
    shown, left = _first(found, limit)
    all_columns = columns(by, rows)
    known = [i for i, c in enumerate(all_columns) if any(row[i] is not None for row in shown)]
    people = [c.name for i, c in enumerate(all_columns) if c.title is not None and i in known] or ["name"]
    notes = [f"not shown: {left} rows (--limit)"] if left else []
    head = {"schema": "opline top 1", "of": rows.source.name, "measured": rows.source.measured, "by": by}
    return ResultTable(
        all_columns, shown, people=people, notes=notes,
        text=lambda table: _text(table, series),
        document=lambda table: {**head, "zero_ns": series.zero_ns, "rows": list(table.items())},
    )  # fmt: skip


def _by_interval(run: Run, rows: Rows, series: Series, by: str, order: str) -> list[tuple[Any, ...]]:
    latency, origin = "(end_ns - begin_ns)", series.grid.begin_ns(0)
    inner, parameters = io_filter.counted_sql(
        rows, f"{io_filter.PER[by]} AS who, (end_ns - {origin}) // {series.grid.step_ns} AS place, {latency} AS v, "
        "bytes, kind"
    )  # fmt: skip
    sorting = ", ".join(filter(None, ("place", SORTS[order], "who NULLS LAST")))
    sql = f"""SELECT place, who, count(*) AS n,
                     CASE WHEN count(kind) > 0 THEN count(*) FILTER (kind = 'read') END,
                     CASE WHEN count(kind) > 0 THEN count(*) FILTER (kind = 'write') END,
                     sum(bytes)::BIGINT AS size, avg(v) AS mean, quantile_disc(v, [0.5, 0.99]), max(v), sum(v) AS total
              FROM ({inner}) WHERE place BETWEEN {series.first} AND {series.last}
              GROUP BY place, who ORDER BY {sorting}"""
    groups = run.rows(sql, parameters)
    whose = io_filter.names_of_groups(run, rows, by)
    totals: dict[int, int] = {}
    for place, *_, total in groups:
        totals[place] = totals.get(place, 0) + int(total)
    found = []
    for place, who, n, reads, writes, size, mean, (p50, p99), most, total in groups:
        begin, end = (at_ns - series.zero_ns for at_ns in (series.grid.begin_ns(place), series.end_ns(place)))
        part = int(total) / totals[place] if totals[place] else None
        found.append((begin, end, whose(who), n, reads, writes, size, mean, p50, p99, most, int(total), part))
    return found


def _first(rows: list[tuple[Any, ...]], limit: int | None) -> tuple[list[tuple[Any, ...]], int]:
    """The first rows of each interval, and the number of the others."""
    if limit is None:
        return rows, 0
    seen: dict[int, int] = {}
    kept = []
    for row in rows:
        seen[row[0]] = seen.get(row[0], 0) + 1
        if seen[row[0]] <= limit:
            kept.append(row)
    return kept, len(rows) - len(kept)


def _text(table: ResultTable, series: Series) -> Iterator[Part]:
    """A table for each nonempty interval."""
    begins = {series.grid.begin_ns(index) - series.zero_ns: index for index in range(series.first, series.last + 1)}
    shown = list(dict.fromkeys(row[0] for row in table.rows))
    for number, begin in enumerate(shown):
        if number:
            yield ""
        index = begins[begin]
        yield f"{series.shown(index)} to {series.shown_end(index)} s"
        yield table.with_rows([row for row in table.rows if row[0] == begin])
