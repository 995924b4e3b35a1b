# SPDX-License-Identifier: MIT
"""Threads with two ops at once, or with an op before its key is known: takes events, gives the names of such events."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from opline_analyses.infer.events import Event, Thread
from opline_analyses.infer.keys import Space
from opline_analyses.infer.ops import Stitched, stitch

_ALWAYS = 0.95
_MOSTLY = 0.6
_SAMPLE = 20_000  # sample of events for the test of explanations
_BETTER = 0.02


def early_of(events: Sequence[Event], stitched: Stitched) -> dict[str, str]:
    """For an event that introduces a key: the event right before, if always the same, and the first event of threads.
    Such an op begins before its key is known.
    """
    before: dict[str, Counter[str | None]] = defaultdict(Counter)
    first: dict[str, list[bool]] = defaultdict(list)
    # the thread's event before, and whether this was the thread's first event
    last: dict[Thread, tuple[str, bool]] = {}
    met: set[tuple[Thread, str]] = set()
    for event in events:
        name, was_first = last.get(event.thread, (None, False))
        if event.name in stitched.roots:
            before[event.name][name] += 1
            if (event.thread, event.name) not in met:
                met.add((event.thread, event.name))
                first[event.name].append(was_first)
        last[event.thread] = event.name, event.thread not in last
    found = {}
    for root, seen in before.items():
        name, n = seen.most_common(1)[0]
        often = n >= _ALWAYS * seen.total() and sum(first[root]) >= max(2, _MOSTLY * len(first[root]))
        if name is not None and name not in stitched.roots and often:
            found[root] = name
    return found


def visitors_of(spaces: Sequence[Space], events: Sequence[Event], early: Mapping[str, str]) -> frozenset[str]:
    """Events with a key after which their thread continues with its earlier op: events for which more of the keyless
    events then come once per op.
    """
    some = events[:_SAMPLE]
    keyed = {name for space in spaces for name in space.uses}
    finding = {
        name for name in keyed if all(name not in s.starts and s.kind != "process" for s in spaces if name in s.uses)
    }
    taken: set[str] = set()
    best = _once(stitch(spaces, some, early=early), some, keyed)
    for name in sorted(finding & {event.name for event in some}):
        found = _once(stitch(spaces, some, early=early, visitors={*taken, name}), some, keyed)
        if found > best + _BETTER:
            taken.add(name)
            best = found
    return frozenset(taken)


def _once(stitched: Stitched, events: Sequence[Event], keyed: set[str]) -> float:
    """The share of keyless events that are the only event of their name in an op."""
    total = sum(event.name not in keyed for event in events)
    once = 0
    for passed in stitched.events_of:
        names = Counter(events[i].name for i in passed)
        once += sum(n == 1 for name, n in names.items() if name not in keyed)
    return once / total if total else 0.0
