# SPDX-License-Identifier: MIT
"""Zipkin's JSON (API v2, what /api/v2/spans takes and its page opens): an op is a trace with its spans.

Source: zipkin-api's zipkin2-api.yaml. Times are whole microseconds; a duration is 1 at least, as there. What was
measured is in the tags `opline.latency_ns` and `opline.duration_ns`. Ids and times: spans.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import BinaryIO

from opline.talk import shown
from opline_analyses.export.json_list import write_list
from opline_analyses.export.spans import SpanOfOp, resource_of, traces
from opline_analyses.runs.run import Run
from opline_analyses.runs.selection import Selection


def _tag(value: str | int | bool) -> str:
    """All tags are texts."""
    return str(value).lower() if isinstance(value, bool) else shown(str(value))


def _span(trace: str, one: SpanOfOp, parent: str | None, service: str) -> str:
    begin_us = one.begin_ns // 1000
    span = {
        "traceId": trace, "id": one.span_id.hex(), "name": shown(one.name), "timestamp": begin_us,
        "duration": max(1, one.end_ns // 1000 - begin_us), "localEndpoint": {"serviceName": service},
        "tags": {key: _tag(value) for key, value in one.attributes.items()},
    }  # fmt: skip
    if parent is not None:
        span["parentId"] = parent
    if one.events:
        span["annotations"] = [{"timestamp": at // 1000, "value": shown(name)} for name, at in one.events]
    return json.dumps(span)


def write(run: Run, which: Selection, out: BinaryIO) -> int:
    """Writes the complete ops among the selected; gives their number."""
    service = shown(resource_of(run).service)
    ops = 0

    def spans() -> Iterator[str]:
        nonlocal ops
        for op in traces(run, which):
            ops += 1
            trace, root = op.trace_id.hex(), op.root.span_id.hex()
            yield _span(trace, op.root, None, service)
            for span in op.below:
                yield _span(trace, span, root, service)

    write_list(out, spans())
    out.write(b"\n")
    return ops
