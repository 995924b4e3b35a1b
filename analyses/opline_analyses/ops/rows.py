# SPDX-License-Identifier: MIT
"""Rows of the table stages for ops of a page: whole, for ops in detail; as sums per cell, for all ops of a large run.

Takes a run and the place of each op; gives arrays. Never a Python object per row.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from opline.store.arrays import ABSENT
from opline.values import Value
from opline_analyses.ops.thread_names import thread_keys
from opline_analyses.runs.columns import batches
from opline_analyses.runs.run import Run

Column = np.ndarray[Any, np.dtype[Any]]


class StageRows(Value):
    """Stages of ops, by (op, seq): ``op`` counts from 0 in the wanted order."""

    op: Column
    seq: Column  # from 0, without gaps in an op
    stage: Column  # number in the page's list of stages
    begin_ns: Column  # of the run's clock
    duration_ns: Column
    tid: Column  # ABSENT: no thread is known; in a joined run the thread's key (ops.thread_names)

    @property
    def first(self) -> Column:
        """The begin of each op's rows, and one past the last row."""
        ops = int(self.op[-1]) + 1 if len(self.op) else 0
        return np.searchsorted(self.op, np.arange(ops + 1))


NO_STAGE = (1 << 32) - 1  # in rows of other programs' ops, without a place


def stage_rows(run: Run, place: Column, stages: dict[str, int]) -> StageRows:
    """The rows of the ops with a ``place`` (by op_id; -1: none). ``stages``: the number of each name."""
    parts: list[tuple[Column, ...]] = []
    for op, rows in _read(run, place, stages):
        parts.append((op, *rows))
    return _ordered(parts)


def _read(run: Run, place: Column, stages: dict[str, int]) -> Iterator[tuple[Column, tuple[Column, ...]]]:
    """By batch: the ops' places, and seq, stage, begin, duration and thread of their rows."""
    hosts = {host: n + 1 for n, host in enumerate(run.hosts())}
    wanted = ("op_id", "seq", "stage", "begin_ns", "duration_ns", "tid", *(("host",) if hosts else ()))
    for batch in batches(run, "stages", wanted):
        tid = batch.numbers("tid").filled(np.int64, ABSENT)
        if hosts:
            tid = thread_keys(tid, batch.codes("host").numbers(lambda name: hosts[name]).astype(np.int64) - 1)
        op = place[batch.numbers("op_id").filled(np.int64)]
        rows: tuple[Column, ...] = (
            batch.numbers("seq").filled(np.int64),
            batch.codes("stage").numbers(lambda name: stages.get(name, NO_STAGE)),
            batch.numbers("begin_ns").filled(np.int64),
            batch.numbers("duration_ns").filled(np.int64),
            tid,
        )
        kept = op >= 0
        if kept.all():
            yield op, rows
        elif kept.any():
            yield op[kept], tuple(column[kept] for column in rows)


def _ordered(parts: list[tuple[Column, ...]]) -> StageRows:
    if not parts:
        none = np.zeros(0, np.int64)
        return StageRows(none, none, none, none, none, none)
    op, seq, stage, begin, duration, tid = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((seq, op))
    op = op[order]
    starts = np.searchsorted(op, op)  # for each row, the first row of the op
    return StageRows(op, np.arange(len(op)) - starts, stage[order], begin[order], duration[order], tid[order])


class Sums(Value):
    """Sums over all ops of a run: per cell and stage, and a number for each op's list of threads."""

    by_cell: Column  # cells × stages, ns
    threads: Column  # of each op: equal numbers, equal lists
    rows: StageRows  # of the wanted ops, and of others: some ops are incomplete here


def _mixed(values: Column) -> Column:
    """Splitmix64's finalizer (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014)."""
    z = values.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)))


def fingerprints(op: Column, seq: Column, items: Column, ops: int) -> Column:
    """A number for each op's list of items: the sum modulo 2^64 of a hash of every item with its place. Among a million
    ops two different lists share a number with a probability of 1e-7.
    """
    acc = np.zeros(ops, np.uint64)
    with np.errstate(over="ignore"):
        np.add.at(acc, op, _mixed(_mixed(items.view(np.int64).astype(np.uint64)) + seq.astype(np.uint64)))
    return acc


def exact_sums(index: Column, values: Column, size: int = 0) -> Column:
    """The sum of the values at each index, 64 bits: whole numbers from 0 up. Doubles are fastest, and exact if all
    values sum to less than 2^53.
    """
    if float(values.sum(dtype=np.float64)) < 1 << 52:
        return np.bincount(index, values, size).astype(np.int64)
    found = np.zeros(max(size, int(index.max(initial=-1)) + 1), np.int64)
    np.add.at(found, index, values)
    return found


def sums(run: Run, place: Column, cell: Column, cells: int, stages: dict[str, int], ops: int, wanted: Column) -> Sums:
    """``cell``: for each op by place; -1 for an op whose time does not count. ``wanted``: places of ops whose rows are
    kept.
    """
    width = len(stages)
    by_cell = np.zeros(cells * width, np.int64)
    threads = np.zeros(ops, np.uint64)
    keep = np.zeros(ops, bool)
    keep[wanted] = True
    seen: set[int] = set()
    parts: list[tuple[Column, ...]] = []
    for op, rows in _read(run, place, stages):
        seq, stage, _, duration, tid = rows
        low, high = int(op.min()), int(op.max())
        marks = fingerprints(op - low, seq, tid, high - low + 1)
        threads[low : high + 1] += marks
        at = cell[op]
        counted = at >= 0
        index = (at if counted.all() else at[counted]) * width + (stage if counted.all() else stage[counted])
        if len(index):
            base = int(index.min())
            found = exact_sums(index - base, duration if counted.all() else duration[counted])
            by_cell[base : base + len(found)] += found
        # an op for each list of threads; ops at the batch's ends may continue in the next batch
        present, at_first = np.unique(marks[op - low], return_index=True)
        new = [n for n, mark in enumerate(present.tolist()) if mark not in seen]
        seen.update(present[new].tolist())
        keep[op[at_first[new]]] = keep[op[0]] = keep[op[-1]] = True
        kept = keep[op]
        parts.append((op[kept], *(column[kept] for column in rows)))
    return Sums(by_cell.reshape(cells, width), threads, _ordered(parts))
