# SPDX-License-Identifier: MIT
"""The kinds of differences between ops, as questions to a run's tables: class, object, device, thread, queue depth.

Each is SQL that gives a row (op_id, value) per op of a table ``marked`` (op_id), or several rows for an op with several
values. The kinds in ``SLOW`` read more than the table ops.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opline.store.schema import ATTRIBUTES
from opline.talk import shown
from opline.values import Value
from opline_analyses.base.text import device_name
from opline_analyses.ops.thread_names import names_of_threads
from opline_analyses.report.ops import NAME_LENGTH, bucket, size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opline_analyses.runs.run import Run

_OF_OPS = "SELECT op_id, {} AS value FROM ops SEMI JOIN marked USING (op_id)"
_DEPTHS = """SELECT op_id, CASE WHEN depth < 4 THEN depth ELSE pow(2, floor(log2(depth)))::BIGINT END AS value
    FROM (SELECT l.op_id, max(r.in_flight)::BIGINT AS depth
      FROM (SELECT DISTINCT op_id, request_id FROM links SEMI JOIN marked USING (op_id)) l
      JOIN requests r USING (request_id) WHERE r.in_flight IS NOT NULL GROUP BY l.op_id)"""
_THREADS = "SELECT DISTINCT op_id, tid AS value FROM stages SEMI JOIN marked USING (op_id) WHERE tid IS NOT NULL"


class Kind(Value):
    """``several``: an op may have several values, or none, so the counts need not sum to the ops."""

    name: str
    sql: str
    several: bool = False


FAST = (
    Kind("class", _OF_OPS.format("class")),
    Kind("object", _OF_OPS.format("object")),
    Kind("device", _OF_OPS.format("dev")),
    Kind("size", _OF_OPS.format("length_bytes")),
    Kind("begun by", _OF_OPS.format("comm")),
    Kind("process", _OF_OPS.format("pid")),
    Kind("block requests", _OF_OPS.format("request_count")),
    *(Kind(a.kind, _OF_OPS.format(a.column)) for a in ATTRIBUTES),
)
SLOW = (Kind("queue depth met", _DEPTHS), Kind("thread passed", _THREADS, several=True))
KINDS = (*FAST, *SLOW)


def labels(run: Run, kind: Kind, values: Sequence[Any]) -> list[str | None]:
    """The names of these values for people; None: unknown."""
    if kind.name == "thread passed":
        names = names_of_threads(run, [int(v) for v in values])
        return [_name(names[int(v)]) for v in values]
    devices = run.device_names() if kind.name == "device" else {}
    how = {
        "device": lambda v: device_name(devices, v),
        "size": size,
        "queue depth met": bucket,
    }.get(kind.name, str)
    return [None if v is None else _name(how(v)) for v in values]


def _name(text: str) -> str:
    return shown(text)[:NAME_LENGTH]
