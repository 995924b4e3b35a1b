# SPDX-License-Identifier: MIT
"""`opline btt RUN`: the block layer's intervals per device."""

from __future__ import annotations

import argparse

from opline_analyses.commands.arguments import positive
from opline_analyses.commands.common import add_form, add_run, opened, write
from opline_analyses.commands.options import add_io_filters, io_filters

NAME = "btt"
HELP = "the block layer's intervals per device: btt's tables, but exact"
PROGRESS = True
#: What it lacks of the vocabulary (options.py), and why.
LACKS = {"--slowest": "an interval is of all bios or requests; --latency chooses requests"}
EXAMPLES = """\
Q queued, M merged, G allocated, I inserted, D issued, C completed; in seconds.
An interval needs both ends. Without an insert, G2D stands for G2I and I2D.
Shares are of the bios with both Q and C. A bio that the flush of another bio
served has the D of that flush. The filters choose requests, and the tables are
of the chosen requests and their bios. Plugs are in blktrace's files and
blkparse's text alone; they are of the whole trace.

examples:
  opline btt run1
  opline btt run1 -d loop0 --json
  opline btt run1 -i reads --window 10:12 --latency '>5ms'
"""


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    add_run(parser)
    parser.add_argument(
        "--sort", choices=("device", "ios", "latency"), default="device", help="of the devices (default: by number)"
    )
    parser.add_argument("--limit", metavar="N", type=positive, help="the first N devices")
    add_io_filters(parser, sources=False)
    add_form(parser, csv="CSV, a row for each interval, nanoseconds")


def run(args: argparse.Namespace) -> int:
    """Prints the tables."""
    from opline_analyses.api.block import btt

    with opened(args, blocks=True) as opened_run:
        write(args, btt(opened_run, io_filters(args), sort=args.sort, limit=args.limit))
    return 0
