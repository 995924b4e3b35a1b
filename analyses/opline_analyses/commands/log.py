# SPDX-License-Identifier: MIT
"""`opline log RUN [SECONDS]`: every I/O on a line."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

from opline import memory
from opline.errors import UsageError
from opline_analyses.base.quantities import duration_ns
from opline_analyses.commands.arguments import positive
from opline_analyses.commands.common import add_output, add_run, add_safe_cells, opened, write
from opline_analyses.commands.options import add_io_filters, add_slowest, io_filters

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

NAME = "log"
HELP = "every I/O on a line, in iosnoop's columns"
PROGRESS = AS_IT_GOES = True
INTERMIXED = True  # SECONDS also behind options
EXAMPLES = """\
PID is the thread that queued the I/O (of an op: the process), TYPE the rwbs
flags, DEV major,minor, BLOCK the sector. LATms is from issue to completion, or
as --from and --to say. Times are seconds from the run's first event. The order
is that of completion.

examples:
  opline log run1 --sort latency --limit 10
  opline log run1 -ts -Q -i '*R*' -d 8,16
  opline log run1 --window 10ms --at 153.65
  opline log run1 --of bios -d dm-0
"""


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    add_run(parser)
    add_options(parser)


def add_options(parser: argparse.ArgumentParser) -> None:
    """What can be asked of a run, and of what happens now (`opline live`)."""
    parser.add_argument("duration", metavar="SECONDS", nargs="?", help="only what completed in the first SECONDS")
    parser.add_argument("-s", dest="start_time", action="store_true", help="the time at which it began")
    parser.add_argument("-t", dest="end_time", action="store_true", help="the time at which it completed")
    parser.add_argument("--sort", choices=("time", "start", "latency", "size"), default="time", help="default: time")
    add_slowest(parser, "I/Os: --sort latency --limit N")
    parser.add_argument("--limit", metavar="N", type=positive, help="stop after N lines")
    add_io_filters(parser)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--csv", action="store_true", help="CSV, nanoseconds")
    form.add_argument("--json", action="store_true", help="JSON lines, nanoseconds")
    form.add_argument("--pairs", action="store_true", help="two columns in us, end and latency: for trace2heatmap.pl")
    add_output(parser)
    add_safe_cells(parser)


def lines_of(args: argparse.Namespace, begins: bool = True) -> Callable[[Iterable[dict[str, Any]]], Iterator[str]]:
    """What makes the lines for people; ``begins``: with their header."""
    from opline_analyses.block.io_log import listing, pairs

    return pairs if args.pairs else partial(listing, start=args.start_time, end=args.end_time, begins=begins)


def run(args: argparse.Namespace) -> int:
    """Prints the I/Os."""
    memory.keep_little()
    from opline_analyses.api.block import ios
    from opline_analyses.block.io_filter import tables_needed
    from opline_analyses.runs.database import bounded

    if args.duration is not None:
        if args.window is not None or args.since is not None or args.until is not None:
            raise UsageError("SECONDS is a window of its own: leave out --window, --since and --until.")
        duration_ns(args.duration, "SECONDS")
        args.window = f":{args.duration}"
    sort, limit = args.sort, args.limit
    if args.slowest is not None:
        sort, limit = "latency", min(args.slowest, limit or args.slowest)
    filters = io_filters(args)
    whole = args.of == "bios" or filters.op_class or filters.object
    with opened(args, tables=tables_needed(filters)) as opened_run, ExitStack() as stack:
        if not whole:  # DuckDB holds recursive queries and IN (SELECT ...): they can't use a temporary folder
            stack.enter_context(bounded(opened_run.con))
        write(args, ios(opened_run, filters, sort=sort, limit=limit, lines=lines_of(args)))
    return 0
