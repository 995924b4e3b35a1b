# SPDX-License-Identifier: MIT
"""The rows of any SQL query as CSV by RFC 4180, with lines that end in LF, or as JSON. Takes DuckDB's result, in Arrow
batches or in Python's types.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa
import pyarrow.csv as pacsv

from opline_analyses.base.result_table import csv_header
from opline_analyses.runs.columns import BATCH_ROWS

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


def records(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> list[dict[str, object]]:
    """The rows as objects that JSON can hold. Of columns with the same name the later ones are numbered, as DuckDB does
    (op_id_1): none of them is lost. What is no number (NaN, infinity) is null.
    """
    names: list[str] = []
    for column in columns:
        name, n = column, 0
        while name in names:
            n += 1
            name = f"{column}_{n}"
        names.append(name)
    return [dict(zip(names, map(_value, row), strict=True)) for row in rows]


def _value(value: object) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list | tuple):
        return [_value(one) for one in value]
    if isinstance(value, dict):
        return {str(key): _value(one) for key, one in value.items()}
    return value


def _encoded(batch: pa.RecordBatch, options: pacsv.WriteOptions) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    pacsv.write_csv(_flat(batch), sink, options)
    return sink.getvalue()


def _flat(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with lists and structures as JSON, and intervals as texts: Arrow writes neither."""
    for place, field in enumerate(batch.schema):
        if pa.types.is_nested(field.type):
            texts = [None if v is None else json.dumps(_value(v), default=str) for v in batch.column(place).to_pylist()]
        elif pa.types.is_interval(field.type):
            texts = [None if v is None else _interval(v) for v in batch.column(place).to_pylist()]
        else:
            continue
        batch = batch.set_column(place, field.name, pa.array(texts, pa.string()))
    return batch


def _interval(value: pa.MonthDayNano) -> str:
    return f"{value.months} months {value.days} days {value.nanoseconds} ns"
