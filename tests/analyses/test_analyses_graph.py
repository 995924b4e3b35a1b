# SPDX-License-Identifier: MIT
"""The transition graph, its formats and the difference of two runs; the picture of a run (C1.9)."""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from tests.lib.build_run import P, Rq, RunBuilder

from opline_analyses.cli import main
from opline_analyses.ops import edges
from opline_analyses.ops.graph import difference, transition_graph, write_graph
from opline_analyses.ops.stages import select_counted
from opline_analyses.pictures import plot
from opline_analyses.runs.run import Run, open_tables
from opline_analyses.runs.selection import Selection


def two_paths(extra: bool = False, slower_ns: int = 0) -> RunBuilder:
    """Three ops by way of a cache, one by way of the device; the device's is 10 times as long."""
    run = RunBuilder()
    for n in range(3):
        t = 10_000 * n
        points = [P("begin", t), P("hit", t + 40 + slower_ns), P("end", t + 100 + slower_ns)]
        if extra:
            points.insert(1, P("check", t + 10))
        points.insert(2, P("log", t + 50 + slower_ns, aside=True))
        run.op(points)
    run.op([P("begin", 90_000), P("end", 91_000)], [Rq(q=90_100, g=90_200, d=90_300, c=90_900)])
    return run


def opened(tmp_path: Path, name: str, **options: Any) -> Run:
    return open_tables(two_paths(**options).write(tmp_path / name))


def test_counts_and_shares(tmp_path: Path) -> None:
    g = transition_graph(opened(tmp_path, "a"), Selection())
    assert g.graph["ops"] == 4
    hit = g.edges["begin", "hit"]
    assert (hit["count"], hit["p50_ns"], hit["p99_ns"], hit["max_ns"]) == (3, 40, 40, 40)
    assert hit["critical_share"] == 0.75
    assert hit["share"] == pytest.approx(120 / 1300)
    assert g.edges["D", "C"]["critical_share"] == 0.25
    assert g.edges["D", "C"]["kind"] == "device"
    on_path = [d for _, _, d in g.edges(data=True) if not d["aside"]]
    assert sum(d["share"] for d in on_path) == pytest.approx(1.0)
    assert sum(d["total_ns"] for d in on_path) == g.graph["latency_total_ns"] == 1300


def test_points_aside_are_in_the_graph_and_not_on_the_path(tmp_path: Path) -> None:
    g = transition_graph(opened(tmp_path, "a"), Selection())
    aside = g.edges["hit", "log"]
    assert (aside["aside"], aside["count"], aside["p50_ns"], aside["share"]) == (True, 3, 10, 0.0)
    assert list(g.successors("log")) == []


def test_graphml_round_trip(tmp_path: Path) -> None:
    g = transition_graph(opened(tmp_path, "a"), Selection())
    path = tmp_path / "g.graphml"
    with path.open("wb") as out:
        write_graph(g, "graphml", out)
    back = nx.read_graphml(path)
    assert {n: back.nodes[n] for n in back} == {n: g.nodes[n] for n in g}
    assert {(a, b): d for a, b, d in back.edges(data=True)} == {(a, b): d for a, b, d in g.edges(data=True)}


def test_node_link_round_trip(tmp_path: Path) -> None:
    g = transition_graph(opened(tmp_path, "a"), Selection())
    path = tmp_path / "g.json"
    with path.open("wb") as out:
        write_graph(g, "json", out)
    back = nx.node_link_graph(json.loads(path.read_text()), edges="edges")
    assert nx.utils.graphs_equal(back, g)


@pytest.mark.skipif(shutil.which("dot") is None, reason="no Graphviz")
def test_graphviz_takes_the_dot(tmp_path: Path) -> None:
    run = RunBuilder()
    run.op([P('be"gin', 0), P("back\\slash", 5), P("end", 9)])
    g = transition_graph(open_tables(run.write(tmp_path / "r")), Selection())
    path = tmp_path / "g.dot"
    with path.open("wb") as out:
        write_graph(g, "dot", out)
    plain = subprocess.run(["dot", "-Tplain", path], text=True, capture_output=True, check=True).stdout
    assert plain.count("\nnode ") == 3
    assert plain.count("\nedge ") == 2


def test_difference_names_added_removed_and_grown(tmp_path: Path) -> None:
    a = transition_graph(opened(tmp_path, "a"), Selection())
    b = transition_graph(opened(tmp_path, "b", extra=True, slower_ns=1000), Selection())
    changes = {(c.source, c.target): c for c in difference(a, b)}
    assert changes["begin", "hit"].status == "removed"
    assert changes["begin", "check"].status == changes["check", "hit"].status == "added"
    assert changes["check", "hit"].p50_ns == (None, 1030)
    assert changes["D", "C"].per_op_ns == (150.0, 150.0)
    assert changes["hit", "log"].aside
    assert not changes["D", "C"].aside
    first = difference(a, b)[0]
    assert (first.source, first.target) == ("check", "hit")


def test_diff_on_the_command_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    a, b = (str(two_paths(extra=extra).write(tmp_path / name)) for name, extra in (("a", False), ("b", True)))
    assert main(["graph", "--diff", a, b]) == 0
    text = capfd.readouterr().out
    assert re.search(r"^-\s+begin → hit\s", text, re.MULTILINE)
    assert re.search(r"^\+\s+begin → check\s", text, re.MULTILINE)
    assert main(["graph", "--diff", a, b, "--format", "json"]) == 0
    document = json.loads(capfd.readouterr().out)
    assert document["ops"] == [4, 4]
    assert {e["status"] for e in document["edges"]} == {"added", "removed", "both"}


@pytest.mark.parametrize("args", [["graph"], ["graph", "x", "--diff", "a", "b"], ["graph", "--diff", "a"]])
def test_usage(args: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert main(args) == 2
    assert capfd.readouterr().err


def test_a_picture_has_every_point_and_edge(tmp_path: Path) -> None:
    run = str(two_paths().write(tmp_path / "run"))
    for name in ("g.svg", "g.png", "g.pdf"):
        assert main(["graph", run, "-o", str(tmp_path / name)]) == 0
    svg = (tmp_path / "g.svg").read_text()
    graph = transition_graph(opened(tmp_path, "again"), Selection())
    assert svg.count('class="node"') == len(graph) and svg.count('class="edge"') == graph.number_of_edges()
    assert (tmp_path / "g.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "g.pdf").read_bytes().startswith(b"%PDF")


def test_a_picture_needs_graphviz(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = str(two_paths().write(tmp_path / "run"))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["graph", run, "-o", str(tmp_path / "g.svg")]) == 1
    assert "apt install graphviz" in capfd.readouterr().err and not (tmp_path / "g.svg").exists()
    broken = tmp_path / "dot"
    broken.write_text("#!/bin/sh\necho no such font >&2\nexit 1\n")
    broken.chmod(0o755)
    assert main(["graph", run, "-o", str(tmp_path / "g.svg")]) == 1
    assert "could not draw the graph: no such font" in capfd.readouterr().err and not (tmp_path / "g.svg").exists()


# --- plot -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [7, 300])
def test_c1_9_svg_has_one_point_per_op(tmp_path: Path, count: int) -> None:
    run = RunBuilder()
    for n in range(count):
        t = 1_000_000 * n
        run.op(
            [P("begin", t), P("mid", t + 3000 + n), P("end", t + 9000 + 7 * n)], op_class="write" if n % 3 else "read"
        )
    run.op([P("begin", 0)], complete=False, reason="no_end")
    out = tmp_path / "run.svg"
    assert main(["plot", str(run.write(tmp_path / "run")), "-o", str(out)]) == 0
    svg = out.read_text()
    groups = re.findall(r'<g id="ops-\d+">(.*?)</g>\s*</g>', svg, re.DOTALL)
    assert sum(group.count("<use ") for group in groups) == count
    assert "latency (us)" in svg
    assert "begin of the op (s from the run" in svg
    assert "begin → mid" in svg


def test_png_and_the_same_bytes_twice(tmp_path: Path) -> None:
    run = str(two_paths().write(tmp_path / "run"))
    pictures = []
    for name in ("a.svg", "b.svg", "c.png"):
        assert main(["plot", run, "-o", str(tmp_path / name), "--title", "t"]) == 0
        pictures.append((tmp_path / name).read_bytes())
    assert pictures[0] == pictures[1]
    assert pictures[2].startswith(b"\x89PNG")
    assert not list(tmp_path.glob("*.part"))


def test_stacked_stages_sum_to_the_latency(tmp_path: Path) -> None:
    from opline_analyses.ops.stages import select_counted
    from opline_analyses.pictures.plot import _bands

    run = opened(tmp_path, "a")
    select_counted(run, Selection(), tainted=False)
    per_bar, bands = _bands(run, None)
    assert list(per_bar) == [1, 1, 1, 1]
    assert list(sum(band.values for band in bands)) == [100, 100, 100, 1000]
    per_bar, bands = _bands(run, [0.0, 5e-5, 1e-4])
    assert list(per_bar) == [3, 1]
    assert list(sum(band.values for band in bands)) == [100, 1000]


def test_plot_refuses_an_unknown_format(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["plot", str(tmp_path), "-o", str(tmp_path / "x.bmp")]) == 2
    assert ".png" in capfd.readouterr().err


def test_quantiles_are_measured_values_of_which_few_are_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each range of ops counts its intervals; only values in the buckets with the quantiles are single ones."""
    chance = random.Random(5)
    times = [int(chance.lognormvariate(12, 1)) for _ in range(3000)]
    run = RunBuilder()
    for n, ns in enumerate(times):
        t = 10_000_000 * n
        run.op(
            [
                P("begin", t),
                P("far", t + ns),
                P("far#2", t + ns),
                P("log", t + ns + n, aside=True),
                P("end", t + 2 * ns),
            ]
        )
    opened = open_tables(run.write(tmp_path / "many"))
    whole = transition_graph(opened, Selection())
    assert opened.row("SELECT count(*) FROM aside_steps") == (len(times),)
    edge, ordered = whole.edges["begin", "far"], sorted(times)
    assert (edge["p50_ns"], edge["p99_ns"], edge["max_ns"]) == (ordered[1499], ordered[2969], ordered[-1])
    assert (edge["count"], edge["ops"], edge["total_ns"]) == (3000, 3000, sum(times))
    assert (whole.edges["far", "log"]["p50_ns"], whole.edges["far", "log"]["p99_ns"]) == (1499, 2969)
    monkeypatch.setattr(edges, "OPS", 700)
    again = transition_graph(opened, Selection())
    assert nx.node_link_data(again, edges="edges") == nx.node_link_data(whole, edges="edges")
    edges.edges_of(opened, "stages")
    (held,) = opened.row("SELECT count(*) FROM single")
    assert 0 < held < 0.05 * len(run.rows["stages"])


def test_a_picture_of_many_ops_holds_each_class_once(tmp_path: Path) -> None:
    run = RunBuilder()
    for n in range(300):
        run.op([P("begin", 1000 * n), P("end", 1000 * n + 100 + n)], op_class=f"a class with a name {n % 3}")
    opened = open_tables(run.write(tmp_path / "classes"))
    select_counted(opened, Selection(), tainted=False)
    ops = plot._ops(opened)
    assert ops.classes.tolist() == [f"a class with a name {n % 3}" for n in range(300)]
    assert len({id(name) for name in ops.classes}) == 3
