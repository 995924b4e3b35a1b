# SPDX-License-Identifier: MIT
"""What a page says of who and what its ops are: a code per op and kind (class, object, thread), or counts per cell.

A code per op costs up to a byte an op (an object's name is random), and allows to show only the ops with one value.
Counts per cell cost next to nothing, and say as exactly what a region has that follows the cells. Of a large run those
kinds that cost most are kept as counts, until there is room for the ops in detail.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opline_analyses.ops.rows import Column
from opline_analyses.ops.thread_names import host_of_key, names_of_keys
from opline_analyses.report.cells import Cells
from opline_analyses.report.columns import Columns, zigzag
from opline_analyses.report.detail import add_lists
from opline_analyses.report.head import short_name
from opline_analyses.report.ops import Dimension, Ops
from opline_analyses.runs.run import Run

MOST_IN_CELLS = 60  # values of a kind that is kept as counts


def ids(op_ids: Column) -> Column:
    """Numbers of ops, as a column has them."""
    return np.asarray(zigzag(np.diff(op_ids, prepend=np.int64(-1)) - 1))


def add_ops(columns: Columns, ops: Ops, numbers: bool = True) -> None:
    """What is the same in all kinds of page; ``numbers``: but for the ops' own, which need room."""
    if numbers:
        columns.add("op_id", ids(ops.op_id))
    columns.add("tainted", ops.tainted.astype(np.int64))


def _named(values: list[str | None]) -> list[str | None]:
    return [None if v is None else short_name(v) for v in values]


def add_kind(columns: Columns, number: int, kind: Dimension) -> dict[str, Any]:
    """Adds a code per op."""
    columns.add(f"dimension{number}", kind.codes)
    return {"name": kind.name, "column": f"dimension{number}", "values": _named(kind.values)}


def _add_counts(columns: Columns, number: int, kind: Dimension, cells: Cells) -> dict[str, Any]:
    """Adds the counts of each value per cell."""
    values = kind.values
    codes = kind.codes
    if len(values) > MOST_IN_CELLS:
        more = len(values) - MOST_IN_CELLS + 1
        values = [*values[: MOST_IN_CELLS - 1], f"({more} others)"]
        codes = np.minimum(codes, MOST_IN_CELLS - 1)
    size = len(cells.row)
    columns.add(
        f"dimension{number}", np.bincount(codes.astype(np.int64) * size + cells.cell, minlength=len(values) * size)
    )
    return {"name": kind.name, "column": f"dimension{number}", "values": _named(values), "cells": True}


def thread_head(run: Run, keys: list[int]) -> dict[str, Any]:
    """Names of threads by number, and in a joined run their hosts' numbers."""
    names = names_of_keys(run, keys)
    head: dict[str, Any] = {"threads": [short_name(names[key]) for key in keys]}
    if run.is_cluster:
        head["thread_hosts"] = [host_of_key(key) for key in keys]
    return head


def add_threads(columns: Columns, run: Run, lists: list[list[int]]) -> dict[str, Any]:
    """Adds the lists of threads; gives what the head has of them."""
    tids = sorted({tid for one in lists for tid in one})
    number = {tid: n for n, tid in enumerate(tids)}
    add_lists(columns, "thread_lists", [[number[tid] for tid in one] for one in lists])
    return thread_head(run, tids)


def _thread_counts(which: Column, lists: list[list[int]], cells: Cells) -> Column:
    """How many ops of each cell pass each thread: threads, by number, x cells."""
    size = len(cells.row)
    tids = sorted({tid for one in lists for tid in one})
    by_list = np.bincount(which * size + cells.cell, minlength=len(lists) * size).reshape(len(lists), size)
    passes = np.array([[tid in one for one in map(set, lists)] for tid in tids], np.int64)
    return passes @ by_list


def with_kinds(
    columns: Columns,
    run: Run,
    ops: Ops,
    cells: Cells,
    which: Column,
    lists: list[list[int]],
    limit: int,
    numbers: bool = True,
) -> tuple[Columns, dict[str, Any]]:
    """``columns`` with all kinds of ``ops``, the dearest as counts until they have less than ``limit`` bytes; the class
    stays: lists of ops say it. ``which``: of each op the number of its list of threads, of ``lists``. Gives the columns
    and what the head says of them.
    """
    threads = len(ops.dimensions)
    cost = {}
    for n, kind in enumerate(ops.dimensions):
        alone = Columns()
        add_kind(alone, n, kind)
        cost[n] = alone.size
    alone = Columns()
    alone.add("threads", which)
    cost[threads] = alone.size
    add_ops(columns, ops, numbers)
    counted: set[int] = set()
    size = columns.size + sum(cost.values())
    for n in sorted(cost, key=lambda n: -cost[n]):
        if size <= limit:
            break
        if n < threads and ops.dimensions[n].name == "class":
            continue
        counted.add(n)
        size -= cost[n]
    dimensions = [
        _add_counts(columns, n, kind, cells) if n in counted else add_kind(columns, n, kind)
        for n, kind in enumerate(ops.dimensions)
    ]
    if threads in counted:
        columns.add("thread_cells", _thread_counts(which, lists, cells).ravel())
    else:
        columns.add("threads", which)
    head = add_threads(columns, run, lists)
    return columns, {"dimensions": dimensions, **head, "threads_in_cells": threads in counted}
