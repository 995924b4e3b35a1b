# SPDX-License-Identifier: MIT
"""`opline outliers RUN`: I/Os above a threshold, statistics per device, and the suspect against a good device."""

from __future__ import annotations

import argparse

from opline.errors import UsageError
from opline_analyses.base.quantities import duration_ns
from opline_analyses.commands.arguments import not_negative
from opline_analyses.commands.common import add_form, add_run, opened, write
from opline_analyses.commands.options import add_io_filters, io_filters

NAME = "outliers"
HELP = "I/Os above a threshold; a suspect disk against a healthy one"
INTERMIXED = True  # INTERVAL and THRESHOLD also behind options
WARNINGS = 100
EXAMPLES = """\
A line for each I/O above the threshold (500000 us), compared in whole
microseconds as in SystemTap's script. Then per device the number of I/Os, and
the least, mean and greatest latency; with INTERVAL for each interval. If there
are outliers, opline compares the device with the largest share of them with a
healthy device: both histograms on one scale, and whether they differ. --of ops
and --of stages: ops or stages above the threshold, and statistics per class or
stage.

examples:
  opline outliers run1
  opline outliers run1 10 --threshold 20ms
  opline outliers run1 --threshold 5ms -i reads --size 8k
  opline outliers run1 --of ops --threshold 5ms --csv > slow.csv
"""


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    add_run(parser)
    add_options(parser)


def add_options(parser: argparse.ArgumentParser) -> None:
    """What can be asked of a run, and of what happens now (`opline live`)."""
    parser.add_argument("interval", metavar="INTERVAL", nargs="?", help="statistics for each: 10 (seconds)")
    parser.add_argument("threshold_us", metavar="THRESHOLD", nargs="?", help="the same as --threshold, in us")
    parser.add_argument("--threshold", metavar="T", help="an outlier takes longer (default: 500ms; a number: us)")
    parser.add_argument(
        "--limit",
        metavar="N",
        type=not_negative,
        default=WARNINGS,
        help="at most N lines for outliers (default: %(default)s)",
    )
    add_io_filters(parser)
    add_form(parser, csv="CSV, the outliers alone, nanoseconds")


def threshold_ns(args: argparse.Namespace) -> int:
    """What an outlier takes longer than. Raises UsageError."""
    from opline_analyses.block.outliers import THRESHOLD_US

    text = args.threshold if args.threshold is not None else args.threshold_us
    found = duration_ns(text, "--threshold", "us") if text is not None else THRESHOLD_US * 1000
    if found % 1000:
        raise UsageError(f"--threshold {text}: latencies are compared in whole microseconds.")
    return found


def run(args: argparse.Namespace) -> int:
    """Prints outliers, statistics and the comparison."""
    from opline_analyses.api.block import outliers
    from opline_analyses.block.io_series import tables_needed

    threshold = threshold_ns(args)
    interval = duration_ns(args.interval, "INTERVAL") if args.interval is not None else None
    if interval == 0:
        raise UsageError(f"INTERVAL {args.interval}: must be more than 0.")
    filters = io_filters(args)
    with opened(args, tables=tables_needed(filters)) as opened_run:
        write(args, outliers(
            opened_run, filters, threshold_ns=threshold, interval_ns=interval, limit=args.limit, rows_only=args.csv
        ))  # fmt: skip
    return 0
