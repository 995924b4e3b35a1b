# SPDX-License-Identifier: MIT
"""`opline interference RUN --op ID`: who an op's block requests waited for."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator

from opline.errors import OplineError
from opline_analyses.commands.common import add_output, add_run, opened, output
from opline_analyses.interference import Blame, interference
from opline_analyses.run import Run
from opline_analyses.text import count_of, device_name, encoded, percent, table, us

NAME = "interference"
HELP = "who an op's block requests waited for, by owner"
EXAMPLES = """\
Each nanosecond that a request waited (Q to D) is charged to the requests that
were at the device then, in equal parts, or to nobody; each nanosecond of its
service (D to C) to those that had been issued before it and were still there,
or to itself. The blame sums to Q2C exactly.

examples:
  opline interference run1 --slowest 3
  opline interference run1 --op 1484 --json
"""


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    add_run(parser)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--op", metavar="ID", type=int, help="the op")
    which.add_argument("--slowest", metavar="N", type=int, help="the N slowest ops that have a request")
    parser.add_argument("--json", action="store_true", help="JSON lines, one op each, nanoseconds")
    add_output(parser)


def _ops(run: Run, args: argparse.Namespace) -> list[int]:
    if args.op is not None:
        if not run.rows("SELECT 1 FROM ops WHERE op_id = ?", [args.op]):
            raise OplineError(f"The run has no op {args.op}.", exit_code=2)
        return [args.op]
    slowest = "SELECT op_id FROM ops WHERE complete AND request_count > 0 ORDER BY latency_ns DESC, op_id LIMIT ?"
    return [op for (op,) in run.rows(slowest, [max(0, args.slowest)])]


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


def run(args: argparse.Namespace) -> int:
    """Prints the blame of each op."""
    with opened(args) as opened_run, output(args.output) as out:
        for op in _ops(opened_run, args):
            found = interference(opened_run, op)
            if args.json:
                out.write(json.dumps({"op_id": op, "requests": [b.record() for b in found]}).encode() + b"\n")
            else:
                out.write(encoded(_lines(opened_run, op, found)))
    return 0
