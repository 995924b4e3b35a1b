# SPDX-License-Identifier: MIT
"""The rows of any SQL query as CSV by RFC 4180, with LF at line ends. DuckDB makes the lines: no row is a Python
object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

from opline.store.arrays import read
from opline_analyses.base.result_table import csv_header

if TYPE_CHECKING:
    from collections.abc import Sequence

    import duckdb

_SECOND = "%Y-%m-%d %H:%M:%S"
_PLAIN = "({0})::VARCHAR"
_FLOAT = r"regexp_replace(regexp_replace(({0})::VARCHAR, '\.0$', ''), 'e([-+])0', 'e\1')"  # 3, 1e-7
#: SQL of a cell's text, by the name of its type.
_TEXTS = {
    "DOUBLE": _FLOAT,
    "FLOAT": _FLOAT,
    "TIMESTAMP": f"strftime({{0}}, '{_SECOND}.%f')",
    "TIMESTAMP WITH TIME ZONE": f"strftime(make_timestamp(epoch_us({{0}})), '{_SECOND}.%f') || '+0000'",
    "TIMESTAMP_NS": f"strftime({{0}}, '{_SECOND}.%n')",
}
_NESTED = ("STRUCT", "MAP", "UNION")
_QUOTED = """CASE WHEN regexp_matches({0}, '[,"\\r\\n]') THEN '"' || replace({0}, '"', '""') || '"' ELSE {0} END"""
#: Begins of the names of types whose texts need no quotes.
_UNQUOTED = ("INT", "BIGINT", "DOUBLE", "FLOAT", "DECIMAL", "BOOLEAN", "TIMESTAMP", "DATE")


def write_csv(columns: Sequence[str], result: duckdb.DuckDBPyRelation, out: BinaryIO) -> int:
    """Writes the header and all rows; gives the number of rows."""
    out.write(csv_header(columns))
    cells = (_cell(f"#{n + 1}", str(kind)) for n, kind in enumerate(result.types))
    line = " || ',' || ".join(f"coalesce({cell}, '')" for cell in cells)
    rows = 0
    for batch in read(result.project(f"{line} || chr(10) AS line"), whole=("line",)):
        out.write(batch.texts("line").data)
        rows += len(batch)
    return rows


def _cell(column: str, kind: str) -> str:
    """SQL: the cell of a column; NULL if absent."""
    if kind.startswith(_NESTED) or kind.endswith("]"):
        return _QUOTED.format(f"to_json({column})::VARCHAR")
    text = _TEXTS.get(kind, _PLAIN).format(column)
    return text if kind.lstrip("US").startswith(_UNQUOTED) or kind in _TEXTS else _QUOTED.format(text)
