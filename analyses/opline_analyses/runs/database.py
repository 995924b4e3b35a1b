# SPDX-License-Identifier: MIT
"""DuckDB in memory, as every command uses it."""

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
    """DuckDB keeps to MOST_BYTES, inside: sorts and joins that need more use a temporary folder. Raises OSError."""
    from opline.scratch import scratch

    with scratch("spill") as folder:
        con.execute(f"SET memory_limit = '{MOST_BYTES}B'")
        con.execute(f"SET allocator_flush_threshold = '{FLUSHED_BYTES}B'")  # freed memory beyond goes to the system
        con.execute("SET temp_directory = ?", [folder])
        yield


def load() -> None:
    """Imports DuckDB, for a time when there is nothing else to do."""
    with held():  # its extension aborts where it meets an exception while it is loaded
        import duckdb as _  # what needs no table does not wait for it


def in_memory(threads: int | None = None) -> duckdb.DuckDBPyConnection:
    """A new database. It fetches nothing from the network, and draws no bar: from a notebook or a program that is not a
    file DuckDB does so after 2 s, on the standard output, where the data goes.
    """
    load()
    import duckdb

    config: dict[str, str | bool | int | float | list[str]] = {"autoinstall_known_extensions": "false"}
    if threads is not None:
        config["threads"] = threads
    con = duckdb.connect(":memory:", config=config)
    # in a notebook without ipywidgets it is off, and DuckDB refuses to set it
    if con.execute("SELECT current_setting('enable_progress_bar')").fetchall() != [(False,)]:
        con.execute("SET enable_progress_bar = false")
    return con
