# SPDX-License-Identifier: MIT
"""Tasks about ops: sums of stages and latencies to add over runs, and then the numbers of values in given places."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from opline import _core
from opline.errors import OplineError
from opline_analyses.client.defaults import default_selection
from opline_analyses.engine.kept import of_stages
from opline_analyses.ops.stages import counted_flags, feed, none_counts, select_counted
from opline_analyses.runs.selection import OpFilters
from opline_analyses.why.sets import make_sides, programs_of, rank_ops
from opline_analyses.why.waits import wait_sums
from opline_analyses.why.why import sums_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, TypeAlias

    from opline_analyses.engine.kept import Kept
    from opline_analyses.runs.run import Run
    from opline_analyses.runs.selection import Selection

    Options: TypeAlias = Mapping[str, Any]

ABSENT = (1 << 32) - 1  # number of a stage unknown to the run
REST = ("unattributed", "unknown", "latency")


class Values:
    """All values of a run's groups: "stage NAME" has the sum of the stage's durations in each op with the stage, "of
    NAME" the values named in REST. Ops that do not count only help with the order of the stages.
    """

    def __init__(self, run: Run, of_stages: bool) -> None:
        """The ops in `counted`; without their stages, except with ``of_stages``."""
        self.of_stages = of_stages
        self._statistics = _core.StageStatistics(True)
        self._names = feed(self._statistics, run, counted_flags(run), of_stages)

    def sums(self) -> dict[str, Any]:
        """The sums to add to other runs' sums (StageStatistics::sums)."""
        return dict(json.loads(self._statistics.sums(self._names)))

    def within(self, group: str, low: int, past: int, step: int) -> list[tuple[int, int]]:
        """How many are where between both, in steps: (step, count)."""
        kind, name = group.split(" ", 1)
        number = -1 - REST.index(name) if kind == "of" else self._names.index(name) if name in self._names else ABSENT
        return list(json.loads(self._statistics.within(number, low, past, step)))

    @property
    def bytes(self) -> int:
        """Bytes of the values."""
        return self._statistics.kept()


def _which(run: Run, options: Options) -> Selection:
    return default_selection(run, OpFilters(**options["filters"]))


def _counted(run: Run, options: Options) -> tuple[int, int, int]:
    return select_counted(run, _which(run, options), options["tainted"])


def stages(run: Run, options: Options, kept: Kept) -> dict[str, Any]:
    """Per stage: counts in buckets, and ops per first place of the stage; sums of the time in no stage."""
    n, incomplete, tainted = _counted(run, options)
    if tainted and not n:
        raise OplineError(none_counts(f" in {run.given}", incomplete, tainted))
    values = Values(run, True)
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
    found = values.sums()
    kept.keep(options, values)
    return {
        "ops": n, "incomplete": incomplete, "tainted": tainted, "programs": programs, "deferred": later,
        **found,
    }  # fmt: skip


def within(run: Run, options: Options, kept: Kept) -> dict[str, Any]:
    """The numbers of a group's values by place: ``open`` has the group, the range, and the step."""
    _counted(run, options)
    values = Values(run, of_stages(options))
    kept.keep(options, values)
    return found_within(values, options)


def found_within(values: Values, options: Options) -> dict[str, Any]:
    """The answer of `within`."""
    return {"counts": [values.within(*one) for one in options["open"]]}


def latencies(run: Run, options: Options, kept: Kept) -> dict[str, Any]:
    """The latencies in buckets, and how many are longer than ``over_ns``."""
    n, incomplete, tainted = _counted(run, options)
    values = Values(run, False)
    over = 0
    if options["over_ns"] is not None:
        (over,) = run.row(
            "SELECT count(*) FROM ops SEMI JOIN counted USING (op_id) WHERE latency_ns > ?", [options["over_ns"]]
        )
    cells = values.sums()["cells"]
    kept.keep(options, values)
    return {"ops": n, "incomplete": incomplete, "tainted": tainted, "cells": cells, "over": over}


def slow(run: Run, options: Options, _: Kept) -> dict[str, Any]:
    """The sums over the slow and the typical ops, by ``ranks`` of this run: the last op that is not slow, the first and
    the last typical op, and the example's op, None for an example in another run.
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
        "waits": [
            [spent, sums, *(list(by.get(spent, {}).items()) for by in (waits.stages, waits.functions))]
            for spent, sums in waits.sums.items()
        ],
        "programs": programs_of(run, others),
        "example": found,
    }
