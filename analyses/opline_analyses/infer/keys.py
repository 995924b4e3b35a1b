# SPDX-License-Identifier: MIT
"""Fields whose values join events: takes events, gives key spaces with the evidence for each.

A value names an op if the same events come the same number of times between two begins with the value, regardless of
other work meanwhile. A field's name does not tell its meaning, except for places and sizes: these name no op.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from opline_analyses.infer.events import Event, Thread
from opline_analyses.infer.unnamed import Slot, Uses, is_numbered, same_values

VPID = "vpid"  # the context, as a field of every event
#: Share of a key's events with the typical number of events between two begins, if no begin follows another.
REGULAR = 0.8
_ADDRESS_REGULAR = 0.6  # for an address: a name of something anyway
_TAG_REGULAR = 0.99  # for a small number: may be anything
_SEEN = 0.05  # least share of the steps to another thread, or of the overlapping episodes on one thread
_SHARED = 1.2  # pairs of number and owner per number; from here on the number alone is not enough
_FEW = 3
_POINTER_FROM = 1 << 24  # smaller numbers are not addresses
_LARGE_FROM = 1 << 20
_MANY = 20
_OFTEN = 0.1  # share of the firsts; from here on a class begins something
_PLACE = re.compile(
    r"(^|_)(off|offset|pos|sector|lba|block|addr|len|length|size|bytes|count|nr|n|num_bytes)(_|$)", re.A
)
BEGINS = re.compile(r"(^|[_:])(begin|start|send|submit|enter|entry|queue|enqueue|recv|receive|request|open)", re.A)
#: A result or a kind names nothing either.
_STATE = re.compile(
    r"(^|_)(ret|retval|result|res|status|error|errno|err|flags?|type|mode|level|version|state)(_|$)", re.A
)
PLACE_NAMES, LENGTH_NAMES = ("off", "offset", "pos"), ("len", "length", "size", "bytes", "count")
#: The best evidence first: addresses, numbers counting up, numbers of processes, numbers that hardly ever repeat.
KINDS = ("address", "counter", "process", "number", "text", "small")

Value = tuple[int | str, ...]


@dataclass
class Space:
    """A proposed key space: per event name the fields with the key."""

    name: str
    uses: dict[str, tuple[str, ...]]
    kind: str
    scope: str = "process"
    starts: set[str] = field(default_factory=set)
    chains: list[list[int]] = field(default_factory=list)  # numbers of the events of one value, in order
    episodes: list[list[int]] = field(default_factory=list)  # the same, cut at each begin
    regular: float = 0.0
    crossing: float = 0.0  # share of neighbouring pairs on different threads
    interleaved: int = 0  # episodes interrupted by another episode's event
    woven: int = 0  # episodes with another episode begun inside, on the same thread, and ended later
    values: int = 0
    soft: set[str] = field(default_factory=set)  # the starts that repeat within an episode

    @property
    def joins(self) -> bool:
        """The key joins events of several threads, or separates overlapping work on one thread."""
        return self.crossing >= _SEEN or self.woven >= max(1, _SEEN * len(self.episodes))

    def key_of(self, event: Event) -> tuple[object, ...] | None:
        """The key of the event's op, None without a key."""
        found = tuple(event.thread[1] if f == VPID else event.fields.get(f) for f in self.uses[event.name])
        if None in found or (found in ((0,), ("",)) and self.kind != "counter"):
            return None
        return found if self.scope == "global" else (*event.thread[:2], *found)


def candidates(events: Sequence[Event], hexes: frozenset[str]) -> list[Space]:
    """The possible keys, best first. Whether a key is needed is decided later."""
    fields = [*_by_name(events), *same_values(events, _joined)]
    found = [Space(name, uses, _kind(events, uses, hexes)) for name, uses in fields]
    found += _processes(events)
    found += _of_other_names(events, found)
    passed = []
    for space in found:
        _companions(space, events)
        if _judged(space, events):
            passed.append(space)
    return sorted(
        passed, key=lambda s: (not s.joins, KINDS.index(s.kind), -len(s.uses), -sum(map(len, s.episodes)), s.name)
    )


def _by_name(events: Iterable[Event]) -> Iterator[tuple[str, dict[str, tuple[str, ...]]]]:
    """Fields common to several kinds of events."""
    where: dict[str, dict[str, tuple[str, ...]]] = defaultdict(dict)
    for event in events:
        for name in event.fields:
            if not is_numbered(name):
                where[name].setdefault(event.name, (name,))
    for name, uses in where.items():
        if len(uses) > 1:
            yield name, uses


def _joined(uses: Uses, events: Sequence[Event]) -> float:
    """How regularly the values join events of several threads, or separate work on one thread; 0: not at all."""
    space = Space("", uses, _kind(events, uses, frozenset()))
    return space.regular if _judged(space, events) and space.joins else 0.0


def _is_state(name: str) -> bool:
    return _STATE.search(name) is not None and not is_numbered(name)


def _values(events: Iterable[Event], name: str) -> list[int | str]:
    return [event.fields[name] for event in events if name in event.fields]


def _kind(events: Iterable[Event], uses: Uses, hexes: frozenset[str]) -> str:
    pairs = [(event, uses[event.name][0]) for event in events if event.name in uses]
    values = [event.fields[name] for event, name in pairs if name in event.fields]
    names = {name for (name,) in uses.values()}
    numbers = [v for v in values if isinstance(v, int)]
    if len(numbers) < len(values):
        return "text"
    different = set(numbers) - {0}
    if any(_PLACE.search(name) or _is_state(name) for name in names) or (len(different) < 2 and not names & hexes):
        return "small"
    if different and min(different) >= _POINTER_FROM and (names & hexes or min(different) >= 1 << 40):
        return "address"
    news = list(dict.fromkeys(numbers))
    many = len(different) * 10 * max(1, len(uses)) > len(numbers)
    rising = sum(b > a for a, b in pairwise(news))
    if many and len(news) > _FEW and rising >= 0.7 * (len(news) - 1) and news[-1] - news[0] < 16 * len(news):
        return "counter"
    return "number" if many else "small"


def _processes(events: Sequence[Event]) -> Iterator[Space]:
    """Fields of one process with the number of another process of the trace."""
    pids = {event.thread[1] for event in events} - {0}
    told: dict[Slot, set[int]] = defaultdict(set)
    wrong: Counter[Slot] = Counter()
    right: Counter[Slot] = Counter()
    for event in events:
        for name, value in event.fields.items():
            slot = event.name if is_numbered(name) else "", name
            if isinstance(value, int) and value > 1 and value in pids and value != event.thread[1]:
                told[slot].add(value)
                right[slot] += 1
            elif value != 0:
                wrong[slot] += 1
    fields: dict[str, tuple[Uses, set[int]]] = {}
    for (of, name), values in told.items():
        if right[of, name] >= 20 * wrong[of, name] and not _PLACE.search(name):
            uses, known = fields.setdefault(name, ({}, set()))
            known |= values
            uses |= {event.name: (name,) for event in events if name in event.fields and of in ("", event.name)}
    for name, (uses, values) in fields.items():
        total = Counter(event.name for event in events)
        inside = Counter(event.name for event in events if event.thread[1] in values)
        others: Uses = {one: (VPID,) for one, n in inside.items() if one not in uses and n >= 0.5 * total[one]}
        yield Space(name, uses | others, "process", "global")


def _of_other_names(events: Sequence[Event], known: Iterable[Space]) -> Iterator[Space]:
    """Fields of different names with the same values: addresses, and many large numbers."""
    sets: dict[str, set[int | str]] = defaultdict(set)
    classes: dict[str, dict[str, tuple[str, ...]]] = defaultdict(dict)
    for event in events:
        for name, value in event.fields.items():
            if isinstance(value, int) and value >= _LARGE_FROM and not (_PLACE.search(name) or is_numbered(name)):
                sets[name].add(value)
                classes[name].setdefault(event.name, (name,))
    names = sorted(name for name, values in sets.items() if len(values) >= _FEW)
    for n, one in enumerate(names):
        for other in names[n + 1 :]:
            both = len(sets[one] & sets[other])
            if both >= 0.5 * max(len(sets[one]), len(sets[other])) and not set(classes[one]) & set(classes[other]):
                kind = next((s.kind for s in known if s.name in (one, other) and s.kind == "address"), "number")
                yield Space(one, {**classes[one], **classes[other]}, kind)


def _companions(space: Space, events: Sequence[Event]) -> None:
    """A number counting up from a small value belongs to an owner: the owner is a field always present beside the
    number, with few values.
    """
    carriers = {f for use in space.uses.values() for f in use}
    if space.kind != "counter" or len(carriers) > 1:
        return
    (name,) = carriers
    mine = [event for event in events if event.name in space.uses]
    alone = len({event.thread[1] for event in mine}) < 2
    values = len(set(_values(mine, name)))
    common = set.intersection(*({*event.fields} for event in mine)) - {name}
    few = {f for f in common if len(set(_values(mine, f))) <= 16 and not _PLACE.search(f) and f != "fd"}
    chosen = []
    for other in sorted(few, key=lambda f: list(mine[0].fields).index(f)):
        pairs = {(event.fields[name], event.fields[other]) for event in mine}
        classes = {(event.name, event.fields[other]) for event in mine}
        if alone and len(pairs) < _SHARED * values:
            continue  # within one process the number is enough
        if len(classes) < len(space.uses) * len({p[1] for p in pairs}):
            continue  # some values are missing in some events
        if _kinds(mine, name, other) >= 0.9 * _kinds(mine, name):  # as a size of questions and of answers would not be
            chosen.append(other)
    order = list(mine[0].fields)
    names = tuple(sorted((name, *chosen), key=order.index))
    space.uses = dict.fromkeys(space.uses, names)


def _kinds(events: Iterable[Event], *names: str) -> float:
    """The mean number of kinds of events per value of these fields."""
    kinds: dict[tuple[int | str, ...], set[str]] = defaultdict(set)
    for event in events:
        kinds[tuple(event.fields[name] for name in names)].add(event.name)
    return sum(map(len, kinds.values())) / len(kinds)


def _judged(space: Space, events: Sequence[Event]) -> bool:
    """Whether the values are exclusive; fills in the evidence."""
    scopes = ("global",) if space.kind == "process" else ("process", "global")
    best: Space | None = None
    for scope in scopes:
        one = Space(space.name, space.uses, space.kind, scope)
        one.chains = _chains(one, events, {n for n, use in space.uses.items() if use != (VPID,)})
        if not one.chains:
            continue
        _measure(one, events)
        crosses = _crosses_processes(one, events) > 0.05
        if best is None or (crosses and one.regular >= best.regular - 0.02):
            best = one
    if best is None:
        return False
    vars(space).update(vars(best))
    if space.kind == "process":
        return True
    if space.kind == "small" and any(_is_state(f) for use in space.uses.values() for f in use):
        return False
    if space.values < 2:  # a single value proves nothing
        return False
    if space.kind == "small" and (not space.interleaved or space.regular < _TAG_REGULAR):
        return False
    enough = _ADDRESS_REGULAR if space.kind == "address" else REGULAR
    return space.regular >= enough and (space.joins or space.kind in ("address", "counter"))


def _chains(space: Space, events: Sequence[Event], names: set[str]) -> list[list[int]]:
    """For each value the events with these names, for values with several kinds of events."""
    chains: dict[object, list[int]] = defaultdict(list)
    for number, event in enumerate(events):
        if event.name in names and (key := space.key_of(event)) is not None:
            chains[key].append(number)
    return [chain for chain in chains.values() if len({events[i].name for i in chain}) > 1 or len(names) == 1]


def _measure(space: Space, events: Sequence[Event]) -> None:
    """Finds the begins of episodes, their regularity, and overlaps."""
    space.values = len(space.chains)
    space.starts = _starts(space, events)
    space.episodes = []
    usual_length = sorted(map(len, space.chains))[len(space.chains) // 2]
    for chain in space.chains:
        if space.kind == "counter" and len(chain) <= _FEW * usual_length:
            space.episodes.append(chain)  # values do not repeat so soon
            continue
        cut = [n for n, i in enumerate(chain) if events[i].name in space.starts and _begins(space, events, chain, n)]
        cut = cut if cut and cut[0] == 0 else [0, *cut]
        space.episodes += [chain[a:b] for a, b in zip(cut, [*cut[1:], len(chain)], strict=True)]
    counts: dict[str, Counter[int]] = defaultdict(Counter)
    for episode in space.episodes:
        there = Counter(events[i].name for i in episode)
        for name in space.uses:
            counts[name][there[name]] += 1
    for name in space.starts:
        seen = counts[name]
        passes = sum(n * times for n, times in seen.items())
        if passes > 1.2 * sum(times for n, times in seen.items() if n):
            space.soft.add(name)
    usual = total = 0
    for name, seen in counts.items():
        if name in space.starts:
            continue
        passed = {count: n for count, n in seen.items() if count}  # an op need not pass all
        usual += max(passed.values(), default=0)
        total += sum(passed.values())
    steps = [(a, b) for chain in space.chains for a, b in pairwise(chain) if events[b].name in space.starts]
    again = sum(events[a].name in space.starts for a, _ in steps) if space.kind != "counter" else 0
    space.regular = usual / total * (1 - again / max(1, len(steps))) if total else 0.0
    pairs = [(a, b) for episode in space.episodes for a, b in pairwise(episode)]
    space.crossing = sum(events[a].thread != events[b].thread for a, b in pairs) / len(pairs) if pairs else 0.0
    spans = sorted((episode[0], episode[-1]) for episode in space.episodes)
    space.interleaved = sum(b[0] < a[1] for a, b in pairwise(spans))
    space.woven = _woven(space, events)


def _woven(space: Space, events: Sequence[Event]) -> int:
    """The thread alone could tell nested episodes apart, such as locks held together."""
    on: dict[Thread, list[tuple[int, int]]] = defaultdict(list)
    for episode in space.episodes:
        mine: dict[Thread, tuple[int, int]] = {}
        for i in episode:
            mine[events[i].thread] = mine.get(events[i].thread, (i, i))[0], i
        for thread, span in mine.items():
            on[thread].append(span)
    return sum(a[0] < b[0] < a[1] < b[1] for spans in on.values() for a, b in pairwise(sorted(spans)))


def _begins(space: Space, events: Sequence[Event], chain: Sequence[int], at: int) -> bool:
    """An event repeated by name and thread (a retry) begins no episode."""
    return at == 0 or events[chain[at]].name != events[chain[at - 1]].name


def _starts(space: Space, events: Sequence[Event]) -> set[str]:
    """Names of the events that introduce values: the first events, and the events after the same events."""
    firsts = Counter(events[chain[0]].name for chain in space.chains)
    most = max(firsts.values())
    starts = {name for name, n in firsts.items() if n >= max(_OFTEN * len(space.chains), 0.2 * most)}
    counts = Counter(events[i].name for chain in space.chains for i in chain)
    if len(space.chains) < _MANY and min(counts.values()) >= _FEW * len(space.chains):
        # Few values that live long: the trace began in the middle of their work. A begin comes only once.
        rare = {name for name, n in counts.items() if n <= 1.2 * min(counts.values())}
        begin = sorted(name for name in rare if BEGINS.search(name))[:1]
        if not starts & rare and begin and not any(BEGINS.search(name) for name in starts):
            starts = set(begin)
    before: dict[str, Counter[str]] = defaultdict(Counter)
    after: dict[str, Counter[str]] = defaultdict(Counter)
    for chain in space.chains:
        for a, b in pairwise(chain):
            before[events[b].name][events[a].name] += 1
            after[events[a].name][events[b].name] += 1
    ends = {end for name in starts for end, n in before[name].items() if n >= _OFTEN * before[name].total()} - starts
    goes_on = {name for start in starts for name, n in after[start].items() if n >= 0.5 * after[start].total()}
    for name, seen in before.items():
        from_ends = sum(n for other, n in seen.items() if other in ends)
        to_same = sum(n for other, n in after[name].items() if other in goes_on)
        begun = sum(counts[start] for start in starts) + counts[name]
        as_often = any(abs(n - begun) <= 0.05 * begun for other, n in counts.items() if other not in (*starts, name))
        if as_often and ends and from_ends >= 0.9 * seen.total() and to_same >= 0.5 * after[name].total() > 0:
            starts.add(name)
    return starts


def _crosses_processes(space: Space, events: Sequence[Event]) -> float:
    pairs = [(a, b) for episode in space.episodes for a, b in pairwise(episode)]
    return sum(events[a].thread[:2] != events[b].thread[:2] for a, b in pairs) / len(pairs) if pairs else 0.0
