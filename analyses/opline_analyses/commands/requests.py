# SPDX-License-Identifier: MIT
"""`opline requests RUN`: one line per block request."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import Any

from opline.talk import shown
from opline_analyses.base.text import WIDTH, csv_text, encoded, shortened, table, us
from opline_analyses.base.whole_numbers import positive
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
`later`: the data was written back after the op had returned. A step that no
request has is left out, a name that does not fit is cut (~). `thread` queued
it. --csv, --json have all, in nanoseconds.

examples:
  opline requests run1 --slowest 10
  opline requests run1 -d loop0 -i writes --csv > requests.csv
"""


INTERVALS = ("q2g_ns", "g2i_ns", "i2d_ns", "d2c_ns", "q2c_ns")
MOSTLY = 0.9  # of the names fit, else their room is more important than decimals


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    add_run(parser)
    parser.add_argument("--owned", action="store_true", help="only requests that serve an op")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--slowest", metavar="N", type=positive, help="the N with the longest Q2C")
    which.add_argument("--limit", metavar="N", type=positive, help="the first N")
    parser.add_argument(
        "--sort", "--by", dest="by", choices=sorted(ORDERS), default=None,
        help="order: time (default), q2c, d2c, size; the largest first",
    )  # fmt: skip
    add_io_filters(parser, sources=False, latency=False)
    add_form(parser, json="JSON lines, nanoseconds")


def _owner(row: dict[str, Any]) -> str:
    ops, count = row["ops"], row["op_count"]
    if not ops:
        return f"*{count}" if count else "-"
    return f"{ops[0]}+{count - 1}" if count > 1 else str(ops[0])


def _marks(row: dict[str, Any]) -> str:
    marks = (
        (row["ambiguous"], "ambiguous"),
        (row["later"], "later"),
        (row["outcome"] != "completed", str(row["outcome"])),
        (row["error"], f"error {row['error']}"),
    )
    return "".join(f" {mark}" for on, mark in marks if on)


def _who(row: dict[str, Any], room: int) -> str:
    """The thread that queued it, with a name cut to the room that there is."""
    name, rest = row["comm"] or "?", f":{'?' if row['tid'] is None else row['tid']}"
    return shortened(name, room - len(rest)) + rest


def _cells(run: Run, found: list[dict[str, Any]], digits: int, unit: str) -> tuple[list[str], list[list[str]]]:
    """Header and rows, without who queued it. With scheduler none nothing is inserted: such columns are left out."""
    first = run.core("first_ns") or 0
    known = [name for name in INTERVALS if any(r[name] is not None for r in found)]
    header = ["time (s)", "dev", "rwbs", "sector", unit]
    header += [*(name.removesuffix("_ns").upper() for name in known), "fly", "op"]
    return header, [
        [
            "" if r["at_ns"] is None else f"{(r['at_ns'] - first) / 1e9:.6f}", str(r["device"]), str(r["rwbs"]),
            "flush" if r["sector"] is None else str(r["sector"]),
            str(r["bytes"]) if unit == "bytes" else f"{r['bytes'] / 1024:.{1 if r['bytes'] % 1024 else 0}f}",
            *(us(r[name], digits) for name in known),
            "" if r["in_flight"] is None else str(r["in_flight"]), _owner(r),
        ]
        for r in found
    ]  # fmt: skip


def text_lines(run: Run, wanted: Wanted) -> Iterator[str]:
    """The table for people; times count from the run's first event. It fits 80 columns, unless its numbers do not: then
    intervals are whole microseconds, names are cut, and at last sizes are in KiB. What is special about a request is
    behind its thread, or in a line of its own where there is no room.
    """
    found = list(requests(run, wanted))
    for digits, unit in ((1, "bytes"), (0, "bytes"), (0, "KiB")):
        header, rows = _cells(run, found, digits, unit)
        widths = [max([len(name), *(len(shown(row[i])) for row in rows)]) for i, name in enumerate(header)]
        room = WIDTH - sum(widths) - len(widths)
        fit = [len(_who(r, WIDTH if digits else room)) <= room for r in found]
        if sum(fit) >= (MOSTLY if digits else 1) * len(found):
            break
    for row, r in zip(rows, found, strict=True):
        row.append(_who(r, room))
    right = [name not in ("dev", "rwbs") for name in header]
    head, *lines = table([*header, "thread"], rows, gap=" ", right=[*right, False])
    yield head
    for line, marks in zip(lines, map(_marks, found), strict=True):
        if not marks or len(line) + len(marks) <= WIDTH:
            yield line + marks
        else:
            yield from (line, f"{marks:>{WIDTH}}")


def run(args: argparse.Namespace) -> int:
    """Prints the requests."""
    from opline_analyses.block.io_filter import all_ids, rows_of, tell_nothing
    from opline_analyses.block.io_sources import requests as source

    order = args.by or ("q2c" if args.slowest is not None else "time")
    limit = args.slowest if args.slowest is not None else args.limit
    with opened(args, blocks=True) as opened_run, csv_output(args) if args.csv else output(args.output) as out:
        rows = rows_of(opened_run, args, source(parts=True))
        meant = all_ids(rows)
        wanted = Wanted(meant, args.owned, order, limit)
        if not opened_run.row(f"SELECT count(*) FROM ({meant[0]})", meant[1])[0]:
            tell_nothing(opened_run, rows)
        if args.json:
            for row in requests(opened_run, wanted):
                out.write(json.dumps(row).encode() + b"\n")
        elif args.csv:
            listed = (row | {"ops": " ".join(map(str, row["ops"]))} for row in requests(opened_run, wanted))
            out.write(csv_text(COLUMNS, listed).encode())
        else:
            out.write(encoded(text_lines(opened_run, wanted)))
    return 0
