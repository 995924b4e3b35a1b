# SPDX-License-Identifier: MIT
"""Ops that wait until a log is written up to their record: takes findings, gives the two events of this wait.

An event of an op tells the needed position; another event, of any writing thread, tells the reached position, which
never falls. The op continues only after the second position has reached the first.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, permutations

from opline_analyses.infer.batches import common_word
from opline_analyses.infer.events import Event
from opline_analyses.infer.keys import Space
from opline_analyses.infer.ops import Stitched
from opline_analyses.infer.unnamed import is_numbered

_MOSTLY = 0.9
_RISES = 0.95
_LEAST = 10  # number of occurrences


@dataclass
class Log:
    """``needs`` and ``reaches``: an event and its field. ``done``: the next event of the writer's thread. ``goes_on``:
    the op's first event after the log reached the position. ``among``: the field that identifies the log. ``reached``:
    how often, of ``times``, the position was reached before the op's end; ``others``: by another op's thread.
    """

    name: str
    needs: tuple[str, str]
    reaches: tuple[str, str]
    done: str | None
    goes_on: str
    among: str | None
    times: int
    reached: int
    others: int


def logs_of(spaces: Sequence[Space], stitched: Stitched, events: Sequence[Event]) -> list[Log]:
    """Among the rejected key spaces, the pairs with needed and reached positions."""
    found: list[Log] = []
    for space in spaces:
        uses = [(event, use[0]) for event, use in space.uses.items()]
        names = {field for _, field in uses}
        ends = len(uses) == len(names) == 2 or all(map(is_numbered, names))
        if ends and space.kind == "number":
            for needs, reaches in permutations(uses, 2):
                log = _log(needs, reaches, stitched, events)
                if log is not None and not any(log.needs == other.needs for other in found):
                    found.append(log)
    return found


def _log(needs: tuple[str, str], reaches: tuple[str, str], stitched: Stitched, events: Sequence[Event]) -> Log | None:
    writes = [n for n, event in enumerate(events) if event.name == reaches[0] and reaches[1] in event.fields]
    ends = [_number(events[n], reaches[1]) for n in writes]
    asks = [n for n, event in enumerate(events) if event.name == needs[0] and stitched.ops[n] is not None]
    if len(asks) < _LEAST or len(ends) < 2 or len(writes) >= len(asks):
        return None
    if sum(b >= a for a, b in pairwise(ends)) < _RISES * (len(ends) - 1):
        return None
    after: Counter[str] = Counter()
    reached = others = 0
    for ask in asks:
        wanted = _number(events[ask], needs[1])
        op = stitched.ops[ask]
        mine = stitched.events_of[op] if op is not None else []
        later_ones = range(bisect_right(writes, ask), len(writes))
        by = next((writes[k] for k in later_ones if ends[k] >= wanted), None)
        later = [n for n in mine if by is not None and n > by and events[n].thread == events[ask].thread]
        if by is None or not later:
            continue
        reached += 1
        others += events[by].thread != events[ask].thread
        after.update({events[n].name for n in later})
    common = [name for name, n in after.items() if n >= _MOSTLY * reached]
    if reached < _MOSTLY * len(asks) or not others or not common:
        return None
    counts = Counter(event.name for event in events)
    goes_on = min(common, key=lambda name: (counts[name] - counts[needs[0]], name))
    if counts[goes_on] > 1.1 * counts[needs[0]]:
        return None  # the event tells nothing about this wait
    done = _next(writes, events)
    names = [needs[0], reaches[0], goes_on, *([done] if done else [])]
    both = set.intersection(*({*events[n].fields} for n in (*asks, *writes))) - {needs[1], reaches[1]}
    return Log(
        common_word(names), needs, reaches, done if done != goes_on else None, goes_on, min(both, default=None),
        len(asks), reached, others,
    )  # fmt: skip


def _next(writes: Sequence[int], events: Sequence[Event]) -> str | None:
    """The event that always follows each of these events on the thread."""
    follow: Counter[str] = Counter()
    waiting: dict[object, bool] = defaultdict(bool)
    mine = set(writes)
    for number, event in enumerate(events):
        if waiting[event.thread]:
            follow[event.name] += 1
        waiting[event.thread] = number in mine
    name, n = follow.most_common(1)[0] if follow else (None, 0)
    return name if n >= _MOSTLY * len(writes) else None


def _number(event: Event, field: str) -> int:
    value = event.fields.get(field, 0)
    return value if isinstance(value, int) else 0
