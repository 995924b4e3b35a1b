# SPDX-License-Identifier: MIT
"""Rows of a core as Arrow tables, while more of them come: the tables of a run, a piece at a time."""

from __future__ import annotations

from array import array
from itertools import accumulate
from typing import TYPE_CHECKING

import pyarrow as pa

from opline.store.arrow import arrow_schema
from opline.store.schema import BY_NAME

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from opline import _core

    Tables = dict[str, pa.Table]


class CoreRows:
    """What one core's tables have, which then forgets it. Kept is what its dictionaries have."""

    def __init__(self, names: Sequence[str]) -> None:
        """``names`` of the tables that are wanted."""
        self._schemas = {name: arrow_schema(BY_NAME[name]) for name in names}
        self._words: list[str] = []
        self._dictionary: pa.Array = _texts([])

    def empty(self) -> Tables:
        """No rows."""
        return {name: no_rows(schema) for name, schema in self._schemas.items()}

    def take(self, core: _core.Core) -> Tables:
        """The rows that have come since the last time."""
        new = core.take_new_strings()
        if new:
            self._words += new
            self._dictionary = _texts(self._words)
        found = self.empty()
        for name, rows, columns in core.take():
            if (schema := self._schemas.get(name)) is not None:
                found[name] = pa.table([self._column(schema, rows, *column) for column in columns], schema=schema)
        return found

    def _column(
        self,
        schema: pa.Schema,
        rows: int,
        name: str,
        kind: str,
        nulls: int,
        validity: bytes,
        data: bytes,
        offsets: bytes | None,
    ) -> Any:
        known = pa.py_buffer(validity) if nulls else None
        if kind == "dict":
            indices = pa.Array.from_buffers(pa.int32(), rows, [known, pa.py_buffer(data)], nulls)
            return pa.DictionaryArray.from_arrays(indices, self._dictionary)
        between = [] if offsets is None else [pa.py_buffer(offsets)]
        return pa.Array.from_buffers(schema.field(name).type, rows, [known, *between, pa.py_buffer(data)], nulls)


def _texts(words: Sequence[str]) -> pa.Array:
    """As ``pa.array(words)``, which imports pandas where it is installed: 0.2 s."""
    encoded = [word.encode() for word in words]
    ends = array("i", accumulate(map(len, encoded), initial=0))
    return pa.Array.from_buffers(pa.string(), len(words), [None, pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))])


def no_rows(schema: pa.Schema) -> pa.Table:
    """As ``schema.empty_table()``, which imports pandas."""
    return pa.Table.from_batches([], schema)
