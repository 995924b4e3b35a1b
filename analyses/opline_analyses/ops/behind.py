# SPDX-License-Identifier: MIT
"""The parts of a wait behind other ops: what the thread that takes up the op does for other ops meanwhile.

Takes stages, each by its name and its two points; gives the mean of each, in parts, from the points passed meanwhile by
the thread at the stage's end (thread_points.py). Needs the temporary table `counted` of `stages.select_counted`. Reads
a range of ops at a time.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from opline_analyses.ops.stages import COUNTED_ROWS, counted_ranges
from opline_analyses.runs.columns import queried

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from opline_analyses.ops.thread_points import Points
    from opline_analyses.runs.run import Run

    Ints = np.ndarray[Any, np.dtype[np.int64]]
    Named = tuple[str, str, str]  # a stage and its two points

UNSEEN = "before its thread is seen"
RUNNABLE = "its thread waits for a CPU"  # before the thread's first point
BETWEEN = "its thread between others"
OWN = "its thread at this op"
BEHIND = "behind"  # work for another op


class Part(NamedTuple):
    """A part of a stage's mean, ns per counted op. ``what``: UNSEEN, RUNNABLE, BETWEEN, OWN, or ``behind STAGE`` of
    another op.
    """

    what: str
    mean_ns: float


_WAITING = f"""
SELECT place, op_id, seq::BIGINT AS seq, begin_ns, begin_ns + duration_ns AS end_ns, tid
FROM ({COUNTED_ROWS}) JOIN asked USING (stage, from_point, to_point) WHERE duration_ns > 0 AND tid IS NOT NULL
"""
_RUNNABLE = """
SELECT op_id, seq::BIGINT AS seq, tid, begin_ns, duration_ns FROM states
WHERE state = 'runnable' AND op_id BETWEEN {first} AND {last}
"""


def parts_of(run: Run, stages: Sequence[tuple[Named, float]]) -> list[list[Part]]:
    """For each stage, with its mean: the parts, the largest first, with the mean as their sum. A single part: the
    thread passed no point of another op.
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
    """For each stage: the time of each part, and the time of the wait for a CPU before the thread's first point."""
    import numpy as np

    from opline_analyses.ops.thread_points import Points, Slots, Waiting

    con = run.con
    con.execute("CREATE OR REPLACE TEMP TABLE asked (place BIGINT, stage TEXT, from_point TEXT, to_point TEXT)")
    con.executemany("INSERT INTO asked VALUES (?, ?, ?, ?)", [(place, *named) for place, named in enumerate(stages)])
    slots = Slots(run)
    names = {
        (f, t): stage for f, t, stage in run.rows("SELECT from_point, to_point, min(stage) FROM stages GROUP BY ALL")
    }
    found: list[dict[str, int]] = [{} for _ in stages]
    runnable = np.zeros(len(stages), np.int64)
    for first, last in counted_ranges(run, table="transitions"):
        rows = queried(run, _WAITING.format(table="stages", first=first, last=last))
        threads = slots.threads(rows["tid"])
        waiting = Waiting(rows["place"], rows["op_id"], rows["begin_ns"], rows["end_ns"], threads)
        seen_ns = waiting.end_ns.copy()
        known = threads >= 0
        if known.any():
            passed = Points(run, slots, waiting.only(known))
            seen_ns[known] = passed.seen_ns()
            _add(found, passed, names)
        states = queried(run, _RUNNABLE.format(first=first, last=last))
        if len(states["op_id"]) and len(seen_ns):
            np.add.at(runnable, *_runnable(rows, seen_ns, states, first))
    return found, runnable.tolist()


def _add(found: list[dict[str, int]], passed: Points, names: dict[tuple[str, str], str]) -> None:
    """Adds the times of all kinds of pieces under their names."""
    from opline_analyses.ops import thread_points

    plain = {thread_points.OWN: OWN, thread_points.UNSEEN: UNSEEN, thread_points.BETWEEN: BETWEEN}
    sums = passed.sums(len(found))
    points = [base_name(name) for name in passed.names]
    for place, kind in zip(*(at.tolist() for at in sums.nonzero()), strict=True):
        if kind in plain:
            what = plain[kind]
        else:
            begin, end = divmod(kind - thread_points.BEHIND, len(points))
            pair = points[begin], points[end]
            what = f"{BEHIND} {names.get(pair) or ' → '.join(pair)}"
        found[place][what] = found[place].get(what, 0) + int(sums[place, kind])


def _runnable(rows: dict[str, Ints], seen_ns: Ints, states: dict[str, Ints], first: int) -> tuple[Ints, Ints]:
    """The place of each state's stage, and the state's time until ``seen_ns``. Of other stages none."""
    import numpy as np

    size = 1 + max(int(rows["seq"].max()), int(states["seq"].max()))
    stages, of = ((table["op_id"] - first) * size + table["seq"] for table in (rows, states))
    order = np.argsort(stages)
    stages = stages[order]
    at = np.minimum(np.searchsorted(stages, of), len(stages) - 1)
    rightly = (stages[at] == of) & (rows["tid"][order[at]] == states["tid"])
    at, begin, duration = order[at[rightly]], states["begin_ns"][rightly], states["duration_ns"][rightly]
    return rows["place"][at], np.maximum(0, np.minimum(begin + duration, seen_ns[at]) - begin)


def base_name(point: str) -> str:
    """A point's name without the recurrence number."""
    return re.sub(r"#\d+\Z", "", point)
