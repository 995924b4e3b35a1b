# SPDX-License-Identifier: MIT
"""OpenTelemetry's protobuf (OTLP traces): an op is a trace, a stage a span in it, a block request a span in the op.

An ExportTraceServiceRequest, what a collector takes at /v1/traces. It is written in parts, a thousand ops each:
messages of protobuf that follow each other are one message, whose lists are joined (protobuf.dev, Encoding). Ids and
times: spans.py. Written with the classes of the package `opentelemetry-proto`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from opline.talk import shown
from opline_analyses.export.spans import Resource, SpanOfOp, resource_of, traces
from opline_analyses.runs.run import Run
from opline_analyses.runs.selection import Selection

PART_OPS = 1024  # some 5 MB: a collector takes 20 MiB in one request


def _attribute(holder: Any, key: str, value: str | int | bool) -> None:
    one = holder.attributes.add()
    one.key = key
    if isinstance(value, bool):
        one.value.bool_value = value
    elif isinstance(value, int):
        one.value.int_value = value
    else:
        one.value.string_value = shown(value)


def _span(scope: Any, trace: bytes, parent: bytes, one: SpanOfOp) -> None:
    span = scope.spans.add()
    span.trace_id = trace
    span.span_id = one.span_id
    span.parent_span_id = parent
    span.name = shown(one.name)
    span.kind = Span.SPAN_KIND_INTERNAL
    span.start_time_unix_nano = one.begin_ns
    span.end_time_unix_nano = one.end_ns
    for key, value in one.attributes.items():
        _attribute(span, key, value)
    for name, at in one.events:
        event = span.events.add()
        event.name, event.time_unix_nano = name, at


def _part(resource: Resource) -> tuple[ExportTraceServiceRequest, Any]:
    request = ExportTraceServiceRequest()
    spans = request.resource_spans.add()
    _attribute(spans.resource, "service.name", resource.service)
    if resource.host is not None:
        _attribute(spans.resource, "host.name", resource.host)
    scope = spans.scope_spans.add()
    scope.scope.name = "opline"
    return request, scope


def parts(run: Run, which: Selection) -> Iterator[tuple[ExportTraceServiceRequest, int]]:
    """The complete ops among the selected, in requests of PART_OPS each, with the number of ops in it; one at least."""
    resource = resource_of(run)
    request, scope = _part(resource)
    ops = 0
    for op in traces(run, which):
        if ops == PART_OPS:
            yield request, ops
            request, scope = _part(resource)
            ops = 0
        _span(scope, op.trace_id, b"", op.root)
        for span in op.below:
            _span(scope, op.trace_id, op.root.span_id, span)
        ops += 1
    yield request, ops


def write(run: Run, which: Selection, out: BinaryIO) -> int:
    """Writes the complete ops among the selected, a ``write`` for each part; gives their number."""
    total = 0
    for request, ops in parts(run, which):
        out.write(request.SerializeToString(deterministic=True))
        total += ops
    return total
