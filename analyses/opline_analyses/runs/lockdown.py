# SPDX-License-Identifier: MIT
"""SQL from anybody, on the run's own tables alone: nothing is written, no other file is read, no extension is loaded.

DuckDB's own means keep it from all files but the tables' (enable_external_access, allowed_paths), and that for good
(lock_configuration). They do not tell reading from writing: DuckDB 2.0 takes ``COPY ops TO '...'`` of an allowed path,
also inside of ``WITH``. So a statement is parsed first, and only one that asks is run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import json

from opline.errors import OplineError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from opline_analyses.runs.views import Connection

_ASKING = {"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"}
#: Table functions that make rows of their arguments. Others read files, run SQL of their own or take addresses.
_FUNCTIONS = {"range", "generate_series", "unnest", "repeat", "repeat_row"}
_HINT = "--unrestricted allows all of DuckDB"


def lock(con: Connection, files: Sequence[str]) -> None:
    """From here on no file but these, and no way back."""
    listed = ", ".join(f"'{file}'" for file in files)
    con.execute(f"SET allowed_paths = [{listed}]")
    con.execute("SET python_enable_replacements = false")
    con.execute("SET enable_external_access = false")
    con.execute("SET lock_configuration = true")


def check(con: Connection, query: str) -> None:
    """Raises OplineError for what is not one statement that asks."""
    ((text,),) = con.execute("SELECT json_serialize_sql(?)", [query]).fetchall()
    document = json.loads(text)
    if document.get("error"):
        what = document.get("error_message") or "not understood"
        if document.get("error_type") == "parser":
            raise OplineError(f"SQL: {' '.join(str(what).split())}")
        raise OplineError(f"SQL: write one SELECT (or DESCRIBE, SHOW, SUMMARIZE); {_HINT}.")
    if len(document.get("statements", [])) != 1:
        raise OplineError(f"SQL: one statement at a time; {_HINT}.")
    for node in _nodes(document["statements"]):
        kind = str(node.get("type"))
        if kind.endswith("_NODE") and kind not in _ASKING:
            raise OplineError(f"SQL: the run's tables are only read; {_HINT}.")
        if kind == "TABLE_FUNCTION":
            name = str((node.get("function") or {}).get("function_name"))
            if name not in _FUNCTIONS:
                raise OplineError(f"SQL: the table function {name} is not for a run's own tables; {_HINT}.")


def _nodes(part: Any) -> Iterator[dict[str, Any]]:
    stack = [part]
    while stack:
        part = stack.pop()
        if isinstance(part, dict):
            yield part
            stack += part.values()
        elif isinstance(part, list):
            stack += part
