# SPDX-License-Identifier: MIT
"""The tasks: what of one run adds to another's. Counts, sums, least, greatest, and counts in fixed buckets.

`summary_of` takes a path and the options of a command as JSON, opens the run (a recording is correlated first), and
gives JSON. DuckDB and numpy do the work on the run's machine; `added.py` adds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opline.errors import OplineError
from opline.store.run import BLOCKS_MODEL
from opline.values import Value
from opline_analyses.block.hist_result import HistOptions, counted_of, counting_buckets, source_beside, unit_of
from opline_analyses.block.io_filter import IoFilters, rows_of, tables_needed
from opline_analyses.block.io_series import series_of
from opline_analyses.block.iostat_result import rows_and_series
from opline_analyses.intervals.buckets import Fine
from opline_analyses.intervals.intervals import Batch, Grid, Tally
from opline_analyses.runs import ledger
from opline_analyses.runs.not_yours import background_line
from opline_analyses.runs.notices import gaps_line, tell_before, tell_not_yours
from opline_analyses.runs.run import open_run
from opline_analyses.runs.selection import OpFilters, selection

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any, TypeAlias

    import numpy as np

    from opline_analyses.block.io_series import Series
    from opline_analyses.intervals.intervals import Cell, Cells
    from opline_analyses.runs.run import Run

    Options: TypeAlias = Mapping[str, Any]

BITS = 8  # each power of two in 256: a percentile is within 0.2 %
BUCKETS = Fine(1, BITS)
ORDER_OPS = 100_000  # as StageStatistics::kOrderOps
REST = ("unattributed", "unknown", "latency")


def cell(found: Cell) -> list[int | None]:
    """A cell as JSON."""
    return [found.count, found.total, found.least, found.most, found.size]


def cells(found: Cells) -> list[list[Any]]:
    """Cells as JSON, in an order that depends on what is in them alone."""
    return [[group, bucket, *cell(one)] for (group, bucket), one in sorted(found.items())]


def stages(run: Run, options: Options) -> dict[str, Any]:
    """Per stage: counts in buckets, and how many ops have it first at which place; sums of what belongs to no stage."""
    from opline_analyses.ops.stages import none_counts, select_counted

    which = selection(run, OpFilters(**options["filters"]))
    n, incomplete, tainted = select_counted(run, which, options["tainted"])
    if tainted and not n:
        raise OplineError(none_counts(f" in {run.given}", incomplete, tainted))
    run.con.execute(
        """CREATE OR REPLACE TEMP TABLE parts AS SELECT stage, sum(duration_ns)::BIGINT AS value FROM stages
           WHERE op_id IN (SELECT op_id FROM counted) AND stage IS NOT NULL GROUP BY op_id, stage"""
    )
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


def _squares(run: Run) -> dict[str, int]:
    """The sum of the squares of a group's values, an integer of any size: what a standard deviation adds up from."""
    rest = ", ".join(f"('of {name}', coalesce({name}_ns, 0))" for name in REST)
    found = run.rows(
        f"""SELECT name, sum(value::HUGEINT * value)::VARCHAR FROM (
                SELECT 'stage ' || stage AS name, value FROM parts UNION ALL
                SELECT one[1], one[2] FROM (SELECT unnest([{rest}]) AS one FROM ops SEMI JOIN counted USING (op_id)))
            GROUP BY name ORDER BY name"""
    )
    return {str(name): int(whole) for name, whole in found}


def tally_cells(tally: Tally) -> Cells:
    """What a tally of one interval has."""
    return next((found for _, found in tally.intervals()), {})


def _batches(run: Run) -> Iterator[Batch]:
    """A value per op and stage (the table `parts`), in groups "stage NAME"; of each op what REST names, in groups "of
    NAME".
    """
    import numpy as np

    from opline_analyses.runs.columns import plain

    def batch(values: np.ndarray[Any, np.dtype[np.int64]], groups: Any, texts: list[str]) -> Batch:
        nothing = np.zeros(len(values), np.int64)
        return Batch(nothing, values, nothing, groups, texts)

    for found in run.con.sql("SELECT stage, value FROM parts").to_arrow_reader(1 << 16):
        groups = found.column(0).dictionary_encode()
        texts = [f"stage {name}" for name in groups.dictionary.to_pylist()]
        indices = plain(groups.indices, 0).astype(np.int64)
        yield batch(plain(found.column(1)).astype(np.int64, copy=False), indices, texts)
    sql = """SELECT coalesce(unattributed_ns, 0), coalesce(unknown_ns, 0), latency_ns FROM ops
             WHERE op_id IN (SELECT op_id FROM counted)"""
    for found in run.con.sql(sql).to_arrow_reader(1 << 16):
        for place, name in enumerate(REST):
            values = plain(found.column(place)).astype(np.int64, copy=False)
            yield batch(values, np.zeros(len(values), np.int64), [f"of {name}"])


def _series(series: Series) -> dict[str, int | None]:
    """The intervals, counted from the run's first event."""
    until = None if series.until_ns is None else series.until_ns - series.zero_ns
    return {
        "origin_ns": series.grid.zero_ns - series.zero_ns, "step_ns": series.grid.step_ns,
        "first": series.first, "last": series.last, "until_ns": until,
    }  # fmt: skip


def hist(run: Run, options: Options) -> dict[str, Any]:
    """The cells of each interval: by group and bucket."""
    filters, asked = IoFilters(**options["filters"]), HistOptions(**options["asked"])
    buckets = counting_buckets(asked, unit_of(asked))
    rows = rows_of(run, filters, source_beside(asked, filters))
    series = series_of(rows, options["interval_ns"], options["count"])
    found = counted_of(run, asked, rows, series, buckets)
    return {"series": _series(series), "intervals": [[index, cells(one)] for index, one in found]}


def iostat(run: Run, options: Options) -> dict[str, Any]:
    """The rows, of integers alone."""
    tell_not_yours(background_line(run))
    found, series = rows_and_series(
        run, IoFilters(**options["filters"]), options["interval_ns"], options["count"], options["style"],
        options["by"],
    )  # fmt: skip
    times = ("begin_ns", "end_ns", "name", "length_ns", "area_ns", "busy_ns", "wait_area_ns", "wait_busy_ns")
    return {
        "series": _series(series),
        "rows": [
            {name: getattr(row, name) for name in times}
            | {name: cell(getattr(row, name)) for name in ("reads", "writes", "others")}
            for row in found
        ],
    }


def figures(run: Run, options: Options) -> dict[str, Any]:
    """What `compare` compares of the run, as a baseline has it."""
    from opline_analyses.compare.figures import baseline, figures_of

    which, lost = selection(run, OpFilters(**options["filters"])), ledger.bad_count(ledger.entries(run))
    name = run.given.resolve().name
    return {"baseline": baseline([figures_of(run, which, name, lost, options["tainted"], options["sketched"])])}


class Task(Value):
    """What a command needs of a run, and which rows of it. ``whole``: all programs count, of what is about devices."""

    summary: Callable[[Run, Options], dict[str, Any]]
    tables: Callable[[Options], Sequence[str]]
    whole: bool = False


def _of_ops(_: Options) -> Sequence[str]:
    return ("ops", "stages", "deferred")


def _of_ios(options: Options) -> Sequence[str]:
    return tables_needed(IoFilters(**options["filters"]))


TASKS = {
    "stages": Task(stages, _of_ops),
    "hist": Task(hist, _of_ios),
    "iostat": Task(iostat, _of_ios, whole=True),
    "figures": Task(figures, lambda _: ("ops", "stages", "requests")),
}


def summary_of(name: str, path: str, options: Options) -> dict[str, Any]:
    """The summary of the run at ``path``. Standard error has the lines of the command about one run that come before
    the figures; ``gaps`` is the line that comes after them, None if the recording is whole. Raises OplineError.
    """
    task = TASKS[name]
    tables = task.tables(options)
    blocks = set(tables) <= {"requests", "bios"}
    with open_run(
        path, options["model"], options["reader"], tables=tables, interruptible=False,
        otherwise=BLOCKS_MODEL if blocks else None, all_programs=task.whole or options["all_programs"],
    ) as run:  # fmt: skip
        tell_before(run)
        found = task.summary(run, options)
        return found | {"lost": ledger.bad_count(ledger.entries(run)), "gaps": gaps_line(run)}
