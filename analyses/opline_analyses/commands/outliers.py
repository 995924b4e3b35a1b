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
PROGRESS = True
#: What it lacks of the vocabulary (options.py), and why.
LACKS = {"--slowest": "--limit N lists the N slowest"}
INTERMIXED = True  # INTERVAL and THRESHOLD also behind options
STYLES, ORDERS = ("table", "systemtap"), ("time", "start", "latency", "size")
FIRST, WARNINGS = 20, 100  # outliers that are listed: in the table, and in other forms
EXAMPLES = """\
An outlier takes longer than 10 times the median; if no I/O does, longer than
p99.9; --threshold sets another limit. opline lists the slowest outliers, and
per device the I/Os, those above the limit, and the least, mean and greatest
latency (with INTERVAL for each interval). Then it compares the device with the
largest share of outliers with a healthy device, on one scale. --of ops and --of
stages: ops or stages above the limit, per class or stage.

--style systemtap prints as SystemTap's script: each I/O above 500000 us, in the
order of completion.

examples:
  opline outliers run1
  opline outliers run1 10 --threshold 20ms
  opline outliers run1 --threshold 5ms -i reads --size 8k
  opline outliers run1 --of ops --threshold 5ms --csv > slow.csv
  opline outliers run1 10 --style systemtap
"""


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    add_run(parser)
    add_options(parser)
    parser.add_argument("--sort", choices=ORDERS, help="of the outliers (default: latency; of --style systemtap: time)")
    parser.add_argument("--style", choices=STYLES, default="table", help="whose layout (default: %(default)s)")


def add_options(parser: argparse.ArgumentParser) -> None:
    """What can be asked of a run, and of what happens now (`opline live`)."""
    parser.add_argument("interval", metavar="INTERVAL", nargs="?", help="statistics for each: 10 (seconds)")
    parser.add_argument("threshold_us", metavar="THRESHOLD", nargs="?", help="the same as --threshold, in us")
    parser.add_argument(
        "--threshold",
        metavar="T",
        help="an outlier takes longer: 20ms; a number: us (default: 10 times the median, or p99.9; live: 500ms)",
    )
    parser.add_argument(
        "--limit", metavar="N", type=not_negative,
        help=f"at most N outliers (default: {FIRST}; of CSV, JSON, --style systemtap and live {WARNINGS})",
    )  # fmt: skip
    add_io_filters(parser)
    add_form(parser, csv="CSV, the outliers alone, nanoseconds")


def threshold_ns(args: argparse.Namespace) -> int | None:
    """What an outlier takes longer than, None if it was not given. Raises UsageError."""
    text = args.threshold if args.threshold is not None else args.threshold_us
    if text is None:
        return None
    found = duration_ns(text, "--threshold", "us")
    if found % 1000:
        raise UsageError(f"--threshold {text}: latencies are compared in whole microseconds.")
    return found


def run(args: argparse.Namespace) -> int:
    """Prints outliers, statistics and the comparison."""
    from opline_analyses.api.block import outliers
    from opline_analyses.block.io_filter import tables_needed
    from opline_analyses.block.outliers import THRESHOLD_US

    threshold, script = threshold_ns(args), args.style == "systemtap"
    if threshold is None and script:
        threshold = THRESHOLD_US * 1000
    interval = duration_ns(args.interval, "INTERVAL") if args.interval is not None else None
    if interval == 0:
        raise UsageError(f"INTERVAL {args.interval}: must be more than 0.")
    filters = io_filters(args)
    limit = args.limit if args.limit is not None else WARNINGS if script or args.csv or args.json else FIRST
    with opened(args, tables=tables_needed(filters)) as opened_run:
        write(args, outliers(
            opened_run, filters, threshold_ns=threshold, interval_ns=interval, limit=limit,
            order=args.sort or ("time" if script else "latency"), style=args.style, rows_only=args.csv,
        ))  # fmt: skip
    return 0
