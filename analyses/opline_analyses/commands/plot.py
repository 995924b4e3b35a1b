# SPDX-License-Identifier: MIT
"""`opline plot RUN -o FILE`: every op of the run over time, and the stages stacked."""

from __future__ import annotations

import argparse
from pathlib import Path

from opline.errors import UsageError
from opline.talk import talk
from opline_analyses.commands.common import add_run, opened
from opline_analyses.files import output_path
from opline_analyses.selection import add_filters, selection

NAME = "plot"
HELP = "every op of the run over time, and the stages stacked (PNG, SVG)"
EXAMPLES = """\
Above: one point per complete op, at its begin, with the median and the 99th
percentile. Below: the stages stacked, op by op up to 160 ops, then as means
over intervals of time; the percentages are shares of the total latency. The
name of the file decides the format: .png, .svg or .pdf.

examples:
  opline plot run1 -o run1.png
  opline plot run1 --since 2 --until 2.05 -o burst.svg
"""
FORMATS = (".png", ".svg", ".pdf")


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    add_run(parser)
    add_filters(parser)
    parser.add_argument(
        "-o", "--output", metavar="FILE", type=output_path, required=True, help="the picture: .png, .svg or .pdf"
    )
    parser.add_argument("--title", metavar="TEXT", help="the picture's title (default: the run's name)")
    parser.add_argument("--dpi", metavar="N", type=int, default=110, help="resolution of a PNG (default: %(default)s)")
    parser.add_argument("--tainted", action="store_true", help="ops that overlap discarded events too")


def run(args: argparse.Namespace) -> int:
    """Draws the picture."""
    suffix = args.output.suffix.lower()
    if suffix not in FORMATS:
        raise UsageError(f"-o {args.output}: the name must end in {', '.join(FORMATS)}.")
    from opline_analyses.plot import figure, save

    with opened(args) as opened_run:
        name = Path(args.run).resolve().name
        fig = figure(opened_run, selection(opened_run, args), args.title or name, args.tainted)
        save(fig, args.output, args.dpi)
    talk(f"wrote {args.output}")
    return 0
