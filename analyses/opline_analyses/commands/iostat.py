# SPDX-License-Identifier: MIT
"""`opline iostat RUN [INTERVAL [COUNT]]`: rates, sizes, latencies, queue and utilisation over time."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from opline.errors import UsageError
from opline.talk import talk
from opline_analyses.block import io_filter
from opline_analyses.commands.common import add_form, add_intervals, add_run, csv_output, interval_ns, opened, output

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opline_analyses.block.io_series import Series
    from opline_analyses.block.iostat import Row

NAME = "iostat"
HELP = "rates, sizes, latencies, queue and utilisation per interval"
INTERMIXED = True  # INTERVAL and COUNT also behind options
STYLES = ("dtrace", "linux", "solaris")
ROWS = 20  # about so many, where no interval is asked for
EXAMPLES = """\
Any interval, down to a microsecond; the time is the interval's end, in seconds
from the run's first event. An I/O is counted in the interval of its completion,
its latency is from issue to completion (--from and --to change that; with -x:
from getrq to the end, the flush behind its data included, as iostat's await).
With -x a row per device: r_await and w_await in ms;
o/s flushes and discards; areq-sz in KiB; aqu-sz and %util are of all that were
in flight in the interval, exact. --style solaris: wait and %w before the issue,
actv and %b at the device.

examples:
  opline iostat run1
  opline iostat run1 0.1 --window 153:155
  opline iostat run1 -x
  opline iostat run1 1 -x -d sda -d sdb --csv > iostat.csv
"""


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    add_run(parser)
    add_options(parser)


def add_options(parser: argparse.ArgumentParser) -> None:
    """What can be asked of a run, and of what happens now (`opline live`)."""
    add_intervals(parser, "a row for each: 1 (seconds), 0.1, 10ms")
    parser.add_argument("-x", dest="extended", action="store_true", help="per device; without INTERVAL: all in one row")
    parser.add_argument("--style", choices=STYLES, help="whose columns (default: dtrace's seven; with -x: linux)")
    parser.add_argument("--per-device", action="store_true", help="a row per device also without -x")
    io_filter.add_io_filters(parser)
    add_form(parser, csv="CSV: counts, bytes and ns of each interval, no rates", json="the same as JSON")


def style_of(args: argparse.Namespace) -> tuple[str, bool]:
    """Whose columns, and whether there is a row per device."""
    style = args.style or ("linux" if args.extended else "dtrace")
    return style, style != "dtrace" or args.per_device or args.extended


def check(args: argparse.Namespace) -> None:
    """Raises UsageError for what iostat can't count: its columns are of reads and writes."""
    if args.of not in ("requests", "bios"):
        raise UsageError(f"--of {args.of}: iostat counts block I/O; `opline hist --of {args.of}` counts {args.of}.")


def run(args: argparse.Namespace) -> int:
    """Prints the rows."""
    from opline_analyses.block.io_series import round_interval, series_of, tables_needed
    from opline_analyses.block.iostat_rows import await_begins, rows_over_time

    check(args)
    style, per_device = style_of(args)
    interval = interval_ns(args)
    with opened(args, tables=tables_needed(args)) as opened_run:
        if args.of == "requests" and style != "dtrace":
            args.start = args.start or await_begins(opened_run)
            args.end = args.end or "end"
        rows = io_filter.rows_of(opened_run, args)
        whole = series_of(rows, None)
        if interval is None and not per_device:
            interval = round_interval(whole.grid.step_ns, ROWS)
        series = series_of(rows, interval, args.count)
        waits_from = args.start if style == "solaris" else None
        found = rows_over_time(opened_run, rows, series, per_device, waits_from)
        others = sum(row.others.count for row in found)
        if style == "dtrace" and others:
            talk(f"{others} flushes and discards are neither reads nor writes: -x has them in o/s.")
        with csv_output(args) if args.csv else output(args.output) as out:
            if args.json:
                document = {"schema": "opline iostat 1", "zero_ns": series.zero_ns, "rows": [r.record() for r in found]}
                out.write((json.dumps(document, indent=1) + "\n").encode())
            elif args.csv:
                out.write(csv_of(found).encode())
            else:
                from opline_analyses.base.text import encoded

                out.write(encoded(text(found, series, style, per_device)))
    return 0


def text(
    found: list[Row], series: Series, style: str, per_device: bool, begins: bool = True, single: bool | None = None
) -> Iterator[str]:
    """The rows as --style has them; ``begins``: with the header, which a table per device has always; ``single``: there
    is one interval only, whose time is not shown (default: as the series says).
    """
    from opline_analyses.base.quantities import seconds
    from opline_analyses.base.text import table
    from opline_analyses.block import iostat

    single = series.first == series.last if single is None else single
    digits = series.digits
    if style == "dtrace" and not per_device:
        if begins:
            yield iostat.DTRACE_HEADER
        for row in found:
            yield iostat.dtrace_line(row, seconds(row.end_ns, digits))
    elif style == "dtrace":
        if begins:
            yield f"{iostat.DTRACE_HEADER}  device"
        for row in found:
            yield f"{iostat.dtrace_line(row, seconds(row.end_ns, digits))}  {row.device}"
    else:
        header, cells_of = (
            (iostat.LINUX_HEADER, iostat.linux_cells)
            if style == "linux"
            else (iostat.SOLARIS_HEADER, iostat.solaris_cells)
        )
        rows = [cells_of(row) for row in found]
        times = [seconds(row.end_ns, digits) for row in found]
        if not single:
            header, rows = ("time", *header), [[t, *cells] for t, cells in zip(times, rows, strict=True)]
        yield from table(header, rows, gap=" ", right=[h != "device" for h in header])


def csv_of(found: list[Row]) -> str:
    """The rows as CSV."""
    from opline_analyses.base.text import csv_text

    records = [row.record() for row in found]
    return csv_text(list(records[0]) if records else ["begin_ns"], records)
