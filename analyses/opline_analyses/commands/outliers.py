# SPDX-License-Identifier: MIT
"""`opline outliers RUN`: I/Os above a threshold, statistics per device, and the suspect against a good device."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from opline.errors import UsageError
from opline.talk import talk
from opline_analyses.base.quantities import duration_ns
from opline_analyses.base.text import count_of, encoded
from opline_analyses.base.whole_numbers import not_negative
from opline_analyses.block import io_filter
from opline_analyses.commands.common import add_form, add_run, csv_output, opened, output

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opline_analyses.block.io_series import Series
    from opline_analyses.block.outliers import Kind
    from opline_analyses.intervals.intervals import Cell, Cells
    from opline_analyses.runs.run import Run

NAME = "outliers"
HELP = "I/Os above a threshold; the odd disk against a good one"
INTERMIXED = True  # INTERVAL and THRESHOLD also behind options
WARNINGS = 100
EXAMPLES = """\
A line for each I/O above the threshold (500000 us), compared in whole
microseconds as in SystemTap's script, then per device how many I/Os, their
least, mean and greatest latency; with INTERVAL for each. Where there are
outliers, the device with the largest share of them is compared with a good one:
both histograms on one scale, and whether they differ. --of ops and --of stages:
those above the threshold, and statistics per class or stage.

examples:
  opline outliers run1
  opline outliers run1 10 --threshold 20ms
  opline outliers run1 --threshold 5ms -i reads --size 8k
  opline outliers run1 --of ops --threshold 5ms --csv > slow.csv
"""


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    add_run(parser)
    add_options(parser)


def add_options(parser: argparse.ArgumentParser) -> None:
    """What can be asked of a run, and of what happens now (`opline live`)."""
    parser.add_argument("interval", metavar="INTERVAL", nargs="?", help="statistics for each: 10 (seconds)")
    parser.add_argument("threshold_us", metavar="THRESHOLD", nargs="?", help="the same as --threshold, in us")
    parser.add_argument("--threshold", metavar="T", help="an outlier takes longer (default: 500ms; a number: us)")
    parser.add_argument(
        "--limit",
        metavar="N",
        type=not_negative,
        default=WARNINGS,
        help="at most N lines for outliers (default: %(default)s)",
    )
    io_filter.add_io_filters(parser)
    add_form(parser, csv="CSV, the outliers alone, nanoseconds")


def threshold_ns(args: argparse.Namespace) -> int:
    """What an outlier takes longer than. Raises UsageError."""
    from opline_analyses.block.outliers import THRESHOLD_US

    text = args.threshold if args.threshold is not None else args.threshold_us
    found = duration_ns(text, "--threshold", "us") if text is not None else THRESHOLD_US * 1000
    if found % 1000:
        raise UsageError(f"--threshold {text}: latencies are compared in whole microseconds.")
    return found


def run(args: argparse.Namespace) -> int:
    """Prints outliers, statistics and the comparison."""
    from opline_analyses.block import outliers
    from opline_analyses.block.io_log import csv_of, ios
    from opline_analyses.block.io_series import count_rows, series_of, tables_needed, told

    threshold = threshold_ns(args)
    interval = duration_ns(args.interval, "INTERVAL") if args.interval is not None else None
    if interval == 0:
        raise UsageError(f"INTERVAL {args.interval}: must be more than 0.")
    kind = outliers.KINDS[args.of]
    with opened(args, tables=tables_needed(args)) as opened_run:
        rows = io_filter.rows_of(opened_run, args)
        series = series_of(rows, interval)
        counted = list(told(count_rows(opened_run, rows, series, None, kind.per), series))
        slow_rows = rows.also(outliers.is_outlier_sql(threshold))
        slow = dict.fromkeys({group for _, cells in counted for group, _ in cells}, 0)
        for batch in io_filter.batches(opened_run, slow_rows, kind.per):
            for group in batch.groups.tolist():
                slow[batch.names[group]] += 1
        found = list(ios(opened_run, slow_rows, "time", args.limit))
        if args.csv:
            with csv_output(args) as out:
                out.write(csv_of(found, begins=True).encode())
        else:
            verdict = _compared(opened_run, rows, counted, slow, threshold) if kind.per == "device" else None
            with output(args.output) as out:
                if args.json:
                    document = _document(kind, series, counted, slow, found, threshold, verdict)
                    out.write((json.dumps(document) + "\n").encode())
                else:
                    names = opened_run.device_names()
                    out.write(encoded(_lines(kind, names, series, counted, found, threshold, verdict)))
        if (more := sum(slow.values()) - len(found)) > 0:
            talk(f"{count_of(more, f'more {kind.one}')} above the threshold: --limit shows more.")
    return 0


def _lines(
    kind: Kind,
    names: dict[int, str],
    series: Series,
    counted: list[tuple[int, Cells]],
    found: list[dict[str, Any]],
    threshold: int,
    verdict: tuple[dict[str, object], list[str]] | None,
) -> Iterator[str]:
    """Each interval's outliers above its table."""
    from opline_analyses.block import outliers

    yield from outliers.banner(kind, threshold, f"{series.length_ns(series.first) / 1e9:g}")
    warnings: dict[int, list[str]] = {}
    for row in found:
        index = series.grid.index(row["end_ns"] + series.zero_ns)
        warnings.setdefault(index, []).append(outliers.warning(kind, row, names, threshold))
    for index, cells in counted:
        if index in warnings:
            yield from ("", *warnings[index])
        yield ""
        yield from outliers.table_lines(
            kind, {g: c for (g, _), c in cells.items()}, f"{series.length_ns(index) / 1e9:g}"
        )
    if verdict:
        yield from ("", *verdict[1])


def _compared(
    run: Run, rows: io_filter.Rows, counted: list[tuple[int, Cells]], slow: dict[str, int], threshold: int
) -> tuple[dict[str, object], list[str]] | None:
    from opline_analyses.block import outliers
    from opline_analyses.intervals.buckets import PowerOfTwo
    from opline_analyses.intervals.intervals import Cell, Grid, Tally, by_group

    devices: dict[str, Cell] = {}
    for _, cells in counted:
        for (group, _), cell in cells.items():
            devices.setdefault(group, Cell()).add(cell)
    if outliers.suspect_and_good(devices, {name: n for name, n in slow.items() if n}) is None:
        return None
    tally = Tally(Grid(0, 1 << 62), PowerOfTwo(1000))
    for batch in io_filter.batches(run, rows, "device"):
        tally.add(batch)
    return compared(by_group(next(iter(tally.intervals()))[1]), slow, threshold)


def compared(
    groups: dict[str, dict[int, Cell]], slow: dict[str, int], threshold: int
) -> tuple[dict[str, object], list[str]] | None:
    """The suspect and a good device, of histograms (powers of two of 1 us) and numbers of outliers by device: as a
    document, and as lines. None where there is no such pair.
    """
    from opline_analyses.base.text import duration, percent
    from opline_analyses.block import outliers
    from opline_analyses.intervals import hist
    from opline_analyses.intervals.buckets import PowerOfTwo

    devices = {name: hist.whole(histogram) for name, histogram in groups.items()}
    pair = outliers.suspect_and_good(devices, {name: n for name, n in slow.items() if n})
    if pair is None:
        return None
    suspect, good = pair
    numbers = [(slow[name], devices[name].count) for name in pair]
    chance = outliers.probability(*numbers[0], *numbers[1])
    shares = [f"{n} of {name}'s {of} I/Os ({percent(n, of)} %)" for name, (n, of) in zip(pair, numbers, strict=True)]
    verdict = "They differ" if chance < outliers.BY_CHANCE else "That may be chance"
    lines = [f"The suspect {suspect} against {good}, all I/Os of both on one scale:"]
    lines += hist.table_lines({name: groups[name] for name in pair}, PowerOfTwo(1000), "us")
    lines += [f"Above {duration(threshold)}: {' and '.join(shares)}."]
    lines += [f"{verdict} ({'p < 0.000001' if chance < 1e-6 else f'p = {chance:.2g}'}, Fisher's exact test)."]
    document: dict[str, object] = {"suspect": suspect, "good": good, "probability": chance}
    return document, lines


def _document(
    kind: Kind,
    series: Series,
    counted: list[tuple[int, Cells]],
    slow: dict[str, int],
    found: list[dict[str, Any]],
    threshold: int,
    verdict: tuple[dict[str, object], list[str]] | None,
) -> dict[str, object]:
    return {
        "schema": "opline outliers 1",
        "zero_ns": series.zero_ns,
        "threshold_ns": threshold,
        "outliers": found,
        f"outliers_by_{kind.per}": {name: n for name, n in sorted(slow.items()) if n},
        "intervals": [
            {
                "begin_ns": series.grid.begin_ns(i) - series.zero_ns,
                kind.several: listed(kind, {name: c for (name, _), c in cells.items()}),
            }
            for i, cells in counted
        ],
        "compared": verdict[0] if verdict else None,
    }


def listed(kind: Kind, groups: dict[str, Cell]) -> list[dict[str, object]]:
    """The table of an interval as a document has it."""
    return [
        {kind.per: name, "count": c.count, "min_ns": c.least, "max_ns": c.most, "sum_ns": c.total}
        for name, c in sorted(groups.items())
    ]
