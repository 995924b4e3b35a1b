# SPDX-License-Identifier: MIT
"""The tasks: the addable results of one run. Counts, sums, least, greatest, and counts in fixed buckets.

`summary_of` takes a path and the options of a command as JSON, opens the run (a recording is correlated first), and
gives JSON. DuckDB and numpy do the work on the run's machine; `added.py` adds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opline.store.run import BLOCKS_MODEL
from opline.values import Value
from opline_analyses.block.hist_result import HistOptions, counted_of, counting_buckets, source_beside, unit_of
from opline_analyses.block.io_filter import IoFilters, rows_of, tables_needed
from opline_analyses.block.io_series import series_of
from opline_analyses.block.iostat_result import rows_and_series
from opline_analyses.client.defaults import default_selection
from opline_analyses.engine.cells import cell, cells
from opline_analyses.engine.of_ops import found_within, latencies, slow, stages, within
from opline_analyses.runs import ledger
from opline_analyses.runs.not_yours import background_line
from opline_analyses.runs.notices import gaps_line, tell_before, tell_not_yours
from opline_analyses.runs.run import open_run
from opline_analyses.runs.selection import OpFilters

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, TypeAlias

    from opline_analyses.block.io_series import Series
    from opline_analyses.engine.kept import Kept
    from opline_analyses.runs.run import Run

    Options: TypeAlias = Mapping[str, Any]


def _series(series: Series) -> dict[str, int | None]:
    """The intervals, counted from the run's first event."""
    until = None if series.until_ns is None else series.until_ns - series.zero_ns
    return {
        "origin_ns": series.grid.zero_ns - series.zero_ns, "step_ns": series.grid.step_ns,
        "first": series.first, "last": series.last, "until_ns": until,
    }  # fmt: skip


def hist(run: Run, options: Options, _: Kept) -> dict[str, Any]:
    """The cells of each interval: by group and bucket."""
    filters, asked = IoFilters(**options["filters"]), HistOptions(**options["asked"])
    buckets = counting_buckets(asked, unit_of(asked))
    rows = rows_of(run, filters, source_beside(asked, filters))
    series = series_of(rows, options["interval_ns"], options["count"])
    found = counted_of(run, asked, rows, series, buckets)
    return {"series": _series(series), "intervals": [[index, cells(one)] for index, one in found]}


def iostat(run: Run, options: Options, _: Kept) -> dict[str, Any]:
    """The rows, of integers alone."""
    tell_not_yours(background_line(run))
    found, series = rows_and_series(
        run, IoFilters(**options["filters"]), options["interval_ns"], options["count"], options["style"],
        options["by"],
    )  # fmt: skip
    times = ("begin_ns", "end_ns", "name", "length_ns", "area_ns", "busy_ns", "wait_area_ns", "wait_busy_ns", "merges")
    return {
        "series": _series(series),
        "rows": [
            {name: getattr(row, name) for name in times}
            | {name: cell(getattr(row, name)) for name in ("reads", "writes", "others", "flushes")}
            for row in found
        ],
    }


def figures(run: Run, options: Options, _: Kept) -> dict[str, Any]:
    """The figures for `compare`, in the form of a baseline."""
    from opline_analyses.compare.figures import baseline, figures_of

    which, lost = default_selection(run, OpFilters(**options["filters"])), ledger.bad_count(ledger.entries(run))
    name = run.given.resolve().name
    return {"baseline": baseline([figures_of(run, which, name, lost, options["tainted"], options["sketched"])])}


class Task(Value):
    """A command's needs from a run: tables, and rows. ``whole``: all programs count, for questions about devices."""

    summary: Callable[[Run, Options, Kept], dict[str, Any]]
    tables: Callable[[Options], Sequence[str]]
    whole: bool = False


def _of_ops(_: Options) -> Sequence[str]:
    return ("ops", "stages", "deferred")


def _of_ios(options: Options) -> Sequence[str]:
    by = options["by"] if "by" in options else options["asked"]["per"]
    return tables_needed(IoFilters(**options["filters"]), by)


TASKS = {
    "stages": Task(stages, _of_ops),
    "within": Task(within, _of_ops),
    "latencies": Task(latencies, lambda _: ("ops",)),
    "slow": Task(slow, lambda _: ("ops", "stages", "waits", "requests")),
    "hist": Task(hist, _of_ios),
    "iostat": Task(iostat, _of_ios, whole=True),
    "figures": Task(figures, lambda _: ("ops", "stages", "requests")),
}


def summary_of(name: str, path: str, options: Options, kept: Kept) -> dict[str, Any]:
    """The summary of the run at ``path``. Standard error has the command's lines about one run before the figures;
    ``gaps`` is the line after the figures, None for a whole recording. Raises OplineError.
    """
    asked = {**options, "path": path}
    if name == "within" and (values := kept.get(asked)) is not None:
        return found_within(values, options)
    task = TASKS[name]
    tables = task.tables(options)
    blocks = set(tables) <= {"requests", "bios"}
    with open_run(
        path, options["model"], options["reader"], tables=tables, interruptible=False,
        otherwise=BLOCKS_MODEL if blocks else None, all_programs=task.whole or options["all_programs"],
    ) as run:  # fmt: skip
        tell_before(run)
        found = task.summary(run, asked, kept)
        return found | {"lost": ledger.bad_count(ledger.entries(run)), "gaps": gaps_line(run)}
