# SPDX-License-Identifier: MIT
"""OpenMetrics 1.0 (https://prometheus.io/docs/specs/om/open_metrics_spec): histograms of latencies and stages, for
Prometheus and what reads its text.

Buckets are the same for every run: 1, 2, 5 of each power of ten from 1 µs to 100 s. Sums are exact: seconds with nine
decimals are whole nanoseconds. A stage that recurs in an op adds up to one value per op, as in `opline stages`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import BinaryIO

from opline.talk import shown
from opline_analyses.ops.stages import COUNTED_ROWS, counted_ranges, select_counted
from opline_analyses.runs.run import Run
from opline_analyses.runs.selection import Selection

EDGES_NS = (*(digit * 10**power for power in range(3, 11) for digit in (1, 2, 5)), 10**11)
_UPTO = ", ".join(f"count(*) FILTER (ns <= {edge})" for edge in EDGES_NS)
_LATENCIES = f"""SELECT class, count(*), sum(ns)::BIGINT, {_UPTO} FROM (
    SELECT class, latency_ns AS ns FROM ops SEMI JOIN counted USING (op_id)) GROUP BY class ORDER BY class"""
_STAGES = f"""SELECT class, stage, kind, count(*), sum(ns)::BIGINT, {_UPTO} FROM (
    SELECT o.class, s.stage, any_value(s.kind) AS kind, sum(s.duration_ns)::BIGINT AS ns
    FROM ({{rows}}) s JOIN ops o USING (op_id)
    WHERE o.op_id BETWEEN {{first}} AND {{last}} GROUP BY o.class, s.op_id, s.stage)
    GROUP BY ALL"""
PART_OPS = 1 << 17  # whose times per stage are held at once
_UNATTRIBUTED = f"""SELECT class, count(*), sum(ns)::BIGINT, {_UPTO} FROM (
    SELECT class, unattributed_ns AS ns FROM ops SEMI JOIN counted USING (op_id)) WHERE ns > 0
    GROUP BY class ORDER BY class"""


def seconds(ns: int) -> str:
    """Nanoseconds as seconds, exactly."""
    return f"{ns // 10**9}.{ns % 10**9:09d}"


def _labels(**labels: str | None) -> str:
    """What is unknown has no label."""
    known = {k: shown(v).replace("\\", "\\\\").replace('"', '\\"') for k, v in labels.items() if v is not None}
    return ",".join(f'{key}="{value}"' for key, value in known.items())


def _family(out: BinaryIO, name: str, kind: str, meaning: str, unit: str | None = None) -> None:
    lines = [f"# TYPE {name} {kind}", *([f"# UNIT {name} {unit}"] if unit else []), f"# HELP {name} {meaning}"]
    out.write("".join(f"{line}\n" for line in lines).encode())


def _histogram(out: BinaryIO, name: str, labels: str, count: int, total_ns: int, upto: Sequence[int]) -> None:
    before = f"{labels}," if labels else ""
    edges = [repr(edge / 10**9) for edge in EDGES_NS]  # canonical: 1e-06, 0.001, 1.0, 100.0
    lines = [f'{name}_bucket{{{before}le="{e}"}} {n}' for e, n in zip(edges, upto, strict=True)]
    lines.append(f'{name}_bucket{{{before}le="+Inf"}} {count}')
    inside = f"{{{labels}}}" if labels else ""
    lines += [f"{name}_count{inside} {count}", f"{name}_sum{inside} {seconds(total_ns)}"]
    out.write("".join(f"{line}\n" for line in lines).encode())


def _stages(run: Run) -> list[tuple[str | None, str, str, int, int, list[int]]]:
    """Class, stage and kind, the number of ops, their sum, and those up to each edge; part by part of the ops."""
    found: dict[tuple[str | None, str, str], list[int]] = {}
    for first, last in counted_ranges(run, PART_OPS):
        rows = COUNTED_ROWS.format(table="stages", first=first, last=last)
        for op_class, stage, kind, *numbers in run.rows(_STAGES.format(rows=rows, first=first, last=last)):
            before = found.setdefault((op_class, stage, kind), [0] * len(numbers))
            before[:] = [a + b for a, b in zip(before, numbers, strict=True)]
    order = sorted(found, key=lambda key: (key[0] is None, key[0] or "", *key[1:]))  # as SQL orders what is unknown
    return [(*key, found[key][0], found[key][1], found[key][2:]) for key in order]


def write(run: Run, which: Selection, out: BinaryIO) -> int:
    """Writes the ops that count, as in `opline stages`; gives their number."""
    ops, incomplete, tainted = select_counted(run, which, False)
    name = "opline_op_latency_seconds"
    _family(out, name, "histogram", "Latency of ops.", "seconds")
    for op_class, count, total, *upto in run.rows(_LATENCIES):
        _histogram(out, name, _labels(**{"class": op_class}), count, total, upto)
    name = "opline_stage_duration_seconds"
    _family(out, name, "histogram", "Time of an op in a stage, in the ops that have it.", "seconds")
    for op_class, stage, kind, count, total, upto in _stages(run):
        _histogram(out, name, _labels(**{"class": op_class, "stage": stage, "kind": kind}), count, total, upto)
    name = "opline_op_unattributed_seconds"
    _family(out, name, "histogram", "Time of an op that no stage claims, in the ops that have some.", "seconds")
    for op_class, count, total, *upto in run.rows(_UNATTRIBUTED):
        _histogram(out, name, _labels(**{"class": op_class}), count, total, upto)
    _family(out, "opline_ops", "counter", "Ops of the run: those counted here, and those left out.")
    for fate, number in (("counted", ops), ("incomplete", incomplete), ("tainted", tainted)):
        out.write(f"opline_ops_total{{{_labels(fate=fate)}}} {number}\n".encode())
    _family(out, "opline_losses", "counter", "What the whole run is known to have lost, by kind (docs/losses.md).")
    for loss, severity, number in run.rows(
        "SELECT loss, severity, sum(count)::BIGINT FROM losses GROUP BY ALL ORDER BY ALL"
    ):
        out.write(f"opline_losses_total{{{_labels(loss=loss, severity=severity)}}} {number}\n".encode())
    out.write(b"# EOF\n")
    return ops
