# SPDX-License-Identifier: MIT
"""What readers of text have in common: what could not be read is known when all has been read."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any


class LinesReader:
    """A file of lines, of which some may not be understood."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._unreadable = 0
        self._messages: list[str] = []

    def survey(self) -> dict[str, Any]:
        """Text says nothing of what is missing before it has been read."""
        return {}

    def losses(self) -> tuple[dict[str, int], list[str]]:
        """How many lines could not be read, and the first of them."""
        return ({"unreadable_lines": self._unreadable} if self._unreadable else {}), self._messages

    def plugs(self) -> list[dict[str, Any]]:
        """Only blkparse's text names the device of a plug."""
        return []

    def version(self) -> None:
        """Our own: as opline's."""
