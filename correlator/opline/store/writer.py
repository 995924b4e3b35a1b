# SPDX-License-Identifier: MIT
"""Writes a run: Parquet files from the core's columns, a chunk at a time, each a ``*.part`` until all is complete."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from opline.store.schema import BY_NAME, TABLES, TableSpec

RawColumn = tuple[str, str, int, bytes, bytes, bytes | None]
RawTable = tuple[str, int, list[RawColumn]]

ARROW = {
    "i64": pa.int64(),
    "u64": pa.uint64(),
    "i32": pa.int32(),
    "u32": pa.uint32(),
    "bool": pa.bool_(),
    "dict": pa.dictionary(pa.int32(), pa.string()),
    "text": pa.string(),
}


def arrow_schema(spec: TableSpec) -> pa.Schema:
    """The table's schema; each field carries its meaning as metadata."""
    return pa.schema([pa.field(c.name, ARROW[c.type], metadata={"meaning": c.meaning}) for c in spec.columns])


class RunWriter:
    """Collects the tables of one run in ``directory``. ``commit()`` makes them visible; ``abort()`` leaves nothing."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self._strings: list[str] = []
        self._pool: Any = pa.array([], pa.string())
        self._writers = {
            t.name: pq.ParquetWriter(
                self._part(t.name),
                arrow_schema(t),
                compression="zstd",
                use_dictionary=[c.name for c in t.columns if c.type in ("dict", "text")],
            )
            for t in TABLES
        }

    def _part(self, table: str) -> Path:
        return self.directory / f"{table}.parquet.part"

    def write(self, tables: list[RawTable], new_strings: list[str]) -> None:
        """Append the core's chunks. ``new_strings`` continue the pool that dictionary columns refer to."""
        if new_strings:
            self._strings += new_strings
            self._pool = pa.array(self._strings, pa.string())
        for name, rows, columns in tables:
            schema = arrow_schema(BY_NAME[name])
            arrays = [self._array(rows, *column[1:]) for column in columns]
            self._writers[name].write_table(pa.Table.from_arrays(arrays, schema=schema))

    def write_rows(self, table: str, rows: list[dict[str, object]]) -> None:
        """Append rows that do not come from the core."""
        self._writers[table].write_table(pa.Table.from_pylist(rows, schema=arrow_schema(BY_NAME[table])))

    def _array(self, rows: int, kind: str, nulls: int, validity: bytes, data: bytes, offsets: bytes | None) -> Any:
        valid = pa.py_buffer(validity) if nulls else None
        if kind == "dict":
            # Only the strings that this chunk uses, in their own order: the pool's depends on who read the trace.
            ids = np.frombuffer(data, np.uint32)
            used = np.flatnonzero(np.bincount(ids, minlength=1)) if rows else np.empty(0, np.int64)
            texts = self._pool.take(pa.array(used))
            order = pc.sort_indices(texts).to_numpy()
            place = np.empty(used[-1] + 1 if rows else 0, np.int32)  # by id
            place[used[order]] = np.arange(len(order), dtype=np.int32)
            indices = pa.Array.from_buffers(pa.int32(), rows, [valid, pa.py_buffer(place[ids])], nulls)
            return pa.DictionaryArray.from_arrays(indices, texts.take(pa.array(order)))
        buffers = [valid, pa.py_buffer(data)] if offsets is None else [valid, pa.py_buffer(offsets), pa.py_buffer(data)]
        return pa.Array.from_buffers(ARROW[kind], rows, buffers, nulls)

    def commit(self, manifest: dict[str, Any]) -> None:
        """Close and rename all files, the manifest last: a directory with a manifest is a whole run."""
        for writer in self._writers.values():
            writer.close()
        part = self.directory / "manifest.json.part"
        part.write_text(json.dumps(manifest, indent=1) + "\n")
        # A manifest that was here is of the tables that go: without it the folder is no run until all is in place.
        (self.directory / "manifest.json").unlink(missing_ok=True)
        for table in self._writers:
            self._part(table).replace(self.directory / f"{table}.parquet")
        part.replace(self.directory / "manifest.json")

    def abort(self) -> None:
        """Remove everything that was written so far."""
        for table, writer in self._writers.items():
            with contextlib.suppress(OSError, pa.ArrowException):
                writer.close()
            self._part(table).unlink(missing_ok=True)
        (self.directory / "manifest.json.part").unlink(missing_ok=True)
