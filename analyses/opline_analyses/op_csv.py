# SPDX-License-Identifier: MIT
"""One row per op, one column per stage: for spreadsheets, gnuplot and pandas.

Takes a run and a selection; gives Arrow record batches (never Python objects per cell) and writes them as CSV by RFC
4180 with lines that end in LF. The columns before the stages are fixed; the stages follow in the order in which an op
meets them; `unattributed_ns` is last. In each row the stage columns and unattributed_ns sum to latency_ns. An empty
cell is unknown, or a stage that the op does not have.
"""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa
import pyarrow.csv as pacsv

from opline_analyses.run import Run
from opline_analyses.selection import Selection
from opline_analyses.stages import stages_in_order

if TYPE_CHECKING:
    import duckdb

BATCH_ROWS = 65536
_NO_CLIENT = "(SELECT NULL::BIGINT AS op_id, NULL::BIGINT AS client_ns)"

# column, expression over ops o and the kind of its first bio f, meaning
FIXED: tuple[tuple[str, str, str], ...] = (
    ("op_id", "o.op_id", "Ordinal of the op's begin in the trace."),
    ("class", "o.class", "The op's class as the model names it."),
    ("object", "o.object", "The application's name of what the op works on."),
    ("host", "o.host", "Host name from the trace."),
    ("pid", "o.pid", "Process of the begin point."),
    ("comm", "o.comm", "Name of the begin point's thread."),
    ("begin_tid", "o.begin_tid", "Thread of the begin point."),
    ("end_tid", "o.end_tid", "Thread of the end point."),
    ("begin_ns", "o.begin_ns", "Time of the begin point, ns of the raw monotonic clock."),
    ("end_ns", "o.end_ns", "Time of the end point."),
    ("latency_ns", "o.latency_ns", "end_ns - begin_ns."),
    ("client_ns", "c.client_ns", "The client's own figure for this op, where it is known."),
    ("complete", "o.complete", "true: the end point was seen."),
    (
        "reason",
        "CASE WHEN o.complete AND o.tainted THEN 'tainted' ELSE o.reason END",
        "Why not to count the op: no_end, key_reused, superseded, or tainted (it overlaps discarded events).",
    ),
    ("bytes", "o.length_bytes", "Length of the op's data."),
    ("dev", "(o.dev >> 20) || ':' || (o.dev & 1048575)", "Device of the first block request, major:minor."),
    ("sector", "o.sector", "First sector of the first bio, in units of 512 bytes."),
    ("rw", "f.kind", "What the first block request does: read, write, discard, write_zeroes, flush, other."),
)


def stage_column(name: str) -> str:
    """The column of a stage: its name and _ns; `stage_` before it where that is a fixed column's."""
    column = f"{name}_ns"
    return f"stage_{column}" if column in {c for c, _, _ in FIXED} | {"unattributed_ns"} else column


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _name(value: str) -> str:
    return '"' + value.replace('"', '""') + '"'


def op_rows(run: Run, which: Selection, client: bool = False) -> tuple[list[str], duckdb.DuckDBPyRelation]:
    """The columns, and the query's result. ``client``: the temporary table client_ops is there (client_log.py)."""
    stages = [name for name, _ in stages_in_order(run)]
    run.con.execute(f"CREATE OR REPLACE TEMP TABLE wanted AS {which.sql()}", list(which.parameters))
    sums = "".join(f", sum(duration_ns) FILTER (stage = {_text(s)})::BIGINT AS s{n}" for n, s in enumerate(stages))
    fixed = ", ".join(f"{expression} AS {_name(column)}" for column, expression, _ in FIXED)
    cells = "".join(f", p.s{n} AS {_name(stage_column(s))}" for n, s in enumerate(stages))
    result = run.con.sql(
        f"""WITH p AS (SELECT op_id{sums} FROM stages WHERE op_id IN (SELECT op_id FROM wanted) GROUP BY op_id),
                 f AS (SELECT l.op_id, arg_min(b.kind, b.bio_id) AS kind FROM links l JOIN bios b USING (bio_id)
                       WHERE l.op_id IN (SELECT op_id FROM wanted) GROUP BY l.op_id),
                 c AS (SELECT op_id, client_ns FROM {"client_ops" if client else _NO_CLIENT})
            SELECT {fixed}{cells}, o.unattributed_ns
            FROM ops o SEMI JOIN wanted w ON w.op_id = o.op_id
            LEFT JOIN p ON p.op_id = o.op_id LEFT JOIN f ON f.op_id = o.op_id LEFT JOIN c ON c.op_id = o.op_id
            ORDER BY {which.order}"""
    )
    return [c for c, _, _ in FIXED] + [stage_column(s) for s in stages] + ["unattributed_ns"], result


def stage_rows(run: Run, which: Selection) -> tuple[list[str], duckdb.DuckDBPyRelation]:
    """The long form: one row per interval of an op."""
    run.con.execute(f"CREATE OR REPLACE TEMP TABLE wanted AS {which.sql()}", list(which.parameters))
    columns = [
        "op_id",
        "seq",
        "stage",
        "kind",
        "from_point",
        "to_point",
        "begin_ns",
        "duration_ns",
        "tid",
        "request_id",
    ]
    result = run.con.sql(
        f"""SELECT {", ".join("s." + c for c in columns)} FROM stages s SEMI JOIN wanted USING (op_id)
            ORDER BY s.op_id, s.seq"""
    )
    return columns, result


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
