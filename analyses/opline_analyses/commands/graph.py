# SPDX-License-Identifier: MIT
"""`opline graph RUN`: which point follows which, how often, how long; and the difference of two runs."""

from __future__ import annotations

import argparse
import json

from opline.errors import UsageError
from opline_analyses.base.text import csv_text, encoded, table
from opline_analyses.commands.common import add_output, add_run, add_safe_cells, csv_output, opened, output
from opline_analyses.runs.selection import add_filters, add_tainted, selection

NAME = "graph"
HELP = "which point follows which, how often, how long; compare two runs"
EXAMPLES = """\
Nodes are points and block steps (Q G I D C). Edges are the intervals of the
ops' critical paths, with count, mean, p50, p99 (us), `time%`, the share of the
total latency, and `ops%`, that of the ops whose critical path passes. Edges to
points aside of the critical path are marked; their time lies inside other
edges. The ending of -o FILE decides the format where --format does not.

--diff A B compares two runs, the edge whose time per op changed most first; +
and - mark edges that only B or only A has. --json has counts and shares, too.

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
    add_output(parser)
    add_safe_cells(parser)


def _format(args: argparse.Namespace) -> str:
    if args.format:
        return str(args.format)
    ending = args.output.suffix.lower().removeprefix(".") if args.output else "text"
    return "dot" if ending == "gv" else ending if ending in FORMATS else "text"


def run(args: argparse.Namespace) -> int:
    """Writes the graph or the difference."""
    from opline_analyses.ops.graph import (
        CHANGE_COLUMNS,
        EDGE_COLUMNS,
        difference,
        difference_rows,
        edge_rows,
        text_rows,
        transition_graph,
        write_graph,
    )

    form = _format(args)
    if args.diff:
        if args.run is not None:
            raise UsageError("--diff takes both runs: opline graph --diff A B.")
        if form not in ("text", "csv", "json"):
            raise UsageError(f"--diff writes text, csv or json, not {form}.")
        graphs = []
        for path in args.diff:
            with opened(args, path=path) as opened_run:
                graphs.append(transition_graph(opened_run, selection(opened_run, args), args.tainted))
        changes = difference(*graphs)
        with csv_output(args) if form == "csv" else output(args.output) as out:
            if form == "csv":
                out.write(csv_text(CHANGE_COLUMNS, (c.row() for c in changes)).encode())
            elif form == "json":
                head = {"schema": "opline graph diff 1", "a": args.diff[0], "b": args.diff[1]}
                ops = {"ops": [g.graph["ops"] for g in graphs]}
                out.write(
                    (json.dumps({**head, **ops, "edges": [c.record() for c in changes]}, indent=1) + "\n").encode()
                )
            else:
                out.write(encoded(table(*difference_rows(changes), gap=" ", names=(0,))))
        return 0
    if args.run is None:
        raise UsageError("opline graph needs a RUN, or --diff A B.")
    with opened(args) as opened_run:
        graph = transition_graph(opened_run, selection(opened_run, args), args.tainted)
        with csv_output(args) if form == "csv" else output(args.output) as out:
            if form == "csv":
                out.write(csv_text(EDGE_COLUMNS, edge_rows(graph)).encode())
            elif form == "text":
                out.write(encoded(table(*text_rows(graph), left=2, gap=" ", names=(0, 1))))
            else:
                write_graph(graph, form, out)
    return 0
