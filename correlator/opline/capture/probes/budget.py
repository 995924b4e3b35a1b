# SPDX-License-Identifier: MIT
"""What the hits of a recording's probes may cost: which probes are too hot for it, by what their hits cost here.

Takes counts of hits, gives events whose probes are to be removed. The budget is a share of one processor's time, of all
probes together: 0.02 is 20 ms of their threads' time a second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from opline.values import Value

WINDOW_NS = 500_000_000  # over which what hits cost is looked at


class Refused(Value):
    """A probe that was removed: how often it was hit, which share of a processor that is, and when."""

    event: str
    hits_per_s: int
    share: float
    at_ns: int

    def document(self) -> dict[str, Any]:
        """As plain JSON types."""
        return dict(vars(self))


class Budget:
    """``look()`` at each window's end. ``events``: of each program the event that it is of, ``costs_ns``: a hit's."""

    def __init__(self, share: float, events: Sequence[str], costs_ns: Sequence[int], now_ns: int) -> None:
        self._share = share
        self._events = events
        self._costs_ns = costs_ns
        self._at_ns = now_ns
        self._sent = [0] * len(events)
        self.refused: list[Refused] = []

    def look(self, now_ns: int, sent: Sequence[int]) -> list[str]:
        """Events to be removed now, the dearest first, so that the others are within the budget. ``sent``: hits so far
        of each program.
        """
        window_ns = now_ns - self._at_ns
        if window_ns <= 0:
            return []
        hits: dict[str, int] = {}
        spent: dict[str, int] = {}
        for event, cost_ns, before, now in zip(self._events, self._costs_ns, self._sent, sent, strict=True):
            hits[event] = hits.get(event, 0) + now - before
            spent[event] = spent.get(event, 0) + (now - before) * cost_ns
        self._at_ns, self._sent = now_ns, list(sent)
        gone = {refused.event for refused in self.refused}
        left = sum(ns for event, ns in spent.items() if event not in gone)
        removed = []
        for event in _dearest(spent):
            if left <= self._share * window_ns:
                break
            if event not in gone:
                left -= spent[event]
                removed.append(event)
                rate = hits[event] * 1_000_000_000 // window_ns
                self.refused.append(Refused(event, rate, spent[event] / window_ns, now_ns))
        return removed


def _dearest(spent: Mapping[str, int]) -> list[str]:
    return sorted((event for event, ns in spent.items() if ns), key=lambda event: (-spent[event], event))
