# SPDX-License-Identifier: MIT
"""`opline burst RUN [INTERVAL]`: when far more happens than on average, and the window to look at."""

from __future__ import annotations

import argparse

from opline.errors import UsageError
from opline_analyses.base.quantities import duration_ns
from opline_analyses.commands.common import add_form, add_run, opened, write
from opline_analyses.commands.options import add_io_filters, io_filters

NAME = "burst"
HELP = "bursts that a mean hides, whether they return, and where to look"
PROGRESS = True
#: What it lacks of the vocabulary (options.py), and why.
LACKS = {
    "--slowest": "a burst is of all I/Os; --latency chooses some",
    "--limit --sort": "bursts stand in the order of time, few in number",
}
INTERMIXED = True  # INTERVAL also behind options
EXAMPLES = """\
A burst is a stretch of intervals above the mean, with a peak of at least 4
times the mean. opline prints the shortest part with 95 % of the stretch's I/Os
(8 I/Os at least), for reads, writes and the rest: the share of all I/O, and
the mean latencies inside and outside. From three bursts on opline looks for a
period.

examples:
  opline burst run1
  opline burst run1 10ms -d sda
  opline burst run1 --by waited -i reads
"""


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    add_run(parser)
    parser.add_argument("interval", metavar="INTERVAL", nargs="?", help="default: 100ms; of a short run a 20th of it")
    parser.add_argument(
        "--by", choices=("bytes", "ios", "waited"), default="bytes", help="what a burst has more of (default: bytes)"
    )
    add_io_filters(parser)
    add_form(parser)


def run(args: argparse.Namespace) -> int:
    """Prints the bursts."""
    from opline_analyses.api.block import burst
    from opline_analyses.block.io_filter import tables_needed

    if args.of not in ("requests", "bios"):
        raise UsageError(f"--of {args.of}: bursts are of block I/O.")
    step = None if args.interval is None else duration_ns(args.interval, "INTERVAL")
    if step == 0:
        raise UsageError(f"INTERVAL {args.interval}: must be more than 0.")
    with opened(args, tables=tables_needed(io_filters(args))) as opened_run:
        words = [args.run, *(["--model", args.model] if args.model else [])]
        write(args, burst(opened_run, io_filters(args), interval_ns=step, by=args.by, words=words))
    return 0
