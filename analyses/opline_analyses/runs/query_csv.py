# SPDX-License-Identifier: MIT
"""The rows of any SQL query as CSV by RFC 4180, with lines that end in LF. Takes DuckDB's result in Arrow batches.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa
import pyarrow.csv as pacsv

from opline_analyses.base.result_table import csv_header
from opline_analyses.runs.columns import BATCH_ROWS
from opline_analyses.runs.query_json import json_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    import duckdb


def write_csv(columns: list[str], result: duckdb.DuckDBPyRelation, out: BinaryIO) -> int:
    """Writes the header and all rows; gives the number of rows."""
    out.write(csv_header(columns))
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
    pacsv.write_csv(_flat(batch), sink, options)
    return sink.getvalue()


def _flat(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with lists and structures as JSON, and intervals as texts: Arrow writes neither."""
    for place, field in enumerate(batch.schema):
        if pa.types.is_nested(field.type):
            values = map(json_value, batch.column(place).to_pylist())
            texts = [None if v is None else json.dumps(v, default=str) for v in values]
        elif pa.types.is_interval(field.type):
            texts = [None if v is None else _interval(v) for v in batch.column(place).to_pylist()]
        else:
            continue
        batch = batch.set_column(place, field.name, pa.array(texts, pa.string()))
    return batch


def _interval(value: pa.MonthDayNano) -> str:
    return f"{value.months} months {value.days} days {value.nanoseconds} ns"
