# SPDX-License-Identifier: MIT
"""Typed values of a TOML tree: a value of a wrong type, or an unknown value, is noted with its line and left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .language import GONE, Problem

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .positions import Path, Place


class Fields:
    """A document, the lines of its parts, and the mistakes found. Most fields of a model are absent: absent fields must
    cost little.
    """

    def __init__(self, document: Mapping[str, Any], places: Mapping[Path, Place]) -> None:
        self.document = document
        self.places = places
        self.problems: list[Problem] = []

    def line(self, path: Path) -> int:
        while path and path not in self.places:
            path = path[:-1]
        return self.places[path].line if path else 0

    def error(self, path: Path, message: str) -> None:
        self.problems.append(Problem(self.line(path), "error", message))

    def known(self, path: Path, table: Mapping[str, Any], fields: tuple[str, ...], what: str) -> bool:
        unknown = [f for f in table if f not in fields]
        for field in unknown:
            hint = f": write {GONE[field]}" if field in GONE else _did_you_mean(field, fields)
            self.error((*path, field), f"{what} has no field `{field}`{hint}")
        return not unknown

    def table(self, path: Path, field: str) -> Mapping[str, Any]:
        found: Mapping[str, Any] | None = self.typed(path, field, self.document, dict, "a table")
        return found or {}

    def typed(self, path: Path, field: str, table: Mapping[str, Any], kind: type[Any], wanted: str) -> Any:
        value = table.get(field)
        if value is None or (isinstance(value, kind) and (kind is not int or not isinstance(value, bool))):
            return value
        self.error((*path, field), f"`{field}`: {wanted} is wanted, not {_say_type(value)}")
        return None

    def text(self, path: Path, field: str, table: Mapping[str, Any]) -> str | None:
        if field not in table:
            return None
        value: str | None = self.typed(path, field, table, str, "a text")
        if value == "":
            self.error((*path, field), f"`{field}` is empty")
        return value or None

    def texts(self, path: Path, field: str, table: Mapping[str, Any]) -> tuple[str, ...]:
        if field not in table:
            return ()
        value = table[field]
        if isinstance(value, list) and all(isinstance(v, str) and v for v in value):
            return tuple(value)
        if isinstance(value, list):
            self.error((*path, field), f"`{field}`: a list of texts is wanted")
            return ()
        one = self.text(path, field, table)
        return () if one is None else (one,)

    def word(self, path: Path, field: str, table: Mapping[str, Any], words: tuple[str, ...]) -> str | None:
        if field not in table:
            return None
        value = self.text(path, field, table)
        if value is None or value in words:
            return value
        self.error((*path, field), f'`{field} = "{value}"`: one of {", ".join(words)} is wanted')
        return None


def _did_you_mean(word: str, words: tuple[str, ...]) -> str:
    import difflib

    close = difflib.get_close_matches(word, words, n=1)
    return f" (did you mean `{close[0]}`?)" if close else f" (it has {', '.join(words)})"


_TYPE_NAMES: tuple[tuple[type, str], ...] = (
    (bool, "true or false"),
    (str, "a text"),
    (int, "an integer"),
    (float, "a decimal number"),
    (list, "a list"),
    (dict, "a table"),
)


def _say_type(value: object) -> str:
    return next((name for kind, name in _TYPE_NAMES if isinstance(value, kind)), "a date or time")
