# SPDX-License-Identifier: MIT
"""`opline interference RUN --op ID`: who an op's block requests waited for."""

from __future__ import annotations

import argparse

from opline_analyses.commands.arguments import positive
from opline_analyses.commands.common import add_form, add_run, opened, write
from opline_analyses.commands.options import add_io_filters, io_filters

NAME = "interference"
HELP = "who an op's block requests waited for, by owner"
PROGRESS = AS_IT_GOES = True
EXAMPLES = """\
Each nanosecond that a request waited (Q to D) is charged to the requests at the
device then, in equal parts, or to no request; each nanosecond of service (D to
C) to the earlier requests still at the device, or to the request itself. The
charges sum to Q2C. The filters choose the requests that were charged, not the
requests ahead of them.

examples:
  opline interference run1 --slowest 3
  opline interference run1 --op 1484 --json
  opline interference run1 --slowest 10 -d sda -i writes --csv > waited.csv
"""


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    add_run(parser)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--op", metavar="ID", type=int, help="the op")
    which.add_argument("--slowest", metavar="N", type=int, help="the N slowest ops that have a request")
    parser.add_argument(
        "--sort",
        choices=("request", "served", "waited"),
        default="request",
        help="of an op's requests (default: by id)",
    )
    parser.add_argument("--limit", metavar="N", type=positive, help="the first N requests of each op")
    add_io_filters(parser, sources=False)
    add_form(parser, csv="CSV, a row for each owner of each request, nanoseconds", json="JSON lines, one op each, ns")


def run(args: argparse.Namespace) -> int:
    """Prints the blame of each op."""
    from opline_analyses.api.ops import interference

    with opened(args) as opened_run:
        write(args, interference(
            opened_run, io_filters(args), op=args.op, slowest=args.slowest, sort=args.sort, limit=args.limit
        ))  # fmt: skip
    return 0
