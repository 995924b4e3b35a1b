# SPDX-License-Identifier: MIT
"""`opline burst RUN [INTERVAL]`: when far more happens than on average, and the window to look at."""

from __future__ import annotations

import argparse
import json
import shlex
from typing import TYPE_CHECKING

from opline_analyses.base.quantities import duration_ns, round_up, seconds
from opline_analyses.block import io_filter
from opline_analyses.commands.common import add_form, add_run, csv_output, opened, output

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from opline_analyses.block.bursts import Burst
    from opline_analyses.block.io_series import Series
    from opline_analyses.intervals.intervals import Cell, Cells

NAME = "burst"
HELP = "bursts that a mean hides, whether they return, and where to look"
INTERMIXED = True  # INTERVAL also behind options
COUNTED = {"bytes": "bytes", "ios": "I/Os", "waited": "time waited"}
INTERVAL_NS = 100_000_000
FEWEST = 20  # intervals, of a short run
LISTED = 20
EXAMPLES = """\
A burst is a stretch of intervals above the mean whose greatest has 4 times the
mean or more; of it the shortest part is told that has 95 %, if that is 8 I/Os
or more. For reads, writes and the rest each by itself: how much of all I/O it
has, and the mean latency of reads and writes in it and outside. Three and more
are looked at for a period.

examples:
  opline burst run1
  opline burst run1 10ms -d sda
  opline burst run1 --by waited -i reads
"""


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    add_run(parser)
    parser.add_argument("interval", metavar="INTERVAL", nargs="?", help="default: 100ms; of a short run a 20th of it")
    parser.add_argument("--by", choices=COUNTED, default="bytes", help="of what there is more (default: bytes)")
    io_filter.add_io_filters(parser)
    add_form(parser)


def run(args: argparse.Namespace) -> int:
    """Prints the bursts."""
    from opline.errors import UsageError
    from opline_analyses.base.text import csv_text, encoded
    from opline_analyses.block.io_series import count_rows, round_interval, series_of, tables_needed, told

    if args.of not in ("requests", "bios"):
        raise UsageError(f"--of {args.of}: bursts are of block I/O.")
    step = None if args.interval is None else duration_ns(args.interval, "INTERVAL")
    if step == 0:
        raise UsageError(f"INTERVAL {args.interval}: must be more than 0.")
    with opened(args, tables=tables_needed(args)) as opened_run:
        rows = io_filter.rows_of(opened_run, args)
        if step is None:
            step = min(INTERVAL_NS, round_interval(series_of(rows, None).grid.step_ns, FEWEST))
        series = series_of(rows, step)
        counted = [cells for _, cells in told(count_rows(opened_run, rows, series, None, "io"), series)]
        found = _found(args, counted, series)
        with csv_output(args) if args.csv else output(args.output) as out:
            if args.json:
                document = {"schema": "opline burst 1", "zero_ns": series.zero_ns, "interval_ns": step, "kinds": found}
                out.write((json.dumps(document, indent=1) + "\n").encode())
            elif args.csv:
                flat = [{"kind": k["kind"]} | burst for k in found for burst in k["bursts"]]
                columns = ["kind", *_measured(counted, "", 0, -1, series), "share", "peak_to_mean"]
                out.write(csv_text(columns, flat).encode())
            else:
                out.write(encoded(_text(args, found, series)))
    return 0


def _number(cell: Cell, by: str) -> int:
    return cell.size if by == "bytes" else cell.count if by == "ios" else cell.total


def _measured(counted: Sequence[Cells], of: str, first: int, last: int, series: Series) -> dict[str, Any]:
    """A stretch in exact numbers: the I/Os of a kind in it; means of reads and writes, in it and outside."""
    from opline_analyses.intervals.intervals import Cell

    sums = {name: Cell() for name in ("read_in", "read_out", "write_in", "write_out")}
    inside = Cell()
    for index, cells in enumerate(counted):
        where = "in" if first <= index <= last else "out"
        for (kind, _), cell in cells.items():
            if where == "in" and kind == of:
                inside.add(cell)
            if f"{kind}_{where}" in sums:
                sums[f"{kind}_{where}"].add(cell)
    begin = series.grid.begin_ns(series.first + first) - series.zero_ns
    end = series.end_ns(series.first + last) - series.zero_ns
    return {"begin_ns": begin, "end_ns": end, "count": inside.count, "bytes": inside.size} | {
        f"{name}_mean_ns": None if cell.mean is None else round(cell.mean) for name, cell in sums.items()
    }


def _found(args: argparse.Namespace, counted: Sequence[Cells], series: Series) -> list[dict[str, Any]]:
    """Per kind of I/O its bursts and their period."""
    from opline_analyses.block.bursts import bursts, period

    kinds = sorted({kind for cells in counted for kind, _ in cells})
    found = []
    for kind in kinds:
        values = [_number(cells[kind, 0], args.by) if (kind, 0) in cells else 0 for cells in counted]
        counts = [cells[kind, 0].count if (kind, 0) in cells else 0 for cells in counted]
        whole, these = sum(values), bursts(values, counts)
        apart = period(these)
        step = series.grid.step_ns

        def told(burst: Burst, kind: str = kind, whole: int = whole) -> dict[str, Any]:
            share, peak = burst.total / whole, burst.peak * len(counted) / whole
            return _measured(counted, kind, burst.first, burst.last, series) | {"share": share, "peak_to_mean": peak}

        times = None
        if apart is not None:
            times = {"median_ns": round(apart.median * step), "least_ns": apart.least * step}
            times |= {"most_ns": apart.most * step, "regular": apart.regular}
        most = max(values) * len(values) / whole if whole else 0.0
        found.append(
            {"kind": kind, "count": sum(counts), "bursts": [told(b) for b in these], "period": times}
            | {"peak_to_mean": most}
        )
    return found


def _none(kind: dict[str, Any], by: str) -> str:
    """Why there is no burst."""
    from opline_analyses.base.text import count_of
    from opline_analyses.block.bursts import FEWEST_IOS

    if kind["count"] < FEWEST_IOS:
        return f"{count_of(kind['count'], 'I/O')}, too few for a burst (fewer than {FEWEST_IOS})."
    if not kind["peak_to_mean"]:
        return f"{count_of(kind['count'], 'I/O')} without any {COUNTED[by]}: no burst."
    return f"no burst, the greatest interval has {kind['peak_to_mean']:.1f} times the mean."


def _text(args: argparse.Namespace, found: list[dict[str, Any]], series: Series) -> Iterator[str]:
    from opline_analyses.base.text import count_of, duration, table

    step, digits = series.grid.step_ns, max(1, series.digits)
    shown = []
    for kind in found:
        for burst in sorted(kind["bursts"], key=lambda b: -b["share"])[:LISTED]:
            shown.append((kind["kind"], burst))
    shown.sort(key=lambda pair: pair[1]["begin_ns"])
    yield f"intervals of {duration(step)}, by {COUNTED[args.by]}"
    if shown:
        header = ["kind", "from s", "to s", "I/Os", "MiB", "share%", "peak", "read in", "out", "write in", "out"]
        rows = []
        for kind, b in shown:
            means = ["" if b[f"{n}_mean_ns"] is None else duration(b[f"{n}_mean_ns"], 3) for n in (
                "read_in", "read_out", "write_in", "write_out"
            )]  # fmt: skip
            times = [seconds(b["begin_ns"], digits), seconds(b["end_ns"], digits)]
            share = [f"{100 * b['share']:.1f}", f"{b['peak_to_mean']:.1f}x"]
            rows.append([kind, *times, str(b["count"]), f"{b['bytes'] / 2**20:.1f}", *share, *means])
        yield from table(header, rows, gap=" ", right=[False, *[True] * 10])
    there = {kind["kind"] for kind in found}
    for missing in ("read", "write"):
        if missing not in there and not args.io:
            yield f"{missing}: no I/O."
    for kind in found:
        number, more = len(kind["bursts"]), max(0, len(kind["bursts"]) - LISTED)
        if not number:
            yield f"{kind['kind']}: {_none(kind, args.by)}"
            continue
        text = f"{kind['kind']}: {count_of(number, 'burst')}"
        if more:
            text += f", {more} of them not shown"
        if times := kind["period"]:
            span = f"{duration(times['least_ns'])} to {duration(times['most_ns'])}"
            text += f", every {duration(times['median_ns'])}" if times["regular"] else ", not regular"
            text += f" ({span} apart)"
        yield text + "."
    if shown:
        _, first = max(shown, key=lambda pair: pair[1]["share"])
        begin, end = max(0, first["begin_ns"] - step), first["end_ns"] + step
        window = f"{seconds(begin, digits)}:{seconds(end, digits)}"
        fine = f"{round_up((end - begin) // 60) / 1e6:g}ms"
        where = ["--model", args.model] if args.model else []
        yield f"look at: {shlex.join(['opline', 'iostat', args.run, *where, fine, '--window', window])}"
        yield f"         {shlex.join(['opline', 'heatmap', args.run, *where, '--log', '--window', window])}"
