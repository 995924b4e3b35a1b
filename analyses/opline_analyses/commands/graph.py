# SPDX-License-Identifier: MIT
"""`opline graph RUN`: which point follows which, how often, how long; and the difference of two runs."""

from __future__ import annotations

import argparse

from opline import memory
from opline.errors import UsageError
from opline_analyses.commands.common import add_output, add_run, add_safe_cells, add_table, opened, output, write
from opline_analyses.commands.options import add_filters, add_slowest, add_tainted, op_filters

NAME = "graph"
HELP = "the graph of points: how often, how fast; compare two runs"
PROGRESS = True
DRAWS = True
EXAMPLES = """\
Nodes are points and block steps (Q G I D C), edges the intervals of the ops'
critical paths: count, mean, p50, p99 (us), `time%` (share of the total latency)
and `ops%` (share of the ops with this edge). A mark shows edges to points aside
of the critical path; their time lies inside other edges. The ending of -o FILE
decides the format unless --format does.

--diff A B puts the edge with the largest change of time per op first; + and -
mark edges of B alone or A alone.

examples:
  opline graph run1                                    # the edges as a table
  opline graph run1 -o run1.svg                        # drawn by Graphviz
  opline graph run1 -o run1.graphml                    # networkx.read_graphml, Gephi
  opline graph --diff run1 run2
"""
FORMATS = ("text", "csv", "dot", "graphml", "json", "svg", "png", "pdf")


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    add_run(parser, optional=True)
    parser.add_argument(
        "--format",
        choices=FORMATS,
        help="text, csv (the edges), dot (Graphviz), graphml, json (node-link; with --diff: the changes), or a picture:"
        " svg, png, pdf",
    )
    parser.add_argument("--csv", dest="format", action="store_const", const="csv", help="the same as --format csv")
    parser.add_argument("--json", dest="format", action="store_const", const="json", help="the same as --format json")
    parser.add_argument("--diff", nargs=2, metavar=("A", "B"), help="compare run B with run A")
    add_tainted(parser)
    add_filters(parser)
    add_slowest(parser)
    add_table(parser)
    add_output(parser)
    add_safe_cells(parser)


def _format(args: argparse.Namespace) -> str:
    if args.format:
        return str(args.format)
    ending = args.output.suffix.lower().removeprefix(".") if args.output else "text"
    return "dot" if ending == "gv" else ending if ending in FORMATS else "text"


def run(args: argparse.Namespace) -> int:
    """Writes the graph or the difference."""
    memory.keep_little()
    from opline_analyses.api.ops import graph, graph_difference, write_graph
    from opline_analyses.runs.database import bounded

    form = _format(args)
    if args.diff:
        if args.run is not None:
            raise UsageError("--diff takes both runs: opline graph --diff A B.")
        if form not in ("text", "csv", "json"):
            raise UsageError(f"--diff writes text, csv or json, not {form}.")
        graphs = []
        for path in args.diff:
            with opened(args, path=path, whose=f"{path}: ") as opened_run, bounded(opened_run.con):
                graphs.append(graph(opened_run, op_filters(args), tainted=args.tainted))
        write(args, graph_difference(*graphs, names=args.diff), form)
        return 0
    if args.run is None:
        raise UsageError("opline graph needs a RUN, or --diff A B.")
    with opened(args) as opened_run, bounded(opened_run.con):
        found = graph(opened_run, op_filters(args), tainted=args.tainted)
        if form in ("text", "csv"):
            write(args, found, form)
        else:
            with output(args.output) as out:
                write_graph(found, out, form=form)
    return 0
