# SPDX-License-Identifier: MIT
"""An op as the span formats have it: a trace with a root span, and a span in it for each stage and each block request.

Ids follow from the run's first begin and the op_id: the same run gives the same ids.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import NamedTuple

from opline.values import Value
from opline_analyses.base.text import device_name
from opline_analyses.ops.oplist import OpDetail, read_ops
from opline_analyses.ops.places import WAYS
from opline_analyses.runs.run import Run
from opline_analyses.runs.selection import Selection
from opline_analyses.runs.wall_clock import offset_ns

Attributes = dict[str, str | int | bool]


class SpanOfOp(NamedTuple):
    """One span. Times are ns: wall time where the trace knows its offset, else the run's own clock."""

    span_id: bytes  # 8 bytes
    name: str
    begin_ns: int
    end_ns: int
    attributes: Attributes
    events: tuple[tuple[str, int], ...] = ()  # name, ns


class TraceOfOp(NamedTuple):
    """One op: its root span, and the spans below it."""

    trace_id: bytes  # 16 bytes
    root: SpanOfOp
    below: tuple[SpanOfOp, ...]


class Resource(Value):
    """What the spans are of."""

    service: str
    host: str | None


def resource_of(run: Run) -> Resource:
    """The op model's name, and the machine's where the trace has it."""
    (host,) = run.row("SELECT any_value(host) FROM ops")
    return Resource(str((run.manifest.get("model") or {}).get("name", "opline")), host)


def traces(run: Run, which: Selection) -> Iterator[TraceOfOp]:
    """The complete ops among the selected, one at a time."""
    (first,) = run.row("SELECT coalesce(min(begin_ns), 0) FROM ops")
    seed = int(first).to_bytes(8, "big", signed=True)
    offset, names = offset_ns(run) or 0, run.device_names()
    bounds = _bounds(run) if run.is_cluster else {}
    for op in read_ops(run, which.also("o.complete"), with_transitions=False, with_states=False):
        yield _trace(op, seed, offset, names, bounds)


def _bounds(run: Run) -> dict[tuple[int, int], int]:
    """The bound of each stage between two hosts, by its op and when it ends: at the receive of a message."""
    rows = run.rows(f"SELECT op_id, to_ns, bound_ns FROM ({WAYS}) WHERE op_id IS NOT NULL")
    return {(op_id, at_ns): bound for op_id, at_ns, bound in rows}


def _trace(
    op: OpDetail, seed: bytes, offset: int, names: dict[int, str], bounds: dict[tuple[int, int], int]
) -> TraceOfOp:
    assert op.end_ns is not None
    trace_id = hashlib.sha256(seed + op.op_id.to_bytes(8, "big")).digest()[:16]

    def span_id(number: int) -> bytes:
        return hashlib.sha256(trace_id + number.to_bytes(8, "big")).digest()[:8]

    about: Attributes = {"opline.op_id": op.op_id, "opline.tainted": op.tainted}
    about["opline.latency_ns"] = op.end_ns - op.begin_ns
    if op.unattributed_ns is not None:
        about["opline.unattributed_ns"] = op.unattributed_ns
    if op.object is not None:
        about["opline.object"] = op.object
    root = SpanOfOp(span_id(0), op.op_class or "op", op.begin_ns + offset, op.end_ns + offset, about)
    below = []
    host = op.stages[0].host if op.stages else None  # where the stage before ended
    for number, stage in enumerate(op.stages, 1):
        begin = stage.begin_ns + offset
        notes: Attributes = {"opline.kind": stage.kind, "opline.duration_ns": stage.duration_ns}
        if stage.host is not None:
            notes["host.name"] = stage.host
        bound_ns = bounds.get((op.op_id, stage.begin_ns + stage.duration_ns))
        if bound_ns is not None and stage.host != host:
            notes["opline.bound_ns"] = bound_ns
        host = stage.host
        below.append(SpanOfOp(span_id(number), stage.stage, begin, begin + stage.duration_ns, notes))
    for number, request in enumerate(op.requests, len(op.stages) + 1):
        steps = tuple((letter, at + offset) for letter, at in request.steps())
        if not steps:
            continue
        times = [at for _, at in steps]
        notes = {
            "opline.device": device_name(names, request.dev),
            "opline.request_id": request.request_id,
            "opline.shared": request.shared,
        }
        name = f"block request {request.rwbs or ''}".strip()
        below.append(SpanOfOp(span_id(number), name, min(times), max(times), notes, steps))
    return TraceOfOp(trace_id, root, tuple(below))
