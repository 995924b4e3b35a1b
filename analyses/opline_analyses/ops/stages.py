# SPDX-License-Identifier: MIT
"""Statistics per stage: number of ops, mean, standard deviation, percentiles, min, max, share of the total latency.

Takes a run and a selection, or the core's counts of a trace; gives rows. The native core computes both
(statistics/stage_stats.hpp). A stage repeated in an op adds up to one value per op. Percentiles are by nearest rank,
the ceil(q * n)-th smallest value: for up to 262 144 ops a measured value, for more ops within 0.2 % of a measured
value.
Means and shares are of complete ops untouched by lost events (unless asked for). In integers:

sum of total_ns over stages + unattributed_ns == sum of latency_ns
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

from opline import _core
from opline.errors import OplineError
from opline.talk import passing
from opline.values import Value
from opline_analyses.base.text import count_of, pasted
from opline_analyses.runs.columns import batches

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    import numpy as np

    from opline_analyses.runs.run import Run
    from opline_analyses.runs.selection import Selection

ROWS = 1 << 18  # of a table, joined with other rows at a time
STAGE_SUMS = "stage_sums"


class StageRow(Value):
    """One stage over the ops with the stage. ``mean_ns`` is over these ops; ``total_ns / ops`` of the table is over all
    ops. ``std_ns`` is the standard deviation of the values as the whole population: divided by their number.
    """

    stage: str
    kind: str
    count: int
    mean_ns: float
    min_ns: int
    p50_ns: int
    p90_ns: int
    p99_ns: int
    p999_ns: int
    max_ns: int
    std_ns: float
    total_ns: int


class Deferred(Value):
    """Data written back outside the latencies: pieces (an op's bytes in one bio), bytes; for pieces known to be on the
    disk, their number and the sum of their times since the write.
    """

    rows: int
    bytes: int
    done: int
    wait_ns: int


class BothWays(Value):
    """Request and reply together, between two hosts: number, mean, and the greatest bound of one way."""

    parent_host: str
    child_host: str
    count: int
    mean_ns: float
    bound_ns: int


class StageTable(Value):
    """The stages in the order in which an op meets the stages, then the time in no stage, and the latency, the sum."""

    ops: int
    incomplete: int
    tainted: int
    stages: list[StageRow]
    unattributed: StageRow
    unknown: StageRow  # the stages of kind unknown together: contained in `stages`
    latency: StageRow
    deferred: Deferred
    programs: list[tuple[str, int]]  # names of processes, with the number of ops begun: the most first
    exact: bool = True  # False: so many ops that percentiles are within 0.2 % of a measured value

    @property
    def sums(self) -> bool:
        """The partition law, over all ops."""
        return sum(s.total_ns for s in self.stages) + self.unattributed.total_ns == self.latency.total_ns


def select_counted(run: Run, which: Selection, tainted: bool) -> tuple[int, int, int]:
    """Makes the temporary table `counted` of the counted ops; gives their number, incomplete and tainted ops."""
    run.con.execute(
        f"CREATE OR REPLACE TEMP TABLE chosen AS {which.of('o.op_id, o.complete, o.tainted')}",
        list(which.parameters),
    )
    run.con.execute(f"DROP TABLE IF EXISTS {STAGE_SUMS}")
    keep = "complete" if tainted else "complete AND NOT tainted"
    run.con.execute(f"CREATE OR REPLACE TEMP TABLE counted AS SELECT op_id FROM chosen WHERE {keep}")
    row = run.row(
        """SELECT count(*) FILTER (complete), count(*) FILTER (NOT complete), count(*) FILTER (complete AND tainted)
           FROM chosen"""
    )
    n, incomplete, touched = (int(v) for v in row)
    return (n if tainted else n - touched), incomplete, touched


# SQL of the rows of a table (with a column op_id) of the counted ops in a range.
COUNTED_ROWS = """SELECT * FROM {table} SEMI JOIN (SELECT op_id FROM counted WHERE op_id BETWEEN {first} AND {last})
                  USING (op_id) WHERE op_id BETWEEN {first} AND {last}"""


def counted_ranges(run: Run, ops: int | None = None, table: str = "stages") -> Iterator[tuple[int, int]]:
    """The first and the last number of the counted ops, ``ops`` numbers at a time, or as many as have ROWS rows of the
    ``table`` together: a query over the stages of all ops would hold all rows.
    """
    low, high = run.row("SELECT min(op_id), max(op_id) FROM counted")
    if low is None:
        return
    if ops is None:
        number, rows = run.row(f"SELECT (SELECT count(*) FROM all_ops), (SELECT count(*) FROM {table})")
        ops = max(1, ROWS * number // max(1, rows))
    for first in passing(range(low, high + 1, ops)):
        yield first, first + ops - 1


def left_out(incomplete: int, tainted: int, counted: bool) -> list[str]:
    """The ops left out, in a line, if any. ``counted``: tainted ops count."""
    if not incomplete and (counted or not tainted):
        return []
    parts = [count_of(incomplete, "incomplete op")] if incomplete else []
    if tainted and not counted:
        overlap = count_of(tainted, "op that overlaps", "ops that overlap")
        parts.append(f"{overlap} lost events (--tainted counts these)")
    return [f"left out: {', '.join(parts)}."]


def none_counts(where: str, incomplete: int, tainted: int, hint: str = " (--tainted counts these)") -> str:
    """The reason for a missing table; ``where``: " in RUN", or empty; ``hint``: on ops that overlap lost events."""
    return f"No op to count{where}: {incomplete} incomplete, {tainted} overlap lost events{hint if tainted else ''}."


def _row(found: Mapping[str, Any]) -> StageRow:
    count, total = found["count"], found["total_ns"]
    mean = total / count if count else 0.0
    p50, p90, p99, p999 = found["quantiles_ns"]
    least, most, deviation = found["min_ns"], found["max_ns"], found["std_ns"]
    return StageRow(found["stage"], found["kind"], count, mean, least, p50, p90, p99, p999, most, deviation, total)


def table_of(
    found: Mapping[str, Any],
    incomplete: int,
    tainted: int,
    given: object,
    filtered: bool = False,
    model: str | None = None,
) -> StageTable:
    """The table of the core's statistics; ``filtered``: the run has more ops; ``model``: as named by the user. Raises
    OplineError if no op counts.
    """
    latency = _row(found["latency"])
    if latency.count == 0:
        raise OplineError(
            none_counts(f" in {given}", incomplete, tainted)
            + (
                ""
                if incomplete or tainted or filtered
                else f" `opline what {pasted(given)}` says what is in it."
                if model is None
                else f" `opline model lint {pasted(model)} {pasted(given)}` says which of the model's events it has."
            )
        )
    stages = [row for row in map(_row, found["stages"]) if row.count]
    rest = (_row(found["unattributed"]), _row(found["unknown"]), latency)
    programs: Counter[str] = Counter()
    for p in found["programs"]:
        programs[p["name"] or "?"] += p["ops"]
    by_ops = sorted(programs.items(), key=lambda p: (-p[1], p[0]))
    later = Deferred(**found["deferred"])
    return StageTable(latency.count, incomplete, tainted, stages, *rest, later, by_ops, found["exact"])


def stages_in_order(run: Run) -> list[tuple[str, str]]:
    """The run's stages with their kinds, in the order in which an op meets the stages: by the median, over the first
    100 000 ops, of the stage's first place in the op.
    """
    return [(s["stage"], s["kind"]) for s in _statistics(run, None)["stages"]]


def stage_table(run: Run, which: Selection, tainted: bool = False) -> StageTable:
    """The statistics of the selected ops. Raises OplineError where no op counts."""
    n, incomplete, touched = select_counted(run, which, tainted)
    counts = counted_flags(run)
    programs = run.rows(
        """SELECT pid, coalesce(program, arg_min(comm, op_id) FILTER (begin_tid = pid), arg_min(comm, op_id)), count(*)
           FROM ops WHERE op_id IN (SELECT op_id FROM counted) GROUP BY pid, program"""
    )
    found = _statistics(run, counts)
    found["programs"] = [{"pid": pid, "name": name, "ops": count} for pid, name, count in programs]
    later = run.row(
        """SELECT count(*), coalesce(sum(bytes), 0)::BIGINT, count(complete_ns),
                  coalesce(sum(complete_ns - written_ns), 0)::BIGINT
           FROM deferred WHERE op_id IN (SELECT op_id FROM chosen)"""
    )
    found["deferred"] = dict(zip(("rows", "bytes", "done", "wait_ns"), later, strict=True))
    table = table_of(found, incomplete, touched, run.given, len(counts) > 0)
    assert table.ops == n
    return table


def counted_flags(run: Run) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """By op_id, for all ops: 1 for ops in `counted`."""
    import numpy as np

    (last,) = run.row("SELECT coalesce(max(op_id), -1) FROM all_ops")
    counts = np.zeros(last + 1, np.uint8)
    counts[run.con.execute("SELECT op_id FROM counted").fetchnumpy()["op_id"]] = 1
    return counts


def _statistics(run: Run, counts: np.ndarray[Any, np.dtype[np.uint8]] | None) -> dict[str, Any]:
    """The core's statistics of a run's columns: of the ops with a set flag by op_id; None: only the order."""
    statistics = _core.StageStatistics()
    return dict(json.loads(statistics.result(feed(statistics, run, counts))))


def feed(
    statistics: _core.StageStatistics,
    run: Run,
    counts: np.ndarray[Any, np.dtype[np.uint8]] | None,
    of_stages: bool = True,
) -> list[str]:
    """Feeds a run's columns (see `_statistics`); gives the names of the stages and kinds by their numbers.
    ``of_stages``: False: only ops.
    """
    import numpy as np

    if counts is not None:
        columns = ("latency_ns", "unattributed_ns", "unknown_ns")
        for batch in batches(run, "ops", ("op_id", *columns)):
            kept = counts[batch.numbers("op_id").values] == 1
            statistics.ops(*(batch.numbers(c).filled(np.int64)[kept] for c in columns))
    names: dict[str, int] = {}

    def number_of(name: str) -> int:
        return names.setdefault(name, len(names))

    of_stage = ("op_id", "seq", "stage", "kind", "duration_ns")
    for batch in batches(run, "stages", of_stage) if of_stages else ():
        ops = batch.numbers("op_id").filled(np.int64)
        stages, kinds = (batch.codes(name).numbers(number_of) for name in ("stage", "kind"))
        flags = np.zeros(len(ops), np.uint8) if counts is None else counts[ops]
        seqs, durations = batch.numbers("seq").filled(np.uint32), batch.numbers("duration_ns").filled(np.int64)
        statistics.stages(ops, seqs, stages, kinds, durations, flags)
    return list(names)
