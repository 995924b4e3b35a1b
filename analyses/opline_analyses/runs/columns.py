# SPDX-License-Identifier: MIT
"""A run's tables as columns of numbers for the native core, a batch at a time. Never Python objects per cell."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from opline.errors import OplineError
from opline.talk import passing, passing_rows
from opline_analyses.runs.views import unreadable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    import numpy as np

    from opline_analyses.runs.run import Run

BATCH_ROWS = 1 << 16
RANGE = 1 << 18  # numbers of rows that are joined at a time
ABSENT = -(1 << 63)  # in a column of int64, where the core knows no other way to say it


def batches(run: Run, table: str, columns: Sequence[str]) -> Iterator[Any]:
    """Record batches of these columns of a table, in the order of its rows. Raises OplineError."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    run.check(table)
    path = run.path / f"{table}.parquet"
    try:
        # an open file, as of a path it wants UTF-8; what is read ahead would be kept until the last batch
        with pa.OSFile(os.fsencode(path)) as raw, pq.ParquetFile(raw, pre_buffer=False) as file:
            if absent := [name for name in columns if name not in file.schema_arrow.names]:
                raise OplineError(f"Cannot read {path}: it has no column {absent[0]}. Correlate its trace again.")
            parts = file.iter_batches(BATCH_ROWS, columns=list(columns))
            yield from passing_rows(parts, file.metadata.num_rows, len)
    except (OSError, pa.ArrowInvalid) as error:
        raise OplineError(unreadable(path, error, " ".join(str(error).split()).rstrip("."))) from error


def fetched(found: Any, size: int, whole: int = 0) -> Iterator[list[tuple[Any, ...]]]:
    """The rows of a DuckDB result, ``size`` at a time. ``whole``: how many they are; 0: unknown."""
    return passing_rows(iter(lambda: found.fetchmany(size), []), whole, len)


def plain(column: Any, absent: int = 0) -> np.ndarray[Any, Any]:
    """An Arrow array of numbers as numpy's, absent ones as ``absent``. pyarrow's own ways, `to_numpy` and `fill_null`,
    import pandas, which takes 0.3 s.
    """
    import numpy as np
    import pyarrow as pa

    if pa.types.is_boolean(column.type):
        return plain(column.cast(pa.int8()), absent).astype(bool)
    kind = np.dtype(column.type.to_pandas_dtype())
    data = column.buffers()[1]
    if data is None:
        return np.full(len(column), absent, kind)
    values = np.frombuffer(data, kind, len(column), column.offset * kind.itemsize)
    if column.null_count:
        missing = np.from_dlpack(column.is_null().cast(pa.int8())) == 1
        values = np.where(missing, kind.type(absent), values)
    return values


def mask(wanted: np.ndarray[Any, np.dtype[np.bool_]]) -> Any:
    """Flags as an Arrow array; pyarrow's own way imports pandas."""
    import numpy as np
    import pyarrow as pa

    bits = np.packbits(wanted, bitorder="little")
    return pa.Array.from_buffers(pa.bool_(), len(wanted), [None, pa.py_buffer(bits)])


def without_absent(column: Any) -> Any:
    """An Arrow array of texts with empty ones for absent ones; `fill_null` imports pandas."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    ends = pa.py_buffer(np.zeros(len(column) + 1, np.int32))
    return pc.coalesce(column, pa.Array.from_buffers(pa.string(), len(column), [None, ends, pa.py_buffer(b"")]))


def numbers(column: Any, number_of: Callable[[str], int]) -> np.ndarray[Any, np.dtype[np.uint32]]:
    """A dictionary column with each text as the number that ``number_of`` gives it; absent ones as 0."""
    import numpy as np

    texts = column.dictionary.to_pylist()
    by_index = np.array([*map(number_of, texts), 0], np.uint32)
    found: np.ndarray[Any, np.dtype[np.uint32]] = by_index[plain(column.indices, len(texts))]
    return found


def filled(column: Any, dtype: Any, absent: int = 0) -> np.ndarray[Any, Any]:
    """The column as contiguous numbers, absent ones as ``absent``."""
    import numpy as np
    import pyarrow as pa

    if absent == ABSENT:
        unsigned = pa.types.is_uint64(column.type)  # 2^63 has the same bits
        column = column.cast(pa.uint64() if unsigned else pa.int64())
        return np.ascontiguousarray(plain(column, -ABSENT if unsigned else ABSENT)).view(dtype)
    return np.ascontiguousarray(plain(column, absent), dtype)


def array_of(column: Any) -> Any:
    """A column of a table of Arrow as numpy's, likewise."""
    import numpy as np
    import pyarrow as pa

    if pa.types.is_boolean(column.type):
        return array_of(column.cast(pa.int8())).astype(bool)
    if column.null_count or not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        if pa.types.is_string(column.type) or pa.types.is_dictionary(column.type):
            names, places = encoded(column)
            return np.array([*names, None], object)[places]  # -1: absent
        return column.to_numpy()
    chunks = [np.from_dlpack(chunk) for chunk in column.chunks if len(chunk)]
    return np.concatenate(chunks) if chunks else np.zeros(0, column.type.to_pandas_dtype())


def encoded(column: Any) -> tuple[Any, Any]:
    """Of a column of texts: the different ones, and for each row its place among them; -1 where it has none."""
    import numpy as np
    import pyarrow as pa

    found = column.combine_chunks().cast("string").dictionary_encode()
    if isinstance(found, pa.ChunkedArray):
        found = found.combine_chunks()
    indices = found.indices
    places = np.frombuffer(indices.buffers()[1], np.int32, len(indices), 4 * indices.offset).copy()
    if indices.null_count:
        places[np.from_dlpack(indices.is_null().cast(pa.int8())) == 1] = -1
    return np.array(found.dictionary.to_pylist(), object), places


def named(run: Run, sql: str, name: str) -> tuple[dict[str, Any], Any, Any]:
    """A query's columns as numpy arrays, but for that of names: the names, and each row's place among them."""
    table = run.con.sql(sql).to_arrow_table()
    found = {c: array_of(table.column(c)) for c in table.column_names if c != name}
    return found, *encoded(table.column(name))


class Range(NamedTuple):
    """Numbers from ``first`` to ``last`` of a table's rows, and the ``least`` and ``most`` of another number there."""

    first: int
    last: int
    least: int
    most: int


def ranges(run: Run, table: str, number: str, other: str, size: int = RANGE) -> Iterator[Range]:
    """The numbers of a table (``op_id``, ``request_id``), ``size`` at a time. A query that joins the whole of two large
    tables holds one of them in memory; these are in the order of their numbers, so a query of a range reads and holds
    a part of each.
    """
    low, high = run.row(f"SELECT min({number}), max({number}) FROM {table}")
    if low is None:
        return
    for first in passing(range(low, high + 1, size)):
        last = first + size - 1
        there = f"FROM {table} WHERE {number} BETWEEN {first} AND {last}"
        yield Range(first, last, *run.row(f"SELECT coalesce(min({other}), 0), coalesce(max({other}), -1) {there}"))


def give(run: Run, name: str, **columns: np.ndarray[Any, np.dtype[np.int64]]) -> None:
    """Makes a temporary table of these columns."""
    import numpy as np
    import pyarrow as pa

    def array(values: np.ndarray[Any, np.dtype[np.int64]]) -> Any:
        buffer = pa.py_buffer(np.ascontiguousarray(values, np.int64))
        return pa.Array.from_buffers(pa.int64(), len(values), [None, buffer])

    run.con.register("given", pa.table({c: array(values) for c, values in columns.items()}))
    run.con.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT * FROM given")
    run.con.unregister("given")


def queried(run: Run, sql: str, parameters: Sequence[object] = ()) -> dict[str, Any]:
    """A query's columns as numpy arrays."""
    table = run.con.sql(sql, list(parameters)).to_arrow_table()
    return {name: array_of(table.column(name)) for name in table.column_names}
