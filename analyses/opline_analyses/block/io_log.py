# SPDX-License-Identifier: MIT
"""I/Os one by one: who, what, where, how long; as iosnoop lists them."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any

from opline.talk import shown
from opline_analyses.base.quantities import seconds
from opline_analyses.base.text import shortened
from opline_analyses.block.io_filter import counted_sql

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator

    from opline_analyses.block.io_filter import Rows
    from opline_analyses.runs.run import Run

ORDERS = {
    "time": "end_ns, id", "start": "begin_ns, id", "latency": "end_ns - begin_ns DESC, id",
    "size": "bytes DESC NULLS LAST, id",
}  # fmt: skip
MOST = 21  # characters of a stage's name, so that a line has 80
COLUMNS = (
    "id", "begin_ns", "end_ns", "latency_ns", "comm", "tid", "pid", "kind", "rwbs", "class", "stage", "dev", "sector",
    "bytes", "op_id",
)  # fmt: skip


def ios(
    run: Run, rows: Rows, order: str = "time", limit: int | None = None, per_class: bool = False
) -> Iterator[dict[str, Any]]:
    """One dict per counted row, keys as in COLUMNS; times count from the run's first event; None is unknown. With
    ``per_class`` the limit is each class's.
    """
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
    while batch := found.fetchmany(4096):
        for values in batch:
            yield dict(zip(COLUMNS, values, strict=True))


def csv_of(found: Iterable[dict[str, Any]], begins: bool) -> str:
    """The rows as CSV; ``begins``: below its header."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([COLUMNS] if begins else [])
    writer.writerows(["" if value is None else value for value in row.values()] for row in found)
    return text.getvalue()


def header(start: bool, end: bool) -> str:
    """iosnoop's."""
    times = [f"{name:<15}" for name, on in (("STARTs", start), ("ENDs", end)) if on]
    return " ".join([*times, f"{'COMM':<12} {'PID':<6} {'TYPE':<4} {'DEV':<8} {'BLOCK':<12} {'BYTES':<6} {'LATms':>8}"])


def line(row: dict[str, Any], start: bool, end: bool) -> str:
    """iosnoop's columns; PID is the thread that queued it (of an op: its process), what is unknown is `-`."""
    times = [f"{seconds(row[name], 6):<15}" for name, on in (("begin_ns", start), ("end_ns", end)) if on]
    who = row["pid"] if row["pid"] is not None else row["tid"]
    dev = "-" if row["dev"] is None else f"{row['dev'] >> 20},{row['dev'] & 0xFFFFF}"
    what = shortened(row["rwbs"] or row["stage"] or row["class"] or "-", MOST)
    comm, block = row["comm"] or "-", "-" if row["sector"] is None else row["sector"]
    cells = [f"{comm[:12]:<12}", f"{'-' if who is None else who:<6}", f"{what:<4}", f"{dev:<8}", f"{block:<12}"]
    size = "-" if row["bytes"] is None else row["bytes"]
    return " ".join([*times, *cells, f"{size:<6}", f"{row['latency_ns'] / 1e6:>8.2f}"])


def texts(found: Iterable[dict[str, Any]], args: argparse.Namespace, begins: bool = True) -> Iterator[str]:
    """The rows as the options of `opline log` want them; ``begins``: below their header."""
    if begins and args.csv:
        yield csv_of([], True)
    elif begins and not args.json and not args.pairs:
        yield header(args.start_time, args.end_time) + "\n"
    for row in found:
        if args.csv:
            yield csv_of([row], False)
        elif args.json:
            yield json.dumps(row) + "\n"
        elif args.pairs:
            yield f"{row['end_ns'] / 1000:.3f} {row['latency_ns'] / 1000:.3f}\n"
        else:
            yield shown(line(row, args.start_time, args.end_time)) + "\n"
