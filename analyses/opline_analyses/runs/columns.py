# SPDX-License-Identifier: MIT
"""A run's tables as columns of numbers for the native core, a batch at a time. Never Python objects per cell."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from opline.errors import OplineError
from opline.talk import passing, passing_rows
from opline_analyses.runs.views import OF_PROGRAMS, WHOLE, unreadable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    import numpy as np

    from opline.store.arrays import Batch
    from opline_analyses.runs.run import Run

RANGE = 1 << 18  # numbers of rows joined at a time


def batches(run: Run, table: str, columns: Sequence[str], whole: Sequence[str] = ()) -> Iterator[Batch]:
    """Batches of these columns of a table, in the order of its rows; ``whole``: see opline.store.arrays.read. Raises
    OplineError.
    """
    import duckdb

    from opline.store.arrays import read

    con = run.con.another()  # the caller may ask meanwhile
    source = f"{WHOLE}{table}" if table in OF_PROGRAMS else table
    try:
        (rows,) = con.execute(f"SELECT count(*) FROM {source}").fetchall()[0]
        named = ", ".join(f'"{name}"' for name in columns)
        yield from passing_rows(read(con.sql(f"SELECT {named} FROM {source}"), whole), rows, len)
    except duckdb.Error as error:
        path = run.path / f"{table}.parquet"
        raise OplineError(unreadable(path, error, " ".join(run.files.said(error).split()).rstrip("."))) from error


def fetched(found: Any, size: int, whole: int = 0) -> Iterator[list[tuple[Any, ...]]]:
    """The rows of a DuckDB result, ``size`` at a time. ``whole``: their number; 0: unknown."""
    return passing_rows(iter(lambda: found.fetchmany(size), []), whole, len)


def named(run: Run, sql: str, name: str) -> tuple[dict[str, Any], Any, Any]:
    """A query's columns as numpy arrays; for the column of names: the names, and each row's index among the names."""
    import numpy as np

    from opline.store.arrays import gathered

    found = gathered(run.con.sql(sql))
    places, names = found.codes(name)
    return {c: found.array(c) for c in found.names if c != name}, np.array(names, object), places


class Range(NamedTuple):
    """Numbers from ``first`` to ``last`` of a table's rows, and the ``least`` and ``most`` of another number there."""

    first: int
    last: int
    least: int
    most: int


def ranges(run: Run, table: str, number: str, other: str, size: int = RANGE) -> Iterator[Range]:
    """The numbers of a table (``op_id``, ``request_id``), ``size`` at a time. A query over two whole large tables holds
    one table in memory; the tables are in the order of their numbers, so a query over a range reads and holds only a
    part of each.
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

    _give(run, name, {c: np.ascontiguousarray(values, np.int64) for c, values in columns.items()}, "*")


def give_rows(run: Run, name: str, columns: Mapping[str, str], rows: Sequence[Sequence[Any]]) -> None:
    """Makes a temporary table of rows of values, None: absent. ``columns``: their types (BIGINT, VARCHAR, BOOLEAN)."""
    import numpy as np

    arrays = {}
    for place, (column, kind) in enumerate(columns.items()):
        values = [row[place] for row in rows]
        if kind == "VARCHAR":
            arrays[column] = np.array(values, object)
            continue
        absent = np.array([value is None for value in values], bool)
        dtype = bool if kind == "BOOLEAN" else np.int64
        arrays[column] = np.ma.MaskedArray(np.array([value or 0 for value in values], dtype), absent)
    _give(run, name, arrays, ", ".join(f"{column}::{kind} AS {column}" for column, kind in columns.items()))


def _give(run: Run, name: str, arrays: Mapping[str, Any], wanted: str) -> None:
    run.con.register("given", dict(arrays))
    run.con.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT {wanted} FROM given")
    run.con.unregister("given")


def queried(run: Run, sql: str, parameters: Sequence[object] = ()) -> dict[str, Any]:
    """A query's columns as numpy arrays."""
    from opline.store.arrays import gathered

    found = gathered(run.con.sql(sql, list(parameters)))
    return {name: found.array(name) for name in found.names}
