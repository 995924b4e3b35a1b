# SPDX-License-Identifier: MIT
"""Rows one by one, in the order of their due times, each once: also if all rows come again from the first.

A row is due at its end; a stage is known with its op, and due at the op's end. Only rows due recently are kept: earlier
rows have been shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable


class Due:
    """``add`` settled rows, ``take`` due rows. Rows of io_log, each with its due time."""

    def __init__(self) -> None:
        self._waiting: list[tuple[int, dict[str, Any]]] = []
        self._until_ns = 0  # rows due before have been taken
        self._again_ns = 0  # and has come once already
        self._taken = self._taken_before = 0
        self._come_again = 0

    def add(self, rows: Iterable[tuple[int, dict[str, Any]]]) -> None:
        """Settled rows, in any order."""
        for at_ns, row in rows:
            if at_ns < self._again_ns:
                self._come_again += 1
            else:
                self._waiting.append((at_ns, row))

    def take(self, until_ns: int | None = None) -> list[dict[str, Any]]:
        """The rows due before ``until_ns``, in order; None: all rows."""
        if until_ns is None:
            due, self._waiting = self._waiting, []
        else:
            self._until_ns = max(self._until_ns, until_ns)
            due = [waiting for waiting in self._waiting if waiting[0] < until_ns]
            self._waiting = [waiting for waiting in self._waiting if waiting[0] >= until_ns]
        self._taken += len(due)
        return [row for _, row in sorted(due, key=lambda w: (w[0], w[1]["end_ns"], w[1]["id"]))]

    def again(self) -> None:
        """All rows come once more."""
        self._waiting, self._come_again = [], 0
        self._again_ns = self._until_ns
        self._taken_before = self._taken

    @property
    def never_due(self) -> int:
        """The number of rows missing before all rows came again."""
        return max(0, self._come_again - self._taken_before)
