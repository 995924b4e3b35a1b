# SPDX-License-Identifier: MIT
"""The rows of any SQL query as CSV by RFC 4180, with lines that end in LF. Takes DuckDB's result, in Arrow batches."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa
import pyarrow.csv as pacsv

from opline_analyses.runs.columns import BATCH_ROWS

if TYPE_CHECKING:
    import duckdb


def write_csv(columns: list[str], result: duckdb.DuckDBPyRelation, out: BinaryIO) -> int:
    """Writes the header and all rows; gives the number of rows."""
    header = io.StringIO()
    csv.writer(header, lineterminator="\n").writerow(columns)
    out.write(header.getvalue().encode())
    rows = 0
    for batch in result.to_arrow_reader(BATCH_ROWS):
        try:
            out.write(_encoded(batch, _PLAIN))
        except pa.ArrowInvalid:  # a text holds a comma, a quote or a line's end
            out.write(_encoded(batch, _QUOTED))
        rows += batch.num_rows
    return rows


_PLAIN = pacsv.WriteOptions(include_header=False, quoting_style="none")
_QUOTED = pacsv.WriteOptions(include_header=False, quoting_style="needed")


def _encoded(batch: pa.RecordBatch, options: pacsv.WriteOptions) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    pacsv.write_csv(batch, sink, options)
    return sink.getvalue()
