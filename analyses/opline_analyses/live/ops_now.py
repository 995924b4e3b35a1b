# SPDX-License-Identifier: MIT
"""The ops of an interval, for `opline top --model`: classes, stages, the slowest ops, and one op with its stages.

Takes settled rows as they come; gives values and lines. p99 is the largest value of a bucket 0.8 % wide.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from opline_analyses.base.result_table import Column, ResultTable, share, text
from opline_analyses.base.text import count_of, duration, percent
from opline_analyses.block import io_filter, io_log, io_sources, io_steps
from opline_analyses.block.iostat import rate
from opline_analyses.commands.options import io_filters
from opline_analyses.intervals.buckets import Fine
from opline_analyses.intervals.hist import whole
from opline_analyses.intervals.intervals import Cell, Tally, by_group

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from opline_analyses.intervals.intervals import Cells, Grid
    from opline_analyses.live.snapshot import Snapshot

SLOWEST = 9
CLASSES = (
    text("class", "op class"), Column("rate", "ops/s", rate), Column("mean_ns", "mean", duration),
    Column("p99_ns", "p99", duration), Column("max_ns", "max", duration),
)  # fmt: skip
STAGES = (text("stage", "stage"), share(), Column("mean_ns", "per op", duration))
SLOW = (
    text("class", "slowest"), Column("latency_ns", "latency", duration), text("thread", "thread"),
    text("", "longest stage"),
)  # fmt: skip
OF_OP = (text("stage", "stage"), text("kind", "kind"), Column("duration_ns", "took", duration), share())
_FINE = Fine(1, 7)
_REST = "(no stage)"
_APART = "\x1f"  # between class and stage


@dataclass(slots=True)
class OpsNow:
    """One interval: per class the ops and their 99th percentile, per stage the time, and the slowest ops."""

    classes: dict[str, tuple[Cell, int]] = field(default_factory=dict)
    stages: dict[tuple[str, str], Cell] = field(default_factory=dict)  # by class and stage
    slowest: list[dict[str, Any]] = field(default_factory=list)

    def of(self, meant: Callable[[str], bool]) -> tuple[Cell, dict[str, int]]:
        """For the chosen classes: all ops, and the time of each stage, ns."""
        every, times = Cell(), dict[str, int]()
        for name, (cell, _) in self.classes.items():
            if meant(name):
                every.add(cell)
        for (name, stage), cell in self.stages.items():
            if meant(name):
                times[stage] = times.get(stage, 0) + cell.total
        return every, times


def p99(histogram: Mapping[int, Cell]) -> int:
    """The largest value of the bucket with the percentile."""
    count = whole(histogram).count
    rank, seen = -(-99 * count // 100), 0
    for bucket in sorted(histogram):
        seen += histogram[bucket].count
        if seen >= rank:
            return int(histogram[bucket].most or 0)
    return 0


class OpsTally:
    """``take`` settled rows, ``close`` an interval."""

    def __init__(self, args: argparse.Namespace, run: Snapshot, grid: Grid) -> None:
        """``args``: the filters of ops."""
        self.grid = grid
        self._ops = io_filter.rows_of(run, io_filters(args), io_sources.ops())
        self._stages = io_filter.rows_of(run, io_filters(args), _stages_at_the_end())
        self.again()

    def again(self) -> None:
        """All rows come once more."""
        self._by_class, self._by_stage = Tally(self.grid, _FINE), Tally(self.grid)
        self._slowest: list[dict[str, Any]] = []
        self.left_out: dict[str, int] = {}

    @property
    def late(self) -> int:
        """Ops counted in an interval later than their end."""
        return self._by_class.late

    def take(self, run: Snapshot) -> None:
        """The rows of the moment."""
        for reason, number in io_filter.left_out(run, self._ops).items():
            self.left_out[reason] = self.left_out.get(reason, 0) + number
        for batch in io_filter.batches(run, self._ops, "class"):
            self._by_class.add(batch)
        for batch in io_filter.batches(run, self._stages, "stage"):
            self._by_stage.add(batch)
        found = list(io_log.ios(run, self._ops, "latency", SLOWEST, per_class=True))
        self._slowest = slowest_of([*self._slowest, *found], self.grid.step_ns, SLOWEST)
        _add_stages(run, [op for op in self._slowest if "stages" not in op])

    def close(self, index: int) -> OpsNow:
        """A finished interval. Earlier intervals are forgotten."""
        until_ns = self.grid.begin_ns(index + 1)
        classes = by_group(_of(self._by_class, index))
        stages: dict[tuple[str, str], Cell] = {}
        for (name, _), cell in _of(self._by_stage, index).items():
            op_class, _, stage = name.partition(_APART)
            stages[op_class, stage] = cell
        until = until_ns - self._ops.zero_ns
        ended = [op for op in self._slowest if until - self.grid.step_ns <= op["end_ns"] < until]
        self._slowest = [op for op in self._slowest if op["end_ns"] >= until]
        return OpsNow(
            {name: (whole(histogram), p99(histogram)) for name, histogram in classes.items()},
            stages,
            ended,
        )


def slowest_of(found: Sequence[dict[str, Any]], step_ns: int, most: int) -> list[dict[str, Any]]:
    """The slowest rows of each class, per interval of ``end_ns``."""
    kept: dict[tuple[int, str | None], int] = {}
    slow = []
    for row in sorted(found, key=lambda row: -row["latency_ns"]):
        place = row["end_ns"] // step_ns, row["class"]
        kept[place] = kept.get(place, 0) + 1
        if kept[place] <= most:
            slow.append(row)
    return slow


def _of(tally: Tally, index: int) -> Cells:
    return dict(tally.take(tally.grid.begin_ns(index + 1))).get(index, {})


def _stages_at_the_end() -> io_sources.Source:
    """Stages, each at the end of its op: an interval then has all stages of its ops, and the times sum to the ops'
    latency.
    """
    of = io_sources.stages()
    sql = f"""SELECT s.id, o.end_ns - (s.end_ns - s.begin_ns) AS begin_ns, o.end_ns, o.end_ns AS seen_ns,
                     s.dev, s.rwbs, s.kind, s.bytes, s.sector, s.tid, s.comm, s.pid, s.op_id, s.class,
                     concat(coalesce(s.class, 'unknown'), '{_APART}', coalesce(s.stage, '?')) AS stage, s.why
              FROM ({of.sql}) s JOIN (SELECT op_id, end_ns FROM ops) o USING (op_id)"""
    return io_sources.Source(**vars(of) | {"sql": sql})


def _add_stages(run: Snapshot, ops: list[dict[str, Any]]) -> None:
    """Adds to each op its stages in order of time: name, kind, length."""
    by_id: dict[int, list[tuple[str, str, int]]] = {op["op_id"]: op.setdefault("stages", []) for op in ops}
    if not by_id:
        return
    sql = f"""SELECT op_id, stage, kind, duration_ns FROM stages WHERE op_id IN ({", ".join("?" * len(by_id))})
              ORDER BY op_id, seq"""
    for op_id, *stage in run.rows(sql, list(by_id)):
        by_id[op_id].append(tuple(stage))


def class_lines(now: OpsNow, length_s: float, key: str, meant: Callable[[str], bool], most: int) -> list[str]:
    """A row per class; ``key``: order by mean latency, by name, or by rate (all other keys)."""
    keys = {"latency": lambda row: -(row[1][0].mean or 0), "name": lambda row: row[0]}
    found = sorted(
        (row for row in now.classes.items() if meant(row[0])), key=keys.get(key, lambda row: -row[1][0].count)
    )
    rows = [(name, cell.count / length_s, cell.mean or 0, high, cell.most or 0) for name, (cell, high) in found[:most]]
    return list(ResultTable(CLASSES, rows).lines())


def stage_lines(now: OpsNow, meant: Callable[[str], bool], most: int) -> list[str]:
    """A row per stage, the largest share of the ops' mean first; the time in no stage is a row as well."""
    every, times = now.of(meant)
    times[_REST] = every.total - sum(times.values())
    found = sorted(((name, ns) for name, ns in times.items() if ns), key=lambda row: (-row[1], row[0]))
    if len(found) > most:
        found, rest = found[: most - 1], found[most - 1 :]
        found.append((count_of(len(rest), "more stage"), sum(ns for _, ns in rest)))
    rows = [(name, ns / every.total if every.total else None, ns / every.count) for name, ns in found if every.count]
    return list(ResultTable(STAGES, rows).lines())


def slow_lines(slowest: Sequence[dict[str, Any]], most: int) -> list[str]:
    """The slowest ops, numbered, each with its longest stage."""
    rows = []
    for number, op in enumerate(slowest[:most], 1):
        stage, _, ns = max(op["stages"], key=lambda part: part[2], default=("", "", 0))
        where = f"{stage} {percent(ns, op['latency_ns'], 0)}%" if stage else ""
        rows.append([f"{number} {op['class'] or '?'}", op["latency_ns"], io_steps.who(op), where])
    return list(ResultTable(SLOW, rows).lines())


def op_lines(op: dict[str, Any], most: int) -> list[str]:
    """One op with its stages, in at most ``most`` lines."""
    size = f", {op['bytes']} bytes" if op["bytes"] else ""
    found = [f"{op['class'] or '?'}  {io_steps.who(op)}{size}: {duration(op['latency_ns'])}"]
    stages = list(op["stages"])
    if rest := op["latency_ns"] - sum(ns for _, _, ns in stages):
        stages.append((_REST, "", rest))
    if len(stages) > max(1, most - 2):
        stages, more = stages[: max(0, most - 3)], stages[max(0, most - 3) :]
        stages.append((count_of(len(more), "more stage"), "", sum(ns for _, _, ns in more)))
    whole = op["latency_ns"]
    rows = [(stage, kind, ns, ns / whole if whole else None) for stage, kind, ns in stages]
    return [*found, *ResultTable(OF_OP, rows).lines()]
