# SPDX-License-Identifier: MIT
"""Arrow's IPC file: the rows and columns of `opline csv`, with types. pandas, polars, R and Julia read it.

Integers are int64 (nanoseconds where the name ends in _ns), texts are utf8, `complete` is a bool; what is unknown is
null. The rows come from the CSV's own writer, a batch at a time.
"""

from __future__ import annotations

import tempfile
from typing import BinaryIO

import pyarrow as pa
import pyarrow.csv

from opline_analyses.ops import op_csv
from opline_analyses.runs.run import Run
from opline_analyses.runs.selection import Selection

_TEXTS = frozenset({"class", "host", "comm", "object", "reason", "dev", "rw"})


def _type(column: str) -> pa.DataType:
    if column == "complete":
        return pa.bool_()
    return pa.utf8() if column in _TEXTS else pa.int64()


def write(run: Run, which: Selection, out: BinaryIO) -> int:
    """Writes the selected ops, those without an end too; gives their number."""
    with op_csv.collector(False) as rows, tempfile.TemporaryFile() as text:
        op_csv.feed(run, which, rows)
        op_csv.write(rows, text)
        text.seek(0)
        columns = pa.csv.open_csv(text).schema.names
        text.seek(0)
        reader = pa.csv.open_csv(
            text,
            parse_options=pa.csv.ParseOptions(newlines_in_values=True),
            convert_options=pa.csv.ConvertOptions(
                column_types={name: _type(name) for name in columns},
                null_values=[""],
                strings_can_be_null=True,
            ),
        )
        ops = 0
        with pa.ipc.new_file(out, reader.schema) as file:
            for batch in reader:
                file.write_batch(batch)
                ops += batch.num_rows
    return ops
