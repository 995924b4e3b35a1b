# SPDX-License-Identifier: MIT
"""The filters for questions in SQL: the table of --of then has only the selected rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opline_analyses.block import io_filter
from opline_analyses.block.io_sources import source_of

if TYPE_CHECKING:
    from opline_analyses.runs.run import Run

_ID = {"requests": "request_id", "bios": "bio_id", "ops": "op_id", "stages": "op_id * 65536 + seq"}


def narrow(run: Run, filters: io_filter.IoFilters) -> None:
    """From here on the run's connection has the chosen rows in that table; nothing changes where no option chooses."""
    rows = io_filter.rows_of(
        run, filters, source_of(filters.of, filters.start, filters.end, filters.tainted, parts=True)
    )
    chosen = io_filter.chosen_ids(rows)
    if chosen is None:
        return
    sql, parameters = chosen
    name = rows.source.name
    run.con.execute(f"CREATE TEMP TABLE chosen AS SELECT DISTINCT id FROM ({sql})", list(parameters))
    (found,) = run.row("SELECT count(*) FROM chosen")
    if not found:
        io_filter.tell_nothing(run, rows)
    run.con.execute(
        f"CREATE TEMP VIEW {name} AS SELECT * FROM memory.main.{name} WHERE {_ID[name]} IN (SELECT id FROM chosen)"
    )
