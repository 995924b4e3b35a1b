# SPDX-License-Identifier: MIT
"""A run's tables as columns of numbers for the native core, a batch at a time. Never Python objects per cell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opline.errors import OplineError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    import numpy as np

    from opline_analyses.runs.run import Run

BATCH_ROWS = 1 << 16
ABSENT = -(1 << 63)  # in a column of int64, where the core knows no other way to say it


def batches(run: Run, table: str, columns: Sequence[str]) -> Iterator[Any]:
    """Record batches of these columns of a table, in the order of its rows. Raises OplineError."""
    import pyarrow.parquet as pq

    run.check(table)
    path = run.path / f"{table}.parquet"
    try:
        with pq.ParquetFile(path) as file:
            yield from file.iter_batches(BATCH_ROWS, columns=list(columns))
    except OSError as error:
        why = " ".join(str(error).split())
        raise OplineError(f"Cannot read {path}: {why}. Correlate its trace again.") from error


def numbers(column: Any, number_of: Callable[[str], int]) -> np.ndarray[Any, np.dtype[np.uint32]]:
    """A dictionary column with each text as the number that ``number_of`` gives it; absent ones as 0."""
    import numpy as np

    texts = column.dictionary.to_pylist()
    by_index = np.array([*map(number_of, texts), 0], np.uint32)
    found: np.ndarray[Any, np.dtype[np.uint32]] = by_index[column.indices.fill_null(len(texts)).to_numpy()]
    return found


def filled(column: Any, dtype: Any, absent: int = 0) -> np.ndarray[Any, Any]:
    """The column as contiguous numbers, absent ones as ``absent``."""
    import numpy as np
    import pyarrow as pa

    if absent == ABSENT:
        unsigned = pa.types.is_uint64(column.type)  # 2^63 has the same bits
        column = column.cast(pa.uint64() if unsigned else pa.int64()).fill_null(-ABSENT if unsigned else ABSENT)
        return np.ascontiguousarray(column.to_numpy(zero_copy_only=False)).view(dtype)
    return np.ascontiguousarray(column.fill_null(absent).to_numpy(zero_copy_only=False), dtype)


def array_of(column: Any) -> Any:
    """A column of a table of Arrow as numpy's. pyarrow's own way imports pandas, which takes half a second."""
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
