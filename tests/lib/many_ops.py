# SPDX-License-Identifier: MIT
"""A run of very many ops: the ops of a run again and again, each time later and with numbers of their own."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from opline.store.schema import TABLES

IDS = {"op_id": "ops", "request_id": "requests", "bio_id": "bios"}
LATER = (
    "begin_ns",
    "end_ns",
    "ts_ns",
    "queue_ns",
    "getrq_ns",
    "insert_ns",
    "first_issue_ns",
    "issue_ns",
    "complete_ns",
)
COPIED = ("ops", "stages", "requests", "bios", "links", "transitions")


def repeated(run: Path, out: Path, copies: int) -> Path:
    """The run of so many copies of the ops, stages, requests, bios, links and transitions of ``run``; no states."""
    out.mkdir()
    manifest = json.loads((run / "manifest.json").read_text())
    del manifest["checksums"]
    (out / "manifest.json").write_text(json.dumps(manifest))
    tables = {spec.name: pq.read_table(run / f"{spec.name}.parquet") for spec in TABLES}
    steps = {name: pc.max(tables[table][name]).as_py() + 1 for name, table in IDS.items()}
    ops = tables["ops"]
    steps |= dict.fromkeys(LATER, pc.max(ops["end_ns"]).as_py() - pc.min(ops["begin_ns"]).as_py() + 1_000_000)
    for name, table in tables.items():
        with pq.ParquetWriter(out / f"{name}.parquet", table.schema) as writer:
            for copy in range(copies if name in COPIED else 1):
                columns = [_moved(table[field.name], steps.get(field.name, 0) * copy) for field in table.schema]
                writer.write_table(pa.table(columns, schema=table.schema))
    return out


def _moved(column: pa.ChunkedArray, step: int) -> pa.ChunkedArray:
    return pc.add(column, pa.scalar(step, column.type)) if step else column
