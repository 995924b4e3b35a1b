# SPDX-License-Identifier: MIT
"""`opline hist RUN [INTERVAL [COUNT]]`: the distribution of latencies, per interval, per device."""

from __future__ import annotations

import argparse
import csv
import io
import json
from typing import TYPE_CHECKING

from opline.errors import UsageError
from opline_analyses.base.filters import major_of
from opline_analyses.base.quantities import DURATIONS, duration_ns
from opline_analyses.block import io_filter
from opline_analyses.commands.common import add_form, add_intervals, add_run, csv_output, interval_ns, opened, output
from opline_analyses.commands.other_inputs import add_inputs, counts_of, interval_of_oracle, values_of, without_ios
from opline_analyses.counts.inputs import COUNTS, kind_as_asked

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opline_analyses.block.io_series import Series
    from opline_analyses.block.io_sources import Source
    from opline_analyses.counts.inputs import Kind
    from opline_analyses.intervals.buckets import Buckets
    from opline_analyses.intervals.intervals import Cell, Cells
    from opline_analyses.runs.run import Run

NAME = "hist"
HELP = "latency distributions: per interval, per device, side by side"
INTERMIXED = True  # INTERVAL and COUNT also behind options
STYLES = ("table", "iolatency", "iolatency_micro", "hist_log", "biolatency", "latencymap")
OF_IOLATENCY = ("iolatency", "iolatency_micro")
EXAMPLES = """\
Each I/O is counted once, in the interval of its completion; the counts of all
intervals sum to the number of I/Os. A bucket holds low <= latency < high. What
can't be counted (no completion, no insert) is said on stderr, by reason.
--style prints as iolatency, SystemTap's @hist_log and bcc's biolatency do;
iolatency_micro has I/Os per second and the time waited, in us per second, exact
(--compat: 1.5 times the lower bound for each); latencymap makes records for
LatencyMap.py. Histograms of other tools are read,
too: PyLatencyMap's records, SystemTap's, DTrace's, bcc's and bpftrace's text,
biolatency -j, NetApp's counters; and Oracle's 10046 trace.

examples:
  opline hist run1
  opline hist run1 1 --per device
  opline hist run1 5 3 --style iolatency -Q -d 8,16 -i '*R*'
  opline hist run1 -Q --beside issue
  opline hist run1 --of stages --stage 'shard queue' --buckets fine
  stap blockio_rq_issue_filter_latencyhistogram.stp 10 | opline hist - 10
"""


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    add_run(parser)
    add_options(parser)
    add_inputs(parser)
    parser.add_argument("--beside", metavar="POINT", help="also from this start point, side by side: -Q --beside issue")
    parser.add_argument("--unitstime", metavar="U", help="of two columns: the unit of the times (s, ms, us, ns)")


def add_options(parser: argparse.ArgumentParser) -> None:
    """What can be asked of a run, and of what happens now (`opline live`)."""
    add_intervals(parser, "a histogram for each: 1 (seconds), 100ms")
    parser.add_argument("--per", choices=sorted(io_filter.PER), help="a histogram for each, side by side")
    parser.add_argument(
        "--buckets",
        choices=("log2", "fine", "linear"),
        default="log2",
        help="powers of two (default), those in 4, steps",
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
    io_filter.add_io_filters(parser)
    add_form(parser)


def buckets_of(args: argparse.Namespace, unit: str) -> Buckets:
    """The buckets that the options mean. Raises UsageError."""
    from opline_analyses.intervals.buckets import Fine, Linear, PowerOfTwo

    if args.style != "table" and args.buckets != "log2":
        raise UsageError(f"--style {args.style} has powers of two: leave out --buckets {args.buckets}.")
    if args.step is not None and args.buckets != "linear":
        raise UsageError("--step is for --buckets linear.")
    if args.buckets == "linear":
        step = duration_ns(args.step, "--step", unit) if args.step is not None else 0
        if step <= 0:
            raise UsageError("--buckets linear: how long is a step? --step 10us.")
        return Linear(step)
    return Fine(DURATIONS[unit]) if args.buckets == "fine" else PowerOfTwo(DURATIONS[unit])


def unit_of(args: argparse.Namespace) -> str:
    """The unit of the edges; what --style latencymap implies is set. Raises UsageError."""
    unit = str(args.unit or ("ms" if args.style == "iolatency" else "us"))
    if args.style == "latencymap":
        if args.per is not None or unit == "s":
            raise UsageError("--style latencymap has one histogram, in ns, us or ms: leave out --per.")
        args.cumulative = True
    return unit


def run(args: argparse.Namespace) -> int:
    """Prints the histograms."""
    from opline_analyses.block.io_series import series_of, tables_needed

    if (kind := kind_as_asked(args.run, args.unitstime)) is not None:
        args.interval = interval_of_oracle(args, kind) or args.interval
        return _of_counts(args, kind) if kind.has == COUNTS else _of_values(args, kind)
    unit = unit_of(args)
    buckets, interval = buckets_of(args, unit), interval_ns(args)
    if args.compat and args.style not in OF_IOLATENCY:
        raise UsageError("--compat is for --style iolatency and iolatency_micro.")
    source = _beside(args)
    with opened(args, tables=tables_needed(args)) as opened_run:
        rows = io_filter.rows_of(opened_run, args, source)
        series = series_of(rows, interval, args.count)
        counted = _counted(opened_run, args, rows, series, buckets)
        _write(opened_run, args, counted, series, buckets, unit, rows)
    return 0


def _beside(args: argparse.Namespace) -> Source | None:
    """What --beside means: a group for each of the two start points. Raises UsageError."""
    from opline_analyses.block.io_sources import beside, source_of

    if args.beside is None:
        return None
    if args.per is not None or args.style == "latencymap":
        raise UsageError("--beside has two histograms: leave out --per and --style latencymap.")
    args.per = "stage"
    return beside(*(source_of(args.of, start, args.end, args.tainted) for start in (args.start, args.beside)))


def _write(
    run: Run | None,
    args: argparse.Namespace,
    counted: list[tuple[int, Cells]],
    series: Series,
    buckets: Buckets,
    unit: str,
    rows: io_filter.Rows,
) -> None:
    """The intervals in the form that was asked for. ``run``: None of single latencies."""
    with csv_output(args) if args.csv else output(args.output) as out:
        if args.json:
            out.write((json.dumps(document(counted, series, buckets, rows), indent=1) + "\n").encode())
        elif args.csv:
            out.write(csv_of(counted, series, buckets).encode())
        else:
            from opline_analyses.base.text import encoded

            out.write(encoded(text(run, args, counted, series, buckets, unit, rows)))


def _of_counts(args: argparse.Namespace, kind: Kind) -> int:
    """Prints another tool's histograms."""
    from opline_analyses.base.text import encoded
    from opline_analyses.counts import histograms
    from opline_analyses.counts.collected import grouped

    without_ios(args, kind)
    interval = interval_ns(args)
    found = counts_of(args, kind)
    unit = str(args.unit or ("ms" if args.style == "iolatency" else found.unit))
    shown = grouped(found, None if interval is None else max(1, interval // 1000), args.count)
    with csv_output(args) if args.csv else output(args.output) as out:
        if args.json:
            out.write((json.dumps(histograms.document(found, shown), indent=1) + "\n").encode())
        elif args.csv:
            out.write(histograms.csv_of(found, shown).encode())
        elif args.style == "latencymap":
            out.write(encoded(histograms.records(found, shown, unit)))
        else:
            out.write(encoded(histograms.text(found, shown, args.style, unit)))
    return 0


def _of_values(args: argparse.Namespace, kind: Kind) -> int:
    """Prints the histograms of single latencies, which no I/O is known of."""
    from opline_analyses.base.quantities import Limits
    from opline_analyses.block.io_series import Series, told
    from opline_analyses.block.io_sources import Source
    from opline_analyses.intervals.intervals import Grid, Tally, number_of_intervals

    without_ios(args, kind, ("buckets",))
    unit = unit_of(args)
    buckets, interval = buckets_of(args, unit), interval_ns(args)
    batch, one = values_of(args, kind)
    first, last = int(batch.at_ns.min()), int(batch.at_ns.max())
    step = interval or last - first + 1
    number = number_of_intervals(last - first + 1, step, args.count)
    series = Series(Grid(first, step), 0, number - 1, first)
    tally = Tally(series.grid, buckets)
    tally.add(batch)
    rows = io_filter.Rows(Source(one + "s", "", one, "latency"), "", (), Limits(), io_filter.Window(), first, last)
    counted = summed(list(told(tally, series))) if args.cumulative else list(told(tally, series))
    _write(None, args, counted, series, buckets, unit, rows)
    return 0


def _counted(
    run: Run, args: argparse.Namespace, rows: io_filter.Rows, series: Series, buckets: Buckets
) -> list[tuple[int, Cells]]:
    """The cells of each interval."""
    from opline_analyses.block.io_series import LATENCY, count_rows, told

    value = LATENCY
    if args.compat:  # its loop compares with `>`: what is a power of two exactly is in the bucket below
        value = "greatest(end_ns - begin_ns - 1, 0)"
        step, origin = series.grid.step_ns, series.grid.zero_ns
        rows = rows.also(f"(begin_ns - {origin}) // {step} = (end_ns - {origin}) // {step}")
    found = list(told(count_rows(run, rows, series, buckets, args.per, value), series))
    return summed(found) if args.cumulative else found


def summed(counted: list[tuple[int, Cells]]) -> list[tuple[int, Cells]]:
    """Each interval with what came before."""
    from opline_analyses.intervals.intervals import Cell

    sums: dict[tuple[str, int], Cell] = {}
    found = []
    for index, cells in counted:
        for key, cell in cells.items():
            sums.setdefault(key, Cell()).add(cell)
        found.append((index, {key: Cell(c.count, c.total, c.least, c.most, c.size) for key, c in sums.items()}))
    return found


def _names(counted: list[tuple[int, Cells]]) -> list[str]:
    return sorted({group for _, cells in counted for group, _ in cells})


def text(
    run: Run | None,
    args: argparse.Namespace,
    counted: list[tuple[int, Cells]],
    series: Series,
    buckets: Buckets,
    unit: str,
    rows: io_filter.Rows,
    begins: bool = True,
) -> Iterator[str]:
    """The intervals as --style has them. ``run``: None of single latencies.
    ``begins``: what a style prints before its first one is wanted.
    """
    from opline_analyses.intervals import hist
    from opline_analyses.intervals.intervals import by_group
    from opline_analyses.runs.wall_clock import time_of_day

    names = _names(counted) or [""]
    if args.style == "hist_log" and begins:
        yield from _filters(run, args)
    if args.style == "latencymap":
        yield from _records([*([(series.first - 1, {})] if begins else []), *counted], series, unit, rows)
        return
    for number, (index, cells) in enumerate(counted):
        end = series.end_ns(index)
        if number or args.style in OF_IOLATENCY:
            yield ""
        if args.timestamps and run is not None:
            colon = ":" if args.style in OF_IOLATENCY else ""
            yield time_of_day(run, end, series.digits if series.last else 0) + colon
        groups = by_group(cells)
        if args.style == "table":
            yield f"{series.shown(index)} to {series.shown_end(index)} s"
            yield from _tables(groups, names, buckets, unit, rows)
            continue
        for group in names:
            if group:
                yield f"{args.per} = {group}"
            found = groups.get(group, {})
            if args.style == "iolatency":
                yield from hist.iolatency_lines(found, unit)
            elif args.style == "iolatency_micro":
                yield from hist.iolatency_micro_lines(found, unit, series.length_ns(index), guessed=args.compat)
            elif args.style == "biolatency":
                yield from hist.biolatency_lines(found, unit)
            else:
                length = f"{series.length_ns(index) / 1e9:g}"
                yield from hist.hist_log_title(length, hist.whole(found).count, unit)
                yield from hist.hist_log_lines(found)


def _records(counted: list[tuple[int, Cells]], series: Series, unit: str, rows: io_filter.Rows) -> Iterator[str]:
    """For LatencyMap.py, which shows differences: the first one is to be empty."""
    from opline_analyses.intervals import hist
    from opline_analyses.intervals.intervals import by_group

    label = f"{rows.source.name} {rows.source.measured}"
    for index, cells in counted:
        end = series.end_ns(index)
        date = f"{series.shown_end(index)} s"
        yield from hist.latencymap_record(by_group(cells).get("", {}), end // 1000, date, label, unit)


def _tables(
    groups: dict[str, dict[int, Cell]], names: list[str], buckets: Buckets, unit: str, rows: io_filter.Rows
) -> Iterator[str]:
    from opline_analyses.intervals import hist

    beside = 4  # more of them don't fit into a line
    for at in range(0, len(names), beside):
        shown = {name: groups.get(name, {}) for name in names[at : at + beside]}
        for name, found in shown.items():
            label = f"{name}: " if name else ""
            yield f"{label}{hist.sums_line(hist.whole(found), rows.source.one, rows.source.measured)}"
        yield from hist.table_lines(shown, buckets, unit)
        if at + beside < len(names):
            yield ""


def _filters(run: Run | None, args: argparse.Namespace) -> Iterator[str]:
    from opline_analyses.intervals import hist
    from opline_analyses.runs.devices import device_number

    operation = {("reads",): 0, ("writes",): 1}.get(tuple(args.io or ()), -1)
    one = args.device[0] if run and args.device and len(args.device) == 1 else None
    if one is not None and (major := major_of(one)) is not None:
        yield from hist.filters_header(args.size, operation, major, -1)
        return
    dev = device_number(run, one) if run and one is not None else None
    yield from hist.filters_header(args.size, operation, *((-1, -1) if dev is None else (dev >> 20, dev & 0xFFFFF)))


def csv_of(counted: list[tuple[int, Cells]], series: Series, buckets: Buckets, begins: bool = True) -> str:
    """The intervals as rows; ``begins``: with the header."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    if begins:
        writer.writerow(("begin_ns", "end_ns", "group", "low_ns", "high_ns", "count", "sum_ns"))
    for index, cells in counted:
        times = [at_ns - series.zero_ns for at_ns in (series.grid.begin_ns(index), series.end_ns(index))]
        for (group, bucket), cell in sorted(cells.items()):
            writer.writerow((*times, group, *buckets.edges(bucket), cell.count, cell.total))
        if not cells:  # an idle interval is a row, too
            writer.writerow((*times, "", "", "", 0, 0))
    return out.getvalue()


def document(
    counted: list[tuple[int, Cells]], series: Series, buckets: Buckets, rows: io_filter.Rows
) -> dict[str, object]:
    """The intervals as JSON has them."""

    def bucket(index: int, cell: Cell) -> dict[str, int]:
        low, high = buckets.edges(index)
        return {"low_ns": low, "high_ns": high, "count": cell.count, "sum_ns": cell.total}

    def group(cells: Cells, name: str) -> dict[str, object]:
        mine = sorted((b, cell) for (g, b), cell in cells.items() if g == name)
        least = min((c.least for _, c in mine if c.least is not None), default=None)
        most = max((c.most for _, c in mine if c.most is not None), default=None)
        return {
            "group": name,
            "count": sum(c.count for _, c in mine),
            "sum_ns": sum(c.total for _, c in mine),
            "min_ns": least,
            "max_ns": most,
            "buckets": [bucket(b, c) for b, c in mine],
        }

    return {
        "schema": "opline hist 1",
        "of": rows.source.name,
        "measured": rows.source.measured,
        "zero_ns": series.zero_ns,
        "intervals": [
            {
                "begin_ns": series.grid.begin_ns(index) - series.zero_ns,
                "end_ns": series.end_ns(index) - series.zero_ns,
                "groups": [group(cells, name) for name in sorted({g for g, _ in cells})],
            }
            for index, cells in counted
        ],
    }
