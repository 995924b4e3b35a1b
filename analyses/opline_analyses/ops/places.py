# SPDX-License-Identifier: MIT
"""The places of an op's time in a joined run: on each host, and between two hosts.

A stage that begins on a thread of one host and ends on a thread of another lies between the hosts. All other stages lie
on the host of their thread or device. In integers: the places and unattributed_ns sum to the latency, like the stages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opline_analyses.ops.stages import StageRow, StageTable, stage_table

if TYPE_CHECKING:
    from opline_analyses.runs.run import Run
    from opline_analyses.runs.selection import Selection

BETWEEN = " to "  # of the names of two hosts
#: SQL of the ways between two hosts, there and back, in a run with the table `hops`: from the send to the receive, on
#: the receiving thread.
WAYS = """
    SELECT op_id, parent_host AS sender, child_host AS receiver, sent_ns AS from_ns, received_ns AS to_ns,
           receive_tid AS tid, bound_ns FROM hops
    UNION ALL
    SELECT op_id, child_host, parent_host, replied_ns, returned_ns, return_tid, bound_ns FROM hops
    WHERE returned_ns IS NOT NULL"""


def placed(ops: str) -> str:
    """SQL of the stages of the ops in the table ``ops``, each with its ``place``."""
    return f"""
        SELECT *, CASE WHEN before IS NULL OR before = own THEN own ELSE before || '{BETWEEN}' || own END AS place
        FROM (SELECT s.*, coalesce(s.host, o.host)::VARCHAR AS own,
                     lag(own) OVER (PARTITION BY op_id ORDER BY seq) AS before
              FROM stages s JOIN ops o USING (op_id) WHERE op_id IN (SELECT op_id FROM {ops}))"""


def place_table(run: Run, which: Selection, tainted: bool = False) -> StageTable:
    """The statistics of the selected ops with a row per place, in the order in which an op meets the places. Raises
    OplineError if no op counts.
    """
    table = stage_table(run, which, tainted)
    rows = run.rows(
        f"""SELECT place, 'place', count(*), avg(ns), min(ns), quantile_disc(ns, [0.5, 0.9, 0.99, 0.999]), max(ns),
                   stddev_pop(ns), sum(ns)::BIGINT
            FROM (SELECT op_id, place, sum(duration_ns)::BIGINT AS ns, min(seq) AS first
                  FROM ({placed("counted")}) GROUP BY op_id, place)
            GROUP BY place ORDER BY median(first), place"""
    )
    places = []
    for place, kind, count, mean, least, (p50, p90, p99, p999), most, deviation, total in rows:
        places.append(StageRow(place, kind, count, mean, least, p50, p90, p99, p999, most, deviation, total))
    return StageTable(**vars(table) | {"stages": places, "exact": True})
