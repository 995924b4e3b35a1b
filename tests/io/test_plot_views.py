# SPDX-License-Identifier: MIT
"""`opline plot --op`, `--cdf`, `--stages`: what is drawn is what the run holds."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_hex
from tests.lib.build_run import P, Rq, RunBuilder

from opline_analyses.base.colours import STATES, STATES_UNKNOWN, UNATTRIBUTED
from opline_analyses.cli import main
from opline_analyses.ops.oplist import OpDetail, read_ops
from opline_analyses.pictures.plot import figure as every_op
from opline_analyses.pictures.plot_op import figure
from opline_analyses.pictures.plot_runs import _in_order, _ranks, cdf, series_of, stages
from opline_analyses.runs.run import open_tables
from opline_analyses.runs.selection import Selection

UNIT_NS = 1000  # of an axis in us


def some_run() -> RunBuilder:
    """Two threads, one request; the second op is ten times as slow. And one without an end."""
    run = RunBuilder()
    for n, slow in enumerate((1, 10)):
        t = 1_000_000 * n
        points = [P("begin", t), P("taken", t + 1000 * slow, tid=2, comm="worker"), P("end", t + 9000 * slow)]
        request = Rq(q=t + 2000 * slow, g=t + 2500 * slow, d=t + 3000 * slow, c=t + 8000 * slow)
        run.op(points, [request], op_class="write")
    run.op([P("begin", 5_000_000)], complete=False, reason="no_end")
    return run


def op_of(tmp_path: Path, op_id: int) -> OpDetail:
    (op,) = read_ops(open_tables(some_run().write(tmp_path / "run")), Selection("o.op_id = ?", (op_id,)))
    return op


def test_the_bars_of_an_op_sum_to_its_latency(tmp_path: Path) -> None:
    op = op_of(tmp_path, 1)
    threads = {stage.tid: f"thread {stage.tid}" for stage in op.stages if stage.tid is not None}
    (axes,) = figure(op, threads, "t").axes
    labels = [label.get_text() for label in axes.get_yticklabels()]
    requests = len(op.requests)
    assert requests == 1 and len(labels) == len(set(threads)) + 1 + requests  # completions have a row of their own
    bars = [(bar.get_y(), bar.get_width()) for container in axes.containers for bar in container]
    first_request = len(labels) - requests - 0.5
    assert op.latency_ns is not None
    of_stages = sum(width for y, width in bars if y < first_request)
    assert of_stages * UNIT_NS == pytest.approx(op.latency_ns, abs=1e-6)
    (q, c) = op.requests[0].queue_ns, op.requests[0].complete_ns
    assert q is not None and c is not None
    assert sum(width for y, width in bars if y > first_request) * UNIT_NS == pytest.approx(c - q, abs=1e-6)


def test_what_threads_did_is_a_strip_below_each_stage(tmp_path: Path) -> None:
    built = some_run()
    first, *others = [row for row in built.rows["stages"] if row["op_id"] == 1]  # the first one's states are unknown
    for row in others:
        row |= {"on_cpu_ns": 1000, "runnable_ns": 2000, "blocked_io_ns": 0, "blocked_ns": row["duration_ns"] - 3000}
    for part in ("on_cpu", 600), ("runnable", 2000), ("on_cpu", 400), ("blocked", others[0]["blocked_ns"]):
        at_ns = others[0]["begin_ns"] + sum(p["duration_ns"] for p in built.rows["states"])
        row = {"op_id": 1, "seq": others[0]["seq"], "tid": 200, "state": part[0], "begin_ns": at_ns}
        built.rows["states"].append(row | {"duration_ns": part[1]})
    (op,) = read_ops(open_tables(built.write(tmp_path / "run")), Selection("o.op_id = 1"))
    threads = {stage.tid: f"thread {stage.tid}" for stage in op.stages if stage.tid is not None}
    (axes,) = figure(op, threads, "t").axes
    widths: dict[str, float] = {}
    timed: list[tuple[str, float]] = []
    for bar in (bar for container in axes.containers for bar in container):
        if bar.get_height() < 0.2:
            colour = to_hex(bar.get_facecolor()).upper()
            timed += [(colour, bar.get_width() * UNIT_NS)] if bar.get_alpha() == 1 else []
            widths[colour] = widths.get(colour, 0) + bar.get_width() * UNIT_NS
    assert widths == pytest.approx(
        {
            STATES["on_cpu_ns"][1]: 1000 * len(others),
            STATES["runnable_ns"][1]: 2000 * len(others),
            STATES["blocked_ns"][1]: sum(row["blocked_ns"] for row in others),
            UNATTRIBUTED: first["duration_ns"],
        }
    )
    expected = [(STATES[f"{p['state']}_ns"][1], float(p["duration_ns"])) for p in built.rows["states"]]
    assert [colour for colour, _ in timed if colour != UNATTRIBUTED] == [colour for colour, _ in expected]
    assert [w for c, w in timed if c != UNATTRIBUTED] == pytest.approx([w for _, w in expected])
    legend = axes.get_legend()
    assert legend is not None
    assert any(text.get_text() == "paler: how long, not when" for text in legend.get_texts())
    assert any(text.get_text().startswith(STATES_UNKNOWN) for text in legend.get_texts())


def test_an_op_is_drawn(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run, out = some_run().write(tmp_path / "run"), tmp_path / "op.svg"
    assert main(["plot", str(run), "--op", "1", "-o", str(out)]) == 0
    svg = out.read_text()
    assert "op 1" in svg and "D2C" in svg and "time since the op" in svg
    capfd.readouterr()
    for op_id, said in (("2", "incomplete"), ("17", "no such op")):
        assert main(["plot", str(run), "--op", op_id, "-o", str(tmp_path / "none.svg")]) == 2
        assert said in capfd.readouterr().err
    assert not (tmp_path / "none.svg").exists()


def test_the_distribution_has_every_op_and_the_maximum(tmp_path: Path) -> None:
    one = series_of(open_tables(some_run().write(tmp_path / "run")), Selection(), "run", False)
    left, right = cdf([one, one], "t").axes
    assert len(left.lines) == len(right.lines) == 2
    x, y = map(np.asarray, left.lines[0].get_data())
    assert list(x) == [9.0, 9.0, 90.0] and list(y) == [0, 0.5, 1]
    x, y = map(np.asarray, right.lines[0].get_data())
    assert list(x) == [9.0, 9.0, 90.0] and list(y) == [1, 0.5, 0]


@pytest.mark.parametrize("n", [1, 2000, 2001, 1_000_000])
def test_of_many_ops_the_tail_is_drawn_whole(n: int) -> None:
    ranks = _ranks(n)
    assert ranks[0] == 1 and ranks[-1] == n and len(ranks) <= 2000 and (np.diff(ranks) > 0).all()
    assert set(range(max(1, n - 100), n + 1)) <= set(ranks.tolist())


def test_stages_are_rows_with_their_percentiles(tmp_path: Path) -> None:
    one = series_of(open_tables(some_run().write(tmp_path / "run")), Selection(), "run", False)
    (axes,) = stages([one], "t").axes
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels == [row.stage for row in one.table.stages if row.total_ns] + ["latency"]
    means = [line.get_xdata()[0] for line in axes.lines if line.get_marker() == "."]  # type: ignore[index]
    rows = [*(row for row in one.table.stages if row.total_ns), one.table.latency]
    assert means == [max(row.mean_ns, 1) / 1e3 for row in rows]
    drawn = stages([one, one], "t")
    assert len([line for line in drawn.axes[0].lines if line.get_marker() == "."]) == 2 * len(rows)


def test_runs_on_the_same_axes(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    a, b = (str(some_run().write(tmp_path / name)) for name in ("a", "b"))
    for view in ("--cdf", "--stages"):
        assert main(["plot", a, view, "--with", b, "-o", str(tmp_path / "two.svg")]) == 0
        assert re.search(r">\s*a, 2 ops", (tmp_path / "two.svg").read_text())
        assert re.search(r">\s*b, 2 ops", (tmp_path / "two.svg").read_text())
    capfd.readouterr()
    for wrong in (["--with", b], ["--op", "1", "--with", b], ["--op", "1", "--since", "1"], ["--op", "1", "--cdf"]):
        assert main(["plot", a, *wrong, "-o", str(tmp_path / "none.svg")]) == 2
        assert capfd.readouterr().err
    assert main(["plot", a, "--cdf", *["--with", b] * 11, "-o", str(tmp_path / "none.svg")]) == 2
    assert "more than one picture shows" in capfd.readouterr().err
    assert not (tmp_path / "none.svg").exists()


def test_all_pictures_of_ops_have_the_same_axis_and_name_the_slowest(tmp_path: Path) -> None:
    """Whatever the run: a log axis in us; the op_id stands at the slowest points, times count from the first event."""
    for name, scale in (("short", 1), ("long", 1_000_000)):
        run = RunBuilder(manifest={"core": {"first_ns": 500_000_000}})
        for n in range(200):
            t = 1_500_000_000 + 10_000_000 * scale * n
            run.op([P("begin", t), P("end", t + (9000 + n + 50_000 * (n == 150)) * scale)])
        upper, lower = every_op(open_tables(run.write(tmp_path / name)), Selection(), "t").axes
        assert upper.get_yscale() == "log" and upper.get_ylabel() == "latency (us)"
        assert lower.get_yscale() == "linear" and lower.get_ylabel() == "mean latency (us)"
        assert "150" in [text.get_text() for text in upper.texts]
        assert upper.lines[0].get_xdata()[0] == 1.0  # type: ignore[index]


def test_a_stage_that_one_run_has_stands_at_its_place() -> None:
    assert _in_order([["a", "b", "d"], ["a", "c", "d", "e"], ["f", "a"]]) == ["f", "a", "c", "b", "d", "e"]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("options", [(), ("--op", "0"), ("--cdf",), ("--stages",)])
def test_a_name_of_any_length_leaves_room_for_the_picture(tmp_path: Path, options: tuple[str, ...]) -> None:
    run, long = RunBuilder(), "L" * 3000
    for n in range(3):
        begin = 1_000_000 * n
        run.op([P("begin", begin), P(long, begin + 500), P("end", begin + 900)], op_class=long, obj=long)
    picture = tmp_path / "p.png"
    assert main(["plot", str(run.write(tmp_path / "run")), "-o", str(picture), *options]) == 0
    assert picture.stat().st_size > 10_000
