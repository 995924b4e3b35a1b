# SPDX-License-Identifier: MIT
"""`opline requests RUN`: one line per block request."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import Any

from opline_analyses.base.text import csv_text, encoded, table, us
from opline_analyses.block.io_filter import add_io_filters
from opline_analyses.block.requests import COLUMNS, ORDERS, Wanted, requests
from opline_analyses.commands.common import add_form, add_run, csv_output, opened, output
from opline_analyses.runs.run import Run

NAME = "requests"
HELP = "one line per block request: steps, owner, queue met"
EXAMPLES = """\
Q queued, G allocated, I inserted (absent with scheduler none), D issued to the
driver, C completed. Intervals in microseconds; an empty cell is unknown, never
0. `fly`: requests of the device between D and C at this one's D. `op`: the op
that it serves, or the first of them and how many more there are; - : nobody's.
`later`: the data was written back after the op had returned. --csv, --json:
nanoseconds.

examples:
  opline requests run1 --slowest 10
  opline requests run1 -d loop0 -i writes --csv > requests.csv
"""


SHOWN_OPS = 3


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    add_run(parser)
    parser.add_argument("--owned", action="store_true", help="only requests that serve an op")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--slowest", metavar="N", type=int, help="the N with the longest Q2C")
    which.add_argument("--limit", metavar="N", type=int, help="the first N")
    parser.add_argument("--by", choices=sorted(ORDERS), default=None, help="order: time (default), q2c, d2c")
    add_io_filters(parser, sources=False, latency=False)
    add_form(parser, json="JSON lines, nanoseconds")


def _owner(row: dict[str, Any]) -> str:
    ops, count = row["ops"], row["op_count"]
    shown = ",".join(map(str, ops[:SHOWN_OPS]))
    others = count - len(ops[:SHOWN_OPS])
    if not shown:
        return f"*{count}" if count else "-"
    return f"{shown}+{others}" if others > 0 else shown


def _marks(row: dict[str, Any]) -> str:
    marks = (
        (row["ambiguous"], "ambiguous"),
        (row["later"], "later"),
        (row["outcome"] != "completed", str(row["outcome"])),
        (row["error"], f"error {row['error']}"),
    )
    return "".join(f" {mark}" for on, mark in marks if on)


def text_lines(run: Run, wanted: Wanted) -> Iterator[str]:
    """The table for people; times count from the run's first event."""
    first = run.core("first_ns") or 0
    rows = []
    for r in requests(run, wanted):
        cells = ["" if r["at_ns"] is None else f"{(r['at_ns'] - first) / 1e9:.6f}", str(r["device"]), str(r["rwbs"])]
        cells += ["flush" if r["sector"] is None else str(r["sector"]), str(r["bytes"])]
        cells += [us(r[k], 1) for k in ("q2g_ns", "g2i_ns", "i2d_ns", "d2c_ns", "q2c_ns")]
        who = f"{r['comm'] or '?'}:{'?' if r['tid'] is None else r['tid']}"
        cells += ["" if r["in_flight"] is None else str(r["in_flight"]), _owner(r), who + _marks(r)]
        rows.append(cells)
    header = [
        "time (s)",
        "device",
        "rwbs",
        "sector",
        "bytes",
        "Q2G",
        "G2I",
        "I2D",
        "D2C",
        "Q2C",
        "fly",
        "op",
        "queued by",
    ]
    right = [True, False, False, *[True] * 9, False]
    yield from table(header, rows, gap=" ", right=right)


def run(args: argparse.Namespace) -> int:
    """Prints the requests."""
    from opline_analyses.block.io_filter import all_ids, rows_of
    from opline_analyses.block.io_sources import requests as source

    order = args.by or ("q2c" if args.slowest is not None else "time")
    limit = args.slowest if args.slowest is not None else args.limit
    with opened(args, blocks=True) as opened_run, csv_output(args) if args.csv else output(args.output) as out:
        wanted = Wanted(all_ids(rows_of(opened_run, args, source(without=""))), args.owned, order, limit)
        if args.json:
            for row in requests(opened_run, wanted):
                out.write(json.dumps(row).encode() + b"\n")
        elif args.csv:
            rows = (row | {"ops": " ".join(map(str, row["ops"]))} for row in requests(opened_run, wanted))
            out.write(csv_text(COLUMNS, rows, "\r\n").encode())
        else:
            out.write(encoded(text_lines(opened_run, wanted)))
    return 0
