# SPDX-License-Identifier: MIT
"""The ops of a page as columns, in order of begin, and by what they differ: class, object, device, size, ...

Takes a run with the temporary table ``counted`` (stages.select_counted); gives `Ops`. Times are nanoseconds from the
run's first begin, so that a browser's numbers hold them exactly (2^53 ns are 104 days).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from opline_analyses.base.text import device_name
from opline_analyses.ops.rows import Column
from opline_analyses.runs.columns import batches, filled
from opline_analyses.runs.run import Run

MOST_VALUES = 1000  # names of a dimension that a page holds; the others are counted together
NAME_LENGTH = 200
_COLUMNS = (
    "op_id", "class", "object", "comm", "pid", "begin_ns", "latency_ns", "tainted", "length_bytes", "request_count",
    "dev", "unattributed_ns",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Dimension:
    """What ops differ by. ``values``: a name per code, the most frequent first; None: unknown. ``codes``: per op."""

    name: str
    values: list[str | None]
    codes: Column


@dataclass(slots=True)
class Ops:
    """The complete ops, a row each, by (begin, op_id)."""

    start_ns: int  # of the run's clock: what times count from
    op_id: Column
    begin_ns: Column
    latency_ns: Column
    unattributed_ns: Column
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
            unattributed_ns=self.unattributed_ns[order],
            tainted=self.tainted[order],
            place=place,
            incomplete_ns=self.incomplete_ns,
            dimensions=[Dimension(d.name, d.values, d.codes[order]) for d in self.dimensions],
        )


def _dimension(name: str, column: Any, label: Any = str) -> Dimension:
    """Codes by falling frequency. ``label``: gives a value's name."""
    encoded = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if not pa.types.is_dictionary(encoded.type):
        encoded = pc.dictionary_encode(encoded)
    found = encoded.dictionary.to_pylist()
    codes = filled(encoded.indices, np.int64, len(found))
    counts = np.bincount(codes, minlength=len(found) + 1)
    names: list[str | None] = [str(label(v))[:NAME_LENGTH] for v in found] + [None]
    # by count, then by name: the same run gives the same bytes
    order = sorted((i for i in range(len(names)) if counts[i]), key=lambda i: (-counts[i], names[i] or ""))
    kept, rest = order[:MOST_VALUES], order[MOST_VALUES:]
    new = np.full(len(names), len(kept), np.int64)
    new[kept] = np.arange(len(kept))
    values = [names[i] for i in kept]
    if rest:
        values.append(f"({len(rest)} others)")
    return Dimension(name, values, new[codes])


def _depths(run: Run) -> tuple[Column, Column]:
    """op_id and the most requests in flight that a request of the op met."""
    found = run.con.execute(
        """SELECT l.op_id, max(r.in_flight) AS depth FROM (SELECT DISTINCT op_id, request_id FROM links) l
           JOIN requests r USING (request_id) WHERE r.in_flight IS NOT NULL GROUP BY l.op_id"""
    ).fetchnumpy()
    return np.asarray(found["op_id"], np.int64), np.asarray(found["depth"], np.int64)


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
    (last,) = run.row("SELECT coalesce(max(op_id), -1) FROM ops")
    counts = np.zeros(last + 1, bool)
    counts[run.con.execute("SELECT op_id FROM counted").fetchnumpy()["op_id"]] = True
    table = pa.Table.from_batches(
        [b.filter(pa.array(counts[b.column("op_id").to_numpy()])) for b in batches(run, "ops", _COLUMNS)]
    ).unify_dictionaries()
    plain = {
        name: filled(table.column(name).combine_chunks(), np.int64)
        for name in ("op_id", "begin_ns", "latency_ns", "unattributed_ns")
    }
    order = np.lexsort((plain["op_id"], plain["begin_ns"]))
    ordered = {name: values[order] for name, values in plain.items()}
    place = np.full(last + 1, -1, np.int64)
    place[ordered["op_id"]] = np.arange(len(order))
    table = table.take(pa.array(order))
    names = run.device_names()
    dimensions = [
        _dimension("class", table.column("class")),
        _dimension("object", table.column("object")),
        _dimension("device", table.column("dev"), lambda dev: device_name(names, dev)),
        _dimension("size", table.column("length_bytes"), size),
        _dimension("begun by", table.column("comm")),
        _dimension("process", table.column("pid")),
        _dimension("block requests", table.column("request_count")),
    ]
    ids, depths = _depths(run)
    met = np.full(last + 1, -1, np.int64)
    met[ids] = depths
    depth = met[ordered["op_id"]]
    labels = pa.array([None if d < 0 else bucket(d) for d in range(-1, int(depth.max(initial=-1)) + 1)])
    dimensions.append(_dimension("queue depth met", labels.take(pa.array(depth + 1))))
    incomplete = run.con.execute(
        "SELECT begin_ns FROM ops SEMI JOIN chosen USING (op_id) WHERE NOT complete ORDER BY begin_ns"
    ).fetchnumpy()["begin_ns"]
    return Ops(
        start_ns=start_ns,
        op_id=ordered["op_id"],
        begin_ns=ordered["begin_ns"] - start_ns,
        latency_ns=ordered["latency_ns"],
        unattributed_ns=ordered["unattributed_ns"],
        tainted=np.asarray(table.column("tainted").combine_chunks().to_numpy(zero_copy_only=False), bool),
        place=place,
        incomplete_ns=np.asarray(incomplete, np.int64) - start_ns,
        dimensions=[d for d in dimensions if d.values and d.values != [None]],
    )


def listed(lists: Sequence[Sequence[int]]) -> tuple[Column, Column]:
    """Lists as two columns: their lengths, and their items one after the other."""
    lengths = np.array([len(items) for items in lists], np.int64)
    return lengths, np.array([item for items in lists for item in items], np.int64)
