# SPDX-License-Identifier: MIT
"""Counts, sums, least and greatest values in fixed buckets, as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opline_analyses.intervals.buckets import Fine

if TYPE_CHECKING:
    from typing import Any

    from opline_analyses.intervals.intervals import Cell, Cells, Tally

BITS = 8  # each power of two in 256: a percentile is within 0.2 %
BUCKETS = Fine(1, BITS)


def cell(found: Cell) -> list[int | None]:
    """A cell as JSON."""
    return [found.count, found.total, found.least, found.most, found.size]


def cells(found: Cells) -> list[list[Any]]:
    """Cells as JSON, in an order that depends on what is in them alone."""
    return [[group, bucket, *cell(one)] for (group, bucket), one in sorted(found.items())]


def tally_cells(tally: Tally) -> Cells:
    """What a tally of one interval has."""
    return next((found for _, found in tally.intervals()), {})
