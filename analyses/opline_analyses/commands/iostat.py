# SPDX-License-Identifier: MIT
"""`opline iostat RUN [INTERVAL [COUNT]]`: rates, sizes, latencies, queue and utilisation over time."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from opline.errors import UsageError
from opline_analyses.commands.common import (
    add_form,
    add_intervals,
    add_run,
    interval_ns,
    opened,
    write,
)
from opline_analyses.commands.engines import HELP as ENGINE
from opline_analyses.commands.engines import add_engine, answers, status, wanted
from opline_analyses.commands.options import add_io_filters, io_filters
from opline_analyses.runs.not_yours import background_line
from opline_analyses.runs.notices import tell_not_yours

if TYPE_CHECKING:
    from opline_analyses.block.io_filter import IoFilters

NAME = "iostat"
HELP = "rates, sizes, latencies, queue and utilisation per interval"
PROGRESS = True
#: What it lacks of the vocabulary (options.py), and why.
LACKS = {
    "--slowest": "rates are of all I/Os; --latency chooses some",
    "--limit --sort": "rows are in the order of time and of the devices' numbers; COUNT ends after N intervals",
}
INTERMIXED = True  # INTERVAL and COUNT also behind options
STYLES = ("dtrace", "linux", "solaris")
GROUPS = ("cgroup", "comm", "device", "host", "object", "process", "thread", "tid")
EXAMPLES = f"""\
A row per device, as iostat -x of sysstat: r_await and w_await in ms; o/s
flushes and discards; areq-sz in KiB; aqu-sz and %util exact. Without INTERVAL
the row is of the whole run; an interval can be as short as a microsecond. The
time is the interval's end, in seconds from the run's first event; an I/O counts
in the interval of its completion. The latency is from getrq to the end, with
the flush behind the data; --from and --to change that.

-x adds rrqm/s and wrqm/s (merges into the requests), f/s and f_await (flushes,
which o/s has, too), and await of reads and writes together.

--by has a row for each cgroup (or thread, command name, host): its share of
aqu-sz, and in %util the time in which it had an I/O of its own.
--style dtrace: all devices together, latencies from issue to completion.
--style solaris: wait and %w before the issue, actv and %b at the device.
{ENGINE}
examples:
  opline iostat run1
  opline iostat run1 1
  opline iostat run1 1 -d sda -d sdb --csv > iostat.csv
  opline iostat run1 0.1 --window 153:155 --style dtrace
  opline iostat run1 1 --by cgroup
"""


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    add_run(parser)
    add_engine(parser)
    add_options(parser)


def add_options(parser: argparse.ArgumentParser) -> None:
    """What can be asked of a run, and of what happens now (`opline live`)."""
    add_intervals(parser, "a row for each: 1 (seconds), 0.1, 10ms")
    parser.add_argument("-x", dest="extended", action="store_true", help="more columns: merges, flushes, await of all")
    parser.add_argument("--style", choices=STYLES, default="linux", help="whose columns (default: linux)")
    parser.add_argument("--per-device", action="store_true", help="with --style dtrace: a row per device")
    parser.add_argument("--per", "--by", choices=GROUPS, help="a row for each of these (default: device)")
    add_io_filters(parser)
    add_form(parser, csv="CSV: counts, bytes and ns of each interval, no rates", json="the same as JSON")


def style_of(args: argparse.Namespace) -> tuple[str, str | None]:
    """Whose columns, and of what there is a row each; None: of all I/Os together."""
    together = args.style == "dtrace" and not args.per_device and not args.extended
    from opline_analyses.block.iostat import EXTENDED

    style = EXTENDED if args.extended and args.style == "linux" else args.style
    return style, args.per or (None if together else "device")


def check(args: argparse.Namespace) -> None:
    """Raises UsageError for what iostat can't count: its columns are of reads and writes."""
    if args.of not in ("requests", "bios"):
        raise UsageError(f"--of {args.of}: iostat counts block I/O; `opline hist --of {args.of}` counts {args.of}.")


def run(args: argparse.Namespace) -> int:
    """Prints the rows."""
    from opline_analyses.api.block import iostat
    from opline_analyses.block.io_filter import tables_needed

    check(args)
    style, by = style_of(args)
    interval, filters = interval_ns(args), io_filters(args)
    if wanted(args):
        return _of_many(args, filters, interval)
    with opened(args, tables=tables_needed(filters, by), whole=True) as opened_run:
        tell_not_yours(background_line(opened_run))
        write(args, iostat(
            opened_run, filters, interval_ns=interval, count=args.count, style=style, by=by
        ))  # fmt: skip
    return 0


def _of_many(args: argparse.Namespace, filters: IoFilters, interval: int | None) -> int:
    """Prints the rows of several recordings, by an engine."""
    from opline_analyses.block.iostat_result import table
    from opline_analyses.engine import added

    style, by = style_of(args)
    if interval is None and by is None:
        raise UsageError(f"--style {style} adds intervals of equal length: give INTERVAL.")
    wish = {"filters": vars(filters), "interval_ns": interval, "count": args.count, "style": style}
    found = answers(args, "iostat", wish | {"by": by})
    rows = added.iostat_rows(found.names, found.summaries, by)
    write(args, table(rows, added.series(found.summaries), style, by))
    return status(args, found)
