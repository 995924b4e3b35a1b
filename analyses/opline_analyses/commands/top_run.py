# SPDX-License-Identifier: MIT
"""`opline top RUN [INTERVAL [COUNT]]`: who did the I/Os of a run."""

from __future__ import annotations

import argparse

from opline_analyses.block.io_filter import PER
from opline_analyses.block.top_result import SORTS
from opline_analyses.commands.arguments import positive
from opline_analyses.commands.common import add_form, add_intervals, add_run, interval_ns, opened, write
from opline_analyses.commands.options import add_io_filters, io_filters

EXAMPLES = """\
A row has the I/Os, of them reads and writes, MiB, mean, p50, p99 and greatest
latency (measured values), and the share of the time of all rows. Of block
requests that is the time at the device. --by object has a row per file or
object of the ops (several: a write-back of more than one); --of ops counts the
ops on it, also those without a block request. INTERVAL: a table for each.

`opline iostat RUN --by` has rates, the queue and the utilisation of the same
rows, `opline hist RUN --by` their distributions.

examples:
  opline top run1
  opline top run1 --by object --sort share --limit 20
  opline top run1 --by object --of ops
  opline top run1 1 --by process -i writes --csv > writers.csv
"""


class OfRun:
    """The command `top RUN`."""

    NAME = "top"
    HELP = "who did the I/Os of a run: a row per thread, process, file and others"
    EXAMPLES = EXAMPLES
    INTERMIXED = True  # INTERVAL and COUNT also behind options

    def prepare_parser(self, parser: argparse.ArgumentParser) -> None:
        """Adds the arguments."""
        add_run(parser)
        add_intervals(parser, "a table for each: 1 (seconds), 100ms")
        parser.add_argument(
            "--by", "--per", choices=sorted(PER), default="thread", help="whose I/Os a row has (thread)"
        )
        parser.add_argument(
            "--sort", choices=tuple(SORTS), default="ios", help="by what (default: ios); latency: the mean"
        )
        parser.add_argument("--limit", metavar="N", type=positive, help="the first N rows of each interval")
        add_io_filters(parser)
        add_form(parser)

    def run(self, args: argparse.Namespace) -> int:
        """Prints the tables."""
        from opline_analyses.api.block import top
        from opline_analyses.block.io_filter import tables_needed

        filters, interval = io_filters(args), interval_ns(args)
        wanted = {"by": args.by, "count": args.count, "sort": args.sort, "limit": args.limit}
        with opened(args, tables=tables_needed(filters, args.by)) as opened_run:
            write(args, top(opened_run, filters, interval_ns=interval, **wanted))
        return 0
