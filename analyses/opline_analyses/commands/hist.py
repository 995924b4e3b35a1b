# SPDX-License-Identifier: MIT
"""`opline hist RUN [INTERVAL [COUNT]]`: the distribution of latencies, per interval, per device."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from opline.errors import UsageError
from opline.readers.registry import COUNTS
from opline_analyses.block import io_filter
from opline_analyses.block.hist_result import (
    Histograms,
    HistOptions,
    buckets_of,
    counting_buckets,
    summed,
    unit_of,
)
from opline_analyses.commands.common import add_form, add_intervals, add_run, interval_ns, opened, write
from opline_analyses.commands.engines import HELP as ENGINE
from opline_analyses.commands.engines import add_engine, answers, refuse, status, wanted
from opline_analyses.commands.options import add_io_filters, io_filters
from opline_analyses.commands.other_inputs import add_inputs, asked_of, counts_of, interval_of_oracle, without_ios
from opline_analyses.counts.inputs import kind_as_asked

if TYPE_CHECKING:
    from opline_analyses.counts.inputs import Kind

NAME = "hist"
HELP = "latency distributions: per interval, per device, side by side"
PROGRESS = True
#: What it lacks of the vocabulary (options.py), and why.
LACKS = {
    "--slowest": "a distribution is of all I/Os; --latency chooses some",
    "--limit --sort": "a histogram has all its rows, in the order of the latencies; COUNT ends after N intervals",
}
INTERMIXED = True  # INTERVAL and COUNT also behind options
RECORDING = "recording"
STYLES = ("table", "iolatency", "iolatency_micro", "hist_log", "biolatency", "latencymap")
EXAMPLES = f"""\
Each I/O counts once, in the interval of its completion. A bucket holds low <=
latency < high. Standard error has the number of uncounted I/Os, and the reason.
If all latencies lie within six powers of two, the text has four rows for each;
CSV and JSON always have powers of two.

--style prints as iolatency, SystemTap's @hist_log and bcc's biolatency.
iolatency_micro has I/Os and the time waited (us) per second, exact (--compat:
1.5 times the lower bound for each). latencymap makes records for LatencyMap.py.
opline also reads histograms of other tools: PyLatencyMap's records, text of
SystemTap, DTrace, bcc and bpftrace, biolatency -j, NetApp's counters; and
Oracle's 10046 trace.
{ENGINE}
examples:
  opline hist run1
  opline hist run1 1 --per device
  opline hist run1 5 3 --style iolatency -Q -d 8,16 -i '*R*'
  opline hist run1 --also run2 --per recording
  opline hist run1 -Q --beside issue
  opline hist run1 --of stages --stage 'shard queue' --buckets fine
  stap blockio_rq_issue_filter_latencyhistogram.stp 10 | opline hist - 10
"""


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    add_run(parser)
    add_options(parser, recordings=True)
    add_inputs(parser)
    add_engine(parser)
    parser.add_argument("--beside", metavar="POINT", help="also from this start point, side by side: -Q --beside issue")
    parser.add_argument("--unitstime", metavar="U", help="of two columns: the unit of the times (s, ms, us, ns)")


def add_options(parser: argparse.ArgumentParser, recordings: bool = False) -> None:
    """What can be asked of a run, and of what happens now (`opline live`), which is no recording."""
    add_intervals(parser, "a histogram for each: 1 (seconds), 100ms")
    parser.add_argument(
        "--per",
        "--by",
        choices=sorted((*io_filter.PER, RECORDING) if recordings else io_filter.PER),
        help="a histogram for each, side by side"
        + (f"; {RECORDING}: of each recording that --also names" if recordings else ""),
    )
    parser.add_argument(
        "--buckets",
        choices=("auto", "log2", "fine", "linear"),
        default="auto",
        help="powers of two, those in 4, steps; auto (default): log2, and fine in the text if the range is small",
    )
    parser.add_argument("--step", metavar="T", help="with --buckets linear: the step (10us)")
    parser.add_argument("--unit", choices=("ns", "us", "ms", "s"), help="of the edges (default: us; iolatency: ms)")
    parser.add_argument(
        "--style",
        choices=STYLES,
        default="table",
        metavar="STYLE",
        help=f"whose layout: {', '.join(STYLES)} (default: table)",
    )
    parser.add_argument("--cumulative", action="store_true", help="each histogram has what came before, too")
    parser.add_argument("-T", "--timestamps", action="store_true", help="each interval with its time of day")
    parser.add_argument(
        "--compat", action="store_true", help="with --style iolatency: its bounds, and forget what crosses a tick"
    )
    add_io_filters(parser)
    add_form(parser)


def run(args: argparse.Namespace) -> int:
    """Prints the histograms."""
    from opline_analyses.api.block import hist
    from opline_analyses.block.io_filter import tables_needed

    if (kind := kind_as_asked(args.run, args.unitstime)) is not None:
        args.interval = interval_of_oracle(args, kind) or args.interval
        return _of_counts(args, kind) if kind.HAS == COUNTS else _of_values(args, kind)
    if wanted(args):
        return _of_many(args)
    if args.per == RECORDING:
        raise UsageError(f"--per {RECORDING} shows several recordings side by side: name the others with --also RUN.")
    filters, interval, asked = io_filters(args), interval_ns(args), hist_options(args)
    buckets_of(asked, unit_of(asked))  # what can't be is said before a run is made
    with opened(args, tables=tables_needed(filters, asked.per)) as opened_run:
        write(args, hist(opened_run, filters, asked, interval_ns=interval, count=args.count))
    return 0


def _of_many(args: argparse.Namespace) -> int:
    """Prints the histograms of several recordings, by an engine."""
    from opline_analyses.base.quantities import Limits
    from opline_analyses.block.hist_result import fitted
    from opline_analyses.block.io_sources import source_of
    from opline_analyses.engine import added

    refuse(args, {"timestamps": "--timestamps"})
    filters, asked = io_filters(args), hist_options(args)
    unit = unit_of(asked)
    buckets = counting_buckets(asked, unit)
    apart = asked.per == RECORDING
    alone = asked.replaced(cumulative=False, per=None if apart else asked.per)
    wish = {"filters": vars(filters), "asked": vars(alone), "count": args.count}
    found = answers(args, "hist", wish | {"interval_ns": interval_ns(args)})
    series = added.series(found.summaries)
    counted = added.intervals(found.summaries, series, found.names if apart else None)
    source = source_of(filters.of, filters.start, filters.end, filters.tainted)
    rows = io_filter.Rows(source, "", (), Limits(), io_filter.Window(), 0, 0)
    named = found.names if apart else ()
    shown = Histograms(summed(counted) if asked.sums else counted, series, buckets, unit, rows, named)
    write(args, fitted(None, asked, filters, shown))
    return status(args, found)


def hist_options(args: argparse.Namespace) -> HistOptions:
    """What ``add_options`` was given."""
    given: dict[str, Any] = {name: getattr(args, name, None) for name in HistOptions.FIELDS}
    return HistOptions(**given)


def _of_counts(args: argparse.Namespace, kind: Kind) -> int:
    """Prints another tool's histograms."""
    from opline_analyses.api.block import hist_of_counts

    without_ios(args, kind)
    interval = interval_ns(args)
    found = counts_of(args, kind)
    unit = str(args.unit or ("ms" if args.style == "iolatency" else found.unit))
    write(args, hist_of_counts(found, interval_ns=interval, count=args.count, style=args.style, unit=unit))
    return 0


def _of_values(args: argparse.Namespace, kind: Kind) -> int:
    """Prints the histograms of single latencies, which no I/O is known of."""
    from opline_analyses.api.block import hist_of_values

    without_ios(args, kind, ("buckets",))
    asked, interval = hist_options(args), interval_ns(args)
    given = asked_of(args)
    write(args, hist_of_values(kind, given, io_filters(args), asked, interval_ns=interval, count=args.count))
    return 0
