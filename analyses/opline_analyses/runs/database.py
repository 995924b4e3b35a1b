# SPDX-License-Identifier: MIT
"""DuckDB in memory, as every command uses it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opline_analyses.base.interrupts import held

if TYPE_CHECKING:
    import duckdb


def in_memory(threads: int | None = None) -> duckdb.DuckDBPyConnection:
    """A new database. It fetches nothing from the network, and draws no bar: from a notebook or a program that is not a
    file DuckDB does so after 2 s, on the standard output, where the data goes.
    """
    with held():  # its extension aborts where it meets an exception while it is loaded
        import duckdb  # what needs no table does not wait for it

    config: dict[str, str | bool | int | float | list[str]] = {"autoinstall_known_extensions": "false"}
    if threads is not None:
        config["threads"] = threads
    con = duckdb.connect(":memory:", config=config)
    con.execute("SET enable_progress_bar = false")
    return con
