# SPDX-License-Identifier: MIT
"""The rows of any SQL query as JSON. Takes DuckDB's result in Python's types."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def records(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> list[dict[str, object]]:
    """The rows as objects that JSON can hold. Of columns with the same name the later ones are numbered, as DuckDB does
    (op_id_1): none of them is lost. What is no number (NaN, infinity) is null.
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
    """A cell as JSON can hold it: what is no number is null; lists and structures likewise inside."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list | tuple):
        return [json_value(one) for one in value]
    if isinstance(value, dict):
        return {str(key): json_value(one) for key, one in value.items()}
    return value
