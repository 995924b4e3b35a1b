# SPDX-License-Identifier: MIT
"""The precision of stages between two hosts: bounds, and the round trip of a hop, which needs no clock.

Takes a run of a cluster, with the temporary table ``counted`` of the counted ops.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opline_analyses.ops.places import BETWEEN, WAYS
from opline_analyses.ops.stages import BothWays

if TYPE_CHECKING:
    from opline_analyses.runs.run import Run


def stage_bounds(run: Run) -> dict[str, int]:
    """For each stage that begins on one host and ends on another: the largest error of mean and percentiles, in ns. The
    error is common to all ops, so the error does not shrink with their number. Between a message's send and receive,
    the first stage that ends on the receiving thread counts.
    """
    rows = run.rows(
        f"""WITH first AS (
               SELECT arg_min(s.stage, s.seq) AS stage, any_value(w.bound_ns) AS bound_ns
               FROM ({WAYS}) w JOIN counted USING (op_id) JOIN stages s
               ON s.op_id = w.op_id AND s.tid = w.tid AND coalesce(s.host = w.receiver, true)
                   AND s.begin_ns >= w.from_ns AND s.begin_ns + s.duration_ns <= w.to_ns
               GROUP BY w.op_id, w.from_ns, w.to_ns)
           SELECT stage, max(bound_ns) FROM first GROUP BY stage"""
    )
    return {stage: int(bound) for stage, bound in rows}


def place_bounds(run: Run) -> dict[str, int]:
    """The same for the ways between two hosts, by their names in opline_analyses.ops.places. A host's own time has no
    bound.
    """
    rows = run.rows(
        f"""SELECT sender || '{BETWEEN}' || receiver, max(bound_ns) FROM ({WAYS}) JOIN counted USING (op_id)
            GROUP BY ALL"""
    )
    return {place: int(bound) for place, bound in rows}


def both_ways(run: Run) -> list[BothWays]:
    """For the counted ops' hops with a known answer."""
    rows = run.rows(
        """SELECT parent_host, child_host, count(*), avg(both_ns), max(bound_ns) FROM hops JOIN counted USING (op_id)
           WHERE both_ns IS NOT NULL GROUP BY parent_host, child_host ORDER BY parent_host, child_host"""
    )
    return [BothWays(*row) for row in rows]
