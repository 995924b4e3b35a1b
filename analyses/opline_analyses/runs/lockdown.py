# SPDX-License-Identifier: MIT
"""A user's SQL on the run's own tables only: no write, no other file, no extension.

DuckDB's own settings keep SQL from all files except the tables' files (enable_external_access, allowed_paths),
permanently (lock_configuration). These settings do not tell reading from writing: DuckDB 2.0 takes ``COPY ops TO
'...'`` of an allowed path, also inside of ``WITH``. So a statement is parsed first, and only a question is run.
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
#: Table functions that make rows of their arguments. Other functions read files, run SQL or take addresses.
_FUNCTIONS = {"range", "generate_series", "unnest", "repeat", "repeat_row"}
_HINT = "--unrestricted allows all of DuckDB"


def lock(con: Connection, files: Sequence[str]) -> None:
    """From here on no file except these, without a way back."""
    listed = ", ".join(f"'{file}'" for file in files)
    con.execute(f"SET allowed_paths = [{listed}]")
    con.execute("SET python_enable_replacements = false")
    con.execute("SET enable_external_access = false")
    con.execute("SET lock_configuration = true")


def check(con: Connection, query: str) -> None:
    """Raises OplineError unless the text is a single question."""
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
