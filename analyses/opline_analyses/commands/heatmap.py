# SPDX-License-Identifier: MIT
"""`opline heatmap RUN`: latency, size or offset of all I/Os over time, in the terminal or as SVG."""

from __future__ import annotations

import argparse
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from opline.errors import UsageError
from opline.readers.registry import COUNTS
from opline.talk import talk
from opline_analyses.api.heatmap import cells, check, heatmap, heatmap_of_counts, heatmap_of_values
from opline_analyses.base.files import STDOUT
from opline_analyses.base.result_table import json_text
from opline_analyses.base.screen import WIDTH
from opline_analyses.commands.arguments import positive
from opline_analyses.commands.common import add_form, add_run, csv_output, opened, output
from opline_analyses.commands.latencymap import add_latencymap, arguments
from opline_analyses.commands.latencymap import run as run_latencymap
from opline_analyses.commands.options import add_io_filters, io_filters
from opline_analyses.commands.other_inputs import add_inputs, asked_of, counts_of, interval_of_oracle, without_ios
from opline_analyses.counts.inputs import kind_as_asked
from opline_analyses.pictures.heatmap_of import SUBSECOND, HeatmapOptions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opline_analyses.api.heatmap import Heatmap

NAME = "heatmap"
HELP = "latency, size or offset of all I/Os over time: terminal or SVG"
PROGRESS = True
DRAWS = True
#: What it lacks of the vocabulary (options.py), and why.
LACKS = {
    "--slowest": "a map is of all I/Os; --latency chooses some",
    "--limit --sort": "a map has all its rows (--rows, --maxcol)",
}
EXAMPLES = """\
Darker is more. --minlat and --maxlat put the rest into a row below or above.
Latencies and sizes have a logarithmic axis (--style trace2heatmap and --steplat:
linear), offsets a linear one. -o FILE.svg draws a picture: the mouse shows a
cell's time, range, count and share, a click the command for its I/Os. Options of
trace2heatmap.pl keep their names. opline also draws two columns of text (a
time, a value), and histograms of other tools (`opline hist --help`).

examples:
  opline heatmap run1
  opline heatmap run1 --map waited -i reads
  opline heatmap run1 --percentiles 50,99
  opline heatmap run1 -o latency.svg --linear --maxlat=15000 --title='15 ms'
  opline heatmap --style trace2heatmap --unitstime=us --unitslabel=us --grid
    trace.txt -o trace.svg
  opline heatmap run1 --value offset -d sda -o offset.svg
  SOURCE | opline heatmap - --map waited
  SOURCE | opline heatmap - --style latencymap -n 60
"""
VALUES = ("latency", "size", "offset", SUBSECOND)
TRACE2HEATMAP_ROWS = 50
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
    parser.add_argument(
        "--value",
        choices=VALUES,
        default="latency",
        help="the vertical axis (default: latency); subsecond: when in its second an I/O completed",
    )
    parser.add_argument(
        "--log", action="store_const", const=True, help="a logarithmic axis (default of latencies and sizes)"
    )
    parser.add_argument(
        "--linear",
        dest="log",
        action="store_const",
        const=False,
        help="a linear axis (default of offsets, subsecond, --steplat)",
    )
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
    parser.add_argument("--per-device", action="store_true", help="a map for each device; with -o x.svg x-sda.svg, ...")
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
    add_io_filters(parser)
    add_form(parser, csv="the cells as CSV, nanoseconds or bytes", json="the cells as JSON, nanoseconds or bytes")


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
    if args.style == "trace2heatmap":  # its own defaults
        args.log = False if args.log is None else args.log
        args.stepsec = args.stepsec or "1"
        args.rows = args.rows or (None if args.steplat else TRACE2HEATMAP_ROWS)
    kind = kind_as_asked(args.run, args.unitstime)
    if kind is None:
        return _of_run(args)
    args.stepsec = interval_of_oracle(args, kind) or args.stepsec
    picture = _is_picture(args) and not args.csv
    if kind.HAS == COUNTS:
        without_ios(args, kind, ("compat",))
        maps = heatmap_of_counts(counts_of(args, kind), io_filters(args), heatmap_options(args))
        if picture and len(maps) > 1 and args.output is None:
            raise UsageError(f"{args.run} has {len(maps)} groups, a picture for each: name them with -o FILE.svg.")
    else:
        without_ios(args, kind, ("compat", "minlat", "maxlat", "steplat", "rows", "percentiles"))
        given, asked = asked_of(args), heatmap_options(args)
        maps = heatmap_of_values(kind, given, io_filters(args), asked, as_picture=picture)
    write(args, maps, picture)
    return 0


def _of_run(args: argparse.Namespace) -> int:
    from opline_analyses.block.io_filter import tables_needed

    picture = _is_picture(args) and not args.csv
    if args.per_device and args.json:
        raise UsageError("--per-device is for the terminal, --csv and pictures: JSON of one device has -d.")
    if args.per_device and picture and args.output is None:
        raise UsageError("--per-device writes a picture for each device: name them with -o FILE.svg.")
    asked, filters = heatmap_options(args), io_filters(args)
    check(asked)
    width = os.get_terminal_size().columns if sys.stdout.isatty() else WIDTH
    with opened(args, tables=tables_needed(filters)) as opened_run:
        write(args, heatmap(opened_run, filters, asked, as_picture=picture, width=width), picture)
    return 0


def write(args: argparse.Namespace, maps: Mapping[str, Heatmap], picture: bool) -> None:
    """The maps by their groups' names, in the form that is asked for; of several groups a picture each."""
    if picture and (len(maps) > 1 or getattr(args, "per_device", False)):
        for name, one in maps.items():
            path = args.output.with_stem(f"{args.output.stem}-{re.sub(r'[^A-Za-z0-9.]+', '_', name)}")
            with output(path) as out:
                out.write(drawn(args, one, picture).encode())
            talk(f"wrote {path}")
        return
    with csv_output(args) if args.csv else output(args.output) as out:
        if args.csv:
            out.writelines(piece.encode() for piece in cells(maps).csv())
        else:
            out.writelines(drawn(args, one, picture).encode() for one in maps.values())


def heatmap_options(args: argparse.Namespace) -> HeatmapOptions:
    """What ``add_options`` was given."""
    names = [name for name in HeatmapOptions.FIELDS if name != "source"]
    source = (args.run, *(("--model", args.model) if args.model else ())) if hasattr(args, "run") else ()
    return HeatmapOptions(source=source, **{name: getattr(args, name) for name in names})


def drawn(args: argparse.Namespace, one: Heatmap, picture: bool) -> str:
    """The map in the form that is asked for."""
    if args.json:
        return json_text(one.record())
    if picture:
        return one.svg()
    from opline_analyses.pictures.heatmap_text import colours_wanted

    return one.text(colours_wanted(args.color, args.output is None and sys.stdout.isatty()))
