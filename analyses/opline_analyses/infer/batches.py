# SPDX-License-Identifier: MIT
"""Work of a thread done once for several ops: takes stitched events, gives the batches found.

Between a thread's events of ops lie events without a key, fewer than the ops: the thread's work for all ops around
these events.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from opline_analyses.infer.events import Event, Thread
from opline_analyses.infer.ops import Stitched

_SEVERAL = 0.1  # share of the times with at least two ops
_FEWER = 0.9


@dataclass
class Batch:
    """``works``: in order; with several, the last closes the batch. ``opens`` may be absent."""

    name: str
    opens: str | None
    joins: str
    works: list[str]
    times: int
    members: dict[int, int]  # how many ops: how often

    @property
    def own(self) -> list[str]:
        """The batch's events without an op."""
        return self.works if self.opens is None else [self.opens, *self.works]


def batches_of(stitched: Stitched, events: Sequence[Event], keyed: set[str]) -> list[Batch]:
    """``keyed``: names of the events with a key."""
    threads: dict[Thread, list[int]] = defaultdict(list)
    for number, event in enumerate(events):
        threads[event.thread].append(number)
    around: dict[str, list[int]] = defaultdict(list)  # for each event without a key: the numbers of ops around it
    places: dict[str, list[tuple[Thread, int]]] = defaultdict(list)
    ops: Counter[Thread] = Counter()
    for thread, numbers in threads.items():
        spans = _spans(stitched, events, numbers, keyed)
        ops[thread] = len(spans)
        depth = _depths(spans, len(numbers))
        for at, number in enumerate(numbers):
            if (name := events[number].name) not in keyed:
                around[name].append(depth[at])
                places[name].append((thread, at))
    works = [name for name, seen in around.items() if _is_work(name, seen, places, ops)]
    groups: dict[frozenset[Thread], list[str]] = defaultdict(list)
    for name in works:
        groups[frozenset(thread for thread, _ in places[name])].append(name)
    found: list[Batch] = []
    for where, names in groups.items():
        batch = _batch(names, [threads[thread] for thread in sorted(where)], stitched, events, keyed)
        if batch is not None and _shows(batch) and batch.joins not in {other.joins for other in found}:
            found.append(batch)
    return found


def _shows(batch: Batch) -> bool:
    several = sum(n for count, n in batch.members.items() if count > 1)
    return several >= _SEVERAL * batch.times and batch.members.get(0, 0) <= 0.2 * batch.times


def _is_work(name: str, seen: Sequence[int], places: dict[str, list[tuple[Thread, int]]], ops: Counter[Thread]) -> bool:
    total = sum(ops[thread] for thread in {thread for thread, _ in places[name]})
    several = sum(n >= 2 for n in seen)
    return several >= _SEVERAL * len(seen) and sum(n > 0 for n in seen) >= 0.8 * len(seen) < 0.8 * _FEWER * total


def _spans(
    stitched: Stitched, events: Sequence[Event], numbers: Sequence[int], keyed: set[str]
) -> dict[int, tuple[int, int]]:
    """For each op the places of the thread's first and last event with the op's key."""
    spans: dict[int, tuple[int, int]] = {}
    for at, number in enumerate(numbers):
        op = stitched.ops[number]
        if op is not None and events[number].name in keyed:
            spans[op] = (spans.get(op, (at, at))[0], at)
    return spans


def _depths(spans: dict[int, tuple[int, int]], count: int) -> list[int]:
    steps = [0] * (count + 1)
    for first, last in spans.values():
        steps[first] += 1
        steps[last] -= 1
    depths, depth = [], 0
    for step in steps[:count]:
        depth += step
        depths.append(depth)
    return depths


def _batch(
    works: Sequence[str],
    threads: Sequence[Sequence[int]],
    stitched: Stitched,
    events: Sequence[Event],
    keyed: set[str],
) -> Batch | None:
    """The opening event, the joining event, and the number of members."""
    first = min(works, key=lambda name: next(n for numbers in threads for n in numbers if events[n].name == name))
    opens: Counter[str] = Counter()
    joins: Counter[str] = Counter()
    members: Counter[int] = Counter()
    for numbers in threads:
        spans = _spans(stitched, events, numbers, keyed)
        begun = 0
        for at, number in enumerate(numbers):
            if events[number].name != first:
                continue
            here = {stitched.ops[n] for n in numbers[begun:at]}
            inside = [op for op in here if op in spans and begun <= spans[op][0] and spans[op][1] > at]
            members[len(inside)] += 1
            if inside:
                joined = min(spans[op][0] for op in inside)
                joins[events[numbers[joined]].name] += 1
                if joined and (before := events[numbers[joined - 1]].name) not in keyed:
                    opens[before] += 1
            begun = at
    if not joins:
        return None
    times = sum(members.values())
    there = Counter(event.name for event in events)
    opening = next((n for n, c in opens.most_common(1) if c >= 0.8 * times and there[n] <= 1.1 * there[first]), None)
    order = {name: k for k, name in enumerate(dict.fromkeys(events[n].name for numbers in threads for n in numbers))}
    ordered = sorted(works, key=lambda name: (order[name] - order[first]) % (len(order) + 1))
    name = common_word([*([opening] if opening else []), *ordered])
    return Batch(name, opening, joins.most_common(1)[0][0], ordered, times, dict(sorted(members.items())))


def common_word(names: Sequence[str]) -> str:
    """The most frequent word in the names of these events."""
    words = Counter(word for name in names for word in dict.fromkeys(re.findall(r"[A-Za-z]+", name.partition(":")[2])))
    return next((word for word, n in words.most_common(1) if n > 1), "batch")
