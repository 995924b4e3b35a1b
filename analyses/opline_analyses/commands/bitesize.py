# SPDX-License-Identifier: MIT
"""`opline bitesize RUN`: how large the I/Os are that were issued."""

from __future__ import annotations

import argparse
from itertools import pairwise

from opline.errors import UsageError
from opline_analyses.base.quantities import duration_ns
from opline_analyses.commands.common import add_form, add_run, opened, write
from opline_analyses.commands.options import add_io_filters, io_filters

NAME = "bitesize"
HELP = "sizes of the issued I/Os: powers of two, or custom buckets"
PROGRESS = True
#: What it lacks of the vocabulary (options.py), and why.
LACKS = {
    "--latency": "every issued request counts, also without a completion",
    "--slowest": "an issued request has no latency yet",
    "--limit --sort": "a histogram has all its rows, in the order of the sizes",
}
INTERMIXED = True  # SECONDS also behind options
EXAMPLES = """\
Every issued request counts, also without a completion, in the window of its
issue. -b LIST prints as bitesize of perf-tools: 1.0 -> 7.9 means from 1 KiB up
to, but not including, 8 KiB. --style bitesize has the limits "1 8 64 128".

examples:
  opline bitesize run1
  opline bitesize run1 -b "8 16 32" -i writes
"""
STYLES = {"table": None, "bitesize": "1 8 64 128"}  # with the limits of each


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    add_run(parser)
    add_options(parser)


def add_options(parser: argparse.ArgumentParser) -> None:
    """What can be asked of a run, and of what happens now (`opline live`)."""
    parser.add_argument("duration", metavar="SECONDS", nargs="?", help="only what was issued in the first SECONDS")
    parser.add_argument("-b", dest="limits", metavar="LIST", help='limits in KiB: "8 16 32" (default: powers of two)')
    parser.add_argument("--style", choices=tuple(STYLES), default="table", help="whose layout (default: %(default)s)")
    add_io_filters(parser, sources=False, latency=False)
    add_form(parser, csv="CSV, bytes", json="JSON, bytes")


def limits_of(args: argparse.Namespace) -> tuple[int, ...] | None:
    """The buckets' limits in bytes; None: powers of two. Raises UsageError."""
    text = args.limits if args.limits is not None else STYLES[args.style]
    if text is None:
        return None
    try:
        found = tuple(int(float(word) * 1024) for word in text.split())
    except (ValueError, OverflowError) as error:
        raise UsageError(f"-b {text!r}: not a list of sizes in KiB.") from error
    if not found or found[0] <= 0 or found[-1] >= 1 << 62 or any(a >= b for a, b in pairwise(found)):
        raise UsageError(f"-b {text!r}: the limits must increase, and be sizes that there are.")
    return found


def run(args: argparse.Namespace) -> int:
    """Prints the histogram."""
    from opline_analyses.api.block import bitesize
    from opline_analyses.block.io_filter import tables_needed

    limits = limits_of(args)
    if args.duration is not None:
        if args.window is not None or args.since is not None or args.until is not None:
            raise UsageError("SECONDS is a window of its own: leave out --window, --since and --until.")
        duration_ns(args.duration, "SECONDS")
        args.window = f":{args.duration}"
    with opened(args, tables=tables_needed(io_filters(args))) as opened_run:
        write(args, bitesize(opened_run, io_filters(args), limits_bytes=limits))
    return 0
