# SPDX-License-Identifier: MIT
"""A task process's memory of earlier questions' recordings."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, TypeAlias

    from opline_analyses.engine.of_ops import Values

    Options: TypeAlias = Mapping[str, Any]

KEPT_BYTES = 1 << 27


class Kept:
    """The values of earlier questions' recordings, for the next question: as many as fit into ``most`` bytes."""

    def __init__(self, most: int = KEPT_BYTES) -> None:
        self._most = most
        self._values: dict[str, Values] = {}

    def keep(self, options: Options, values: Values) -> None:
        """Keeps values for questions with these options, in place of earlier values."""
        key = self._key(options)
        self._values.pop(key, None)
        if sum(kept.bytes for kept in self._values.values()) + values.bytes <= self._most:
            self._values[key] = values

    def get(self, options: Options) -> Values | None:
        """For a question of `within`. None if unknown, or without room before."""
        found = self._values.get(self._key(options))
        return None if found is None or (of_stages(options) and not found.of_stages) else found

    @staticmethod
    def _key(options: Options) -> str:
        return repr({name: options[name] for name in options if name not in ("open", "over_ns")})


def of_stages(options: Options) -> bool:
    """Whether a question of `within` is about stages."""
    return any(group.startswith("stage ") for group, *_ in options["open"])
