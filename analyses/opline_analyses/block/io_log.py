# SPDX-License-Identifier: MIT
"""I/Os one by one: thread, command, place, duration; as listed by iosnoop."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from opline_analyses.base.quantities import seconds
from opline_analyses.base.result_table import Column, ResultTable, of_items, text
from opline_analyses.base.text import shortened
from opline_analyses.block.io_filter import count_of_rows, counted_sql, rows_of
from opline_analyses.block.io_series import tell_left_out
from opline_analyses.runs.columns import fetched

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import TypeAlias

    from opline_analyses.base.result_table import Items
    from opline_analyses.block.io_filter import IoFilters, Rows
    from opline_analyses.runs.run import Run

    Lines: TypeAlias = Callable[[Iterable[dict[str, Any]]], Iterable[str]]

ORDERS = {
    "time": "end_ns, id", "start": "begin_ns, id", "latency": "end_ns - begin_ns DESC, id",
    "size": "bytes DESC NULLS LAST, id",
}  # fmt: skip
MOST = 21  # limit of a stage's name, for a line of 80 characters
_TEXTS = ("comm", "kind", "rwbs", "class", "stage")
NAMES = (
    "id", "begin_ns", "end_ns", "latency_ns", "comm", "tid", "pid", "kind", "rwbs", "class", "stage", "dev", "sector",
    "bytes", "op_id",
)  # fmt: skip
COLUMNS = tuple(text(name) if name in _TEXTS else Column(name) for name in NAMES)


def ios(
    run: Run, rows: Rows, order: str = "time", limit: int | None = None, per_class: bool = False
) -> Iterator[dict[str, Any]]:
    """One dict per counted row, keys as in NAMES; times count from the run's first event; None is unknown. With
    ``per_class`` the limit is each class's.
    """
    return (dict(zip(NAMES, values, strict=True)) for values in _values(run, rows, order, limit, per_class))


def _values(run: Run, rows: Rows, order: str, limit: int | None, per_class: bool = False) -> Iterator[tuple[Any, ...]]:
    zero = rows.zero_ns
    columns = (
        f"id, begin_ns - {zero}, end_ns - {zero}, end_ns - begin_ns, comm, tid, pid, kind, rwbs, class, stage, "
        "dev, sector, bytes, op_id"
    )
    sql, parameters = counted_sql(rows, columns)
    first = f" LIMIT {limit}" if limit is not None and not per_class else ""
    if limit is not None and per_class:
        sql += f" QUALIFY row_number() OVER (PARTITION BY class ORDER BY {ORDERS[order]}) <= {limit}"
    found = run.con.execute(f"{sql} ORDER BY {ORDERS[order]}{first}", parameters)
    for batch in fetched(found, 4096):
        yield from batch


def header(start: bool, end: bool) -> str:
    """iosnoop's."""
    times = [f"{name:<15}" for name, on in (("STARTs", start), ("ENDs", end)) if on]
    return " ".join([*times, f"{'COMM':<12} {'PID':<6} {'TYPE':<4} {'DEV':<8} {'BLOCK':<12} {'BYTES':<6} {'LATms':>8}"])


def line(row: dict[str, Any], start: bool, end: bool) -> str:
    """iosnoop's columns; PID is the queueing thread (for an op: its process), an unknown value is `-`."""
    times = [f"{seconds(row[name], 6):<15}" for name, on in (("begin_ns", start), ("end_ns", end)) if on]
    who = row["pid"] if row["pid"] is not None else row["tid"]
    dev = "-" if row["dev"] is None else f"{row['dev'] >> 20},{row['dev'] & 0xFFFFF}"
    what = shortened(row["rwbs"] or row["stage"] or row["class"] or "-", MOST)
    comm, block = row["comm"] or "-", "-" if row["sector"] is None else row["sector"]
    cells = [f"{comm[:12]:<12}", f"{'-' if who is None else who:<6}", f"{what:<4}", f"{dev:<8}", f"{block:<12}"]
    size = "-" if row["bytes"] is None else row["bytes"]
    return " ".join([*times, *cells, f"{size:<6}", f"{row['latency_ns'] / 1e6:>8.2f}"])


def result(found: Items, lines: Lines) -> ResultTable:
    """The rows; ``lines``: as people read them."""
    return of_items(COLUMNS, found, **_forms(lines))


def _forms(lines: Lines) -> dict[str, Any]:
    return {"text": lambda t: lines(t.items()), "records": lambda t: t.items()}


def of_rows(run: Run, filters: IoFilters, order: str, limit: int | None, lines: Lines | None) -> ResultTable:
    """The selected I/Os, read on demand. I/Os that cannot be measured are reported on stderr."""
    rows = rows_of(run, filters)
    tell_left_out(run, rows, count_of_rows(run, rows))
    forms = _forms(lines or partial(listing, start=True, end=True))
    return ResultTable(COLUMNS, lambda: _values(run, rows, order, limit), **forms)


def pairs(found: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Two columns in us, end and latency, for trace2heatmap.pl of FlameGraph."""
    return (f"{row['end_ns'] / 1000:.3f} {row['latency_ns'] / 1000:.3f}" for row in found)


def listing(found: Iterable[dict[str, Any]], start: bool, end: bool, begins: bool = True) -> Iterator[str]:
    """iosnoop's list; ``begins``: with the header."""
    if begins:
        yield header(start, end)
    yield from (line(row, start, end) for row in found)
