# SPDX-License-Identifier: MIT
"""The rows of any SQL query as JSON. Takes DuckDB's result in Python's types."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def records(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> list[dict[str, object]]:
    """The rows as JSON objects. Columns with the same name are numbered from the second on, as in DuckDB (op_id_1): no
    column is lost. NaN and infinity are null.
    """
    names: list[str] = []
    for column in columns:
        name, n = column, 0
        while name in names:
            n += 1
            name = f"{column}_{n}"
        names.append(name)
    return [dict(zip(names, map(json_value, row), strict=True)) for row in rows]


def json_value(value: object) -> object:
    """A cell for JSON: NaN and infinity are null, also inside of lists and structures."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list | tuple):
        return [json_value(one) for one in value]
    if isinstance(value, dict):
        return {str(key): json_value(one) for key, one in value.items()}
    return value
