# SPDX-License-Identifier: MIT
"""The widths of a table's columns, and which columns a narrow screen can do without."""

from __future__ import annotations

from collections.abc import Sequence


def widest(cells: Sequence[Sequence[str]]) -> list[int]:
    """The characters of each column's longest cell."""
    return [max(map(len, column)) for column in zip(*cells, strict=True)]


def places_kept(spare: Sequence[int], cells: Sequence[Sequence[str]], width: int, gap: int) -> list[int]:
    """Places of the columns to show. Where a line has more than ``width`` characters, as many as it takes are left out,
    from the right: first those that are ``spare`` and say nothing (only empty cells and zeros, or the cells of another
    column), then those of ``spare`` 2. ``cells``: the headings, then the rows; ``gap``: characters between columns.
    """
    _, *rows = cells
    widths = widest(cells)
    kept = list(range(len(spare)))

    def says_nothing(at: int) -> bool:
        mine = [row[at] for row in rows]
        same = any([row[other] for row in rows] == mine for other in kept if other != at)
        return same or not any(cell.strip("0.-") for cell in mine)

    for least in (1, 2):
        for at in [at for at in reversed(kept) if spare[at] >= least]:
            too_long = sum(widths[k] + gap for k in kept) - gap > width
            if too_long and rows and (least == 2 or says_nothing(at)):
                kept.remove(at)
    return kept
