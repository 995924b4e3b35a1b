# SPDX-License-Identifier: MIT
"""Names for the time between two points: takes findings, gives stages, each with count and mean."""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import pairwise
from typing import NamedTuple

from opline_analyses.infer.rules import Findings, is_aside

_SHARE = 0.02  # of the ops that pass the stage
_WORDS = (
    "begin", "start", "started", "enter", "entry", "open", "enqueue", "end", "done", "finish", "finished", "exit",
    "leave", "return", "close", "dequeue",
)  # fmt: skip
_HALVES = re.compile(rf"(^|_)({'|'.join(_WORDS)})(?=_|$)", re.A)


class Proposed(NamedTuple):
    """An interval between two events' names. ``kind`` is None for work."""

    name: str
    begin: str
    end: str
    kind: str | None
    times: int
    mean_ns: int


def stages_of(found: Findings) -> list[Proposed]:
    """Stages with a better name than the two ends: two halves of one thing, and hand-overs between threads."""
    events = found.trace.events
    spans: dict[tuple[str, str], list[int]] = defaultdict(list)
    crossing: dict[tuple[str, str], list[bool]] = defaultdict(list)  # per time: whether to another process
    for passed in found.stitched.events_of:
        way = [n for n in passed if not is_aside(found, events[n].name)]
        for a, b in pairwise(way):
            pair = events[a].name, events[b].name
            if pair[0] == pair[1]:
                continue
            spans[pair].append(events[b].ts_ns - events[a].ts_ns)
            if events[a].thread != events[b].thread:
                crossing[pair].append(events[a].thread[:2] != events[b].thread[:2])
    found_stages = []
    least = max(2, _SHARE * len(found.stitched.events_of))
    for pair, times in spans.items():
        if len(times) < least:
            continue
        across = crossing.get(pair, [])
        thing = _thing(pair)
        mean = sum(times) // len(times)
        if len(across) > 0.5 * len(times):
            kind = "network" if sum(across) > 0.5 * len(across) else "wait"
            name = f"{thing} queue" if thing and kind == "wait" else f"{_rest(pair[0])} to {_rest(pair[1])}"
            found_stages.append(Proposed(name, *pair, kind, len(times), mean))
        elif thing:
            found_stages.append(Proposed(thing, *pair, None, len(times), mean))
    return found_stages


def _rest(name: str) -> str:
    return name.partition(":")[2].replace("__", "_").replace("_", " ")


def _thing(pair: tuple[str, str]) -> str:
    """The common part of both names, if only the half differs."""
    first, last = (re.sub(r"_+", " ", _HALVES.sub("", name.partition(":")[2])).strip() for name in pair)
    if first == last:
        return first
    one, other = (name.partition(":")[2] for name in pair)
    return one if other in (one + "ed", one + "d", one + "_done", one + "_got") else ""
