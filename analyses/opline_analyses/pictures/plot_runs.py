# SPDX-License-Identifier: MIT
"""Pictures of how times are distributed, of one run or of several on the same axes: all latencies, and each stage's.

Takes what `series_of` reads of a run and a selection; gives figures. Percentiles are those of `opline stages`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

from opline.errors import OplineError
from opline.talk import shown
from opline.values import Value
from opline_analyses.base.colours import stage_colour
from opline_analyses.base.text import count_of, plain_us
from opline_analyses.ops.stages import StageTable, stage_table
from opline_analyses.pictures.plot import COLOURS, NS_PER_US, dress, label_of, time_axis

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opline_analyses.runs.run import Run
    from opline_analyses.runs.selection import Selection

MOST_RUNS = len(COLOURS)
MOST_POINTS = 2000  # of a line; the tail has half of them
SHOWN_STAGES = 16


class Series(Value):
    """One run: the latencies of its ops, sorted, in ns; and the statistics of its stages."""

    name: str
    latencies: Any  # ndarray of int64
    table: StageTable


def series_of(run: Run, which: Selection, name: str, tainted: bool) -> Series:
    """What is drawn of a run. Raises OplineError where no op counts."""
    table = stage_table(run, which, tainted)  # makes the table `counted`
    if table.ops == 0:
        raise OplineError(
            f"No complete op to plot in {run.given}: {table.incomplete} incomplete, {table.tainted} tainted."
        )
    found = run.con.execute(
        "SELECT o.latency_ns AS v FROM ops o SEMI JOIN counted USING (op_id) ORDER BY v"
    ).fetchnumpy()
    return Series(name, np.asarray(found["v"], np.int64), table)


def cdf(runs: Sequence[Series], title: str) -> Figure:
    """Left the share of the ops that took no longer, right the share that took longer, whose axis shows the tail."""
    fig = Figure(figsize=(11, 5), layout="constrained")
    left, right = fig.subplots(1, 2)
    for one, colour in zip(runs, COLOURS, strict=False):
        n = len(one.latencies)
        ranks = _ranks(n)
        times = np.maximum(one.latencies[ranks - 1], 1) / NS_PER_US
        of_all = one.table.latency
        percentiles = ", ".join(
            f"{name} {plain_us(ns)}"
            for name, ns in (("p50", of_all.p50_ns), ("p99", of_all.p99_ns), ("p99.9", of_all.p999_ns))
        )
        label = f"{shown(one.name)}, {count_of(n, 'op')}\n{percentiles}, max {plain_us(of_all.max_ns)}"
        left.step(np.r_[times[0], times], np.r_[0, ranks / n], where="post", color=colour, linewidth=1.2, label=label)
        right.step(np.r_[times[0], times], np.r_[1, (n - ranks) / n], where="post", color=colour, linewidth=1.2)
    left.set_title("share of the ops that took no longer", loc="left", fontsize=10)
    right.set_title("share of the ops that took longer", loc="left", fontsize=10)
    left.set_ylim(0, 1.005)
    right.set_yscale("log")
    for axes in (left, right):
        axes.set_xscale("log")
        time_axis(axes.xaxis, "latency")
    right.yaxis.set_major_formatter("{x:g}")
    dress(fig, title)
    fig.legend(loc="outside lower left", frameon=False, fontsize=8, ncols=min(len(runs), 3))
    return fig


def _ranks(n: int) -> Any:
    """Which of n sorted values are drawn, from 1: all of a few; else all of the tail, the rest evenly."""
    if n <= MOST_POINTS:
        return np.arange(1, n + 1)
    evenly = np.linspace(1, n, MOST_POINTS // 2)
    towards = n - np.geomspace(1, n, MOST_POINTS // 4) + 1
    tail = np.arange(n - MOST_POINTS // 4 + 1, n + 1)
    return np.unique(np.rint(np.concatenate((evenly, towards, tail))).astype(np.int64))


def stages(runs: Sequence[Series], title: str) -> Figure:
    """A row per stage, in the order in which an op meets them: each run's mean, p50 to p99, and maximum."""
    kinds = {row.stage: row.kind for one in runs for row in one.table.stages}
    order = _in_order([[row.stage for row in one.table.stages] for one in runs])
    totals = {name: max(_total(one, name) for one in runs) for name in kinds}
    widest = set(sorted(totals, key=lambda name: -totals[name])[:SHOWN_STAGES])
    names = [name for name in order if name in widest]
    rows = [*names, "latency"]
    height = 1.6 + (0.28 + 0.12 * len(runs)) * len(rows)
    fig = Figure(figsize=(11, height), layout="constrained")
    axes = fig.subplots()
    step = 0.7 / len(runs)
    for n, one in enumerate(runs):
        by_name = {row.stage: row for row in one.table.stages} | {"latency": one.table.latency}
        for place, name in enumerate(rows):
            row = by_name.get(name)
            if row is None or not row.count:
                continue
            y = place + step * (n - (len(runs) - 1) / 2)
            alone = stage_colour(name, kinds[name]) if name in kinds else "#333333"
            colour = alone if len(runs) == 1 else COLOURS[n]
            low, high, most = (max(v, 1) / NS_PER_US for v in (row.p50_ns, row.p99_ns, row.max_ns))
            axes.plot([high, most], [y, y], color=colour, linewidth=0.8, alpha=0.6)
            axes.plot([low, high], [y, y], color=colour, linewidth=5, solid_capstyle="butt")
            axes.plot([most], [y], color=colour, marker="|", markersize=7)
            axes.plot([max(row.mean_ns, 1) / NS_PER_US], [y], color="black", marker=".", markersize=5, linestyle="none")
    left_out = len(kinds) - len(names)
    axes.set_yticks(range(len(rows)), [label_of(name, 36) for name in rows], fontsize=8)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xscale("log")
    time_axis(axes.xaxis, "time in the ops that have the stage: bar p50 to p99, line to the maximum, point the mean")
    if left_out:
        axes.set_title(f"the widest {len(names)} of {len(kinds)} stages", loc="left", fontsize=10)
    if len(runs) > 1:
        for n, one in enumerate(runs):
            axes.plot(
                [], [], color=COLOURS[n], linewidth=5, label=f"{shown(one.name)}, {count_of(one.table.ops, 'op')}"
            )
        fig.legend(loc="outside lower left", frameon=False, fontsize=8, ncols=min(len(runs), 3))
    dress(fig, title)
    return fig


def _in_order(lists: Sequence[Sequence[str]]) -> list[str]:
    """The names of all lists: what only a later one has stands behind its neighbour there."""
    order = list(lists[0])
    for names in lists[1:]:
        place = 0
        for name in names:
            if name in order:
                place = order.index(name) + 1
            else:
                order.insert(place, name)
                place += 1
    return order


def _total(one: Series, name: str) -> int:
    return sum(row.total_ns for row in one.table.stages if row.stage == name)
