# SPDX-License-Identifier: MIT
"""`opline heatmap RUN --style latencymap`: PyLatencyMap's screen, of records as they come, of any other tool's
counts, and of a run.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from itertools import pairwise
from typing import TYPE_CHECKING

from opline.errors import OplineError, UsageError
from opline.readers.registry import COUNTS
from opline_analyses.base.quantities import DURATIONS, duration_ns
from opline_analyses.commands.arguments import finite
from opline_analyses.commands.common import opened, output
from opline_analyses.commands.options import io_filters
from opline_analyses.commands.other_inputs import asked_of, interval_of_oracle, without_ios
from opline_analyses.counts.inputs import kind_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opline_analyses.counts.screen import Column, Screen

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


def _drawn(screen: Screen) -> bytes:
    from opline.talk import shown

    lines = list(screen.lines())
    safe = [shown(line) if line.startswith(("Sample num:", "Label:")) else line for line in lines]
    return "".join(f"{line}\n" for line in safe).encode()


def _columns(args: argparse.Namespace) -> Iterator[Column]:
    from opline_analyses.api.heatmap import latencymap, latencymap_of
    from opline_analyses.block.io_filter import tables_needed

    kind = kind_of(args.run)
    if kind is not None and kind.HAS == COUNTS:
        without_ios(args, kind, ("compat",))
        yield from latencymap_of(kind, asked_of(args))
        return
    if kind is not None:
        args.stepsec = interval_of_oracle(args, kind) or args.stepsec
        without_ios(args, kind, ("compat",))
    unit, step = args.unit or "us", DURATIONS["s"]
    if unit not in ("ns", "us", "ms"):
        raise UsageError(f"--unit {unit}: --style latencymap counts in ns, us or ms.")
    if args.stepsec is not None and (step := duration_ns(args.stepsec, "--stepsec")) <= 0:
        raise UsageError("--stepsec must be more than 0.")
    if kind is not None:
        yield from latencymap_of(kind, asked_of(args), unit=unit, step_ns=step)
        return
    filters = io_filters(args)
    with opened(args, tables=tables_needed(filters)) as opened_run:
        yield from latencymap(opened_run, filters, unit=unit, step_ns=step, most=args.maxcol)
