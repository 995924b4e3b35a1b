# SPDX-License-Identifier: MIT
"""A run too large for one page: its ops as columns in memory, and answers to the page's questions.

Takes an open run and a selection. Memory holds 35 bytes per op, in order of begin: so the cells of any interval are
counted in milliseconds. All other questions go to the run's tables by DuckDB. Times are ns from the run's first begin.
"""

from __future__ import annotations

import threading
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from opline.errors import OplineError
from opline.values import Value
from opline_analyses.ops.rows import Column
from opline_analyses.report.cells import code_edges
from opline_analyses.view.kinds import KINDS, Kind

if TYPE_CHECKING:
    from opline_analyses.runs.run import Run
    from opline_analyses.runs.selection import Selection

_MOST_OPS = 1 << 28  # op_ids are numbers from 0: a table of 2 GiB
_KNOWN_VALUES = 100_000  # limit of kept values per kind, the most frequent ones


class Region(Value):
    """A marked region: [t0, t1) x [v0, v1), ns. ``stage``: values are times of the stage; None: latencies. ``only``:
    the numbers of a kind and of one of its values; None: all ops.
    """

    t0: int
    t1: int
    v0: int = 0
    v1: int = 1 << 62
    stage: int | None = None
    only: tuple[int, int] | None = None


class StageSums(Value):
    """Exact sums over counted ops."""

    ops: int
    latency_ns: int
    stages_ns: list[int]


class Cells(Value):
    """The ops of an interval by time and value: ``at`` is column * codes + code, rising."""

    width_ns: int
    codes: int
    at: Column
    count: Column
    tainted: Column
    most_ns: int  # the longest value; -1: no value
    without: int  # ops without the stage


class Tables:
    """The ops of one run, and questions about these ops. Several threads may ask."""

    def __init__(
        self,
        run: Run,
        which: Selection,
        tainted: bool,
        before: Tables | None = None,
    ) -> None:
        """``tainted``: tainted ops count as well. ``before``: for a running recording, the tables of the last look, so
        that numbers of stages and values stay the same.
        """
        self._root = run.beside()
        self._root_lock = threading.Lock()
        self.which = which.also("o.complete")
        self.chosen = which  # those without an end as well
        self._tainted_count = tainted
        self.lock = threading.RLock()  # for values computed once
        for table in ("ops", "stages", "requests", "links"):
            run.check(table)
        self.start_ns = run.start_ns()
        self.until_ns: int | None = None  # in the run's clock: the end of the recording so far
        found = run.con.execute(
            self.which.of(f"o.op_id, o.begin_ns - {self.start_ns} AS t, o.latency_ns, o.tainted"),
            list(self.which.parameters),
        ).fetchnumpy()
        order = np.lexsort((found["op_id"], found["t"]))
        self.op_id, self.begin_ns, self.latency_ns = (
            np.asarray(found[name], np.int64)[order] for name in ("op_id", "t", "latency_ns")
        )
        self.tainted = np.asarray(found["tainted"], bool)[order]
        self.counts = np.ones(len(order), bool) if tainted else ~self.tainted
        if len(self.op_id) and not 0 <= int(self.op_id.min()) <= int(self.op_id.max()) < _MOST_OPS:
            raise OplineError(
                f"The run {run.path} has an op_id that no op has: it is damaged. Correlate its trace again."
            )
        self.place = np.full(int(self.op_id.max(initial=-1)) + 1, -1, np.int64)  # by op_id
        self.place[self.op_id] = np.arange(len(order))
        self.edges_ns = code_edges(int(self.latency_ns.max(initial=0)))
        self._codes = self._coded(self.latency_ns)
        self._valued: tuple[int, Column, Column] | None = None  # of the last stage asked for
        self._only: tuple[tuple[int, int], Column] | None = None
        self._known: dict[str, dict[Any, int]] = {}
        self._stages_before = before.stages if before else []
        self._known_before = {name: list(found) for name, found in before._known.items()} if before else {}

    def __len__(self) -> int:
        return len(self.op_id)

    @property
    def first_ns(self) -> int:
        """The first begin of the ops."""
        return int(self.begin_ns[0]) if len(self) else 0

    @cached_property
    def span_ns(self) -> int:
        """The last end of the ops."""
        return int((self.begin_ns + self.latency_ns).max(initial=0))

    @cached_property
    def total_ns(self) -> int:
        """The sum of the latencies of counted ops."""
        return whole_sum(self.latency_ns[self.counts])

    @property
    def run(self) -> Run:
        """The run on a connection of the caller's own."""
        with self._root_lock:
            return self._root.beside()

    def ask(self, sql: str, parameters: list[object] | None = None, marked: Column | None = None) -> Any:
        """A query's result, on a separate connection. ``marked``: the places of the ops in the query's table
        ``marked``.
        """
        con = self.run.con
        if marked is not None:
            con.register("marked", {"op_id": self.op_id[marked]})
        return con.execute(sql, parameters or [])

    def _coded(self, values: Column) -> Column:
        return (np.searchsorted(self.edges_ns, values, "right") - 1).astype(np.int16)

    @cached_property
    def stages(self) -> list[tuple[str, str]]:
        """Name and kind of each stage, in the order in which an op meets the stages: by the first 100 000 ops."""
        kinds = self.ask("SELECT stage, min(kind) FROM stages GROUP BY stage ORDER BY stage").fetchall()
        known = dict(self._stages_before)
        new = [one for one in kinds if one[0] not in known]
        if not new:  # true for almost every look at a running recording, and the rest takes most of the time
            return self._stages_before
        places = self.ask(
            """SELECT stage, median(first) FROM (SELECT op_id, stage, min(seq) AS first FROM stages
               WHERE op_id < (SELECT min(op_id) + 100000 FROM ops) GROUP BY ALL) GROUP BY stage"""
        ).fetchall()
        place = dict(places)
        new.sort(key=lambda one: (place.get(one[0], 1e9), one[0]))
        return [*self._stages_before, *new]

    def values(self, stage: int | None) -> tuple[Column, Column]:
        """For each op the latency, or the time in a stage (-1: none), and the value's code."""
        if stage is None:
            return self.latency_ns, self._codes
        if stage >= len(self.stages):
            raise OplineError("The run has no such stage.")
        with self.lock:
            if self._valued is None or self._valued[0] != stage:
                found = self.ask(
                    "SELECT op_id, sum(duration_ns)::BIGINT AS ns FROM stages WHERE stage = ? GROUP BY op_id",
                    [self.stages[stage][0]],
                ).fetchnumpy()
                values = np.full(len(self), -1, np.int64)
                at, kept = self._places(found["op_id"])
                values[at] = found["ns"][kept]
                self._valued = (stage, values, self._coded(values))
            return self._valued[1:]

    def extent(self, region: Region) -> tuple[int, int, int, int]:
        """For all ops left by the region's ``only`` and ``stage``: the least value above 0, the longest value, the
        value exceeded by 0.1 %, and the number of ops.
        """
        values = self.values(region.stage)[0]
        kept = values >= 0
        if region.only is not None:
            kept &= self._chosen(region.only)
        values = values if kept.all() else values[kept]
        if not len(values):
            return 1, 1, 1, 0
        positive = values[values > 0]
        usual = np.partition(values, int(0.999 * (len(values) - 1)))[int(0.999 * (len(values) - 1))]
        return int(positive.min(initial=1 << 62)), int(values.max()), int(usual), len(values)

    def _places(self, op_ids: Column) -> tuple[Column, Column]:
        """The places of these ops, and which of the ops are here."""
        kept = op_ids < len(self.place)
        kept[kept] = self.place[op_ids[kept]] >= 0
        return self.place[op_ids[kept]], kept

    def known(self, kind: Kind) -> dict[Any, int]:
        """The values of a kind over all ops, with their numbers of ops: the most frequent first."""
        with self.lock:
            if kind.name not in self._known:
                found = dict(self._counted(kind, np.arange(len(self)), _KNOWN_VALUES))
                before = {value: found[value] for value in self._known_before.get(kind.name, ()) if value in found}
                self._known[kind.name] = before | found
            return self._known[kind.name]

    def _counted(self, kind: Kind, marked: Column, limit: int) -> list[tuple[Any, int]]:
        sql = f"SELECT value, count(*) AS n FROM ({kind.sql}) GROUP BY value ORDER BY n DESC, value LIMIT {limit}"
        return list(self.ask(sql, marked=marked).fetchall())

    def _chosen(self, only: tuple[int, int]) -> Column:
        """Which ops have one value of a kind."""
        with self.lock:
            if self._only is None or self._only[0] != only:
                known = list(self.known(KINDS[only[0]])) if only[0] < len(KINDS) else []
                if only[1] >= len(known):
                    raise OplineError("The run has no such value.")
                sql = f"SELECT op_id FROM ({KINDS[only[0]].sql}) WHERE value IS NOT DISTINCT FROM ?"
                found = self.ask(sql, [known[only[1]]], np.arange(len(self))).fetchnumpy()["op_id"]
                chosen = np.zeros(len(self), bool)
                chosen[self._places(found)[0]] = True
                self._only = (only, chosen)
            return self._only[1]

    def _between(self, t0: int, t1: int) -> slice:
        low, high = np.searchsorted(self.begin_ns, (t0, t1))
        return slice(int(low), int(high))

    def cells(self, region: Region, columns: int) -> Cells:
        """The ops of the region's time (of all values) in so many columns, and a row per code."""
        width = max(1, -(-(region.t1 - region.t0) // columns))
        part = self._between(region.t0, region.t1)
        values, codes = (column[part] for column in self.values(region.stage))
        has = codes >= 0
        if region.only is not None:
            chosen = self._chosen(region.only)[part]
            without = int(np.count_nonzero(chosen & ~has))
            has &= chosen
        else:
            without = len(has) - int(np.count_nonzero(has))
        rows = len(self.edges_ns)
        key = (self.begin_ns[part][has] - region.t0) // width * rows + codes[has]
        counted = np.bincount(key, minlength=1)
        at = np.flatnonzero(counted)
        tainted = np.bincount(key[self.tainted[part][has]], minlength=len(counted))
        most = int(values[has].max(initial=-1))
        return Cells(width, rows, at, counted[at], tainted[at], most, without)

    def marked(self, region: Region) -> Column:
        """The places of the ops in a region."""
        part = self._between(region.t0, region.t1)
        values = self.values(region.stage)[0][part]
        hit = (values >= max(region.v0, 0)) & (values < region.v1)
        if region.only is not None:
            hit &= self._chosen(region.only)[part]
        return np.asarray(np.flatnonzero(hit) + part.start)

    def during(self, region: Region) -> Column:
        """The places of the ops in flight in the region's time."""
        end = int(np.searchsorted(self.begin_ns, region.t1))
        hit = self.begin_ns[:end] + self.latency_ns[:end] > region.t0
        if region.only is not None:
            hit &= self._chosen(region.only)[:end]
        return np.asarray(np.flatnonzero(hit))

    def nearest(self, region: Region, linear: bool) -> int | None:
        """The op_id of the region's op nearest to the region's middle."""
        places = self.marked(region)
        if not len(places):
            return None
        values = self.values(region.stage)[0][places]

        def scaled(v: Any) -> Any:
            return np.asarray(v, np.float64) if linear else np.log(np.maximum(np.asarray(v, np.float64), 1))

        low, high = scaled(region.v0), scaled(region.v1)
        far = ((self.begin_ns[places] - (region.t0 + region.t1) / 2) / max(1, region.t1 - region.t0)) ** 2
        far += ((scaled(values) - (low + high) / 2) / max(high - low, 1e-9)) ** 2
        return int(self.op_id[places[np.argmin(far)]])

    @cached_property
    def _all(self) -> StageSums:
        return self._summed(np.flatnonzero(self.counts))

    def _summed(self, places: Column) -> StageSums:
        found: dict[str, int] = {}
        if len(places):
            sql = "SELECT stage, sum(duration_ns)::HUGEINT FROM stages SEMI JOIN marked USING (op_id) GROUP BY stage"
            found = dict(self.ask(sql, marked=places).fetchall())
        latency = whole_sum(self.latency_ns[places])
        return StageSums(len(places), latency, [int(found.get(name, 0)) for name, _ in self.stages])

    def all(self) -> StageSums:
        """The sums of all counted ops."""
        with self.lock:
            return self._all

    @cached_property
    def unattributed_ns(self) -> int:
        """The time in no stage, of all counted ops, by the table ops."""
        keep = "true" if self._tainted_count else "NOT o.tainted"
        which = self.which.also(keep)
        return int(self.run.row(which.of("coalesce(sum(o.unattributed_ns), 0)::HUGEINT"), which.parameters)[0])

    def sums(self, places: Column) -> StageSums:
        """The sums of the counted ops among ``places``. For more than half of all ops, computed from the other ops."""
        counted = places[self.counts[places]]
        whole = self.all()
        if 2 * len(counted) <= whole.ops:
            return self._summed(counted)
        others = self.counts.copy()
        others[counted] = False
        rest = self._summed(np.flatnonzero(others))
        stages = [a - b for a, b in zip(whole.stages_ns, rest.stages_ns, strict=True)]
        return StageSums(len(counted), whole.latency_ns - rest.latency_ns, stages)

    def who(self, kind: Kind, places: Column, most: int) -> list[tuple[Any, int]]:
        """The most frequent values of these ops, with their numbers."""
        if len(places) == len(self):
            return list(self.known(kind).items())[:most]
        known = self.known(kind)
        if 2 * len(places) <= len(self) or len(known) == _KNOWN_VALUES:
            return self._counted(kind, places, most)
        others = np.ones(len(self), bool)
        others[places] = False
        rest = dict(self._counted(kind, np.flatnonzero(others), _KNOWN_VALUES))
        left = {value: n - rest.get(value, 0) for value, n in known.items()}
        return sorted(((v, n) for v, n in left.items() if n), key=lambda one: -one[1])[:most]

    def slowest(self, region: Region, places: Column, most: int) -> Column:
        """The places of the ops with the longest values, the longest first."""
        values = self.values(region.stage)[0][places]
        if len(places) > 4 * most:
            least = np.partition(values, len(values) - most)[len(values) - most]
            places, values = places[values >= least], values[values >= least]
        return places[np.lexsort((places, -values))][:most]


def whole_sum(values: Column) -> int:
    """The sum of numbers from 0 up, of any length."""
    return (int((values >> 32).sum()) << 32) + int((values & 0xFFFFFFFF).sum())
