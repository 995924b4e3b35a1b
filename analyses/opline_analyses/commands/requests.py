# SPDX-License-Identifier: MIT
"""`opline requests RUN`: one line per block request."""

from __future__ import annotations

import argparse

from opline import memory
from opline_analyses.block.requests import ORDERS
from opline_analyses.commands.arguments import positive
from opline_analyses.commands.common import add_form, add_run, opened, write
from opline_analyses.commands.options import add_io_filters, io_filters

NAME = "requests"
HELP = "one line per block request: steps, owner, queue met"
PROGRESS = AS_IT_GOES = True
EXAMPLES = """\
Q queued, G allocated, I inserted (absent with scheduler none), D issued to the
driver, C completed; in microseconds, an empty cell is unknown. `fly`: requests
of the device between D and C at this request's D. `op`: the op of the request,
or the first and the number of further ops; - without an op. `later`: write-back
after the op had returned. `thread` queued the request, or issued it if the trace
does not say who queued it. Long names are cut (~); --csv and --json have all columns.

examples:
  opline requests run1 --slowest 10
  opline requests run1 -d loop0 -i writes --csv > requests.csv
"""


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
    add_io_filters(parser, sources=False)
    add_form(parser, json="JSON lines, nanoseconds")


def run(args: argparse.Namespace) -> int:
    """Prints the requests."""
    memory.keep_little()
    from opline_analyses.api.block import requests
    from opline_analyses.runs.database import bounded

    order = args.by or ("q2c" if args.slowest is not None else "time")
    limit = args.slowest if args.slowest is not None else args.limit
    with opened(args, blocks=True) as opened_run, bounded(opened_run.con):
        write(args, requests(opened_run, io_filters(args), owned=args.owned, order=order, limit=limit))
    return 0
