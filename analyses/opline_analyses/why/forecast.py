# SPDX-License-Identifier: MIT
"""What the latencies would be if a stage were shorter: each op's own time in it less a part, all else as it was.

Exact for what was recorded, over all counted ops. It leaves out what a shorter stage would change besides: shorter
queues behind it, and the earlier begins of a closed loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opline.values import Value
from opline_analyses.base.text import duration

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opline_analyses.runs.run import Run
    from opline_analyses.why.why import Why

SHORTER = 0.3
STAGES = 3
LEAST = 0.10  # of the difference: stages with less are not asked for
_SQL = """
    WITH inside AS (SELECT op_id, sum(duration_ns) AS ns FROM stages WHERE stage = ? GROUP BY op_id),
         now AS (SELECT latency_ns, latency_ns - ? * coalesce(ns, 0) AS shorter_ns
                 FROM ops SEMI JOIN counted USING (op_id) LEFT JOIN inside USING (op_id))
    SELECT avg(latency_ns), avg(shorter_ns), quantile_disc(latency_ns, 0.99), quantile_disc(shorter_ns, 0.99)
    FROM now"""


class Forecast(Value):
    """Mean and p99 of all counted ops as they are, and if the stage were shorter by this part. ns."""

    stage: str
    shorter_by: float
    mean_ns: float
    mean_if_ns: float
    p99_ns: int
    p99_if_ns: float


def forecasts(run: Run, w: Why) -> list[Forecast]:
    """Of the stages with the largest differences. Needs the tables `counted` and `sides` of select_counted."""
    lead = [s.stage for s in w.stages if s.kind and (w.share(s.more_ns) or 0) >= LEAST][:STAGES]
    return [Forecast(stage, SHORTER, *run.row(_SQL, [stage, SHORTER])) for stage in lead]


def forecast_lines(found: Sequence[Forecast]) -> Iterator[str]:
    """A line for each stage."""
    for f in found:
        yield (
            f"if {f.stage} were {100 * f.shorter_by:.0f} % shorter: mean {duration(f.mean_ns)} → "
            f"{duration(f.mean_if_ns)}, p99 {duration(f.p99_ns)} → {duration(f.p99_if_ns)}"
        )
