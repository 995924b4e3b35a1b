# SPDX-License-Identifier: MIT
"""The picture of a comparison: how the latencies of each run are distributed, and what each stage takes in each run.

Takes a comparison whose figures have their distributions; gives a matplotlib figure. A line and a point is one run, so
that the eye sees what the verdicts rest on: how far the runs of a side lie apart, and how far the sides.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from opline_analyses.compare.sketch import BINS
from opline_analyses.pictures.plot import COLOURS, NS_PER_US, dress, label_of, time_axis

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from opline_analyses.compare.compare import Comparison
    from opline_analyses.compare.figures import Figures

SHOWN_STAGES = 14
SIDES = ("A", "B")
STEP = 0.18  # between the rows of A and of B


def figure(c: Comparison) -> Figure:
    """Left the latencies' distributions, right the stages whose mean changed most, the biggest change on top."""
    fig = Figure(figsize=(11, 5), layout="constrained")
    left, right = fig.subplots(1, 2, width_ratios=(5, 6))
    for axes in (left, right):
        axes.set_xscale("log")
    _distributions(left, c)
    _stages(right, c)
    dress(fig, ", ".join(f"{side}: {_names(runs)}" for side, runs in zip(SIDES, (c.a, c.b), strict=True)))
    return fig


def _names(runs: Sequence[Figures]) -> str:
    """Of one side: its run, or the first and the last and how many there are."""
    if len(runs) == 1:
        return label_of(runs[0].name)
    return f"{label_of(runs[0].name)} … {label_of(runs[-1].name)} ({len(runs)} runs)"


def _distributions(axes: Axes, c: Comparison) -> None:
    for label, colour, runs in zip(SIDES, COLOURS, (c.a, c.b), strict=False):
        for n, run in enumerate(runs):
            sketch = run.latency.sketch
            if sketch is None:
                continue
            bins, counts = sketch.bins[::2], sketch.bins[1::2]
            times = [BINS.edges(bins[0])[0], *(BINS.edges(number)[1] for number in bins)]
            shares = [0.0, *(upto / sketch.count for upto in accumulate(counts))]
            axes.plot(
                [max(t, 1) / NS_PER_US for t in times], shares, color=colour, linewidth=1.2, alpha=0.8,
                label=label if n == 0 else None,
            )  # fmt: skip
    axes.set_title("latencies: share of the ops that took no longer", loc="left", fontsize=10)
    time_axis(axes.xaxis, "latency")
    axes.set_ylim(0, 1)
    axes.legend(loc="lower right", frameon=False)


def _stages(axes: Axes, c: Comparison) -> None:
    rows = [row for row in c.stages if row.figure == "mean" and min(*row.a, *row.b) > 0][:SHOWN_STAGES]
    for place, row in enumerate(rows):
        for side, values in enumerate((row.a, row.b)):
            y = [place + STEP * (2 * side - 1)] * len(values)
            axes.plot([v / NS_PER_US for v in values], y, linestyle="none", marker=".", color=COLOURS[side], alpha=0.8)
    axes.set_yticks(range(len(rows)), [label_of(row.name) for row in rows])
    axes.invert_yaxis()
    axes.set_title("stages: mean per op in each run, the biggest change on top", loc="left", fontsize=10)
    time_axis(axes.xaxis, "time per op")
