# SPDX-License-Identifier: MIT
"""Time × latency of a large run in cells: what each op has is rounded, what a cell has is exact.

A page of a million ops has room for three bytes an op. Its begin is kept in ticks, its latency as a code of 1 %, and
the time of its stages is summed, in nanoseconds, per cell. A cell's edges are whole ticks and codes: the ops that are
counted in a region that follows the cells are those whose time is summed there.
"""

from __future__ import annotations

import numpy as np

from opline.values import Value
from opline_analyses.ops.rows import Column

TICK_NS = 1000
MOST_TICKS = 8192  # of a page that has no room for ops at TICK_NS
CODES_PER_ROW = 18  # 1.01^18 = 1.196
MOST_COLUMNS = 300


def code_edges(most_ns: int) -> Column:
    """The least latency of each code: whole numbers, each 1 % above the one before, or 1 ns; the last is above
    ``most_ns``.
    """
    edges = [0]
    while edges[-1] <= most_ns:
        edges.append(max(edges[-1] + 1, edges[-1] * 101 // 100))
    return np.array(edges, np.int64)


class Cells(Value):
    """Where each op lies."""

    tick_ns: int
    edges_ns: Column  # of the codes of latency
    width_ns: int  # of a cell: whole ticks
    tick: Column  # of each op
    code: Column
    cell: Column  # of each op: number among those that have ops
    column: Column  # of each cell
    row: Column


def coarse_tick(begin_ns: Column) -> int:
    """The least of 1, 2, 5 times a power of ten, ns, of which the begins have few."""
    span = int(begin_ns.max(initial=0) - begin_ns.min(initial=0))
    ticks = (digit * TICK_NS * 10**power for power in range(18) for digit in (1, 2, 5))
    return int(next(tick for tick in ticks if tick * MOST_TICKS > span))


def cells_of(begin_ns: Column, latency_ns: Column, tick_ns: int = TICK_NS) -> Cells:
    """``begin_ns`` from the run's start; its ticks are rising."""
    edges = code_edges(int(latency_ns.max(initial=0)))
    tick = begin_ns // tick_ns
    code = np.searchsorted(edges, latency_ns, "right") - 1
    span = int(tick[-1]) - int(tick[0]) + 1 if len(tick) else 1  # of a part of a run: its own
    ticks = max(1, -(-span // MOST_COLUMNS))
    rows = int(code.max(initial=0)) // CODES_PER_ROW + 1
    found, cell = np.unique(tick // ticks * rows + code // CODES_PER_ROW, return_inverse=True)
    return Cells(tick_ns, edges, ticks * tick_ns, tick, code, cell, found // rows, found % rows)


def sample_order(cells: Cells, latency_ns: Column, slowest: int) -> Column:
    """All ops in the order in which they are chosen for a sample: the slowest ones, then of each cell one after the
    other, so that any first part of it has some of every region. The same order each time.
    """
    n = len(latency_ns)
    chosen = np.zeros(n, bool)
    first = np.argsort(-latency_ns, kind="stable")[:slowest]
    chosen[first] = True
    shuffled = np.random.default_rng(1).permutation(n)
    order = shuffled[np.argsort(cells.cell[shuffled], kind="stable")]
    sorted_cells = cells.cell[order]
    rank = np.empty(n, np.int64)
    rank[order] = np.arange(n) - np.searchsorted(sorted_cells, sorted_cells)
    by_rank = np.argsort(rank, kind="stable")
    return np.concatenate((first, by_rank[~chosen[by_rank]]))
