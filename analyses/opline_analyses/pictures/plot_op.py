# SPDX-License-Identifier: MIT
"""The picture of one op, a waterfall: threads as rows, its stages as bars, its block requests below, step by step.

Takes an op whole (oplist.read_ops) and the names of its threads; gives a matplotlib figure. Time runs from the op's
begin. Where the op passes from one thread to another an arrow says so. What no stage claims is hatched. Where the run
has the threads' states, a strip below each stage says when its thread did what; paler: how long, but not when; unknown
is hatched.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from matplotlib.figure import Figure
from matplotlib.patches import Patch

from opline.talk import shown
from opline_analyses.base.colours import STATES, STATES_UNKNOWN, UNATTRIBUTED, stage_colour
from opline_analyses.base.text import count_of, device_name, percent, plain_us
from opline_analyses.ops.transitions import header_of
from opline_analyses.pictures.plot import NS_PER_US, dress, label_of, time_axis

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes

    from opline_analyses.ops.oplist import InState, Interval, OpDetail, Request

COMPLETION = "block completion"  # the row of stages that no thread ends
MOST_REQUESTS = 24
MOST_STAGES = 16  # in the legend
_ROW_INCHES = 0.34
_ARROW = {
    "arrowstyle": "-|>", "color": "#444444", "linewidth": 0.7, "mutation_scale": 7, "shrinkA": 0, "shrinkB": 0,
}  # fmt: skip
_STRIP = 0.13  # of a row
UNTIMED_ALPHA = 0.45  # how long, not when
_NARROW = 0.035  # of the picture's width: a bar that is narrower has no letters in it


def figure(op: OpDetail, threads: Mapping[int, str], title: str) -> Figure:
    """The picture of a complete op. ``threads``: a name for each thread of its stages."""
    assert op.latency_ns is not None
    requests = sorted(op.requests, key=lambda r: next((at for _, at in r.steps()), op.begin_ns))[:MOST_REQUESTS]
    rows = list(dict.fromkeys(_row(stage.tid, threads) for stage in op.stages))
    rows.sort(key=lambda row: row == COMPLETION)  # next to the requests
    height = 2.2 + _ROW_INCHES * (len(rows) + len(requests))
    fig = Figure(figsize=(11, max(height, 3.4)), layout="constrained")
    axes = fig.subplots()
    place = {name: n for n, name in enumerate(rows)}
    _stages(axes, op, [place[_row(stage.tid, threads)] for stage in op.stages])
    labels = [shown(name) for name in rows]
    for n, request in enumerate(requests, start=len(rows)):
        _request(axes, op, request, n)
        labels.append(shown(_request_label(request, op.devices)))
    left_out = len(op.requests) - len(requests)
    axes.set_yticks(range(len(labels)), labels, fontsize=8)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.set_xlim(0, max(op.latency_ns, 1) / NS_PER_US)
    more = f"; {count_of(left_out, 'more block request')} not shown" if left_out else ""
    time_axis(axes.xaxis, f"time since the op's begin{more}")
    _legend(axes, op)
    axes.set_title(label_of(header_of(op), 120), loc="left", fontsize=10)
    dress(fig, title, grid="x")
    return fig


def _row(tid: int | None, threads: Mapping[int, str]) -> str:
    return COMPLETION if tid is None else threads[tid]


def _stages(axes: Axes, op: OpDetail, places: list[int]) -> None:
    assert op.latency_ns is not None
    at_ns = op.begin_ns
    parts: dict[int, list[InState]] = {}
    for part in op.states:
        parts.setdefault(part.seq, []).append(part)
    for seq, (place, stage) in enumerate(zip(places, op.stages, strict=True)):
        if stage.begin_ns > at_ns:
            gap = (at_ns - op.begin_ns) / NS_PER_US, (stage.begin_ns - at_ns) / NS_PER_US
            _bar(axes, place, *gap, UNATTRIBUTED, True)
        begin, width = (stage.begin_ns - op.begin_ns) / NS_PER_US, stage.duration_ns / NS_PER_US
        _bar(axes, place, begin, width, stage_colour(stage.stage, stage.kind), stage.kind == "unknown")
        if any(other.on_cpu_ns is not None for other in op.stages):
            _strip(axes, place, begin, stage, [(p.state, p.duration_ns) for p in parts.get(seq, ())])
        at_ns = stage.begin_ns + stage.duration_ns
    for (a, one), (b, two) in pairwise(zip(places, op.stages, strict=True)):
        if a != b:
            at = (two.begin_ns - op.begin_ns) / NS_PER_US
            since = (one.begin_ns + one.duration_ns - op.begin_ns) / NS_PER_US
            axes.annotate("", xy=(at, b), xytext=(since, a), zorder=3, arrowprops=_ARROW)
    end_ns = op.begin_ns + op.latency_ns
    if places and at_ns < end_ns:
        _bar(axes, places[-1], (at_ns - op.begin_ns) / NS_PER_US, (end_ns - at_ns) / NS_PER_US, UNATTRIBUTED, True)


def _bar(
    axes: Axes, place: float, begin: float, width: float, colour: str, hatched: bool, height: float = 0.62,
    alpha: float = 1, edge: float = 0.6,
) -> None:  # fmt: skip
    axes.barh(
        place, width, left=begin, height=height, color=colour, edgecolor="white" if hatched else colour,
        linewidth=edge, hatch="////" if hatched else None, alpha=alpha,
    )  # fmt: skip


def _strip(axes: Axes, place: int, begin: float, stage: Interval, parts: list[tuple[str, int]]) -> None:
    """What the thread did in the stage: ``parts`` in time order, or where there are none the sums, paler."""
    below = place + 0.31 + _STRIP / 2
    if stage.on_cpu_ns is None:
        _bar(axes, below, begin, stage.duration_ns / NS_PER_US, UNATTRIBUTED, True, height=_STRIP)
        return
    timed = bool(parts)
    parts = parts or [(name.removesuffix("_ns"), getattr(stage, name) or 0) for name in STATES]
    for state, ns in parts:
        if ns:
            colour = STATES[f"{state}_ns"][1]
            _bar(axes, below, begin, ns / NS_PER_US, colour, False, _STRIP, 1 if timed else UNTIMED_ALPHA, 0)
        begin += ns / NS_PER_US


def _request_label(request: Request, devices: dict[int, str]) -> str:
    size = f" {request.nr_sectors * 512} B" if request.nr_sectors is not None else ""
    many = ", shared" if request.shared else ""
    return f"{device_name(devices, request.dev)} {request.rwbs or ''}{size}{many}"


def _request(axes: Axes, op: OpDetail, request: Request, place: int) -> None:
    assert op.latency_ns is not None
    wide = _NARROW * op.latency_ns
    for (a, begin), (b, end) in pairwise(request.steps()):
        if end < begin:
            continue
        name = f"{a}2{b}"
        at = (begin - op.begin_ns) / NS_PER_US
        kind = "device" if name == "D2C" else "block"
        _bar(axes, place, at, (end - begin) / NS_PER_US, stage_colour(name, kind), False, height=0.46)
        if end - begin >= wide:
            middle = at + (end - begin) / NS_PER_US / 2
            axes.text(middle, place, name, ha="center", va="center", fontsize=7, color="black", clip_on=True)


def _legend(axes: Axes, op: OpDetail) -> None:
    """Each stage once, in the order in which the op met it, with what it took in all."""
    assert op.latency_ns is not None
    totals: dict[tuple[str, str], int] = {}
    for stage in op.stages:
        totals[stage.stage, stage.kind] = totals.get((stage.stage, stage.kind), 0) + stage.duration_ns
    widest = set(sorted(totals, key=lambda key: -totals[key])[:MOST_STAGES])
    entries = [(key, total) for key, total in totals.items() if key in widest]
    handles = [
        Patch(
            facecolor=stage_colour(*key), edgecolor="white", hatch="////" if key[1] == "unknown" else None,
            label=f"{label_of(key[0], 36)}  {plain_us(total)}  {percent(total, op.latency_ns)}%",
        )
        for key, total in entries
    ]  # fmt: skip
    rest = sum(totals.values()) - sum(total for _, total in entries)
    if rest:
        handles.append(Patch(facecolor="none", label=f"{len(totals) - len(entries)} other stages  {plain_us(rest)}"))
    if op.unattributed_ns:
        handles.append(
            Patch(
                facecolor=UNATTRIBUTED, edgecolor="white", hatch="////",
                label=f"unattributed  {plain_us(op.unattributed_ns)}  {percent(op.unattributed_ns, op.latency_ns)}%",
            )
        )  # fmt: skip
    if any(stage.on_cpu_ns is not None for stage in op.stages):
        handles.append(Patch(facecolor="none", label="strip below a stage: when its"))
        handles.append(Patch(facecolor="none", label="thread did what"))
        for name, (text, colour) in STATES.items():
            total = sum(getattr(stage, name) or 0 for stage in op.stages)
            handles.append(Patch(facecolor=colour, label=f"{text}  {plain_us(total)}"))
        unknown = sum(stage.duration_ns for stage in op.stages if stage.on_cpu_ns is None)
        timed = {part.seq for part in op.states}
        if any(s.on_cpu_ns is not None and s.duration_ns and n not in timed for n, s in enumerate(op.stages)):
            handles.append(Patch(facecolor="none", label="paler: how long, not when"))
        if unknown:
            label = f"{STATES_UNKNOWN}  {plain_us(unknown)}"
            handles.append(Patch(facecolor=UNATTRIBUTED, edgecolor="white", hatch="////", label=label))
    axes.legend(
        handles=handles, loc="upper left", bbox_to_anchor=(1.01, 0.98), frameon=False, fontsize=8, borderaxespad=0
    )
