# SPDX-License-Identifier: MIT
"""From records of the BPF ring to rows: a core of its own that is never finished until the end.

Gives what a run's table `requests` would have: the requests that have been settled since the last look, and those that
are under way. Nothing is kept here: memory is what is in flight.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from opline import _core
from opline.model import load_model
from opline.readers.ring import RingReader
from opline.store.arrow import arrow_schema
from opline.store.run import BLOCKS_MODEL
from opline.store.schema import BY_NAME

if TYPE_CHECKING:
    from typing import Any

REQUESTS = arrow_schema(BY_NAME["requests"])


class Feed:
    """Records in (``ring.feed``), tables out."""

    def __init__(self) -> None:
        self._core = _core.Core(load_model(BLOCKS_MODEL).plan_json())
        self._core.keep_tables(("requests",))
        self.ring = RingReader(self._core)
        self._words: list[str] = []
        self._dictionary: pa.Array = pa.array([], pa.string())

    def finish(self) -> None:
        """Nothing more comes: what is under way is settled as not completed."""
        self._core.finish()

    def settled(self) -> pa.Table:
        """The requests that have been settled since the last time."""
        return self._taken()

    def under_way(self) -> pa.Table:
        """The requests that are not settled. Take the settled ones before."""
        self._core.show_open()
        return self._taken()

    def _taken(self) -> pa.Table:
        new = self._core.take_new_strings()
        if new:
            self._words += new
            self._dictionary = pa.array(self._words, pa.string())
        for name, rows, columns in self._core.take():
            if name == "requests":
                return pa.table([self._column(rows, *column) for column in columns], schema=REQUESTS)
        return REQUESTS.empty_table()

    def _column(
        self, rows: int, name: str, kind: str, nulls: int, validity: bytes, data: bytes, _offsets: bytes | None
    ) -> Any:
        known = pa.py_buffer(validity) if nulls else None
        field = REQUESTS.field(name).type
        if kind != "dict":
            return pa.Array.from_buffers(field, rows, [known, pa.py_buffer(data)], nulls)
        indices = pa.Array.from_buffers(pa.int32(), rows, [known, pa.py_buffer(data)], nulls)
        return pa.DictionaryArray.from_arrays(indices, self._dictionary)
