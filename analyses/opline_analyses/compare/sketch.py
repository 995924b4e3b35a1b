# SPDX-License-Identifier: MIT
"""A distribution of times in fixed bins, small enough to keep beside a program's source.

Bins are whole nanoseconds below 8, and above it 8 to each power of two, so that none is wider than 1/8 of where it
begins. They are the same for all runs, so that distributions of runs can be laid side by side and added.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from typing import TYPE_CHECKING

from opline.values import Value
from opline_analyses.intervals.buckets import Fine

if TYPE_CHECKING:
    from collections.abc import Iterable

    from opline_analyses.runs.run import Run

BITS = 3
SPLIT = 1 << BITS
BINS = Fine(bits=BITS)
# Of the column ns, as an SQL expression: the same as BINS.index. log2 is exact at powers of two (C11, F.10.3.10).
BIN = f"""CASE WHEN ns < {SPLIT} THEN ns::BIGINT
     ELSE (floor(log2(ns))::BIGINT - {BITS - 1}) * {SPLIT}
          + ((ns >> (floor(log2(ns))::BIGINT - {BITS})) & {SPLIT - 1}) END"""


class Sketch(Value):
    """``bins``: pairs of a bin and how many times are in it, in order, one after the other."""

    bins: tuple[int, ...]

    @property
    def count(self) -> int:
        """How many times."""
        return sum(self.bins[1::2])

    def quantile(self, q: float) -> float:
        """The time, ns, that a share ``q`` (0 to 1) of them does not exceed, as if those of a bin were spread evenly
        over it. There must be one.
        """
        upto = [0, *accumulate(self.bins[1::2])]
        rank = q * upto[-1]
        place = min(max(bisect_left(upto, rank), 1), len(upto) - 1) - 1
        low, high = BINS.edges(self.bins[2 * place])
        return low + (high - low) * (rank - upto[place]) / (upto[place + 1] - upto[place])


def sketch_of(pairs: Iterable[tuple[int, int]]) -> Sketch:
    """Of pairs of a bin and a count."""
    return Sketch(tuple(n for pair in sorted(pairs) for n in pair))


def sketches(run: Run) -> tuple[Sketch, dict[str, Sketch]]:
    """Of the latencies and of each stage of the ops in the table `counted`; a stage that recurs in an op adds up."""
    latency = run.rows(
        f"""SELECT {BIN} AS bin, count(*) FROM (SELECT latency_ns AS ns FROM ops SEMI JOIN counted USING (op_id))
            GROUP BY bin"""
    )
    by_stage: dict[str, list[tuple[int, int]]] = {}
    for stage, number, count in run.rows(
        f"""SELECT stage, {BIN} AS bin, count(*)
            FROM (SELECT stage, sum(duration_ns)::BIGINT AS ns FROM stages SEMI JOIN counted USING (op_id)
                  GROUP BY op_id, stage)
            GROUP BY stage, bin"""
    ):
        by_stage.setdefault(stage, []).append((number, count))
    return sketch_of(latency), {stage: sketch_of(pairs) for stage, pairs in by_stage.items()}
