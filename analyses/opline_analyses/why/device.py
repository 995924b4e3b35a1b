# SPDX-License-Identifier: MIT
"""Whose requests slow ops waited behind at the device.

Takes a run and pieces of time in which block requests were waiting (Q to D) or served (D to C); shares each piece out
by the rule of `opline interference`: a wait equally among the requests that were at the device, service equally among
those that had been issued before and were still there, and to itself where there was none. The shares of a piece sum to
it, in whole ns: what a division leaves over goes to the piece's own request.

A share of a request issued before is the time between the completions, divided by how many are left: c_1 / n +
(c_2 - c_1) / (n - 1) + ... A share of a wait is the integral of 1 / (requests at the device), kept as one curve per
device.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from opline import memory
from opline_analyses.runs.cgroups import name_of
from opline_analyses.runs.columns import give, named, queried

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from opline_analyses.runs.run import Run

    Numbers = np.ndarray[Any, np.dtype[np.int64]]
    Reals = np.ndarray[Any, np.dtype[np.float64]]

_REQUESTS = """
    SELECT request_id, dev::BIGINT AS dev, first_issue_ns AS d, complete_ns AS c FROM all_requests
    WHERE first_issue_ns IS NOT NULL AND complete_ns IS NOT NULL AND dev IS NOT NULL"""
IN_CGROUP = f"' in ' || nullif({name_of('r.cgroup')}, '/')"
OWNER = f"""CASE WHEN r.population IS FALSE AND r.op_count > 0
            THEN concat(coalesce(r.queue_comm, 'a program'), {IN_CGROUP}, ', not yours')
        WHEN r.op_id IS NOT NULL THEN coalesce(o.class, 'other') || ' ops'
        WHEN r.op_count > 0 THEN 'work shared by ops'
        WHEN r.population IS FALSE THEN concat(coalesce(r.queue_comm, 'an unknown thread'), {IN_CGROUP})
        ELSE coalesce(r.queue_comm, 'an unknown thread') END"""
# The few that are asked for first: a join with all ops would hold all of them.
_OWNERS = f"""
    WITH r AS MATERIALIZED (SELECT request_id, op_id, op_count, population, queue_comm, cgroup
                            FROM all_requests SEMI JOIN asked USING (request_id)),
         o AS MATERIALIZED (SELECT op_id, class FROM all_ops SEMI JOIN r USING (op_id))
    SELECT r.request_id, {OWNER} AS owner FROM r LEFT JOIN o USING (op_id) ORDER BY r.request_id"""


class Shares(NamedTuple):
    """Rows (piece, owner, ns, waited): ``piece`` is a place in what was asked for, ``owner`` whose request was ahead;
    ``waited``: it was not yet issued itself. What is missing of a piece is its own request's.
    """

    piece: Numbers
    owner: np.ndarray[Any, np.dtype[np.object_]]
    ns: Numbers
    waited: np.ndarray[Any, np.dtype[np.bool_]]


class Devices:
    """The requests of a run, by device in the order of issue."""

    def __init__(self, run: Run) -> None:
        self._run = run
        found = queried(run, _REQUESTS)
        order = np.lexsort((found["request_id"], found["d"], found["dev"]))
        self._ids, self._dev, self._d, self._c = (found.pop(name)[order] for name in ("request_id", "dev", "d", "c"))
        del order
        self._by_id = np.argsort(self._ids, kind="stable")
        memory.give_back()

    def _places(self, requests: Numbers) -> Numbers:
        """Where these requests are; -1: not among them."""
        if not len(self._ids):
            return np.full(len(requests), -1, np.int64)
        at = np.minimum(np.searchsorted(self._ids[self._by_id], requests), len(self._ids) - 1)
        places = self._by_id[at]
        return np.where(self._ids[places] == requests, places, -1)

    def shares(self, requests: Numbers, b: Numbers, e: Numbers) -> Shares:
        """Of these pieces, each of one request (request_id): what of it was behind others."""
        places = self._places(requests)
        parts: list[tuple[Any, Any, Any, Any]] = []
        for dev in np.unique(self._dev[places[places >= 0]]):
            mine = np.flatnonzero((places >= 0) & (self._dev[places] == dev))
            parts += self._of_device(int(dev), mine, places, b, e)
        if not parts:
            return Shares(np.zeros(0, np.int64), np.zeros(0, object), np.zeros(0, np.int64), np.zeros(0, bool))
        memory.give_back()
        piece, ahead, ns, waited = (np.concatenate(c) for c in zip(*parts, strict=True))
        asked, back = np.unique(self._ids[ahead], return_inverse=True)
        give(self._run, "asked", request_id=asked)
        _, names, owner = named(self._run, _OWNERS, "owner")
        return Shares(piece, names[owner[back]], ns, waited)

    def _of_device(
        self, dev: int, mine: Numbers, places: Numbers, b: Numbers, e: Numbers
    ) -> Iterator[tuple[Any, Any, Any, Any]]:
        low, high = np.searchsorted(self._dev, [dev, dev + 1])
        at = Timeline(self._d[low:high], self._c[low:high])
        own = places[mine] - low
        cut = np.clip(at.d[own], b[mine], e[mine])  # waits end at D
        for waited, find, begin, end in ((True, at.waits, b[mine], cut), (False, at.service, cut, e[mine])):
            piece, ahead, ns = find(own, begin, end)
            yield mine[piece], low + ahead, ns, np.full(len(ns), waited)


class Timeline:
    """One device's requests in the order of issue: ``d`` and ``c``."""

    def __init__(self, d: Numbers, c: Numbers) -> None:
        self.d, self.c = d, c
        self._latest = np.maximum.accumulate(c)
        cuts = np.concatenate((d, c))
        cuts.sort()  # np.unique() would keep a set of them
        self._cuts = cuts[np.concatenate(([True], cuts[1:] != cuts[:-1]))]
        del cuts
        there = np.searchsorted(d, self._cuts[:-1], "right")  # step by step, in place: these are the longest columns
        there -= np.searchsorted(np.sort(c), self._cuts[:-1], "right")
        self._curve = np.zeros(len(self._cuts))
        np.divide(1.0, there, out=self._curve[1:], where=there > 0)
        del there
        self._curve[1:] *= np.diff(self._cuts)
        np.cumsum(self._curve, out=self._curve)

    def _overlapping(self, until: Numbers, b: Numbers, e: Numbers) -> tuple[Numbers, Numbers]:
        """Pairs (piece, request) of requests before the place ``until`` that are at the device in [b, e)."""
        first = np.searchsorted(self._latest, b, "right")
        number = np.where(e > b, np.maximum(until - first, 0), 0)
        piece = np.repeat(np.arange(len(b)), number)
        ahead = np.repeat(first - np.cumsum(number) + number, number) + np.arange(number.sum())
        kept = (self.c[ahead] > b[piece]) & (self.d[ahead] < e[piece])
        return piece[kept], ahead[kept]

    def waits(self, own: Numbers, b: Numbers, e: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        """(piece, request, ns): each moment in equal parts to who is at the device. ``own``: the pieces' request."""
        piece, ahead = self._overlapping(np.searchsorted(self.d, e, "left"), b, e)
        others = ahead != own[piece]
        piece, ahead = piece[others], ahead[others]
        ends = np.minimum(self.c[ahead], e[piece]), np.maximum(self.d[ahead], b[piece])
        until, since = (np.interp(t, self._cuts, self._curve) for t in ends)
        return piece, ahead, np.floor(until - since).astype(np.int64)

    def service(self, own: Numbers, b: Numbers, e: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        """The same of those that were issued before, which are all there at the piece's begin and leave one by one."""
        piece, ahead = self._overlapping(own, b, e)
        end = np.minimum(self.c[ahead], e[piece])
        order = np.lexsort((end, piece))
        piece, ahead, end = piece[order], ahead[order], end[order]
        number = np.bincount(piece, minlength=len(b))
        left = np.repeat(np.cumsum(number), number) - np.arange(len(piece))
        head = np.concatenate(([True], piece[1:] != piece[:-1])) if len(piece) else np.zeros(0, bool)
        before = np.where(head, b[piece], np.concatenate(([0], end[:-1])) if len(end) else end)
        grown = np.cumsum((end - before) / left)
        base = (grown - (end - before) / left)[head]
        share = grown - np.repeat(base, number[number > 0])
        return piece, ahead, np.floor(share).astype(np.int64)
