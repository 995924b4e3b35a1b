# SPDX-License-Identifier: MIT
"""The ops of a trace if these key spaces were the keys: takes events and spaces, gives each event's op.

A space's first event begins an op, or belongs to the op of another space: the current op of the thread. An event with a
key belongs to the key's op, an event without a key to the thread's last op.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from opline_analyses.infer.events import Event, Thread
from opline_analyses.infer.keys import VPID, Space

_BACK = 64  # limit of a thread's earlier events searched for the thread's op
_MOSTLY = 0.6
_SELDOM = 0.05  # episodes of a key, compared with the key of most episodes: with fewer, the key has no ops


@dataclass
class Links:
    """The origin of a space's ops: the space of the thread's op at the first event (None: an op begins there)."""

    parent: dict[str, Space | None] = field(default_factory=dict)  # by the name of the first event
    votes: dict[str, tuple[int, int]] = field(default_factory=dict)  # how often this was so, and of how many


@dataclass
class Stitched:
    """``ops``: each event's op number, or None; ``sure`` if a key proves the op. ``events_of``: each op's events, in
    order.
    """

    ops: list[int | None]
    sure: list[bool]
    events_of: list[list[int]]
    links: Links
    begins: set[str]
    roots: set[str]  # events that introduce the first key of an op

    def add(self, number: int, op: int | None, *, sure: bool) -> None:
        """Adds the next event with its op; ``sure``: an op begins there, or a key names the op."""
        self.ops.append(op)
        self.sure.append(sure)
        if op is not None:
            self.events_of[op].append(number)


def links_of(spaces: Sequence[Space], events: Sequence[Event]) -> Links:
    """Finds the parent of each space at each of the space's first events."""
    first_of: dict[str, set[str]] = defaultdict(set)
    of: dict[str, set[str]] = defaultdict(set)
    for space in spaces:
        for name in space.uses:
            (first_of if name in space.starts else of)[name].add(space.name)
    by_name = {space.name: space for space in spaces}
    lasts = {space.name: _lasts(space, events) for space in spaces}
    before = _before(events)
    votes: dict[str, Counter[tuple[str, bool]]] = defaultdict(Counter)
    asked: Counter[str] = Counter()
    for number, event in enumerate(events):
        own = first_of.get(event.name)
        if not own or of.get(event.name):
            continue
        asked[event.name] += 1
        found = _last_key(number, before, events, first_of, of)
        if found is not None and not own & found[0]:
            for name in found[0]:
                votes[event.name][name, found[1] not in lasts[name]] += 1
    links = Links()
    _choose(links, votes, asked, by_name, first_of)
    return links


def _last_key(
    number: int,
    before: Sequence[int],
    events: Sequence[Event],
    first_of: Mapping[str, set[str]],
    of: Mapping[str, set[str]],
) -> tuple[set[str], int] | None:
    """The spaces of the thread's last event with a key, and this event."""
    at = before[number]
    for _ in range(_BACK):
        if at < 0:
            return None
        found = first_of.get(events[at].name, set()) | of.get(events[at].name, set())
        if found:
            return found, at
        at = before[at]
    return None


def _choose(
    links: Links,
    votes: Mapping[str, Counter[tuple[str, bool]]],
    asked: Counter[str],
    by_name: Mapping[str, Space],
    first_of: Mapping[str, set[str]],
) -> None:
    """Parents that continue afterwards come first; a parent that would make a space its own ancestor is left out."""
    wanted = []
    for name, seen in votes.items():
        for (parent, goes_on), n in seen.items():
            if n >= _MOSTLY * asked[name]:
                wanted.append((not goes_on, -n, name, parent))
    above: dict[str, set[str]] = defaultdict(set)
    for _, n, name, parent in sorted(wanted):
        ancestors = {parent} | above[parent]
        if links.parent.get(name) is None and not first_of[name] & ancestors:
            links.parent[name] = by_name[parent]
            links.votes[name] = (-n, asked[name])
            for child in first_of[name]:
                above[child] |= ancestors
            for known in above.values():
                if first_of[name] & known:
                    known |= ancestors
    for name, own in first_of.items():
        if name not in links.parent and own:
            links.parent[name] = None


def _lasts(space: Space, events: Sequence[Event]) -> set[int]:
    return {episode[-1] for episode in space.episodes}


def _before(events: Sequence[Event]) -> list[int]:
    """For each event the event before on the same thread, -1 without one."""
    last: dict[Thread, int] = {}
    found = []
    for number, event in enumerate(events):
        found.append(last.get(event.thread, -1))
        last[event.thread] = number
    return found


def stitch(
    spaces: Sequence[Space],
    events: Sequence[Event],
    nobodys: Collection[str] = (),
    ends: Mapping[str, tuple[str, list[int | str]] | None] | None = None,
    begins: Collection[str] = (),
    visitors: Collection[str] = (),
    early: Mapping[str, str] | None = None,
) -> Stitched:
    """``nobodys``: events without an own op (a batch's). ``ends``: events that end an op, some only with these values
    of a field. ``begins``: events that begin an op without a key. ``visitors``: events with a key of another op, after
    which the thread continues its own op. ``early``: for an event that introduces a key, the event before, if the op
    begins there.
    """
    ends, early = dict(ends or {}), dict(early or {})
    links = links_of(spaces, events)
    per_name = {name: [s for s in spaces if name in s.uses] for name in {event.name for event in events}}
    roots = _roots(links, per_name)
    begins = {*begins, *early.values()} | (roots - early.keys())
    done = Stitched([], [], [], links, begins, roots)
    current: dict[Thread, int | None] = {}
    known: dict[tuple[object, ...], int] = {}
    over: set[int] = set()
    special = {*nobodys, *begins, *ends, *visitors}
    plain = {name for name, own in per_name.items() if not own and name not in special}
    for number, event in enumerate(events):
        if event.name in plain:  # most events
            done.add(number, current.get(event.thread), sure=False)
            continue
        own = per_name[event.name]
        keys = [(s, (s.name, *key)) for s in own if (key := s.key_of(event)) is not None]
        finding = [key for s, key in keys if event.name not in s.starts]
        if event.name in nobodys:
            op = None
        elif event.name in begins and not (_soft(keys, event) and any(key in known for _, key in keys)):
            op = len(done.events_of)
            done.events_of.append([])
        elif finding or event.name in begins:
            finding = finding or [key for _, key in keys]
            op = next((known[key] for key in finding if key in known), None)
        else:
            op = current.get(event.thread)
        if op in over and _of_the_process(keys):
            op = None  # the thread works for something else
        done.add(number, op, sure=op is not None and (bool(finding) or event.name in begins))
        if event.name not in nobodys and not (event.name in visitors and op != current.get(event.thread)):
            current[event.thread] = op
        if op is not None:
            known.update((key, op) for _, key in keys)
            if event.name in ends and _ends(event, ends[event.name]):
                over.add(op)  # except for threads still working for the op
                current[event.thread] = None
    return done


def _roots(links: Links, per_name: Mapping[str, Sequence[Space]]) -> set[str]:
    return {n for n, parent in links.parent.items() if parent is None and _only_first(n, per_name[n])}


def _of_the_process(keys: Sequence[tuple[Space, tuple[object, ...]]]) -> bool:
    return bool(keys) and all(space.kind == "process" for space, _ in keys)


def _soft(keys: Sequence[tuple[Space, tuple[object, ...]]], event: Event) -> bool:
    return bool(keys) and all(event.name in space.soft for space, _ in keys)


def _only_first(name: str, spaces: Sequence[Space]) -> bool:
    return bool(spaces) and all(name in space.starts for space in spaces)


def _ends(event: Event, which: tuple[str, list[int | str]] | None) -> bool:
    return which is None or event.fields.get(which[0]) in which[1]


def needed(space: Space, so_far: Stitched) -> bool:
    """Whether the space joins events not joined yet, without joining events known to be separate."""
    joined = new = apart = 0
    for episode in space.episodes:
        for a, b in pairwise(episode):
            one, other = so_far.ops[a], so_far.ops[b]
            if one is not None and one == other:
                joined += 1
            elif so_far.sure[a] and so_far.sure[b]:
                apart += 1
            else:
                new += 1
    return new >= 0.3 * (joined + new + apart) and apart <= 0.2 * max(1, joined + apart)


def chosen(candidates: Sequence[Space], events: Sequence[Event]) -> tuple[list[Space], list[Space]]:
    """The needed spaces, best first, and the spaces without new information."""
    taken: list[Space] = []
    rest = []
    so_far = stitch([], events)
    most = max((len(space.episodes) for space in candidates), default=0)
    for space in candidates:
        if len(space.episodes) < _SELDOM * most or (taken and not space.joins):
            useful = False  # on one thread the thread is enough, if another key joins threads
        elif space.kind == "process" and taken:  # the process joins events that no field's value joins
            useful = any(use == (VPID,) for use in space.uses.values())
        else:
            useful = needed(space, so_far)
        if useful:
            taken.append(space)
            so_far = stitch(taken, events)
        else:
            rest.append(space)
    return taken, rest
