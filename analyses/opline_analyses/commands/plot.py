# SPDX-License-Identifier: MIT
"""`opline plot RUN -o FILE`: every op of the run over time, one op, or how the times are distributed."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from opline import memory
from opline.errors import UsageError
from opline.talk import talk
from opline_analyses.api.files import check_picture
from opline_analyses.base.files import output_path
from opline_analyses.commands.arguments import positive
from opline_analyses.commands.common import add_run, opened
from opline_analyses.commands.options import add_filters, add_slowest, op_filters

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "plot"
HELP = "every op of the run over time; one op; distributions (PNG, SVG)"
PROGRESS = True
DRAWS = True
#: What it lacks of the vocabulary (options.py), and why.
LACKS = {
    "--limit --sort": "a picture has all ops that are chosen",
    "--csv --json": "it draws; `opline csv` has the numbers",
}
EXAMPLES = """\
Without an option: one point per complete op, at its begin, with median and
99th percentile; below, the stages stacked, op by op up to 160 ops, then as
means over time. --op draws one op: threads as rows, stages as bars, block
requests. --cdf draws the distribution of the latencies and its tail, --stages
that of each stage. --with puts other runs on the same axes. The name of the
file decides the format: .png, .svg or .pdf.

examples:
  opline plot run1 -o run1.png
  opline plot run1 --since 2 --until 2.05 -o burst.svg
  opline plot run1 --op 17 -o op17.svg
  opline plot run1 --cdf --with run2 -o tail.png
"""
MOST_DPI = 1200  # a PNG of a gigabyte in memory


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    add_run(parser)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--op", metavar="ID", type=int, dest="drawn_op", help="draw the op with this op_id")
    what.add_argument("--cdf", action="store_true", help="draw the distribution of the latencies")
    what.add_argument("--stages", action="store_true", help="draw the distribution of each stage's times")
    parser.add_argument(
        "--with", metavar="RUN", dest="others", action="append", default=[],
        help="another run on the same axes, with --cdf or --stages; may be given again",
    )  # fmt: skip
    add_filters(parser)
    add_slowest(parser)
    parser.add_argument(
        "-o", "--output", metavar="FILE", type=output_path, required=True, help="the picture: .png, .svg or .pdf"
    )
    parser.add_argument("--title", metavar="TEXT", help="the picture's title (default: the run's name)")
    parser.add_argument("--dpi", metavar="N", type=_dpi, default=110, help="resolution of a PNG (default: %(default)s)")
    parser.add_argument("--tainted", action="store_true", help="count ops that overlap lost events too")


def _dpi(text: str) -> int:
    if not 10 <= (found := positive(text)) <= MOST_DPI:
        raise argparse.ArgumentTypeError(f"{text}: must be 10 to {MOST_DPI}")
    return found


def _check(args: argparse.Namespace) -> None:
    check_picture(args.output)
    if args.others and not (args.cdf or args.stages):
        raise UsageError("--with needs --cdf or --stages.")
    if args.drawn_op is not None and op_filters(args).given:
        raise UsageError("--op draws one op: it takes no filter.")


def run(args: argparse.Namespace) -> int:
    """Draws the picture."""
    _check(args)
    memory.keep_little()
    from opline_analyses.api.files import plot, plot_op, save
    from opline_analyses.runs.database import bounded

    if args.drawn_op is not None:
        with opened(args) as opened_run:
            fig = plot_op(opened_run, args.drawn_op, title=_title(args))
    elif args.cdf or args.stages:
        fig = _distributions(args)
    else:
        with opened(args) as opened_run, bounded(opened_run.con):
            fig = plot(opened_run, op_filters(args), title=_title(args), tainted=args.tainted)
    save(fig, args.output, dpi=args.dpi)
    talk(f"wrote {args.output}")
    return 0


def _name(path: str) -> str:
    return Path(path).resolve().name


def _title(args: argparse.Namespace) -> str:
    return str(args.title or ", ".join(map(_name, [args.run, *args.others])))


def _distributions(args: argparse.Namespace) -> Figure:
    from opline_analyses.api.files import plot_distributions, plotted
    from opline_analyses.pictures.plot_runs import MOST_RUNS
    from opline_analyses.runs.database import bounded

    paths = [args.run, *args.others]
    if len(paths) > MOST_RUNS:
        raise UsageError(f"--with: {len(paths)} runs are more than one picture shows ({MOST_RUNS}).")
    runs = []
    for path in paths:
        whose = f"{_name(path)}: " if args.others else ""
        with opened(args, path=path, whose=whose) as opened_run, bounded(opened_run.con):
            runs.append(plotted(opened_run, op_filters(args), name=_name(path), tainted=args.tainted))
    return plot_distributions(runs, title=_title(args), stages=args.stages)
