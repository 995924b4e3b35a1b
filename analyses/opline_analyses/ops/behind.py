# SPDX-License-Identifier: MIT
"""Behind what an op waited: what the thread that takes it up did meanwhile for other ops.

Takes a stage's name and its two points; gives its mean, in parts, from the points that the thread at its end passed in
the meantime. Needs the temporary table `counted` of `stages.select_counted`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from opline_analyses.runs.run import Run

UNSEEN = "before its thread is seen"
RUNNABLE = "its thread waits for a CPU"  # before it is seen
BETWEEN = "its thread between others"
OWN = "its thread at this op"


class Part(NamedTuple):
    """A part of a stage's mean, ns per counted op. ``what``: UNSEEN, RUNNABLE, BETWEEN, OWN, or ``behind STAGE`` of
    another op.
    """

    what: str
    mean_ns: float


# The stage of each op, and the points of the threads at their ends, in their order.
_THREADS = r"""
WITH s AS (SELECT op_id, seq, begin_ns AS b, begin_ns + duration_ns AS e, tid
           FROM stages SEMI JOIN counted USING (op_id)
           WHERE stage = ? AND from_point = ? AND to_point = ? AND duration_ns > 0),
     t AS (SELECT tid, ts_ns, op_id, regexp_replace(point, '#\d+$', '') AS point,
                  row_number() OVER w AS i, lead(ts_ns) OVER w AS until, lead(op_id) OVER w AS next_op,
                  regexp_replace(lead(point) OVER w, '#\d+$', '') AS next
           FROM transitions SEMI JOIN s USING (tid) WINDOW w AS (PARTITION BY tid ORDER BY ts_ns, op_id, seq)),
"""
# A piece lies between two points that follow each other, and is work where both are of one op. The piece in which the
# stage begins is work, too, or nobody knows since when the thread was awake.
_PARTS = rf"""{_THREADS}
     a AS (SELECT s.*, t.i AS i0 FROM s ASOF LEFT JOIN t ON s.tid = t.tid AND s.b >= t.ts_ns),
     z AS (SELECT a.*, t.i AS i1 FROM a ASOF JOIN t ON a.tid = t.tid AND a.e > t.ts_ns),
     u AS (SELECT op_id AS mine, b, e, tid, i0, unnest(range(coalesce(i0, 1), i1 + 1)) AS i FROM z),
     p AS (SELECT least(coalesce(until, e), e) - greatest(ts_ns, b) AS ns,
                  CASE WHEN op_id = mine AND next_op = mine THEN '{OWN}'
                       WHEN op_id = next_op THEN 'behind ' || coalesce(n.name, point || ' → ' || next)
                       WHEN i = i0 THEN '{UNSEEN}' ELSE '{BETWEEN}' END AS what
           FROM u JOIN t USING (tid, i)
           LEFT JOIN (SELECT from_point, to_point, any_value(stage ORDER BY stage) AS name FROM stages GROUP BY ALL) n
               ON n.from_point = point AND n.to_point = next)
SELECT what, sum(ns)::DOUBLE FROM p GROUP BY ALL
"""


# Of the piece in which the stage begins, where that is nobody's work: since when its thread could have run.
_RUNNABLE = f"""{_THREADS}
     first AS (SELECT tid, ts_ns AS first_ns FROM t WHERE i = 1),
     a AS (SELECT s.*, least(e, coalesce(until, CASE WHEN t.op_id IS NULL THEN first_ns END, e)) AS seen_ns
           FROM s ASOF LEFT JOIN t ON s.tid = t.tid AND s.b >= t.ts_ns LEFT JOIN first ON first.tid = s.tid
           WHERE t.op_id IS NULL OR t.op_id IS DISTINCT FROM next_op)
SELECT coalesce(sum(greatest(0, least(x.begin_ns + x.duration_ns, seen_ns) - x.begin_ns)), 0)::DOUBLE
FROM a JOIN states x ON x.op_id = a.op_id AND x.seq = a.seq AND x.tid = a.tid WHERE x.state = 'runnable'
"""


def parts_of(run: Run, stage: str, from_point: str, to_point: str, mean_ns: float) -> list[Part]:
    """The largest first; they sum to the stage's mean. One part alone: the thread passed no other op's point."""
    (n,) = run.row("SELECT count(*) FROM counted")
    found = {str(what): ns / n for what, ns in run.rows(_PARTS, (stage, from_point, to_point))}
    unseen = found.pop(UNSEEN, 0.0)
    unseen += mean_ns - unseen - sum(found.values())  # before the thread's first point, or no thread is known
    runnable = min(unseen, run.row(_RUNNABLE, (stage, from_point, to_point))[0] / n) if unseen else 0.0
    unseen -= runnable
    found[RUNNABLE] = runnable
    parts = [Part(what, ns) for what, ns in found.items() if ns > 0]
    if unseen > mean_ns * 1e-9:
        parts.append(Part(UNSEEN, unseen))
    return sorted(parts, key=lambda part: (-part.mean_ns, part.what))
