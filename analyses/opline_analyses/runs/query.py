# SPDX-License-Identifier: MIT
"""The result of a user's SQL on a run's tables, for people, as CSV and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opline_analyses.base.result_table import Column, ResultTable
from opline_analyses.runs.lockdown import check, lock

if TYPE_CHECKING:
    from typing import BinaryIO

    import duckdb

    from opline_analyses.runs.run import Run

_NUMERIC = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "U", "FLOAT", "DOUBLE", "DECIMAL")
_PLAIN = 0.1, 1e15  # numbers in [first, second) have three decimals, others four figures
NULL = "·"  # in the table for people only


class Answer:
    """Rows in DuckDB, valid until the run is closed."""

    def __init__(self, rows: duckdb.DuckDBPyRelation) -> None:
        """The result of a statement."""
        self._rows = rows
        self.columns, self.types = rows.columns, [str(kind) for kind in rows.types]

    def write_csv(self, out: BinaryIO) -> None:
        """Writes the rows as CSV; no row is a Python object."""
        from opline_analyses.runs.query_csv import write_csv

        write_csv(self.columns, self._rows, out)

    def table(self) -> ResultTable:
        """All rows, for people and as JSON."""
        from opline_analyses.runs.query_json import records

        columns = self.columns
        seen = [
            Column(c, c, _cell, "f64" if t.startswith(_NUMERIC) else "text", left=not t.startswith(_NUMERIC))
            for c, t in zip(columns, self.types, strict=True)
        ]
        return ResultTable(seen, self._rows.fetchall(), document=lambda t: records(columns, t.rows))


def answer(run: Run, query: str, unrestricted: bool) -> Answer | None:
    """The answer to one statement; None for a statement without rows. From here on the run's connection reads no other
    file, unless ``unrestricted``. Raises OplineError unless the statement only asks.
    """
    if not unrestricted:
        check(run.con, query)
        lock(run.con, run.files.paths())
    found: duckdb.DuckDBPyRelation | None = run.con.sql(query)
    return None if found is None else Answer(found)


def _cell(value: object) -> str:
    if not isinstance(value, float):
        return NULL if value is None else str(value)
    return f"{value:.3f}" if value == 0 or _PLAIN[0] <= abs(value) < _PLAIN[1] else f"{value:.4g}"
