# SPDX-License-Identifier: MIT
"""`opline bitesize RUN`: how large the I/Os are that were issued."""

from __future__ import annotations

import argparse
import json
from itertools import pairwise
from typing import TYPE_CHECKING

from opline.errors import UsageError
from opline_analyses.base.quantities import duration_ns
from opline_analyses.block import io_filter
from opline_analyses.commands.common import add_form, add_run, csv_output, opened, output

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opline_analyses.intervals.intervals import Cell

NAME = "bitesize"
HELP = "how large the issued I/Os are, in buckets of one's own choice"
INTERMIXED = True  # SECONDS also behind options
EXAMPLES = """\
Every request that was issued is counted, in the window in which it was issued,
also one that did not complete. 1.0 -> 7.9 means 1 KiB up to, not including, 8.

examples:
  opline bitesize run1
  opline bitesize run1 -b "8 16 32" -i writes
"""
DEFAULT = "1 8 64 128"


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    add_run(parser)
    add_options(parser)


def add_options(parser: argparse.ArgumentParser) -> None:
    """What can be asked of a run, and of what happens now (`opline live`)."""
    parser.add_argument("duration", metavar="SECONDS", nargs="?", help="only what was issued in the first SECONDS")
    parser.add_argument("-b", dest="limits", metavar="LIST", default=DEFAULT, help='limits in KiB ("%(default)s")')
    io_filter.add_io_filters(parser, sources=False, latency=False)
    add_form(parser, csv="CSV, bytes", json="JSON, bytes")


def limits_of(text: str) -> tuple[int, ...]:
    """The buckets' limits in bytes. Raises UsageError."""
    try:
        found = tuple(int(float(word) * 1024) for word in text.split())
    except (ValueError, OverflowError) as error:
        raise UsageError(f"-b {text!r}: not a list of sizes in KiB.") from error
    if not found or found[0] <= 0 or found[-1] >= 1 << 62 or any(a >= b for a, b in pairwise(found)):
        raise UsageError(f"-b {text!r}: the limits must increase, and be sizes that there are.")
    return found


def run(args: argparse.Namespace) -> int:
    """Prints the histogram."""
    from opline_analyses.block.io_series import count_rows, series_of, tables_needed
    from opline_analyses.block.io_sources import issued
    from opline_analyses.intervals.buckets import Listed
    from opline_analyses.intervals.intervals import by_group

    limits = limits_of(args.limits)
    if args.duration is not None:
        if args.window is not None:
            raise UsageError("SECONDS is a window of its own: leave out --window.")
        duration_ns(args.duration, "SECONDS")
        args.window = f":{args.duration}"
    with opened(args, tables=tables_needed(args)) as opened_run:
        rows = io_filter.rows_of(opened_run, args, issued())
        series = series_of(rows, None)
        tally = count_rows(opened_run, rows, series, Listed(limits), None, "bytes")
        cells: dict[int, Cell] = {}
        for _, found in tally.intervals():
            for index, cell in by_group(found).get("", {}).items():
                cells[index] = cell
        with csv_output(args) if args.csv else output(args.output) as out:
            out.write(shown(args, limits, cells))
    return 0


def shown(args: argparse.Namespace, limits: tuple[int, ...], cells: dict[int, Cell]) -> bytes:
    """The buckets in the form that is asked for."""
    from opline_analyses.base.text import csv_text, encoded
    from opline_analyses.intervals.intervals import merged

    counts = [cells[i].count if i in cells else 0 for i in range(len(limits) + 1)]
    whole = merged({("", i): cell for i, cell in cells.items()})
    edges = [(0, limits[0]), *zip(limits, (*limits[1:], None), strict=True)]
    records = [{"low_bytes": a, "high_bytes": b, "count": n} for (a, b), n in zip(edges, counts, strict=True)]
    if args.json:
        document = {"schema": "opline bitesize 1", "sum_bytes": whole.total, "buckets": records}
        return (json.dumps(document, indent=1) + "\n").encode()
    if args.csv:
        return csv_text(records[0], records).encode()
    return encoded(_lines(limits, counts))


def _lines(limits: Sequence[int], counts: Sequence[int]) -> Iterator[str]:
    from opline_analyses.intervals.hist import bar

    def row(low: str, high: str, count: int) -> str:
        return f"   {low:>10} -> {high:<10}: {count:<8} |{bar(count, max(counts), 38):<38}|"

    yield f"            {'Kbytes':<15}: {'I/O':<8} Distribution"
    for index, count in enumerate(counts):
        low = f"{limits[index - 1] / 1024:.1f}" if index else ""
        high = f"{limits[index] / 1024 - 0.1:.1f}" if index < len(limits) else ""
        yield row(low, high, count)
