# SPDX-License-Identifier: MIT
"""Statistics per stage: in how many ops, mean, exact percentiles, max, share of the total latency.

Takes a run and a selection; gives rows. A stage that recurs in an op adds up to one value per op. Percentiles are exact
and by nearest rank: the ceil(q * n)-th smallest value, so each is a value that was measured. Means and shares are of
complete ops that no discarded event touches (unless asked for). In integers:

    sum of total_ns over stages + unattributed_ns == sum of latency_ns
"""

from __future__ import annotations

from dataclasses import dataclass

from opline.errors import OplineError
from opline_analyses.run import Run
from opline_analyses.selection import Selection

PERCENTILES = ("0.5", "0.9", "0.99", "0.999")
# Decimals, not floats: DuckDB finds their rank by exact integer arithmetic.
_QUANTILES = "[" + ", ".join(f"{q}::DECIMAL(4,3)" for q in PERCENTILES) + "]"


@dataclass(frozen=True, slots=True)
class StageRow:
    """One stage over the ops that have it. ``mean_ns`` is over those; ``total_ns / ops`` of the table over all ops."""

    stage: str
    kind: str
    count: int
    mean_ns: float
    p50_ns: int
    p90_ns: int
    p99_ns: int
    p999_ns: int
    max_ns: int
    total_ns: int


@dataclass(frozen=True, slots=True)
class StageTable:
    """The stages in the order in which an op meets them, then what none claims, and the latency that all sum to."""

    ops: int
    incomplete: int
    tainted: int
    stages: list[StageRow]
    unattributed: StageRow
    unknown: StageRow  # the stages of kind unknown together: contained in `stages`
    latency: StageRow

    @property
    def sums(self) -> bool:
        """The partition law, over all ops."""
        return sum(s.total_ns for s in self.stages) + self.unattributed.total_ns == self.latency.total_ns


def select_counted(run: Run, which: Selection, tainted: bool) -> tuple[int, int, int]:
    """Makes the temporary table `counted` of the ops that count; gives their number, the incomplete and the tainted
    ones.
    """
    run.con.execute(
        f"CREATE OR REPLACE TEMP TABLE chosen AS SELECT op_id, complete, tainted FROM ops o WHERE {which.where}",
        list(which.parameters),
    )
    keep = "complete" if tainted else "complete AND NOT tainted"
    run.con.execute(f"CREATE OR REPLACE TEMP TABLE counted AS SELECT op_id FROM chosen WHERE {keep}")
    row = run.row(
        """SELECT count(*) FILTER (complete), count(*) FILTER (NOT complete), count(*) FILTER (complete AND tainted)
           FROM chosen"""
    )
    n, incomplete, touched = (int(v) for v in row)
    return (n if tainted else n - touched), incomplete, touched


_ONE = f"""SELECT count(v), avg(v), quantile_disc(v, {_QUANTILES}), max(v), sum(v)::BIGINT FROM ({{values}}) AS t(v)"""


def _one(run: Run, name: str, kind: str, values: str) -> StageRow:
    count, mean, quantiles, largest, total = run.row(_ONE.format(values=values))
    q = quantiles or [0, 0, 0, 0]
    return StageRow(name, kind, count, mean or 0.0, q[0], q[1], q[2], q[3], largest or 0, total or 0)


_SUMS = "SELECT sum(duration_ns)::BIGINT FROM {} WHERE stage = '{}' GROUP BY op_id"
ORDER_OPS = 100_000


def stages_in_order(run: Run) -> list[tuple[str, str]]:
    """The run's stages with their kinds, in the order in which an op meets them: by the median, over the first
    ORDER_OPS ops, of the place where an op has it first.
    """
    rows = run.rows(
        f"""WITH few AS (SELECT op_id FROM ops ORDER BY op_id LIMIT {ORDER_OPS}),
                 firsts AS (SELECT stage, min(seq) AS place FROM stages SEMI JOIN few USING (op_id)
                            GROUP BY op_id, stage),
                 places AS (SELECT stage, quantile_disc(place, 0.5) AS median, avg(place) AS mean FROM firsts
                            GROUP BY stage),
                 names AS (SELECT stage, any_value(kind) AS kind, avg(seq) AS mean FROM stages GROUP BY stage)
            SELECT n.stage, n.kind FROM names n LEFT JOIN places p USING (stage)
            ORDER BY coalesce(p.median, n.mean), coalesce(p.mean, n.mean), n.stage"""
    )
    return [(stage, kind) for stage, kind in rows]


def stage_table(run: Run, which: Selection, tainted: bool = False) -> StageTable:
    """The statistics of the selected ops. Raises OplineError where no op counts."""
    n, incomplete, touched = select_counted(run, which, tainted)
    if n == 0:
        raise OplineError(
            f"No op to count in {run.given}: {incomplete} incomplete, {touched} tainted by discarded events"
            + (" (--tainted counts those)." if touched else ".")
        )
    stages = []
    # Incomplete ops have no stages; where all others count, there is nothing to filter.
    everything = run.row("SELECT count(*) FROM ops WHERE complete") == (n,)
    source = "stages" if everything else "stages SEMI JOIN counted USING (op_id)"
    for name, kind in stages_in_order(run):
        # One stage at a time: a table of sums per op and stage would not fit into memory for a long run.
        row = _one(run, name, kind, _SUMS.format(source, name.replace("'", "''")))
        if row.count:
            stages.append(row)
    of_counted = "FROM ops WHERE op_id IN (SELECT op_id FROM counted)"
    return StageTable(
        n,
        incomplete,
        touched,
        stages,
        _one(run, "unattributed", "unattributed", f"SELECT unattributed_ns {of_counted}"),
        _one(run, "unknown", "unknown", f"SELECT unknown_ns {of_counted}"),
        _one(run, "latency", "latency", f"SELECT latency_ns {of_counted}"),
    )
