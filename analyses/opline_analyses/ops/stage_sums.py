# SPDX-License-Identifier: MIT
"""Sums of the counted ops' stages, by name and points: one reading of the stages, for several users.

Needs the temporary table `counted` of `stages.select_counted`; a new `counted` removes the sums.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opline_analyses.ops.stages import STAGE_SUMS, counted_ranges

if TYPE_CHECKING:
    from opline_analyses.runs.run import Run

_SUMS = """
SELECT stage, from_point, to_point, kind, count(*) FILTER (duration_ns > 0) AS number, sum(duration_ns) AS total_ns,
       sum(coalesce(runnable_ns, 0)) AS runnable_ns,
       sum((duration_ns - coalesce(runnable_ns, 0))::HUGEINT * latency_ns) AS products,
       coalesce(sum(on_cpu_ns), 0) AS on_cpu_ns, coalesce(sum(blocked_ns), 0) AS blocked_ns,
       coalesce(sum(blocked_io_ns), 0) AS blocked_io_ns, max(duration_ns) AS longest_ns
FROM stages JOIN (SELECT op_id, latency_ns FROM ops SEMI JOIN counted USING (op_id)
                  WHERE op_id BETWEEN {first} AND {last}) USING (op_id)
WHERE op_id BETWEEN {first} AND {last} GROUP BY stage, from_point, to_point, kind
"""


def make(run: Run) -> None:
    """Makes the temporary table STAGE_SUMS unless present: a few rows per stage, to be summed. ``number``: rows with
    time; ``products``: sum of (time without the wait for a CPU) * (latency of the op).
    """
    if run.rows("SELECT 1 FROM duckdb_tables() WHERE temporary AND table_name = ?", (STAGE_SUMS,)):
        return
    how = f"CREATE TEMP TABLE {STAGE_SUMS} AS"
    for first, last in counted_ranges(run):
        run.con.execute(f"{how} {_SUMS.format(first=first, last=last)}")
        how = f"INSERT INTO {STAGE_SUMS}"
