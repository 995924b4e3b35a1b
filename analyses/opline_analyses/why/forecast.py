# SPDX-License-Identifier: MIT
"""What the latencies would be if a stage were shorter: each op's own time in it less a part, all else as it was.

Exact for what was recorded, over all counted ops. It leaves out what a shorter stage would change besides: shorter
queues behind it, and the earlier begins of a closed loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opline.values import Value
from opline_analyses.base.text import duration
from opline_analyses.runs.columns import batches

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    import numpy as np

    from opline_analyses.runs.run import Run
    from opline_analyses.why.why import Why

PER_CENT = 30
SHORTER = PER_CENT / 100
STAGES = 3
LEAST = 0.10  # of the difference: stages with less are not asked for
P99 = 99  # per cent: by nearest rank


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
    import numpy as np

    lead = [s.stage for s in w.stages if s.kind and (w.share(s.more_ns) or 0) >= LEAST][:STAGES]
    if not lead:
        return []
    ops = run.con.execute("SELECT op_id, latency_ns FROM ops SEMI JOIN counted USING (op_id)").fetchnumpy()
    latency, n = ops["latency_ns"], len(ops["op_id"])
    rank = -(-P99 * n // 100) - 1
    total, p99 = int(np.sum(latency)), int(np.partition(latency, rank)[rank])
    found = []
    for stage, inside in zip(lead, _inside(run, lead), strict=True):
        mine = inside[ops["op_id"]]
        shorter = latency - SHORTER * mine
        mean_if = (100 * total - PER_CENT * int(np.sum(mine))) / (100 * n)  # of integers: no order of rows is in it
        p99_if = float(np.partition(shorter, rank)[rank])
        found.append(Forecast(stage, SHORTER, total / n, mean_if, p99, p99_if))
    return found


def _inside(run: Run, stages: Sequence[str]) -> list[np.ndarray[Any, np.dtype[np.int64]]]:
    """By op_id the time in each of the stages, ns."""
    import numpy as np

    (last,) = run.row("SELECT max(op_id) FROM counted")
    found = [np.zeros(last + 1, np.int64) for _ in stages]
    for batch in batches(run, "stages", ("op_id", "stage", "duration_ns")):
        op, duration = (batch.numbers(name).filled(np.int64) for name in ("op_id", "duration_ns"))
        code = batch.codes("stage").numbers(lambda name: stages.index(name) + 1 if name in stages else 0)
        for place, inside in enumerate(found, 1):
            of_stage = (code == place) & (op <= last)
            if len(mine := op[of_stage]):
                low, high = int(mine.min()), int(mine.max())
                inside[low : high + 1] += np.bincount(mine - low, weights=duration[of_stage]).astype(np.int64)
    return found


def forecast_lines(found: Sequence[Forecast]) -> Iterator[str]:
    """A line for each stage."""
    for f in found:
        yield (
            f"if {f.stage} were {100 * f.shorter_by:.0f} % shorter: mean {duration(f.mean_ns)} → "
            f"{duration(f.mean_if_ns)}, p99 {duration(f.p99_ns)} → {duration(f.p99_if_ns)}"
        )
