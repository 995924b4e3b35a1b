# SPDX-License-Identifier: MIT
"""`opline report RUN -o FILE`: a run as one HTML file."""

from __future__ import annotations

import argparse
from pathlib import Path

from opline import memory
from opline.talk import talk
from opline_analyses.base.files import complete_file, output_path
from opline_analyses.commands.common import add_run, opened
from opline_analyses.commands.options import add_filters, add_slowest, add_tainted, op_filters

NAME = "report"
HELP = "the run as one HTML page, to look at and to mail"
PROGRESS = True
#: What it lacks of the vocabulary (options.py), and why.
LACKS = {
    "--limit --sort": "the page sorts its lists",
    "--csv --json": "it makes a page; `opline csv` and `opline stages` have the numbers",
}
EXAMPLES = """\
The page shows every op over time as a heat map. Mark a region: the page
compares the stages of the ops inside with the rest, and lists the ops. An op
opens as a waterfall of threads, stages and block requests. The file works in
Chromium and Firefox, loads nothing, and holds the names of threads, objects and
devices of the run.

The sums are those of `opline stages`. Ops whose begin or end can be lost are
drawn, and count with --tainted. Above some 100 000 ops each op is drawn at 1 us
and 1 % of its latency, and sums are exact along the page's cells. Up to 12 000
ops, the slowest among them, are in detail.

With RUN2 the page has both runs on the same axes, the heat map of their
difference, their stages side by side, and the verdicts of `opline compare`.

examples:
  opline report run1 -o run1.html
  opline report before after -o change.html
  opline report run1 --since 2 --until 4 -o burst.html
"""


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    add_run(parser)
    parser.add_argument("run2", metavar="RUN2", nargs="?", help="a second run, to look at beside the first")
    add_filters(parser)
    add_slowest(parser)
    parser.add_argument("-o", "--output", metavar="FILE", type=output_path, required=True, help="the page: FILE.html")
    parser.add_argument("--title", metavar="TEXT", help="the page's title (default: the run's name)")
    add_tainted(parser)


def run(args: argparse.Namespace) -> int:
    """Writes the page."""
    memory.keep_little()
    from opline_analyses.api.files import part, report
    from opline_analyses.runs.database import bounded

    paths = [args.run, *([args.run2] if args.run2 else [])]
    names = [Path(path).resolve().name for path in paths]
    parts = []
    for path, name in zip(paths, names, strict=True):
        whose = f"{name}: " if args.run2 else ""
        with opened(args, path=path, whose=whose) as opened_run, bounded(opened_run.con):
            parts.append(part(opened_run, op_filters(args), name=name, tainted=args.tainted, of=len(paths)))
    written = report(parts, title=args.title or " against ".join(names))
    with complete_file(args.output) as out:
        out.write(written)
    for one in parts:
        head = one.page.head
        detail = "in full" if head["full"] else f"{head['detailed']} of them in detail"
        talk(f"{head['name']}: {head['ops']} ops, {detail}")
    talk(f"wrote {args.output}, {len(written) / 1e6:.2f} MB")
    return 0
