# SPDX-License-Identifier: MIT
"""OpenTelemetry's JSON (OTLP traces): what otlp.py writes as protobuf, a line for each part.

The rules of OTLP's specification (opentelemetry-proto 1.3, "JSON Protobuf Encoding"): protobuf's own, but
ids are hexadecimal and enums are numbers. A line is what a collector takes in one request, and the lines are what its
otlpjsonfile receiver reads.
"""

from __future__ import annotations

import base64
import json
from typing import Any, BinaryIO

from google.protobuf.json_format import MessageToDict

from opline_analyses.export.otlp import parts
from opline_analyses.runs.run import Run
from opline_analyses.runs.selection import Selection

IDS = ("traceId", "spanId", "parentSpanId")


def _hexadecimal(span: dict[str, Any]) -> None:
    for key in IDS:
        if key in span:
            span[key] = base64.b64decode(span[key]).hex()


def write(run: Run, which: Selection, out: BinaryIO) -> int:
    """Writes the complete ops among the selected, a ``write`` for each part; gives their number."""
    total = 0
    for request, ops in parts(run, which):
        found = MessageToDict(request, use_integers_for_enums=True)
        for resource in found["resourceSpans"]:
            for scope in resource["scopeSpans"]:
                for span in scope.get("spans", ()):
                    _hexadecimal(span)
        out.write(json.dumps(found, separators=(",", ":")).encode() + b"\n")
        total += ops
    return total
