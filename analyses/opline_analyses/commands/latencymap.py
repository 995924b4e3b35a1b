# SPDX-License-Identifier: MIT
"""`opline heatmap RUN --style latencymap`: PyLatencyMap's screen, of records as they come, of any other tool's
counts, and of a run.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from itertools import chain, pairwise
from typing import TYPE_CHECKING

from opline.errors import OplineError, UsageError
from opline.readers.registry import COUNTS
from opline_analyses.base.quantities import DURATIONS, duration_ns, seconds
from opline_analyses.block import io_filter
from opline_analyses.commands.arguments import finite
from opline_analyses.commands.common import opened, output
from opline_analyses.commands.options import io_filters
from opline_analyses.commands.other_inputs import asked_of, interval_of_oracle, without_ios
from opline_analyses.counts.inputs import kind_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opline_analyses.counts.inputs import Kind
    from opline_analyses.counts.screen import Column
    from opline_analyses.intervals.intervals import Cell, Cells

_SHORT = {"-n": "--num_records", "-d": "--debug_level"}
FRAME_S = 0.1


def arguments(argv: Sequence[str]) -> list[str]:
    """With --style latencymap, -n N and -d N are LatencyMap.py's: the number of columns, and how much it tells."""
    words = list(argv)
    if "--style=latencymap" not in words and not any(pair == ("--style", "latencymap") for pair in pairwise(words)):
        return words
    found = []
    for place, word in enumerate(words):
        following = words[place + 1] if place + 1 < len(words) else ""
        if word in _SHORT and following.isdecimal():
            found.append(_SHORT[word])
        elif joined := re.fullmatch(r"(-[nd])(\d+)", word):
            found += [_SHORT[joined[1]], joined[2]]
        else:
            found.append(word)
    return found


def add_latencymap(parser: argparse.ArgumentParser) -> None:
    """The options that LatencyMap.py has, under its names."""
    parser.add_argument(
        "--style", choices=("map", "trace2heatmap", "latencymap"), default="map",
        help="map (default), trace2heatmap.pl's linear axis, or PyLatencyMap's two maps",
    )  # fmt: skip
    group = parser.add_argument_group("--style latencymap, whose options these are")
    group.add_argument("--num_records", metavar="N", type=int, help="so many columns (90); also -n N")
    group.add_argument("--min_bucket", metavar="E", type=int, default=-1, help="lowest row: 2^E (-1: by the unit)")
    group.add_argument("--max_bucket", metavar="E", type=int, default=64, help="highest row: 2^E (64: 12 rows)")
    group.add_argument(
        "--frequency_maxval", metavar="F", type=finite, default=-1, help="darkest: F per second (-1: the most)"
    )
    group.add_argument("--intensity_maxval", metavar="F", type=finite, default=-1, help="the same of time waited")
    group.add_argument(
        "--screen_delay", metavar="S", type=finite, default=FRAME_S, help="seconds between screens (0.1)"
    )
    group.add_argument("--debug_level", metavar="N", type=int, default=0, help="from 2 on: numbers; also -d N")
    group.add_argument(
        "--compat", choices=("1.2", "1.3"), default="1.3", help="as that version of LatencyMap.py scales"
    )


def run(args: argparse.Namespace) -> int:
    """Draws the screen: again and again on a terminal, else its last state; with --debug_level 2 each of them."""
    from opline_analyses.base.result_table import encoded
    from opline_analyses.counts.screen import CLEAR, Options, Screen
    from opline_analyses.pictures.heatmap_text import colours_wanted

    for name, option in (("json", "--json"), ("csv", "--csv"), ("percentiles", "--percentiles"), ("title", "--title")):
        if getattr(args, name):
            raise UsageError(f"{option} is not for --style latencymap.")
    columns = 90 if args.num_records is None else args.num_records
    if columns < 1 or args.screen_delay < 0:
        raise UsageError("--num_records must be 1 or more, and --screen_delay 0 or more.")
    terminal = args.output is None and sys.stdout.isatty()
    colours = colours_wanted(args.color, terminal)
    options = Options(
        columns, args.min_bucket, args.max_bucket, args.frequency_maxval, args.intensity_maxval, args.debug_level,
        args.compat, "never" if colours == "never" else "256",
    )  # fmt: skip
    low, high = options.ends("us")
    if not 0 <= low < high <= 64:
        raise UsageError(f"--min_bucket {low} and --max_bucket {high}: exponents of two, the lower one first.")
    screen = Screen(options)
    verbose = args.debug_level >= 2
    with output(args.output) as out:
        for column in _columns(args):
            screen.add(column)
            if terminal or verbose:
                if not verbose:
                    out.write(CLEAR.encode())
                out.write(_drawn(screen))
                out.flush()
                time.sleep(args.screen_delay)
        if not screen.samples:
            raise OplineError(f"{args.run} has no complete histogram.")
        if not (terminal or verbose):
            out.write(_drawn(screen))
        out.write(encoded(["", "Reached EOF from data source, exiting."]))
    return 0


def _drawn(screen: object) -> bytes:
    from opline.talk import shown
    from opline_analyses.counts.screen import Screen

    assert isinstance(screen, Screen)
    lines = list(screen.lines())
    safe = [shown(line) if line.startswith(("Sample num:", "Label:")) else line for line in lines]
    return "".join(f"{line}\n" for line in safe).encode()


def _columns(args: argparse.Namespace) -> Iterator[Column]:
    kind = kind_of(args.run)
    if kind is None:
        yield from _of_run(args)
    elif kind.HAS == COUNTS:
        without_ios(args, kind, ("compat",))
        yield from _of_counts(args, kind)
    else:
        args.stepsec = interval_of_oracle(args, kind) or args.stepsec
        without_ios(args, kind, ("compat",))
        yield from _of_values(args, kind)


def _of_counts(args: argparse.Namespace, kind: Kind) -> Iterator[Column]:
    from opline_analyses.counts.screen import column_of, empty_column
    from opline_analyses.counts.snapshot import intervals

    snapshots = kind.read(asked_of(args))
    first = next(snapshots, None)
    if first is None:
        return
    if first.cumulative:
        yield empty_column(first)
    for interval in intervals(chain([first], snapshots)):
        yield column_of(interval)


def _step_ns(args: argparse.Namespace) -> int:
    step = duration_ns(args.stepsec, "--stepsec") if args.stepsec is not None else DURATIONS["s"]
    if step <= 0:
        raise UsageError("--stepsec must be more than 0.")
    return step


def _column(args: argparse.Namespace, cells: Cells, step_ns: int, end: str, label: str) -> Column:
    """Of latencies one by one: bucket B has B to 2 B, and time waited is exact."""
    from opline_analyses.counts.screen import Column

    unit = args.unit or "us"
    found = Column(unit, delta_us=step_ns // 1000, date=f"{end} s", label=label)
    for (_, place), cell in cells.items():
        exact: Cell = cell
        rate = step_ns / 1e9
        found.add(max(0, place - 1), exact.count / rate, exact.total / DURATIONS[unit] / rate)
    return found


def _unit_ns(args: argparse.Namespace) -> int:
    if (args.unit or "us") not in ("ns", "us", "ms"):
        raise UsageError(f"--unit {args.unit}: --style latencymap counts in ns, us or ms.")
    return DURATIONS[args.unit or "us"]


def _of_run(args: argparse.Namespace) -> Iterator[Column]:
    from opline_analyses.block.io_filter import tables_needed
    from opline_analyses.block.io_series import count_rows, series_of, told
    from opline_analyses.intervals.buckets import PowerOfTwo

    buckets, step = PowerOfTwo(_unit_ns(args)), _step_ns(args)
    with opened(args, tables=tables_needed(io_filters(args))) as opened_run:
        rows = io_filter.rows_of(opened_run, io_filters(args))
        series = series_of(rows, step, args.maxcol)
        label = f"{rows.source.name} {rows.source.measured}"
        for index, cells in told(count_rows(opened_run, rows, series, buckets), series):
            yield _column(args, cells, step, series.shown(index + 1), label)


def _of_values(args: argparse.Namespace, kind: Kind) -> Iterator[Column]:
    from opline_analyses.intervals.buckets import PowerOfTwo
    from opline_analyses.intervals.intervals import Grid, Tally, number_of_intervals

    buckets, step = PowerOfTwo(_unit_ns(args)), _step_ns(args)
    batch, one = kind.read(asked_of(args))
    first = int(batch.at_ns.min())
    number = number_of_intervals(int(batch.at_ns.max()) - first + 1, step)
    tally = Tally(Grid(first, step), buckets)
    tally.add(batch)
    for index, cells in tally.intervals(0, number - 1):
        yield _column(args, cells, step, seconds((index + 1) * step, 3), f"{one}s")
