# SPDX-License-Identifier: MIT
"""DuckDB in memory, for every command."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from opline_analyses.base.interrupts import held

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    import duckdb

MOST_BYTES = 150_000_000
FLUSHED_BYTES = 4_000_000


@contextmanager
def bounded(con: Any) -> Iterator[None]:
    """DuckDB keeps to MOST_BYTES, inside: larger sorts and joins use a temporary folder. Raises OSError."""
    from opline.scratch import scratch

    with scratch("spill") as folder:
        con.execute(f"SET memory_limit = '{MOST_BYTES}B'")
        con.execute(f"SET allocator_flush_threshold = '{FLUSHED_BYTES}B'")  # freed memory beyond goes to the system
        con.execute("SET temp_directory = ?", [folder])
        yield


def load() -> None:
    """Imports DuckDB, for a time when there is nothing else to do."""
    with held():  # DuckDB's extension aborts on an exception during the load
        import duckdb as _  # work without a table does not wait for the import


def in_memory(threads: int | None = None) -> duckdb.DuckDBPyConnection:
    """A new database, without network access and without a progress bar: in a notebook or an interactive program DuckDB
    would draw a bar after 2 s, on the standard output among the data.
    """
    load()
    import duckdb

    config: dict[str, str | bool | int | float | list[str]] = {"autoinstall_known_extensions": "false"}
    if threads is not None:
        config["threads"] = threads
    con = duckdb.connect(":memory:", config=config)
    # off in a notebook without ipywidgets, and DuckDB refuses the setting there
    if con.execute("SELECT current_setting('enable_progress_bar')").fetchall() != [(False,)]:
        con.execute("SET enable_progress_bar = false")
    return con
