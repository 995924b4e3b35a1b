# SPDX-License-Identifier: MIT
"""Behind what an op waited: what the thread that takes it up did meanwhile for other ops.

Takes stages, each by its name and its two points; gives the mean of each, in parts, from the points that the thread at
its end passed in the meantime. Needs the temporary table `counted` of `stages.select_counted`.

A range of ops is read at a time, with the points that their threads pass from the last one before the first stage
begins to the first one after the last stage ends. Where these two are, the times of each thread's points in a slot of
the run say: SLOTS of them, from one reading of all points.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from opline_analyses.ops.stages import COUNTED_ROWS, counted_ranges

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opline_analyses.runs.run import Run

    Named = tuple[str, str, str]  # a stage and its two points

UNSEEN = "before its thread is seen"
RUNNABLE = "its thread waits for a CPU"  # before it is seen
BETWEEN = "its thread between others"
OWN = "its thread at this op"
BEHIND = "behind"  # work for another op
SLOTS = 1024


class Part(NamedTuple):
    """A part of a stage's mean, ns per counted op. ``what``: UNSEEN, RUNNABLE, BETWEEN, OWN, or ``behind STAGE`` of
    another op.
    """

    what: str
    mean_ns: float


_STAGES = f"""
CREATE OR REPLACE TEMP TABLE waiting AS
SELECT place, op_id, seq, begin_ns AS b, begin_ns + duration_ns AS e, tid
FROM ({COUNTED_ROWS}) JOIN asked USING (stage, from_point, to_point) WHERE duration_ns > 0
"""
_SLOTS = f"""
CREATE OR REPLACE TEMP TABLE slots AS
SELECT tid, ts_ns // (SELECT greatest(1, (max(ts_ns) - min(ts_ns)) // {SLOTS}) FROM transitions) AS slot,
       min(ts_ns) AS first_ns, max(ts_ns) AS last_ns
FROM transitions GROUP BY ALL
"""
_ENDS = """
CREATE OR REPLACE TEMP TABLE ends AS
SELECT tid, coalesce(max(last_ns) FILTER (last_ns <= b), min(first_ns)) AS least_ns,
       coalesce(min(first_ns) FILTER (first_ns >= e), max(last_ns)) AS most_ns
FROM (SELECT tid, min(b) AS b, max(e) AS e FROM waiting GROUP BY tid) JOIN slots USING (tid) GROUP BY tid
"""
_POINTS = """
CREATE OR REPLACE TEMP TABLE passed AS
SELECT tid, ts_ns, op_id, point, row_number() OVER w AS i, lead(ts_ns) OVER w AS until, lead(op_id) OVER w AS next_op,
       lead(point) OVER w AS next
FROM transitions JOIN ends USING (tid)
WHERE ts_ns BETWEEN {least} AND {most} AND ts_ns BETWEEN least_ns AND most_ns
WINDOW w AS (PARTITION BY tid ORDER BY ts_ns, op_id, seq)
"""
# Of points at one moment the last one: between the others no time passes.
_MOMENTS = "SELECT * FROM passed WHERE until IS DISTINCT FROM ts_ns"
# A piece lies between two points that follow each other, and is work where both are of one op. The piece in which the
# stage begins is work, too, or nobody knows since when the thread was awake.
_PARTS = f"""
WITH t AS ({_MOMENTS}),
     a AS (SELECT s.*, t.i AS i0 FROM waiting s ASOF LEFT JOIN t ON s.tid = t.tid AND s.b >= t.ts_ns),
     z AS (SELECT a.*, t.i AS i1 FROM a ASOF JOIN t ON a.tid = t.tid AND a.e > t.ts_ns),
     u AS (SELECT place, op_id AS mine, b, e, tid, i0, unnest(range(coalesce(i0, 1), i1 + 1)) AS i FROM z),
     p AS (SELECT place, least(coalesce(until, e), e) - greatest(ts_ns, b) AS ns, point, next,
                  CASE WHEN op_id = mine AND next_op = mine THEN '{OWN}' WHEN op_id = next_op THEN '{BEHIND}'
                       WHEN i = i0 THEN '{UNSEEN}' ELSE '{BETWEEN}' END AS what
           FROM u JOIN passed USING (tid, i))
SELECT place, what, CASE WHEN what = '{BEHIND}' THEN point END AS f, CASE WHEN what = '{BEHIND}' THEN next END AS t,
       sum(ns)
FROM p GROUP BY ALL
"""
# Of the piece in which the stage begins, where that is nobody's work: since when its thread could have run.
_RUNNABLE = f"""
WITH t AS ({_MOMENTS}),
     first AS (SELECT tid, ts_ns AS first_ns FROM passed WHERE i = 1),
     a AS (SELECT s.*, least(e, coalesce(until, CASE WHEN t.op_id IS NULL THEN first_ns END, e)) AS seen_ns
           FROM waiting s ASOF LEFT JOIN t ON s.tid = t.tid AND s.b >= t.ts_ns
           LEFT JOIN first ON first.tid = s.tid
           WHERE t.op_id IS NULL OR t.op_id IS DISTINCT FROM next_op)
SELECT place, sum(greatest(0, least(x.begin_ns + x.duration_ns, seen_ns) - x.begin_ns))
FROM a JOIN states x ON x.op_id = a.op_id AND x.seq = a.seq AND x.tid = a.tid
WHERE x.state = 'runnable' AND x.op_id BETWEEN {{first}} AND {{last}} GROUP BY place
"""


def parts_of(run: Run, stages: Sequence[tuple[Named, float]]) -> list[list[Part]]:
    """Of each stage, with its mean: the largest part first; they sum to the mean. One part alone: the thread passed no
    other op's point.
    """
    if not stages:
        return []
    (n,) = run.row("SELECT count(*) FROM counted")
    found, runnable = _sums(run, [named for named, _ in stages])
    return [_parts(n, mean_ns, found[place], runnable[place]) for place, (_, mean_ns) in enumerate(stages)]


def _parts(n: int, mean_ns: float, sums: dict[str, int], runnable_ns: int) -> list[Part]:
    found = {what: ns / n for what, ns in sorted(sums.items())}
    unseen = found.pop(UNSEEN, 0.0)
    unseen += mean_ns - unseen - sum(found.values())  # before the thread's first point, or no thread is known
    runnable = min(unseen, runnable_ns / n) if unseen else 0.0
    unseen -= runnable
    found[RUNNABLE] = runnable
    parts = [Part(what, ns) for what, ns in found.items() if ns > 0]
    if unseen > mean_ns * 1e-9:
        parts.append(Part(UNSEEN, unseen))
    return sorted(parts, key=lambda part: (-part.mean_ns, part.what))


def _sums(run: Run, stages: Sequence[Named]) -> tuple[list[dict[str, int]], list[int]]:
    """Of each stage: the time of each part, and the time in which its thread waited for a CPU before it was seen."""
    con = run.con
    con.execute("CREATE OR REPLACE TEMP TABLE asked (place BIGINT, stage TEXT, from_point TEXT, to_point TEXT)")
    con.executemany("INSERT INTO asked VALUES (?, ?, ?, ?)", [(place, *named) for place, named in enumerate(stages)])
    con.execute(_SLOTS)
    names = {
        (f, t): stage for f, t, stage in run.rows("SELECT from_point, to_point, min(stage) FROM stages GROUP BY ALL")
    }
    found: list[dict[str, int]] = [{} for _ in stages]
    runnable = [0] * len(stages)
    for first, last in counted_ranges(run):
        con.execute(_STAGES.format(table="stages", first=first, last=last))
        con.execute(_ENDS)
        least, most = run.row("SELECT min(least_ns), max(most_ns) FROM ends")
        if least is None:
            continue
        con.execute(_POINTS.format(least=least, most=most))
        for place, what, f, t, ns in run.rows(_PARTS):
            if what == BEHIND:
                pair = (base_name(f), base_name(t))
                what = f"{BEHIND} {names.get(pair) or ' → '.join(pair)}"
            found[place][what] = found[place].get(what, 0) + int(ns)
        for place, ns in run.rows(_RUNNABLE.format(first=first, last=last)):
            runnable[place] += int(ns)
    return found, runnable


def base_name(point: str) -> str:
    """A point's name without the number of its recurrence."""
    return re.sub(r"#\d+\Z", "", point)
