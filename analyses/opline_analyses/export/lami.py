# SPDX-License-Identifier: MIT
"""LAMI 1.0, the LTTng analyses' machine interface (lttng/lami-spec, lami.adoc v1.0.1): tables of results.

One analysis results object with two tables, whose classes are given in place: the latencies per class, and the stages
as `opline stages` has them. Durations are nanoseconds. Timestamps are since 1970 where the trace knows its offset,
else those of the run's clock.
"""

from __future__ import annotations

import json
from typing import Any, BinaryIO

from opline.talk import shown
from opline_analyses.ops.stages import StageRow, stage_table
from opline_analyses.runs.run import Run
from opline_analyses.runs.selection import Selection
from opline_analyses.runs.wall_clock import offset_ns

Json = dict[str, Any]


def _columns(*columns: tuple[str, str]) -> list[Json]:
    return [{"title": title, "class": kind} | ({"unit": "ops"} if kind == "number" else {}) for title, kind in columns]


_SUMS = (("Mean", "duration"), ("Maximum", "duration"), ("Sum", "duration"))
_TIMES = (
    *(("Mean", "duration"), ("p50", "duration"), ("p90", "duration"), ("p99", "duration"), ("p99.9", "duration")),
    *(("Maximum", "duration"), ("Sum", "duration")),
)
CLASSES: Json = {
    "title": "Latency of ops by class",
    "column-descriptions": _columns(("Class", "string"), ("Count", "number"), *_SUMS),
}
STAGES: Json = {
    "title": "Stages of ops",
    "column-descriptions": _columns(
        ("Stage", "string"), ("Kind", "string"), ("Count", "number"), *_TIMES, ("Share of the latency", "ratio")
    ),
}
MI_VERSION = "1.0"


def metadata() -> str:
    """What a viewer asks first, as JSON (lami.adoc, "Metadata object")."""
    from opline import __version__

    major, minor, patch, *_ = (*__version__.split("."), "0", "0")
    found: Json = {
        "mi-version": {"major": 1, "minor": 0},
        "version": {"major": int(major), "minor": int(minor), "patch": int(patch.partition("+")[0]), "extra": ""},
        "title": "opline",
        "description": "Latencies of application operations by class, and their stages",
        "authors": ["opline"],
        "tags": ["io", "latency"],
        "table-classes": {"classes": CLASSES, "stages": STAGES},
    }
    return json.dumps(found)


_CLASSES = """SELECT class, count(*), avg(latency_ns), max(latency_ns), sum(latency_ns)::HUGEINT
    FROM ops SEMI JOIN counted USING (op_id) GROUP BY class ORDER BY class"""


def _of(kind: str, value: Any) -> Json:
    return {"class": kind, "value": value} if value is not None else {"class": "unknown"}


def _name(text: str | None) -> Json:
    return _of("string", shown(text) if text is not None else None)


def _stage(row: StageRow, whole_ns: int) -> list[Json]:
    times = (row.mean_ns, row.p50_ns, row.p90_ns, row.p99_ns, row.p999_ns, row.max_ns, row.total_ns)
    share = row.total_ns / whole_ns if whole_ns else None
    figures = [_of("number", row.count), *(_of("duration", ns) for ns in times), _of("ratio", share)]
    return [_name(row.stage), _name(row.kind or None), *figures]


def write(run: Run, which: Selection, out: BinaryIO) -> int:
    """Writes the ops that count, as in `opline stages`; gives their number. Raises OplineError where no op counts."""
    table = stage_table(run, which)
    classes = [
        [_name(name), _of("number", count), *(_of("duration", ns) for ns in times)]
        for name, count, *times in run.rows(_CLASSES)
    ]
    rest = [table.unattributed] if table.unattributed.count else []
    stages = [_stage(row, table.latency.total_ns) for row in (*table.stages, *rest)]
    offset = offset_ns(run) or 0
    ends = run.row("SELECT min(begin_ns), max(end_ns) FROM ops SEMI JOIN counted USING (op_id)")
    begin, end = (_of("timestamp", at + offset) for at in ends)
    within = {"class": "time-range", "begin": begin, "end": end}
    tables = [{"time-range": within, "class": CLASSES, "data": classes}]
    tables.append({"time-range": within, "class": STAGES, "data": stages})
    out.write(json.dumps({"results": tables}).encode() + b"\n")
    return table.ops
