# SPDX-License-Identifier: MIT
"""Tasks about ops: what adds over runs of their stages and latencies, and, once it is known which ones are looked for,
how many values are where.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opline.errors import OplineError
from opline_analyses.client.defaults import default_selection
from opline_analyses.engine.cells import BUCKETS, cells, tally_cells
from opline_analyses.intervals.intervals import Batch, Grid, Tally
from opline_analyses.ops.stages import none_counts, select_counted
from opline_analyses.runs.selection import OpFilters
from opline_analyses.why.sets import make_sides, programs_of, rank_ops
from opline_analyses.why.waits import wait_sums
from opline_analyses.why.why import sums_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any, TypeAlias

    from opline_analyses.runs.run import Run
    from opline_analyses.runs.selection import Selection

    Options: TypeAlias = Mapping[str, Any]

ORDER_OPS = 100_000  # as StageStatistics::kOrderOps
REST = ("unattributed", "unknown", "latency")


def _which(run: Run, options: Options) -> Selection:
    return default_selection(run, OpFilters(**options["filters"]))


def stages(run: Run, options: Options) -> dict[str, Any]:
    """Per stage: counts in buckets, and how many ops have it first at which place; sums of what belongs to no stage."""
    which = _which(run, options)
    n, incomplete, tainted = select_counted(run, which, options["tainted"])
    if tainted and not n:
        raise OplineError(none_counts(f" in {run.given}", incomplete, tainted))
    _make_parts(run)
    tally = Tally(Grid(0, 1), BUCKETS)
    for batch in _batches(run):
        tally.add(batch)
    programs = run.rows(
        """SELECT coalesce(program, arg_min(comm, op_id) FILTER (begin_tid = pid), arg_min(comm, op_id), '?'),
                  count(*)
           FROM ops WHERE op_id IN (SELECT op_id FROM counted) GROUP BY pid, program ORDER BY ALL"""
    )
    later = run.row(
        """SELECT count(*), coalesce(sum(bytes), 0)::BIGINT, count(complete_ns),
                  coalesce(sum(complete_ns - written_ns), 0)::BIGINT
           FROM deferred WHERE op_id IN (SELECT op_id FROM chosen)"""
    )
    places = run.rows(
        """WITH first AS (SELECT op_id, stage, min(seq) AS place FROM stages
                          WHERE op_id < ? AND stage IS NOT NULL GROUP BY op_id, stage)
           SELECT stage, place, count(*) FROM first GROUP BY stage, place ORDER BY stage, place""",
        [ORDER_OPS],
    )
    kinds = run.rows("SELECT stage, min(kind) FROM stages WHERE stage IS NOT NULL GROUP BY stage ORDER BY stage")
    return {
        "ops": n, "incomplete": incomplete, "tainted": tainted,
        "cells": cells(tally_cells(tally)), "kinds": kinds, "places": places, "programs": programs,
        "deferred": later, "squares": _squares(run),
    }  # fmt: skip


def _make_parts(run: Run) -> None:
    """A row per op in `counted` and stage: the table `parts`."""
    run.con.execute(
        """CREATE OR REPLACE TEMP TABLE parts AS SELECT stage, sum(duration_ns)::BIGINT AS value FROM stages
           WHERE op_id IN (SELECT op_id FROM counted) AND stage IS NOT NULL GROUP BY op_id, stage"""
    )


def _values(of_stages: bool = True) -> str:
    """SQL: every value (name, value) of each group, "stage NAME" of `parts` and "of NAME" of what REST names."""
    rest = ", ".join(f"('of {name}', coalesce({name}_ns, 0))" for name in REST)
    of_ops = f"""SELECT one[1] AS name, one[2] AS value
                 FROM (SELECT unnest([{rest}]) AS one FROM ops SEMI JOIN counted USING (op_id))"""
    return f"SELECT 'stage ' || stage AS name, value FROM parts UNION ALL {of_ops}" if of_stages else of_ops


def _squares(run: Run) -> dict[str, int]:
    """The sum of the squares of a group's values, an integer of any size: what a standard deviation adds up from."""
    found = run.rows(
        f"SELECT name, sum(value::HUGEINT * value)::VARCHAR FROM ({_values()}) GROUP BY name ORDER BY name"
    )
    return {str(name): int(whole) for name, whole in found}


def within(run: Run, options: Options) -> dict[str, Any]:
    """How many values of a group are where: ``open`` has a group, where it is looked, in steps of how much."""
    select_counted(run, _which(run, options), options["tainted"])
    asked = options["open"]
    if of_stages := any(group.startswith("stage ") for group, *_ in asked):
        _make_parts(run)
    run.con.execute("CREATE OR REPLACE TEMP TABLE open (place INT, name VARCHAR, low BIGINT, past BIGINT, step BIGINT)")
    run.con.executemany("INSERT INTO open VALUES (?, ?, ?, ?, ?)", [[n, *one] for n, one in enumerate(asked)])
    counts: list[list[tuple[int, int]]] = [[] for _ in asked]
    for place, step, count in run.rows(
        f"""SELECT place, (value - low) // step AS n, count(*) FROM ({_values(of_stages)}) JOIN open USING (name)
            WHERE value >= low AND value < past GROUP BY place, n ORDER BY place, n"""
    ):
        counts[place].append((step, count))
    return {"counts": counts}


def latencies(run: Run, options: Options) -> dict[str, Any]:
    """The latencies in buckets, and how many are longer than ``over_ns``."""
    n, incomplete, tainted = select_counted(run, _which(run, options), options["tainted"])
    tally = Tally(Grid(0, 1), BUCKETS)
    for batch in _rest(run, ("latency",)):
        tally.add(batch)
    over = 0
    if options["over_ns"] is not None:
        (over,) = run.row(
            "SELECT count(*) FROM ops SEMI JOIN counted USING (op_id) WHERE latency_ns > ?", [options["over_ns"]]
        )
    return {"ops": n, "incomplete": incomplete, "tainted": tainted, "cells": cells(tally_cells(tally)), "over": over}


def slow(run: Run, options: Options) -> dict[str, Any]:
    """The sums over the slow and the typical ops, which ``ranks`` of this run say: the last one that is not slow, the
    first and the last typical one, and the example's, None where it is in another run.
    """
    others, low, high, example = options["ranks"]
    rank_ops(run, _which(run, options), options["tainted"])
    make_sides(run, others, low, high)
    of_stages, of_ops = sums_of(run)
    waits = wait_sums(run)
    found = None if example is None else run.row(
        """SELECT op_id, coalesce(request_count, 0) FROM ops
           WHERE op_id = (SELECT op_id FROM ranked WHERE rank = ?)""",
        [example],
    )  # fmt: skip
    return {
        "stages": of_stages,
        "ops": of_ops,
        "waits": [[spent, sums, list(waits.stages.get(spent, {}).items())] for spent, sums in waits.sums.items()],
        "programs": programs_of(run, others),
        "example": found,
    }


def _batches(run: Run) -> Iterator[Batch]:
    """A value per op and stage (the table `parts`), in groups "stage NAME"; of each op what REST names, in groups "of
    NAME".
    """
    import numpy as np

    from opline.store.arrays import read

    for found in read(run.con.sql("SELECT stage, value FROM parts")):
        codes, names = found.codes("stage")
        texts = [f"stage {name}" for name in names]
        indices = codes.astype(np.int64)
        values = found.numbers("value").filled(np.int64)
        nothing = np.zeros(len(values), np.int64)
        yield Batch(nothing, values, nothing, indices, texts)
    yield from _rest(run, REST)


def _rest(run: Run, names: Sequence[str]) -> Iterator[Batch]:
    """A value per op in `counted`, in groups "of NAME"."""
    import numpy as np

    from opline.store.arrays import read

    columns = ", ".join(f"coalesce({name}_ns, 0) AS {name}" for name in names)
    sql = f"SELECT {columns} FROM ops WHERE op_id IN (SELECT op_id FROM counted)"
    for found in read(run.con.sql(sql)):
        for name in names:
            values = found.numbers(name).filled(np.int64)
            nothing = np.zeros(len(values), np.int64)
            yield Batch(nothing, values, nothing, np.zeros(len(values), np.int64), [f"of {name}"])
