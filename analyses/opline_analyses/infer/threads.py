# SPDX-License-Identifier: MIT
"""Ops of a trace without a key field: the two events between which a thread works for an op."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from statistics import median

from opline.capture.probes.template import likely_pair, pairs
from opline.errors import OplineError
from opline_analyses.infer.events import Event


def pair_of(events: Sequence[Event]) -> tuple[str, str]:
    """By name, if two events mean begin and end on one thread; else the event with the longest waits of threads, and
    the event before. Raises OplineError with only one kind of event.
    """
    nexts: dict[str, Counter[str]] = defaultdict(Counter)
    waits: dict[str, list[int]] = defaultdict(list)
    last: dict[object, Event] = {}
    names = list(dict.fromkeys(event.name for event in events))
    for event in events:
        before = last.get(event.thread)
        if before is not None:
            nexts[before.name][event.name] += 1
            waits[event.name].append(event.ts_ns - before.ts_ns)
        last[event.thread] = event
    named = likely_pair(pairs(names))
    if named is not None:
        return named
    if len(names) < 2 or not waits:
        raise OplineError(f"{names[0]} is the only kind of event: an op needs a begin and an end.")
    begin = max(waits, key=lambda name: (median(waits[name]), name))
    ends = Counter({name: seen[begin] for name, seen in nexts.items() if name != begin and seen[begin]})
    if not ends:
        raise OplineError(f"Nothing comes between two {begin}: no end of an op is to be seen.")
    return begin, ends.most_common(1)[0][0]
