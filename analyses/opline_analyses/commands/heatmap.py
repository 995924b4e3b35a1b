# SPDX-License-Identifier: MIT
"""`opline heatmap RUN`: latency, size or offset of all I/Os over time, in the terminal or as SVG."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from opline.errors import UsageError
from opline.talk import talk
from opline_analyses.base.files import STDOUT
from opline_analyses.base.quantities import DURATIONS, Limits, duration_ns, limits, round_up, seconds, size_bytes
from opline_analyses.base.whole_numbers import positive
from opline_analyses.block import io_filter
from opline_analyses.commands.common import add_form, add_run, csv_output, opened, output
from opline_analyses.commands.latencymap import add_latencymap, arguments
from opline_analyses.commands.latencymap import run as run_latencymap
from opline_analyses.commands.other_inputs import add_inputs, counts_of, interval_of_oracle, values_of, without_ios
from opline_analyses.counts.inputs import COUNTS, kind_as_asked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opline_analyses.block.io_series import Series
    from opline_analyses.counts.inputs import Kind
    from opline_analyses.pictures.heatmap import Line, Map, Measure, Scale
    from opline_analyses.runs.run import Run

NAME = "heatmap"
HELP = "latency, size or offset of all I/Os over time: terminal or SVG"
EXAMPLES = """\
Darker is more. Every I/O is in a cell: what --minlat and --maxlat leave out is
in a row below or above. -o FILE.svg, or > FILE.svg, draws a picture: the mouse
shows a cell's time, range, count and share, a click the command that lists its
I/Os. The options of trace2heatmap.pl have their own names, and its two columns
of text (a time, a value) are drawn, too; so are histograms of other tools
(`opline hist --help` lists them), a column for each.

examples:
  opline heatmap run1
  opline heatmap run1 --log --map waited -i reads
  opline heatmap run1 --log --percentiles 50,99
  opline heatmap run1 -o latency.svg --grid --maxlat=15000 --title='15 ms'
  opline heatmap --unitstime=us --unitslabel=us --grid trace.txt -o trace.svg
  opline heatmap run1 --value offset -d sda -o offset.svg
  SOURCE | opline heatmap - --map waited
  SOURCE | opline heatmap - --style latencymap -n 60
"""
VALUES = ("latency", "size", "offset")
COLOURS = ("auto", "never", "256", "true")
__all__ = ["arguments"]  # the dispatcher asks for it


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    add_run(parser)
    add_options(parser)
    add_inputs(parser)
    add_latencymap(parser)


def add_options(parser: argparse.ArgumentParser) -> None:
    """What can be asked of a run, and of what happens now (`opline live`)."""
    parser.add_argument("--value", choices=VALUES, default="latency", help="the vertical axis (default: latency)")
    parser.add_argument("--log", action="store_true", help="a logarithmic axis (default: linear)")
    parser.add_argument("--map", choices=("count", "waited"), default="count", help="waited: time instead of I/Os")
    parser.add_argument(
        "--unit",
        "--unitslabel",
        "--unitslat",
        "--unitslatency",
        metavar="U",
        help="ns, us (default), ms or s: of the labels and of the next three; of two columns any text",
    )
    parser.add_argument(
        "--unitstime",
        metavar="U",
        help="RUN is text with two columns, a time and a value: the time's unit (s, ms, us, ns)",
    )
    parser.add_argument("--minlat", metavar="N", help="where the axis begins: 100, 1ms; bytes: 4k")
    parser.add_argument("--maxlat", metavar="N", help="where it ends")
    parser.add_argument("--steplat", metavar="N", help="the height of a row, instead of --rows")
    parser.add_argument("--rows", metavar="N", type=positive, help="at most so many (default: 50, in the terminal 16)")
    parser.add_argument("--stepsec", "--interval", metavar="T", help="the width of a column (default: what fits)")
    parser.add_argument("--maxcol", metavar="N", type=positive, help="at most so many columns: the first")
    parser.add_argument("--percentiles", metavar="LIST", help="lines of these (50,99), exact for each column")
    parser.add_argument("--per-device", action="store_true", help="a map for each device (terminal, CSV)")
    parser.add_argument("--color", choices=COLOURS, default="auto", help="of the terminal (default: what it can)")
    look = parser.add_argument_group("the picture")
    look.add_argument("--title", metavar="TEXT", help="default: Latency Heat Map, Size Heat Map, ...")
    look.add_argument("--grid", action="store_true", help="lines at round seconds")
    look.add_argument("--accstats", action="store_true", help="sums from below when the mouse is over a cell")
    look.add_argument(
        "--boxsize", metavar="N", type=positive, default=8, help="pixels of a cell (default: %(default)s)"
    )
    look.add_argument("--fonttype", metavar="F", default="Verdana", help="default: %(default)s")
    look.add_argument("--fontsize", metavar="N", type=positive, default=12, help="default: %(default)s")
    io_filter.add_io_filters(parser)
    add_form(parser, csv="the cells as CSV, nanoseconds or bytes", json="the cells as JSON, nanoseconds or bytes")


def measure_of(args: argparse.Namespace) -> Measure:
    """What the vertical axis is. Raises UsageError."""
    from opline_analyses.block.io_series import LATENCY
    from opline_analyses.pictures.heatmap import Measure

    if args.unit is None:
        args.unit = "us"
    if args.value == "latency":
        if args.unit not in DURATIONS:
            raise UsageError(f"--unit {args.unit}: one of ns, us, ms, s.")
        return Measure("Latency", LATENCY, args.unit, DURATIONS[args.unit])
    if args.map == "waited":
        raise UsageError("--map waited is for --value latency.")
    if args.value == "size":
        return Measure("Size", "bytes", "bytes", 1)
    return Measure("Offset", "sector::BIGINT * 512", "Mbytes", 1 << 20)


def number_of(args: argparse.Namespace, name: str, unit: str) -> int | None:
    """A bound of the vertical axis. Raises UsageError."""
    text = getattr(args, name)
    if text is None:
        return None
    if args.value == "latency":
        return duration_ns(text, f"--{name}", unit)
    return size_bytes(f"{text}m" if args.value == "offset" and text.isdigit() else text, f"--{name}")


def _scale(run: Run, rows: io_filter.Rows, args: argparse.Namespace, measure: Measure, number: int) -> Scale:
    from opline_analyses.pictures.heatmap import scale_of

    low, high = number_of(args, "minlat", args.unit), number_of(args, "maxlat", args.unit)
    lowest = False  # the axis begins near the least value, at a round one
    if low is None or high is None:
        sql, parameters = io_filter.counted_sql(rows, f"min({measure.sql}), max({measure.sql})")
        least, most = run.row(sql, parameters)
        if low is None:
            low = int(least or 0) if args.log or args.value == "offset" else 0
            lowest = args.value == "offset"
        high = int(most or 0) if high is None else high
    bounded = args.minlat is not None, args.maxlat is not None
    if bounded[1] and high <= (low if bounded[0] else 0):
        raise UsageError(f"--maxlat {args.maxlat}: the axis ends where it begins, or before.")
    step = number_of(args, "steplat", args.unit)
    if bounded[1]:
        high -= 1  # the axis ends there; what is not below is above it
    if step is None and args.rows is None:
        step = -(-(max(high, low) - low + 1) // number)
        step = round_up(step) if args.value == "latency" else 1 << (step - 1).bit_length()
        low -= low % step if lowest else 0
    return scale_of(low, max(high, low), number, step, args.log, bounded, measure.scale)


def _stepsec(args: argparse.Namespace) -> int | None:
    step = None if args.stepsec is None else duration_ns(args.stepsec, "--stepsec")
    if step == 0:
        raise UsageError("--stepsec must be more than 0.")
    return step


def _series(rows: io_filter.Rows, args: argparse.Namespace, columns: int) -> Series:
    from opline_analyses.block.io_series import round_interval, series_of
    from opline_analyses.pictures.heatmap import check_columns

    whole = series_of(rows, None)
    found = series_of(rows, _stepsec(args) or round_interval(whole.grid.step_ns, columns), args.maxcol)
    check_columns(found.last - found.first + 1)
    return found


def _lister(args: argparse.Namespace) -> list[str]:
    """The command that lists the I/Os of a map, without the window and the range of the vertical axis."""
    words = ["opline", "log", args.run]
    given: list[tuple[str, list[object] | None]] = [
        ("--model", [args.model]), ("-d", args.device), ("-i", args.io), ("-n", args.comm), ("-p", args.pid),
        ("--tid", args.tid), ("--class", args.op_class), ("--stage", args.stage), ("--from", [args.start]),
        ("--to", [args.end]), ("--of", [args.of if args.of != "requests" else None]),
        ("--size", [args.size if args.value != "size" else None]),
        ("--latency", [args.latency if args.value != "latency" else None]),
    ]  # fmt: skip
    for option, values in given:
        for value in values or ():
            if value is not None:
                words += [option, str(value)]
    return [*words, "--tainted"] if args.tainted else words


def _of_cell(args: argparse.Namespace, rows: io_filter.Rows, heatmap: Map, column: int, row: int) -> str:
    """The command that lists a cell's I/Os: by offset it can't tell rows apart, and lists the column's."""
    begin = heatmap.begin_ns + column * heatmap.step_ns
    end = begin + heatmap.step_ns
    if rows.window.until_ns is not None:
        end = min(end, rows.window.until_ns - rows.zero_ns)
    words = [*_lister(args), "--window", f"{seconds(begin, 9)}:{seconds(end, 9)}"]
    if args.value == "offset":
        return shlex.join(words)
    option, unit, parse = ("--size", "b", size_bytes) if args.value == "size" else ("--latency", "ns", _microseconds)
    text = args.size if args.value == "size" else args.latency
    asked = limits(text, option, parse) if text else Limits()
    inside = 0 <= row < heatmap.rows
    low = heatmap.edges[row][0] if inside else None if row < 0 else heatmap.edges[-1][1]
    high = heatmap.edges[row][1] - 1 if inside else heatmap.edges[0][0] - 1 if row < 0 else None
    least = max((edge for edge in (low, asked.least) if edge is not None), default=None)
    most = min((edge for edge in (high, asked.most) if edge is not None), default=None)
    span = "..".join("" if edge is None else f"{edge}{unit}" for edge in (least, most))
    return shlex.join([*words, option, span])


def _microseconds(text: str, option: str) -> int:
    return duration_ns(text, option, "us")


def _lines(
    run: Run, rows: io_filter.Rows, series: Series, measure: Measure, wanted: Sequence[float]
) -> tuple[Line, ...]:
    """The percentiles of each column: the least value that so many per cent of its I/Os do not exceed."""
    from opline_analyses.pictures.heatmap import line_of

    if not wanted:
        return ()
    sql, parameters = io_filter.counted_sql(rows, f"end_ns, {measure.sql} AS value")
    shares = ", ".join(str(percent / 100) for percent in wanted)
    found = run.rows(
        f"""SELECT (end_ns - {series.grid.zero_ns}) // {series.grid.step_ns} - {series.first} AS place,
                   quantile_disc(value, [{shares}]) FROM ({sql}) GROUP BY place""",
        parameters,
    )
    columns = series.last - series.first + 1
    return tuple(
        line_of(percent, columns, {place: int(values[i]) for place, values in found})
        for i, percent in enumerate(wanted)
    )


def _of_values(args: argparse.Namespace, kind: Kind, columns: int, number: int) -> Map:
    """The map of single latencies, which no I/O is known of; its times are shown from the first."""
    from opline_analyses.block.io_series import Series, round_interval
    from opline_analyses.counts import two_columns
    from opline_analyses.intervals.intervals import Grid, Tally
    from opline_analyses.pictures.heatmap import Measure, check_columns, map_of, percents, scale_of

    without_ios(args, kind, ("compat", "minlat", "maxlat", "steplat", "rows", "percentiles"))
    if kind.name == "columns":
        batch, skipped = two_columns.read(args.run, two_columns.unit_ns(args.unitstime))
        if skipped:
            talk(f"{skipped} lines of {args.run} have no two numbers: left out.")
        measure = Measure("Latency", "", args.unit or "", two_columns.THOUSANDTHS, known=False)
    else:
        batch, _ = values_of(args, kind)
        measure = measure_of(args)
    first, length = int(batch.at_ns.min()), int(batch.at_ns.max()) - int(batch.at_ns.min()) + 1
    step = _stepsec(args) or round_interval(length, columns)
    last = -(-length // step) - 1
    if args.maxcol is not None:
        last = min(last, args.maxcol - 1)
    check_columns(last + 1)

    def bound(name: str) -> int | None:
        text = None if measure.known else getattr(args, name)
        return number_of(args, name, args.unit) if text is None else two_columns.value(text, f"--{name}")

    least = int(batch.values.min()) if args.log and args.minlat is None else 0
    low, high = bound("minlat") or least, bound("maxlat")
    most = int(batch.values.max()) if high is None else high - 1
    rise = bound("steplat")
    if rise is None and args.rows is None:
        rise = round_up(-(-(max(most, low) - low + 1) // number))
    bounded = args.minlat is not None or int(batch.values.min()) < low, high is not None
    scale = scale_of(low, max(most, low), number, rise, args.log, bounded, measure.scale)
    tally = Tally(Grid(first, step), scale.buckets)
    tally.add(batch)
    lines: tuple[Line, ...] = ()
    if args.percentiles is not None:
        lines = two_columns.percentiles(batch, first, step, last, percents(args.percentiles))
    return map_of(tally, Series(tally.grid, 0, last, first), scale, measure, lines)


def _is_picture(args: argparse.Namespace) -> bool:
    """Whether the output is a file of this kind, also where the shell has opened it: > x.svg."""
    path = args.output
    if path is None or str(path) == STDOUT:
        try:
            path = Path("/proc/self/fd/1").readlink()
        except OSError:
            return False
    if (suffix := path.suffix.lower()) in (".png", ".pdf", ".jpg"):
        raise UsageError(f"-o {path}: a heat map is drawn as SVG: name a file that ends in .svg.")
    return bool(suffix == ".svg")


def run(args: argparse.Namespace) -> int:
    """Draws the map."""
    if args.style == "latencymap":
        return run_latencymap(args)
    kind = kind_as_asked(args.run, args.unitstime)
    if kind is None:
        return _of_run(args)
    args.stepsec = interval_of_oracle(args, kind) or args.stepsec
    picture = _is_picture(args) and not args.csv
    maps: list[tuple[str, Map]]
    if kind.has == COUNTS:
        maps = _of_counts(args, kind)
        if picture and len(maps) > 1:
            raise UsageError(f"{args.run} has {len(maps)} groups: a picture is of one. Draw them in the terminal.")
    else:
        maps = [("", _of_values(args, kind, 110 if picture else 66, args.rows or (50 if picture else 16)))]
    write(args, None, dict(maps), picture)
    return 0


def _of_counts(args: argparse.Namespace, kind: Kind) -> list[tuple[str, Map]]:
    """A map for each group of another tool's histograms."""
    from opline_analyses.counts.picture import maps_of

    without_ios(args, kind, ("compat",))
    found = counts_of(args, kind)
    args.unit = args.unit or found.unit
    if args.unit not in DURATIONS:
        raise UsageError(f"--unit {args.unit}: one of ns, us, ms, s.")
    if args.title is None and found.label:
        args.title = f"Latency Heat Map: {found.label}"
    return maps_of(found, _stepsec(args), args.maxcol, args.unit)


def _of_run(args: argparse.Namespace) -> int:
    from opline_analyses.block.io_series import tables_needed

    picture = _is_picture(args) and not args.csv
    if args.per_device and (picture or args.json):
        raise UsageError("--per-device is for the terminal and --csv: a picture of one device has -d.")
    measure = measure_of(args)
    with opened(args, tables=tables_needed(args)) as opened_run:
        rows, found = maps_of_run(opened_run, args, measure, picture)
        write(args, rows, found, picture)
    return 0


def write(args: argparse.Namespace, rows: io_filter.Rows | None, maps: dict[str, Map], picture: bool) -> None:
    """The maps by their groups' names, in the form that is asked for."""
    with csv_output(args) if args.csv else output(args.output) as out:
        if args.csv:
            from opline_analyses.pictures.heatmap_cells import csv_of

            out.write(csv_of(maps).encode())
        else:
            for name, heatmap in maps.items():
                out.write(drawn(args, rows, heatmap, name, picture).encode())


def maps_of_run(
    run: Run, args: argparse.Namespace, measure: Measure, picture: bool
) -> tuple[io_filter.Rows, dict[str, Map]]:
    """The I/Os that are meant, and the map of them, or of each device's, by its name. ``picture``: as many columns and
    rows as one has. Raises UsageError.
    """
    from opline_analyses.block.io_series import count_rows
    from opline_analyses.pictures.heatmap import map_of, percents

    rows = io_filter.rows_of(run, args).placed_by(args.value)
    width = max(20, (os.get_terminal_size().columns if sys.stdout.isatty() else 80) - 14)
    series = _series(rows, args, 110 if picture else width)
    number = args.rows or (50 if picture else 16)
    scale = _scale(run, rows, args, measure, number)
    maps = {"": rows}
    if args.per_device:
        maps = {name: rows.also(f"dev = {dev}") for dev, name in io_filter.devices_in(run, rows)}
    wanted = percents(args.percentiles) if args.percentiles is not None else ()
    found = {}
    for name, mine in maps.items():
        tally = count_rows(run, mine, series, scale.buckets, None, measure.sql)
        found[name] = map_of(tally, series, scale, measure, _lines(run, mine, series, measure, wanted))
    return rows, found


def drawn(args: argparse.Namespace, rows: io_filter.Rows | None, heatmap: Map, device: str, picture: bool) -> str:
    """The map in the form that is asked for."""
    title = args.title or f"{heatmap.measure.name} Heat Map"
    title += f": {device}" if device else ""
    if args.json:
        from opline_analyses.pictures.heatmap_cells import document

        return json.dumps(document(heatmap), indent=1) + "\n"
    if picture:
        from opline_analyses.pictures import heatmap_svg

        look = heatmap_svg.Look(title, args.fonttype, args.fontsize, args.boxsize, args.grid, args.accstats)
        lister = (lambda c, r: _of_cell(args, rows, heatmap, c, r)) if rows is not None else None
        return heatmap_svg.document(heatmap, look, lister)
    from opline.talk import shown
    from opline_analyses.pictures.heatmap_text import colours_wanted, lines

    colours = colours_wanted(args.color, args.output is None and sys.stdout.isatty())
    text = lines(heatmap, colours, args.map == "waited", rows.source.one if rows is not None else "event", shown(title))
    return "".join(f"{line.rstrip() if colours == 'never' else line}\n" for line in text)
