# SPDX-License-Identifier: MIT
"""Rows one by one in the order in which they are due, each once: also where all of them come anew from the first.

A row is due when it ends; a stage, which is known with its op, when that ends. Kept are those that are due lately:
whatever was due before has been shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable


class Due:
    """``add`` what has been settled, ``take`` what is due. Rows of io_log, each with the time at which it is due."""

    def __init__(self) -> None:
        self._waiting: list[tuple[int, dict[str, Any]]] = []
        self._until_ns = 0  # what was due before has been taken
        self._again_ns = 0  # and has come once already
        self._taken = self._taken_before = 0
        self._come_again = 0

    def add(self, rows: Iterable[tuple[int, dict[str, Any]]]) -> None:
        """What has been settled, in any order."""
        for at_ns, row in rows:
            if at_ns < self._again_ns:
                self._come_again += 1
            else:
                self._waiting.append((at_ns, row))

    def take(self, until_ns: int | None = None) -> list[dict[str, Any]]:
        """Those that are due before, in order; None: all."""
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
        """How many came only when all came anew, among others that had been taken."""
        return max(0, self._come_again - self._taken_before)
