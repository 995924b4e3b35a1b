# SPDX-License-Identifier: MIT
"""Jaeger's JSON, which its page opens from a file and its query service gives: an op is a trace with its spans.

The fields are those of model/json/model.go of jaegertracing/jaeger 1.x. Its times are whole microseconds: begins and
ends are rounded down, so that spans still nest; what was measured is in the tags `opline.latency_ns` and
`opline.duration_ns`. Ids and times: spans.py.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import BinaryIO

from opline.talk import shown
from opline_analyses.export.json_list import write_list
from opline_analyses.export.spans import SpanOfOp, TraceOfOp, resource_of, traces
from opline_analyses.runs.run import Run
from opline_analyses.runs.selection import Selection

_TYPES = {bool: "bool", int: "int64", str: "string"}


def _tag(key: str, value: str | int | bool) -> str:
    """As JSON; bool is before int, for True is one."""
    text = ("true" if value else "false") if isinstance(value, bool) else _text(value)
    return f'{{"key": "{key}", "type": "{_TYPES[type(value)]}", "value": {text}}}'


@lru_cache(1 << 14)
def _text(value: str | int) -> str:
    return str(value) if isinstance(value, int) else json.dumps(shown(value))


def _span(trace: str, one: SpanOfOp, parent: str | None) -> str:
    """As JSON: millions are written, so no dictionary is made of each."""
    begin_us = one.begin_ns // 1000
    above = f'{{"refType": "CHILD_OF", "traceID": "{trace}", "spanID": "{parent}"}}' if parent is not None else ""
    tags = ", ".join(_tag(key, value) for key, value in one.attributes.items())
    logs = ", ".join(f'{{"timestamp": {at // 1000}, "fields": [{_tag("event", name)}]}}' for name, at in one.events)
    return (
        f'{{"traceID": "{trace}", "spanID": "{one.span_id.hex()}", "operationName": {_text(one.name)}, '
        f'"references": [{above}], "startTime": {begin_us}, "duration": {one.end_ns // 1000 - begin_us}, '
        f'"tags": [{tags}], "logs": [{logs}], "processID": "p1", "warnings": null}}'
    )


def _trace(op: TraceOfOp, process: str) -> str:
    trace, root = op.trace_id.hex(), op.root.span_id.hex()
    spans = ", ".join((_span(trace, op.root, None), *(_span(trace, span, root) for span in op.below)))
    return f'{{"traceID": "{trace}", "spans": [{spans}], "processes": {{"p1": {process}}}, "warnings": null}}'


def write(run: Run, which: Selection, out: BinaryIO) -> int:
    """Writes the complete ops among the selected; gives their number."""
    resource = resource_of(run)
    tags = _tag("hostname", resource.host) if resource.host is not None else ""
    process = f'{{"serviceName": {_text(resource.service)}, "tags": [{tags}]}}'
    out.write(b'{"data": ')
    ops = write_list(out, (_trace(op, process) for op in traces(run, which)))
    out.write(b', "total": %d, "limit": 0, "offset": 0, "errors": null}\n' % ops)
    return ops
