# SPDX-License-Identifier: MIT
"""`opline interference RUN --op ID`: who an op's block requests waited for."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable, Iterator

from opline.errors import OplineError
from opline.talk import talk
from opline_analyses.base.text import count_of, csv_text, device_name, encoded, percent, table, us
from opline_analyses.base.whole_numbers import positive
from opline_analyses.block import io_filter
from opline_analyses.block.btt import Chosen
from opline_analyses.block.io_sources import requests as source
from opline_analyses.commands.common import add_form, add_run, csv_output, opened, output
from opline_analyses.ops.interference import Blame, interference
from opline_analyses.runs.run import Run

NAME = "interference"
HELP = "who an op's block requests waited for, by owner"
EXAMPLES = """\
Each nanosecond that a request waited (Q to D) is charged to the requests that
were at the device then, in equal parts, or to nobody; each nanosecond of its
service (D to C) to those that had been issued before it and were still there,
or to itself. The blame sums to Q2C exactly. The filters choose the requests
whose time is charged, not those that it is charged to.

examples:
  opline interference run1 --slowest 3
  opline interference run1 --op 1484 --json
  opline interference run1 --slowest 10 -d sda -i writes --csv > waited.csv
"""
COLUMNS = ("op_id", "request_id", "device", "rwbs", "owner", "wait_ns", "service_ns")


SORTS: dict[str, Callable[[Blame], int]] = {
    "request": lambda b: b.request_id,
    "waited": lambda b: b.queue_ns - b.issue_ns,
    "served": lambda b: b.issue_ns - b.complete_ns,
}


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    add_run(parser)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--op", metavar="ID", type=int, help="the op")
    which.add_argument("--slowest", metavar="N", type=int, help="the N slowest ops that have a request")
    parser.add_argument("--sort", choices=sorted(SORTS), default="request", help="of an op's requests (default: by id)")
    parser.add_argument("--limit", metavar="N", type=positive, help="the first N requests of each op")
    io_filter.add_io_filters(parser, sources=False)
    add_form(parser, csv="CSV, a row for each owner of each request, nanoseconds", json="JSON lines, one op each, ns")


def _ops(run: Run, args: argparse.Namespace, chosen: Chosen | None) -> list[int]:
    if args.op is not None:
        if not run.rows("SELECT 1 FROM ops WHERE op_id = ?", [args.op]):
            raise OplineError(f"The run has no op {args.op}.", exit_code=2)
        return [args.op]
    sql, parameters = chosen or ("SELECT request_id FROM requests", ())
    slowest = f"""SELECT op_id FROM ops
                  WHERE complete AND request_count > 0
                    AND op_id IN (SELECT op_id FROM links WHERE request_id IN ({sql}))
                  ORDER BY latency_ns DESC, op_id LIMIT ?"""
    return [op for (op,) in run.rows(slowest, [*parameters, max(0, args.slowest)])]


def _lines(run: Run, op: int, found: list[Blame]) -> Iterator[str]:
    (latency,) = run.row("SELECT latency_ns FROM ops WHERE op_id = ?", [op])
    yield f"op {op}  {us(latency) or 'incomplete,'} us, {count_of(len(found), 'block request')} from Q to C"
    names = run.device_names()
    for b in found:
        wait, service = b.issue_ns - b.queue_ns, b.complete_ns - b.issue_ns
        ahead = count_of(b.ahead, "request")
        yield f"  request {b.request_id}  {device_name(names, b.dev)} {b.rwbs}: {ahead} ahead of it"
        owners: Counter[str] = b.wait + b.service
        rows = [
            [f"    {owner}", us(b.wait.get(owner)), us(b.service.get(owner)), percent(total, wait + service)]
            for owner, total in owners.most_common()
        ]
        rows.append(["    = measured" if b.sums else "    IS NOT measured", us(wait), us(service), "100.0"])
        yield from table(["    charged to", "Q2D us", "D2C us", "share%"], rows)


def _rows(op: int, b: Blame, names: dict[int, str]) -> Iterator[dict[str, object]]:
    for owner in b.wait + b.service:
        parts = b.wait.get(owner, 0), b.service.get(owner, 0)
        yield dict(zip(COLUMNS, (op, b.request_id, device_name(names, b.dev), b.rwbs, owner, *parts), strict=True))


def run(args: argparse.Namespace) -> int:
    """Prints the blame of each op."""
    with opened(args) as opened_run, csv_output(args) if args.csv else output(args.output) as out:
        rows = io_filter.rows_of(opened_run, args, source(parts=True))
        chosen = io_filter.chosen_ids(rows, args)
        blamed = [
            (op, sorted(interference(opened_run, op, chosen), key=SORTS[args.sort])[: args.limit])
            for op in _ops(opened_run, args, chosen)
        ]
        if chosen is not None and not any(found for _, found in blamed):
            talk("no block request of these ops is meant by the options.")
        if args.csv:
            names = opened_run.device_names()
            listed = [row for op, found in blamed for b in found for row in _rows(op, b, names)]
            out.write(csv_text(COLUMNS, listed).encode())
            return 0
        for op, found in blamed:
            if args.json:
                out.write(json.dumps({"op_id": op, "requests": [b.record() for b in found]}).encode() + b"\n")
            else:
                out.write(encoded(_lines(opened_run, op, found)))
    return 0
