# SPDX-License-Identifier: MIT
"""One DuckDB file with the run's tables (docs/tables.md), for `duckdb FILE` and whatever opens one.

Three things more: the table `manifest` with the run's manifest as JSON; `dev_name(dev)`, a device's name; and
`wall(ns)`, an instant as a timestamp (UTC), where the trace knows its offset, else since the run's first event.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import BinaryIO

from opline.scratch import scratch
from opline.store.schema import TABLES
from opline_analyses.runs.database import bounded
from opline_analyses.runs.functions import make_functions
from opline_analyses.runs.run import Run
from opline_analyses.runs.selection import Selection


def write(run: Run, which: Selection, out: BinaryIO) -> int:
    """Writes the file, of ops the selected ones; gives their number."""
    run.con.execute(f"CREATE OR REPLACE TEMP TABLE exported_ops AS {which.of('o.op_id')}", list(which.parameters))
    some = which.where != "true" or which.limit is not None
    with scratch("duckdb") as folder, bounded(run.con):
        file = Path(folder) / "run.duckdb"
        run.con.execute(f"ATTACH '{file}' AS exported")
        try:
            for table in TABLES:
                of_ops = some and any(column.name == "op_id" for column in table.columns) and table.name != "requests"
                only = " WHERE op_id IN (SELECT op_id FROM exported_ops)" if of_ops else ""
                run.con.execute(f"CREATE TABLE exported.{table.name} AS SELECT * FROM {table.name}{only}")
            run.con.execute("CREATE TABLE exported.manifest AS SELECT ?::JSON AS manifest", [json.dumps(run.manifest)])
            make_functions(run, "exported.")
        finally:
            run.con.execute("DETACH exported")
        with file.open("rb") as written:
            shutil.copyfileobj(written, out)
    (ops,) = run.row("SELECT count(*) FROM exported_ops")
    return int(ops)
