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


def queried(run: Run, sql: str, parameters: Sequence[object] = ()) -> dict[str, Any]:
    """A query's columns as numpy arrays."""
    found: dict[str, Any] = run.con.execute(sql, list(parameters)).fetchnumpy()
    return found
