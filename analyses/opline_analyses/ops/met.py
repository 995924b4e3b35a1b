# SPDX-License-Identifier: MIT
"""The ops that one op waited behind: the meantime's work, for others, of the thread at the end of each stage.

Takes a run and an op; gives the pieces of its stages covered by another op's work, each with the other op.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from opline_analyses.base.result_table import Column, ResultTable, label, text, time
from opline_analyses.base.screen import WIDTH
from opline_analyses.base.text import count_of, shortened, us
from opline_analyses.ops.oplist import OpDetail
from opline_analyses.ops.transitions import thread_name
from opline_analyses.runs.run import Run

if TYPE_CHECKING:
    from opline_analyses.base.result_table import Part

MOST = 12  # lines per op
COLUMNS = (
    label("stage", "stage"), label("thread", "its thread"), time("ns", "us"), Column("op_id", "op"),
    text("class", "class"), label("object", "object"),
)  # fmt: skip


class Met(NamedTuple):
    """Time of a stage that its thread spent on another op: between two successive points of the other op."""

    seq: int  # of the stage, from 0
    stage: str
    tid: int
    comm: str | None
    op_id: int  # the other op
    op_class: str | None
    object: str | None
    ns: int


# Among the ops in flight meanwhile, whose points are the threads' points from the first op's begin to the stage's end:
# a piece lies between two successive points of a thread, and counts if both points are of one other op.
_MET = r"""
WITH me AS (SELECT ?::BIGINT AS op),
     s AS (SELECT seq, stage, tid, begin_ns AS b, begin_ns + duration_ns AS e FROM stages
           WHERE op_id = (SELECT op FROM me) AND tid IS NOT NULL AND duration_ns > 0),
     near AS (SELECT op_id, begin_ns FROM all_ops, (SELECT min(b) AS b, max(e) AS e FROM s) AS span
              WHERE begin_ns <= span.e AND coalesce(end_ns, begin_ns) >= span.b),
     t AS (SELECT tid, comm, ts_ns, op_id, lead(ts_ns) OVER w AS until, lead(op_id) OVER w AS next_op
           FROM transitions WHERE tid IN (SELECT tid FROM s)
               AND ts_ns BETWEEN (SELECT min(begin_ns) FROM near) AND (SELECT max(e) FROM s)
           WINDOW w AS (PARTITION BY tid ORDER BY ts_ns, op_id, seq))
SELECT s.seq, any_value(s.stage), s.tid, any_value(t.comm), t.op_id, any_value(o.class), any_value(o.object),
       sum(least(until, e) - greatest(ts_ns, b))::BIGINT AS ns
FROM s JOIN t ON t.tid = s.tid AND t.op_id = t.next_op AND t.op_id <> (SELECT op FROM me) AND ts_ns < e AND until > b
     JOIN all_ops o ON o.op_id = t.op_id
GROUP BY s.seq, s.tid, t.op_id ORDER BY s.seq, min(ts_ns), t.op_id
"""


def met(run: Run, op: OpDetail) -> list[Met]:
    """In the order of the stages and of time. Empty: the op's threads passed no other op's points meanwhile, or the run
    has no such points.
    """
    return [Met(*row) for row in run.rows(_MET, (op.op_id,))]


def met_list(found: list[Met]) -> Iterator[Part]:
    """The longest pieces, in order of time."""
    if not found:
        return
    shown = sorted(sorted(found, key=lambda m: -m.ns)[:MOST], key=found.index)
    yield "  behind other ops:"
    rows = [[m.stage, thread_name(m.comm, m.tid), m.ns, m.op_id, m.op_class, m.object] for m in shown]
    yield ResultTable(COLUMNS, rows, gap=" ", indent=2)
    if left := len(found) - len(shown):
        rest = sum(m.ns for m in found) - sum(m.ns for m in shown)
        yield shortened(f"  and {us(rest)} us behind {count_of(left, 'more op')}", WIDTH)
