# SPDX-License-Identifier: MIT
"""The ops of a page as columns, in order of begin, and by what they differ: class, object, device, size, ...

Takes a run with the temporary table ``counted`` (stages.select_counted); gives `Ops`. Times are nanoseconds from the
run's first begin, so that a browser's numbers hold them exactly (2^53 ns are 104 days).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from opline.store.arrays import Batch
from opline.store.schema import ATTRIBUTES
from opline.values import Value
from opline_analyses.base.text import device_name
from opline_analyses.ops.rows import Column
from opline_analyses.runs.columns import batches
from opline_analyses.runs.run import Run

MOST_VALUES = 1000  # names of a dimension that a page holds; the others are counted together
NAME_LENGTH = 200


class Dimension(Value):
    """What ops differ by. ``values``: a name per code, the most frequent first; None: unknown. ``codes``: per op."""

    name: str
    values: list[str | None]
    codes: Column  # uint16


@dataclass(slots=True)
class Ops:
    """The complete ops, a row each, by (begin, op_id)."""

    start_ns: int  # of the run's clock: what times count from
    op_id: Column
    begin_ns: Column
    latency_ns: Column
    tainted: Column  # bool
    place: Column  # by op_id: the row, -1 where it is not on the page
    incomplete_ns: Column  # begins of the ops without an end
    dimensions: list[Dimension]

    def __len__(self) -> int:
        return len(self.op_id)

    def ordered(self, order: Column) -> Ops:
        """The same in another order."""
        place = np.full(len(self.place), -1, np.int64)
        place[self.op_id[order]] = np.arange(len(order))
        return Ops(
            start_ns=self.start_ns,
            op_id=self.op_id[order],
            begin_ns=self.begin_ns[order],
            latency_ns=self.latency_ns[order],
            tainted=self.tainted[order],
            place=place,
            incomplete_ns=self.incomplete_ns,
            dimensions=[Dimension(d.name, d.values, d.codes[order]) for d in self.dimensions],
        )


def _dimension(name: str, found: list[Any], codes: Column, label: Any = str) -> Dimension:
    """Codes by falling frequency, of ``codes`` of what was ``found``; one past the last: unknown. ``label``: gives a
    value's name.
    """
    counts = np.bincount(codes, minlength=len(found) + 1)
    names: list[str | None] = [str(label(v))[:NAME_LENGTH] for v in found] + [None]
    # by count, then by name: the same run gives the same bytes
    order = sorted((i for i in range(len(names)) if counts[i]), key=lambda i: (-counts[i], names[i] or ""))
    kept, rest = order[:MOST_VALUES], order[MOST_VALUES:]
    new = np.full(len(names), len(kept), np.uint16)
    new[kept] = np.arange(len(kept))
    values = [names[i] for i in kept]
    if rest:
        values.append(f"({len(rest)} others)")
    return Dimension(name, values, new[codes])


class _Table:
    """The counted ops of a run's table, a column at a time: a page of millions has no room for all of them at once."""

    def __init__(self, run: Run) -> None:
        self._run = run
        (last,) = run.row("SELECT coalesce(max(op_id), -1) FROM all_ops")
        counted = np.zeros(last + 1, bool)
        counted[run.con.execute("SELECT op_id FROM counted").fetchnumpy()["op_id"]] = True
        kept = [counted[batch.numbers("op_id").values] for batch in batches(run, "ops", ("op_id",))]
        self._kept = np.concatenate([*kept, np.zeros(0, bool)])
        self.last = int(last)
        ids, begins = self.numbers("op_id"), self.numbers("begin_ns")
        self._order = np.lexsort((ids, begins))

    def numbers(self, name: str) -> Column:
        """A column of whole numbers, in the order of the table."""
        parts = [batch.numbers(name).filled(np.int64)[kept] for batch, kept in self._parts(name)]
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)

    def ordered(self, name: str) -> Column:
        """The same by (begin, op_id)."""
        return np.asarray(self.numbers(name)[self._order])

    def dimension(self, title: str, name: str, label: Any = str) -> Dimension:
        """A column as what ops differ by."""
        found: dict[Any, int] = {}
        parts = []
        for batch, kept in self._parts(name):
            codes_of_batch, values = batch.codes(name)
            numbers = [found.setdefault(value, len(found)) for value in values]
            parts.append(np.array([*numbers, -1], np.int32)[codes_of_batch[kept]])
        codes = np.concatenate(parts)[self._order] if parts else np.zeros(0, np.int32)
        codes[codes < 0] = len(found)
        return _dimension(title, list(found), codes, label)

    def _parts(self, name: str) -> Iterator[tuple[Batch, Column]]:
        """Rows, and which of them count."""
        at = 0
        for batch in batches(self._run, "ops", (name,)):
            yield batch, self._kept[at : at + len(batch)]
            at += len(batch)


def _depths(run: Run) -> tuple[Column, Column]:
    """op_id and the most requests in flight that a request of the op met."""
    found = run.con.execute(
        """SELECT l.op_id, max(r.in_flight) AS depth FROM (SELECT DISTINCT op_id, request_id FROM links) l
           JOIN requests r USING (request_id) WHERE r.in_flight IS NOT NULL GROUP BY l.op_id"""
    ).fetchnumpy()
    return np.asarray(found["op_id"], np.int64), np.asarray(found["depth"], np.int64)


def _met(run: Run, op_id: Column, last: int) -> Dimension:
    """By the queue depth that ops met."""
    ids, depths = _depths(run)
    met = np.full(last + 1, -1, np.int32)
    met[ids] = depths
    depth = met[op_id]
    most = int(depth.max(initial=-1))
    found = list(dict.fromkeys(bucket(d) for d in range(most + 1)))
    number = np.array([*(found.index(bucket(d)) for d in range(most + 1)), len(found)], np.int32)
    return _dimension("queue depth met", found, number[depth])  # -1, unknown: the last one


def bucket(depth: int) -> str:
    """Powers of two: a depth of 37 is in 32 to 63."""
    if depth < 4:
        return str(depth)
    low = 1 << (depth.bit_length() - 1)
    return f"{low} to {2 * low - 1}"


def size(length: int) -> str:
    """A length in bytes."""
    return f"{length} B"


def read_ops(run: Run, start_ns: int) -> Ops:
    """The ops of the table ``counted``, and the begins of those without an end among ``chosen``."""
    table = _Table(run)
    op_id = table.ordered("op_id")
    place = np.full(table.last + 1, -1, np.int64)
    place[op_id] = np.arange(len(op_id))
    names = run.device_names()
    dimensions = [
        table.dimension("class", "class"),
        table.dimension("object", "object"),
        table.dimension("device", "dev", lambda dev: device_name(names, dev)),
        table.dimension("size", "length_bytes", size),
        table.dimension("begun by", "comm"),
        table.dimension("process", "pid"),
        table.dimension("block requests", "request_count"),
        *(table.dimension(a.kind, a.column) for a in ATTRIBUTES),
        _met(run, op_id, table.last),
    ]
    incomplete = run.con.execute(
        "SELECT begin_ns FROM ops SEMI JOIN chosen USING (op_id) WHERE NOT complete ORDER BY begin_ns"
    ).fetchnumpy()["begin_ns"]
    return Ops(
        start_ns=start_ns,
        op_id=op_id,
        begin_ns=table.ordered("begin_ns") - start_ns,
        latency_ns=table.ordered("latency_ns"),
        tainted=table.ordered("tainted") != 0,
        place=place,
        incomplete_ns=np.asarray(incomplete, np.int64) - start_ns,
        dimensions=[d for d in dimensions if d.values and d.values != [None]],
    )


def listed(lists: Sequence[Sequence[int]]) -> tuple[Column, Column]:
    """Lists as two columns: their lengths, and their items one after the other."""
    lengths = np.array([len(items) for items in lists], np.int64)
    return lengths, np.array([item for items in lists for item in items], np.int64)
