# SPDX-License-Identifier: MIT
"""Rows of a core for DuckDB, while more of them come: the tables of a run, a piece at a time."""

from __future__ import annotations

from array import array
from itertools import accumulate
from typing import TYPE_CHECKING

from opline.store.arrays import TableRows
from opline.store.schema import BY_NAME

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opline import _core

    Tables = dict[str, TableRows]


class CoreRows:
    """What one core's tables have, which then forgets it. Kept is what its dictionaries have."""

    def __init__(self, names: Sequence[str]) -> None:
        """``names`` of the tables that are wanted."""
        self._names = tuple(names)
        self._words: list[bytes] = []
        self._dictionary = _texts([])

    def empty(self) -> Tables:
        """No rows."""
        return {name: TableRows(BY_NAME[name]) for name in self._names}

    def take(self, core: _core.Core) -> Tables:
        """The rows that have come since the last time."""
        new = core.take_new_strings()
        if new:
            self._words += [word.encode() for word in new]
            self._dictionary = _texts(self._words)
        found = self.empty()
        for name, rows, columns in core.take():
            if name in found:
                found[name] = TableRows(BY_NAME[name], [(rows, columns, self._dictionary)])
        return found


def _texts(words: Sequence[bytes]) -> tuple[int, bytes, bytes]:
    """How many, where each ends, and their bytes."""
    return len(words), array("i", accumulate(map(len, words), initial=0)).tobytes(), b"".join(words)
