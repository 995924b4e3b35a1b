# SPDX-License-Identifier: MIT
"""Rows of a core for DuckDB, during the feed: the tables of a run, piece by piece."""

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
    """Takes a core's rows out of the core. Only the words of its dictionaries are kept."""

    def __init__(self, names: Sequence[str]) -> None:
        """``names``: the wanted tables."""
        self._names = tuple(names)
        self._words: list[bytes] = []
        self._dictionary = _texts([])

    def empty(self) -> Tables:
        """No rows."""
        return {name: TableRows(BY_NAME[name]) for name in self._names}

    def take(self, core: _core.Core) -> Tables:
        """The rows since the last call."""
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
    """The number of words, their ends, and their bytes."""
    return len(words), array("i", accumulate(map(len, words), initial=0)).tobytes(), b"".join(words)
