# SPDX-License-Identifier: MIT
"""OpenTelemetry's protobuf (OTLP traces): an op is a trace, a stage a span in it, a block request a span in the op.

One ExportTraceServiceRequest, what a collector takes at /v1/traces. Ids follow from the run's first begin and the
op_id: the same run gives the same ids. Times are wall time where the trace knows its offset,
else the run's own clock. Written with the classes of the package `opentelemetry-proto`.
"""

from __future__ import annotations

import hashlib
from typing import Any, BinaryIO

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from opline.talk import shown
from opline_analyses.oplist import OpDetail, read_ops
from opline_analyses.run import Run
from opline_analyses.selection import Selection
from opline_analyses.text import device_name
from opline_analyses.wall_clock import offset_ns


def _attribute(holder: Any, key: str, value: str | int | bool) -> None:
    one = holder.attributes.add()
    one.key = key
    if isinstance(value, bool):
        one.value.bool_value = value
    elif isinstance(value, int):
        one.value.int_value = value
    else:
        one.value.string_value = shown(value)


def _span(scope: Any, trace: bytes, number: int, parent: bytes, name: str, begin_ns: int, end_ns: int) -> Any:
    span = scope.spans.add()
    span.trace_id = trace
    span.span_id = hashlib.sha256(trace + number.to_bytes(8, "big")).digest()[:8]
    span.parent_span_id = parent
    span.name = shown(name)
    span.kind = Span.SPAN_KIND_INTERNAL
    span.start_time_unix_nano = begin_ns
    span.end_time_unix_nano = end_ns
    return span


def _add(scope: Any, op: OpDetail, seed: bytes, offset: int, names: dict[int, str]) -> None:
    assert op.end_ns is not None
    trace = hashlib.sha256(seed + op.op_id.to_bytes(8, "big")).digest()[:16]
    root = _span(scope, trace, 0, b"", op.op_class or "op", op.begin_ns + offset, op.end_ns + offset)
    _attribute(root, "opline.op_id", op.op_id)
    _attribute(root, "opline.tainted", op.tainted)
    _attribute(root, "opline.unattributed_ns", op.unattributed_ns or 0)
    if op.object is not None:
        _attribute(root, "opline.object", op.object)
    for number, stage in enumerate(op.stages, 1):
        begin = stage.begin_ns + offset
        span = _span(scope, trace, number, root.span_id, stage.stage, begin, begin + stage.duration_ns)
        _attribute(span, "opline.kind", stage.kind)
    for number, request in enumerate(op.requests, len(op.stages) + 1):
        steps = {
            letter: at + offset
            for letter, at in zip(
                "QGIDC",
                (request.queue_ns, request.getrq_ns, request.insert_ns, request.issue_ns, request.complete_ns),
                strict=True,
            )
            if at is not None
        }
        if not steps:
            continue
        name = f"block request {request.rwbs or ''}".strip()
        span = _span(scope, trace, number, root.span_id, name, min(steps.values()), max(steps.values()))
        _attribute(span, "opline.device", device_name(names, request.dev))
        _attribute(span, "opline.request_id", request.request_id)
        _attribute(span, "opline.shared", request.shared)
        for letter, at in steps.items():
            event = span.events.add()
            event.name, event.time_unix_nano = letter, at


def write(run: Run, which: Selection, out: BinaryIO) -> int:
    """Writes the complete ops among the selected; gives their number."""
    offset = offset_ns(run) or 0
    request = ExportTraceServiceRequest()
    resource = request.resource_spans.add()
    _attribute(resource.resource, "service.name", str((run.manifest.get("model") or {}).get("name", "opline")))
    (host, first) = run.row("SELECT any_value(host), coalesce(min(begin_ns), 0) FROM ops")
    if host is not None:
        _attribute(resource.resource, "host.name", host)
    scope = resource.scope_spans.add()
    scope.scope.name = "opline"
    seed = int(first).to_bytes(8, "big", signed=True)
    names = run.device_names()
    ops = 0
    for op in read_ops(run, which.also("o.complete")):
        _add(scope, op, seed, offset, names)
        ops += 1
    out.write(request.SerializeToString(deterministic=True))
    return ops
