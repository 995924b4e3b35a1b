# SPDX-License-Identifier: MIT
"""A table of a run, or what a query gives: nothing is read before it is asked for.

As Arrow, as pandas, as polars, as tuples; in a notebook its first rows are shown.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from opline.store.schema import TABLES
from opline.talk import shown
from opline_analyses.base.extras import frame, polars_frame, with_extras

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from opline_analyses.runs.views import Connection

SHOWN_ROWS = 10
BATCH_ROWS = 65_536
_LENGTHS = {
    "blocked_io_ns", "blocked_ns", "d2c_ns", "duration_ns", "latency_ns", "on_cpu_ns", "q2c_ns", "runnable_ns",
    "unattributed_ns", "unknown_ns",
}  # fmt: skip
#: The columns of a run's tables that are times of the run's clock; others in _ns are lengths of time.
INSTANTS = frozenset(c.name for table in TABLES for c in table.columns if c.name.endswith("_ns")) - _LENGTHS


class Table:
    """Rows with named columns. Names that end in _ns are int64 nanoseconds; what is unknown is null, never 0."""

    def __init__(
        self,
        con: Callable[[], Connection],
        guard: Callable[[], AbstractContextManager[None]],
        query: str,
        parameters: Sequence[object] = (),
        columns: Sequence[str] | None = None,
    ) -> None:
        """``guard``: inside of it DuckDB's errors are OplineErrors. ``columns``: where they are known already."""
        self._con = con
        self._guard = guard
        self._query = query
        self._parameters = tuple(parameters)
        self._columns = tuple(columns) if columns is not None else None

    def _run(self, query: str, parameters: Sequence[object] = ()) -> duckdb.DuckDBPyConnection:
        return self._con().execute(query, [*self._parameters, *parameters])

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        if self._columns is None:
            with self._guard():
                self._columns = tuple(name for name, *_ in self._run(f"DESCRIBE {self._query}").fetchall())
        return self._columns

    def __len__(self) -> int:
        """How many rows: counts them."""
        with self._guard():
            ((number,),) = self._run(f"SELECT count(*) FROM ({self._query})").fetchall()
        return int(number)

    def where(self, condition: str, *parameters: object) -> Table:
        """The rows for which an SQL condition holds: ``run.ops.where("latency_ns > ?", 1_000_000)``."""
        query = f"SELECT * FROM ({self._query}) WHERE {condition}"
        return Table(self._con, self._guard, query, (*self._parameters, *parameters), self._columns)

    def head(self, rows: int = SHOWN_ROWS) -> Table:
        """The first rows."""
        return Table(
            self._con, self._guard, f"SELECT * FROM ({self._query}) LIMIT {int(rows)}", self._parameters, self._columns
        )

    def rows(self) -> list[tuple[Any, ...]]:
        """All rows as tuples."""
        with self._guard():
            return self._run(self._query).fetchall()

    def arrow(self) -> pa.Table:
        """All rows as a pyarrow.Table. Raises OplineError where pyarrow is not installed."""
        with with_extras(), self._guard():
            return self._con().sql(self._query, self._parameters).to_arrow_table()

    def batches(self, rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """The rows as pyarrow.RecordBatches of so many at most: memory does not follow the table. Another question to
        the same run ends it. Raises OplineError where pyarrow is not installed.
        """
        with with_extras(), self._guard():
            reader: pa.RecordBatchReader = self._con().sql(self._query, self._parameters).to_arrow_reader(rows)
            yield from reader

    def df(self) -> pd.DataFrame:
        """All rows as a pandas.DataFrame, whose integers stay integers where values are unknown (Int64). Raises
        OplineError where pandas is not installed.
        """
        return frame(self.arrow())

    def pl(self) -> pl.DataFrame:
        """All rows as a polars.DataFrame. Raises OplineError where polars is not installed."""
        return polars_frame(self.arrow())

    def timestamps(self) -> Table:
        """The same rows with instants as timestamps in UTC, in columns without `_ns`: `begin_ns` becomes `begin`.

        Times that an SQL query names otherwise stay integers; there `wall(ns)` makes timestamps. If the clock of the
        trace has no offset to the time of day, the first event of the run is at 1970-01-01.
        """
        named = (
            f'wall("{name}") AS "{name.removesuffix("_ns")}"' if name in INSTANTS else f'"{_quoted(name)}"'
            for name in self.columns
        )
        return Table(self._con, self._guard, f"SELECT {', '.join(named)} FROM ({self._query})", self._parameters)

    def __repr__(self) -> str:
        return f"<opline.Table of {len(self)} rows: {', '.join(map(shown, self.columns))}>"

    def _repr_html_(self) -> str:
        """The first rows, for a notebook: names of the trace are texts there."""
        found = self.head(SHOWN_ROWS).rows()
        head = "".join(f"<th>{_cell(name)}</th>" for name in self.columns)
        body = "".join(f"<tr>{''.join(f'<td>{_cell(value)}</td>' for value in row)}</tr>" for row in found)
        number = len(self)
        more = f"the first {len(found)} of " if number > len(found) else ""
        return (
            f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
            f"<p>{more}{number:,} rows; names that end in _ns are nanoseconds; an empty cell is unknown</p>"
        )


def _quoted(name: str) -> str:
    return name.replace('"', '""')


def _cell(value: object) -> str:
    return html.escape(shown(str(value))) if value is not None else ""
