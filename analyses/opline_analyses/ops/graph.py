# SPDX-License-Identifier: MIT
"""The transition graph of a run: points and block steps as nodes, intervals as edges; and the difference of two runs.

Takes a run and a selection; gives a `networkx.DiGraph`, or rows. An edge of the critical path is an interval of ops'
stages: its times are the intervals' times, its `share` is of the total latency of the counted ops, its `critical_share`
is of the ops with the edge on the critical path. An edge to a point aside of the path (`aside` true) leads from the
point before in the same op; the edge's time lies inside other edges, and has no share.

A point repeated in an op is one node: recurrence numbers are left out.

Attributes of a node: count (ops passing the node), step (true for Q G I D C of a block request). Attributes of an edge:
count (intervals), ops, mean_ns, p50_ns, p99_ns, max_ns, total_ns, share, critical_share, stage, kind, aside.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import networkx as nx

from opline.errors import OplineError
from opline.model.language import BLOCK_STEPS
from opline.packages import how_to_install
from opline.talk import shown
from opline.values import Value
from opline_analyses.base.colours import stage_colour
from opline_analyses.base.result_table import (
    Column,
    ResultTable,
    encoded,
    json_text,
    label,
    of_items,
    plain,
    share,
    text,
    time,
)
from opline_analyses.base.text import count_of, percent, us
from opline_analyses.ops.edges import Edge, asides, edges_of, passed
from opline_analyses.ops.stages import select_counted
from opline_analyses.runs.run import Run
from opline_analyses.runs.selection import Selection

if TYPE_CHECKING:
    from opline_analyses.base.result_table import Part

    Graph = nx.DiGraph[str]
else:
    Graph = nx.DiGraph


def transition_graph(run: Run, which: Selection, tainted: bool = False) -> Graph:
    """The graph of the selected complete ops. Raises OplineError where there is none."""
    n, incomplete, touched = select_counted(run, which, tainted)
    if n == 0:
        raise OplineError(f"No complete op in {run.given}: {incomplete} incomplete, {touched} tainted.")
    (whole,) = run.row("SELECT sum(latency_ns)::HUGEINT FROM ops WHERE op_id IN (SELECT op_id FROM counted)")
    graph: Graph = nx.DiGraph(run=Path(run.given).resolve().name, ops=n, latency_total_ns=int(whole))
    counts = passed(run)

    def node(name: str) -> str:
        graph.add_node(name, count=counts.get(name, 0), step=name in BLOCK_STEPS)
        return name

    def add(edge: Edge, **more: Any) -> None:
        times = {"mean_ns": edge.mean_ns, "p50_ns": edge.p50_ns, "p99_ns": edge.p99_ns, "max_ns": edge.max_ns}
        graph.add_edge(node(edge.source), node(edge.target), count=edge.number, ops=edge.ops, **times, **more)

    for edge in sorted(edges_of(run, "stages"), key=lambda edge: (edge.place, edge.source, edge.target)):
        shares = {"share": edge.total_ns / whole if whole else 0.0, "critical_share": edge.ops / n}
        add(edge, total_ns=edge.total_ns, **shares, stage=edge.stage, kind=edge.kind, aside=False)
    for edge in asides(run):
        if not graph.has_edge(edge.source, edge.target):
            add(edge, total_ns=0, share=0.0, critical_share=0.0, stage="", kind="aside", aside=True)
    return graph


# --- formats ----------------------------------------------------------------------------------------------------------


def _quoted(text: str) -> str:
    return '"' + shown(text).replace("\\", "\\\\").replace('"', '\\"') + '"'


_ASIDE_COLOUR = "#BBBBBB"


def _title(graph: Graph) -> str:
    many, mean = count_of(graph.graph["ops"], "op"), graph.graph["latency_total_ns"] / graph.graph["ops"]
    name = graph.graph["run"]
    return f"{name}: {many}, mean latency {us(mean, 1)} us. Of each edge: passes, p50, p99."


def dot_lines(graph: Graph) -> Iterator[str]:
    """Graphviz: an edge's width is its share of the total latency, its colour the stage's colour in all pictures;
    dashed: aside of the critical path.
    """
    yield "digraph opline {"
    yield f'  label={_quoted(_title(graph))}; labelloc=t; labeljust=l; fontname="Helvetica"; fontsize=11;'
    yield "  // times in us; % is the share of the total latency, then of the ops whose critical path passes the edge"
    yield '  rankdir=TB; nodesep=0.4; ranksep=0.35; node [shape=box, style="rounded,filled", fillcolor="#F4F4F4",'
    yield '    color="#888888", fontname="Helvetica", fontsize=11]; edge [fontname="Helvetica", fontsize=9];'
    for name, data in graph.nodes(data=True):
        label = f"{name}  {BLOCK_STEPS[name]}" if data["step"] else name
        shape = ', shape=ellipse, fillcolor="#F7EAF1"' if data["step"] else ""
        yield f"  {_quoted(name)} [label={_quoted(label)}{shape}, tooltip={_quoted(str(data['count']) + ' ops')}];"
    for source, target, d in graph.edges(data=True):
        colour = _ASIDE_COLOUR if d["aside"] else stage_colour(d["stage"], d["kind"])
        if d["aside"]:
            label, style = f"aside, p50 {us(d['p50_ns'], 1)} us", ", style=dashed"
        else:
            own = d["stage"] if d["stage"] != f"{source} → {target}" else ""
            own = "unknown" if own == f"unknown: {source} → {target}" else own
            first = f"{own}  {percent(d['share'], 1)}% of time".strip()
            times = f"n {d['count']}  p50 {us(d['p50_ns'], 1)}  p99 {us(d['p99_ns'], 1)} us"
            label = f" {first}, {percent(d['critical_share'], 1, 0)}% of ops \\n {times} "
            style = ", style=dotted" if d["kind"] == "unknown" else ""
        text = _quoted(label).replace("\\\\n", "\\n")
        width = 1.6 + 7 * d["share"]
        yield f'  {_quoted(source)} -> {_quoted(target)} [label={text}, penwidth={width:.2f}, color="{colour}"{style}];'
    yield "}"


def _spaced(name: str) -> str:
    return f"{name} "


EDGE_COLUMNS = (
    label("source", "from (us) ", _spaced), label("target", "to ", _spaced), Column("count", "count"), Column("ops"),
    time("mean_ns", "mean", 1), time("p50_ns", "p50", 1), time("p99_ns", "p99", 1), Column("max_ns"),
    Column("total_ns"), share(title="time%"), share("critical_share", "ops%"), text("stage"), text("kind"),
    Column("aside", type="bool"),
)  # fmt: skip


def edge_table(graph: Graph) -> ResultTable:
    """The edges with all attributes; the text has `aside` in place of a share. ``found``: the graph."""
    edges = ({"source": source, "target": target, **d} for source, target, d in graph.edges(data=True))

    def lines(found: ResultTable) -> Iterator[Part]:
        shared = found.place("share")
        shares_seen = ("share", "critical_share")
        columns = [c._replace(name="", cell=plain) if c.name in shares_seen else c for c in found.columns]
        rows = []
        for row in found.rows:
            cells = list(row)
            shares = ("aside", "") if row[-1] else [percent(part, 1) for part in row[shared : shared + 2]]
            cells[shared : shared + 2] = shares
            rows.append(cells)
        yield ResultTable(columns, rows, gap=" ")

    return of_items(EDGE_COLUMNS, edges, text=lines, found=graph)


def _writable(graph: Graph) -> Graph:
    """The graph with names valid in XML."""
    same: Graph = nx.relabel_nodes(graph, {name: shown(name) for name in graph})
    for *_, data in same.edges(data=True):
        data.update({key: shown(value) for key, value in data.items() if isinstance(value, str)})
    return same


PICTURES = ("svg", "png", "pdf")


def _drawn(text: bytes, form: str) -> bytes:
    """A picture by Graphviz, from `dot_lines`. Raises OplineError."""
    program = shutil.which("dot")
    if program is None:
        raise OplineError(
            "Graphviz draws the graph, and its program dot is not installed."
            f" Install it ({how_to_install('graphviz')}), or write a .dot file."
        )
    done = subprocess.run([program, f"-T{form}"], input=text, capture_output=True, check=False)
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise OplineError(f"Graphviz could not draw the graph: {said[-1] if said else 'it gave no reason'}")
    return done.stdout


def write_graph(graph: Graph, form: str, out: BinaryIO) -> None:
    """Writes dot, graphml, json (node-link), or a picture (svg, png, pdf). Raises OplineError on failure."""
    if form == "dot" or form in PICTURES:
        text = encoded(dot_lines(graph))
        out.write(text if form == "dot" else _drawn(text, form))
    elif form == "graphml":
        out.write(("\n".join(nx.generate_graphml(_writable(graph))) + "\n").encode())
    else:
        out.write(json_text(nx.node_link_data(graph, edges="edges")).encode())


# --- the difference of two runs ---------------------------------------------------------------------------------------


class EdgeChange(Value):
    """One edge in two runs; None for a run without the edge."""

    source: str
    target: str
    status: str  # added, removed, both
    aside: bool  # off the critical path in both
    count: tuple[int | None, int | None]
    p50_ns: tuple[int | None, int | None]
    p99_ns: tuple[int | None, int | None]
    share: tuple[float | None, float | None]
    per_op_ns: tuple[float, float]  # total over the run's ops; 0 where the edge is missing


def difference(before: Graph, after: Graph) -> list[EdgeChange]:
    """Every edge of either run, the largest change of the time per op first."""
    changes = []
    for source, target in sorted({*before.edges, *after.edges}):
        a = before.edges[source, target] if before.has_edge(source, target) else None
        b = after.edges[source, target] if after.has_edge(source, target) else None
        status = "both" if a and b else "added" if b else "removed"
        aside = all(edge["aside"] for edge in (a, b) if edge)

        def pair(name: str, a: Any = a, b: Any = b) -> tuple[Any, Any]:
            return (a[name] if a else None, b[name] if b else None)

        per_op = (
            a["total_ns"] / before.graph["ops"] if a else 0.0,
            b["total_ns"] / after.graph["ops"] if b else 0.0,
        )
        changes.append(
            EdgeChange(
                source, target, status, aside, pair("count"), pair("p50_ns"), pair("p99_ns"), pair("share"), per_op
            )
        )
    return sorted(changes, key=lambda c: (-abs(c.per_op_ns[1] - c.per_op_ns[0]), c.source, c.target))


_OF_BOTH = {"count": "i64", "p50_ns": "i64", "p99_ns": "i64", "share": "f64", "per_op_ns": "f64"}
CHANGE_COLUMNS = (
    text("source"), text("target"), text("status"), Column("aside", type="bool"),
    *(Column(f"{name}_{run}", type=kind) for name, kind in _OF_BOTH.items() for run in "ab"),
)  # fmt: skip
CHANGES_SEEN = (
    label("edge", "edge (us) "), time("p50_ns_a", "p50 A", 1), time("p50_ns_b", "B", 1), time("p99_ns_a", "p99 A", 1),
    time("p99_ns_b", "B", 1), Column("more_ns", "us/op", lambda ns: f"{ns / 1000:+z.1f}", "f64"),
)  # fmt: skip


def change_table(changes: list[EdgeChange], head: Mapping[str, Any]) -> ResultTable:
    """The difference of two graphs, with columns for each run. ``head``: of the document. ``found``: the changes."""
    rows = [
        [c.source, c.target, c.status, c.aside, *(value for name in _OF_BOTH for value in getattr(c, name))]
        for c in changes
    ]
    return ResultTable(
        CHANGE_COLUMNS, rows, text=lambda _: (_changes_seen(changes),),
        document=lambda _: {**head, "edges": [vars(c) for c in changes]}, found=changes,
    )  # fmt: skip


def _changes_seen(changes: list[EdgeChange]) -> ResultTable:
    rows = []
    for c in changes:
        sign = {"added": "+ ", "removed": "- ", "both": ""}[c.status]
        edge = f"{sign}{c.source} → {c.target} " + ("(aside) " if c.aside else "")
        rows.append([edge, *c.p50_ns, *c.p99_ns, c.per_op_ns[1] - c.per_op_ns[0]])
    return ResultTable(CHANGES_SEEN, rows, gap=" ")
