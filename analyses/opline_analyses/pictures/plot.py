# SPDX-License-Identifier: MIT
"""The picture of a whole run: every op as a point over time, and the stages stacked below, on one time axis.

Takes a run and a selection; gives a matplotlib figure. The upper panel has one point per complete op, at its begin. The
lower panel stacks what the stages take: op by op while the run is small, the mean per interval of time beyond. What is
stacked sums to the (mean) latency.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import matplotlib

from opline.values import Value

matplotlib.use("agg")
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.ticker import LogLocator, NullFormatter

from opline.errors import OplineError
from opline.talk import shown
from opline_analyses.base.colours import stage_colour
from opline_analyses.base.files import complete_file
from opline_analyses.base.text import count_of, duration, percent, plain_us
from opline_analyses.ops.stages import select_counted, stages_in_order
from opline_analyses.runs.columns import named
from opline_analyses.runs.run import Run
from opline_analyses.runs.selection import Selection

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

# matplotlib takes its settings from a matplotlibrc in the current directory (matplotlib.matplotlib_fname): not ours
matplotlib.rcdefaults()
matplotlib.rcParams["text.parse_math"] = False  # a name between two $ is a name

SINGLE_OPS = 160  # up to here one bar per op
BUCKETS = 120
VECTOR_OPS = 100_000  # beyond, an SVG holds the points as one image
SHOWN_STAGES = 11  # the widest; the others are one band
DECADES = 1e3  # a log axis that spans less has more ticks
NAMED, ROOM = 8, 0.05  # the slowest that get a name, if none is so near in time, as a part of the axis
TICKS = 16
NS_PER_US = 1e3
SHORTEST_US = 0.001  # an op of no time is drawn there
# Of classes; stages have colours of their own, the same in every picture (colours.py).
# From Paul Tol's schemes (https://sronpersonalpages.nl/~pault/): told apart by the colour-blind too.
COLOURS = (
    "#4477AA", "#EE6677", "#228833", "#CCBB44", "#66CCEE", "#AA3377", "#EE8866", "#44BB99", "#332288", "#FFAABB",
    "#BBCC33",
)  # fmt: skip
OTHER, UNKNOWN, UNATTRIBUTED = "#BBBBBB", "#666666", "#DDDDDD"


class Band(Value):
    """One stage of the lower panel: a value per bar or interval."""

    label: str
    colour: str
    values: Any  # ndarray of float, ns


def time_axis(axis: Axis, label: str) -> None:
    """Of an axis on which all is drawn: microseconds, whatever the run, so that two pictures can be laid side by side.
    A log axis of less than three powers of ten has ticks between them.
    """
    if axis.get_scale() == "log":
        low, high = sorted(axis.get_view_interval())
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < DECADES * low else (1,)))
        axis.set_minor_formatter(NullFormatter())
    axis.set_major_formatter("{x:.10g}")
    axis.set_label_text(f"{label} (us)")


def label_of(name: str, width: int = 30) -> str:
    """A name from a trace as a picture shows it."""
    text = shown(name)
    return text if len(text) <= width else text[: width - 1] + "…"


class Ops(Value):
    """The ops in order of their begin: it in seconds from the run's first event, latencies in us."""

    op_ids: Any  # ndarray of int
    begins: Any
    latencies: Any
    classes: Any


def _ops(run: Run) -> Ops:
    data, classes, place = named(
        run,
        f"""SELECT o.op_id AS n, (o.begin_ns - {run.start_ns()}) AS t, o.latency_ns AS v, coalesce(o.class, '') AS c
            FROM ops o SEMI JOIN counted USING (op_id) ORDER BY o.begin_ns, o.op_id""",
        "c",
    )
    return Ops(data["n"], data["t"] / 1e9, data["v"].astype(np.float64) / NS_PER_US, classes[place])


def _bands(run: Run, edges: Sequence[float] | None) -> tuple[Any, list[Band]]:
    """The stacked values, and the op count of each bar: one bar per op, or per interval between ``edges`` (seconds)."""
    if edges is None:
        place = "row_number() OVER (ORDER BY o.begin_ns, o.op_id) - 1"
    else:
        low, width, last = edges[0], edges[1] - edges[0], len(edges) - 2
        begin = f"(o.begin_ns - {run.start_ns()}) / 1e9"
        place = f"least({last}, greatest(0, floor(({begin} - {low!r}) / {width!r})))::BIGINT"
    run.con.execute(
        f"""CREATE OR REPLACE TEMP TABLE place AS SELECT o.op_id, {place} AS bar, o.unattributed_ns
            FROM ops o SEMI JOIN counted USING (op_id)"""
    )
    counts = dict(run.rows("SELECT bar, count(*) FROM place GROUP BY bar"))
    bars = len(edges) - 1 if edges is not None else len(counts)
    per_bar = np.array([counts.get(b, 0) for b in range(bars)], dtype=np.float64)

    def spread(rows: list[tuple[int, int]]) -> Any:
        values = np.zeros(bars)
        for bar, total in rows:
            values[bar] = total
        return values / np.maximum(per_bar, 1)

    by_stage: dict[str, list[tuple[int, int]]] = {}
    kinds: dict[str, str] = {}
    for stage, kind, bar, total in run.rows(
        """SELECT s.stage, any_value(s.kind), p.bar, sum(s.duration_ns)::HUGEINT
           FROM stages s JOIN place p USING (op_id) GROUP BY s.stage, p.bar"""
    ):
        by_stage.setdefault(stage, []).append((bar, total))
        kinds[stage] = kind
    totals = {s: sum(t for _, t in rows) for s, rows in by_stage.items()}
    named = [s for s, _ in stages_in_order(run) if totals.get(s, 0) > 0 and kinds[s] != "unknown"]
    widest = set(sorted(named, key=lambda s: -totals[s])[:SHOWN_STAGES])
    shown = [s for s in named if s in widest]
    bands = [Band(s, stage_colour(s, kinds[s]), spread(by_stage[s])) for s in shown]
    others = [s for s in named if s not in widest]
    unknown = [s for s in by_stage if kinds[s] == "unknown" and totals[s] > 0]
    for label, colour, group in ((f"{len(others)} other stages", OTHER, others), ("unknown", UNKNOWN, unknown)):
        if group:
            bands.append(Band(label, colour, sum(spread(by_stage[s]) for s in group)))
    rest = spread(run.rows("SELECT bar, sum(unattributed_ns)::HUGEINT FROM place GROUP BY bar"))
    if rest.any():
        bands.append(Band("unattributed", UNATTRIBUTED, rest))
    return per_bar, bands


def _points(axes: Axes, ops: Ops) -> None:
    """Always on a log axis: most ops and the slowest are seen alike, and each run in the same way."""
    t, v, classes = ops.begins, np.maximum(ops.latencies, SHORTEST_US), ops.classes
    names = sorted(set(classes))
    alpha = 0.9 if len(t) <= 2000 else 0.5 if len(t) <= 50_000 else 0.2
    size = 7.0 if len(t) <= 500 else 4.0 if len(t) <= 5000 else 2.5
    for n, name in enumerate(names):
        mine = classes == name
        axes.plot(
            t[mine], v[mine], linestyle="none", marker=".", markersize=size, markeredgewidth=0, alpha=alpha,
            color=COLOURS[n % len(COLOURS)], label=f"{label_of(name) or 'no class'}, {count_of(int(mine.sum()), 'op')}",
            gid=f"ops-{n}", rasterized=len(t) > VECTOR_OPS,
        )  # fmt: skip
    ranked = np.sort(ops.latencies)
    for q, style in ((0.5, "-"), (0.99, "--")):
        value = float(ranked[max(0, int(np.ceil(q * len(ranked))) - 1)])
        label = f"p{q * 100:g} {plain_us(NS_PER_US * value)}"
        axes.axhline(max(value, SHORTEST_US), color="#333333", linewidth=0.8, linestyle=style, label=label)
    axes.set_yscale("log")
    time_axis(axes.yaxis, "latency")
    axes.set_title("every op, the slowest by their op_id", loc="left", fontsize=10)
    _name_slowest(axes, ops)
    _legend(axes, 3)


def _begin_axis(axes: Axes) -> None:
    axes.set_xlabel("begin of the op (s from the run's first event)")
    axes.xaxis.set_major_formatter("{x:.10g}")  # as --since takes it: no offset beside the axis


def _name_slowest(axes: Axes, ops: Ops) -> None:
    """The op_id at the slowest points, as far as they have room: what `opline ops --op` takes."""
    span = float(ops.begins[-1] - ops.begins[0]) or 1.0
    named: list[float] = []
    most = max(2 * NAMED, len(ops.begins) // 50)  # the slowest 2 %
    for n in np.argsort(-ops.latencies, kind="stable")[:most]:
        at = float(ops.begins[n])
        if len(named) == NAMED or any(abs(at - other) < ROOM * span for other in named):
            continue
        named.append(at)
        right = at < ops.begins[0] + span / 2
        axes.annotate(
            str(ops.op_ids[n]), (at, max(float(ops.latencies[n]), SHORTEST_US)), (4 if right else -4, 0),
            textcoords="offset points", ha="left" if right else "right", va="center", fontsize=7, color="#333333",
            path_effects=[withStroke(linewidth=2, foreground="white")],
        )  # fmt: skip


def _legend(axes: Axes, scale: float) -> None:
    """Beside the panel, its points opaque and ``scale`` times as large as those in it."""
    legend = axes.legend(
        loc="upper left", bbox_to_anchor=(1.01, 1.02), frameon=False, fontsize=8, markerscale=scale, borderaxespad=0
    )
    for handle in legend.legend_handles:
        if handle is not None:
            handle.set_alpha(1)


def _stacks(axes: Axes, edges: Any, per_bar: Any, bands: list[Band], single: bool) -> None:
    total = sum(band.values for band in bands) if bands else np.zeros(len(per_bar))
    base = np.zeros(len(per_bar))
    whole = float((total * per_bar).sum())
    for band in bands:
        share = percent(float((band.values * per_bar).sum()), whole)
        heights = band.values / NS_PER_US
        label = f"{label_of(band.label)}  {share}%"
        axes.bar(
            edges[:-1],
            heights,
            width=np.diff(edges),
            bottom=base,
            align="edge",
            color=band.colour,
            label=label,
            linewidth=0,
        )
        base = base + heights
    time_axis(axes.yaxis, "latency" if single else "mean latency")
    width = duration(float(edges[1] - edges[0]) * 1e9)
    axes.set_title("stages, op by op" if single else f"stages, mean per {width}", loc="left", fontsize=10)
    axes.set_ylim(bottom=0)
    handles, labels = axes.get_legend_handles_labels()
    axes.legend(
        handles[::-1],
        labels[::-1],
        loc="upper left",
        bbox_to_anchor=(1.01, 1.02),
        frameon=False,
        fontsize=8,
        borderaxespad=0,
    )


def _round_edges(first: float, last: float) -> Any:
    """Intervals of 1, 2 or 5 times a power of ten seconds, at most BUCKETS of them, over [first, last]."""
    wanted = max(last - first, 1e-6) / BUCKETS
    power = 10.0 ** np.floor(np.log10(wanted))
    width = next(power * m for m in (1, 2, 5, 10) if power * m >= wanted)
    low = np.floor(first / width)
    return width * np.arange(low, max(np.floor(last / width), low) + 2)


def figure(run: Run, which: Selection, title: str, tainted: bool = False) -> Figure:
    """The picture of the selected ops. Raises OplineError where there is none to show."""
    n, incomplete, touched = select_counted(run, which, tainted)
    if n == 0:
        raise OplineError(f"No complete op to plot in {run.given}: {incomplete} incomplete, {touched} tainted.")
    ops = _ops(run)
    single = n <= SINGLE_OPS
    fig = Figure(figsize=(11, 7), layout="constrained")
    upper, lower = fig.subplots(2, 1, sharex=not single, height_ratios=(1, 1))
    _points(upper, ops)
    if single:
        edges = np.arange(n + 1) - 0.5
        per_bar, bands = _bands(run, None)
        every = -(-n // TICKS)
        lower.set_xticks(range(0, n, every), [str(op_id) for op_id in ops.op_ids[::every]])
        lower.set_xlabel("op_id, in order of begin")
        _begin_axis(upper)
        lower.set_xlim(-0.5, n - 0.5)
    else:
        edges = _round_edges(float(ops.begins[0]), float(ops.begins[-1]))
        per_bar, bands = _bands(run, [float(e) for e in edges])
        _begin_axis(lower)
        lower.set_xlim(float(edges[0]), float(edges[-1]))
    _stacks(lower, edges, per_bar, bands, single)
    dress(fig, title, grid="y")
    return fig


def dress(fig: Figure, title: str, grid: Literal["both", "x", "y"] = "both") -> None:
    """What all pictures have: a title, a faint grid behind what is drawn, no frame."""
    for axes in fig.axes:
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis=grid, color="#EEEEEE", linewidth=0.6)
        axes.set_axisbelow(True)
    fig.suptitle(label_of(title, 100), x=0.01, ha="left", fontsize=12, fontweight="bold")


def save(fig: Figure, path: Path, dpi: int) -> None:
    """Writes the picture in the format that the name ends in."""
    suffix = path.suffix.lower()
    # Text stays text in an SVG; the ids are the same at each run.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "opline"}):
        drawn = io.BytesIO()  # a PDF is written here and there: not what a FIFO can do
        fig.savefig(drawn, format=suffix[1:], dpi=dpi, metadata={"Date": None} if suffix == ".svg" else None)
        with complete_file(path) as out:
            out.write(drawn.getbuffer())
