# SPDX-License-Identifier: MIT
"""Fields with only a number as name (arg1, ret: a probe's arguments without declared meaning): finds fields of several
events with the same meaning, by values alone.

Equal numbers prove nothing here: arg2 differs from event to event. Two fields have the same meaning if their values are
mostly the same, come regularly, and go from thread to thread or are nested on one thread.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import combinations

from opline_analyses.infer.events import Event

_NUMBERED = re.compile(r"arg\d+|ret", re.A)
_FEW = 3  # different values; with fewer, values prove nothing
_SAME = 0.5  # share of the values of the larger of the two
_LISTED = 6  # limit of listed events
_LOOKED_AT = 500  # events of the rarest name
_TRIED = 10  # number of similar pairs by chance before a plain number counts as one of many
_WORSE = 0.02  # allowed loss of regularity for a larger group
_EVERYWHERE = 40  # number of fields; a value in more fields is common everywhere: 0, 1, an error's number

Slot = tuple[str, str]  # event, field
Uses = dict[str, tuple[str, ...]]


@cache
def is_numbered(field: str) -> bool:
    """The name is only the number of an argument."""
    return _NUMBERED.fullmatch(field) is not None


def what_is_it(uses: Uses) -> str | None:
    """The question about the meaning of a key with only numbered fields."""
    carriers = [(field, event.partition(":")[2]) for event, use in uses.items() for field in use if is_numbered(field)]
    if not carriers:
        return None
    where = ", ".join(f"{field} of {event}" for field, event in carriers[:_LISTED])
    more = f" and {len(carriers) - _LISTED} more" if len(carriers) > _LISTED else ""
    return f'? What is it ({where}{more})? A name says so, in [probes]: fields = {{ NAME = "{carriers[0][0]}" }}'


def same_values(
    events: Sequence[Event], joined: Callable[[Uses, Sequence[Event]], float]
) -> Iterator[tuple[str, Uses]]:
    """Names, and per event the field: one for each meaning found in several events. ``joined``: how regularly fields
    join the events, 0 if not.
    """
    values: dict[Slot, set[int | str]] = defaultdict(set)
    of_name: dict[str, list[int]] = defaultdict(list)
    for number, event in enumerate(events):
        of_name[event.name].append(number)
        for field, value in event.fields.items():
            if is_numbered(field) and value not in (0, ""):
                values[event.name, field].add(value)
    order = list(of_name)
    alike = _alike({slot: seen for slot, seen in values.items() if len(seen) >= _FEW})

    def regular(group: set[Slot]) -> float:
        uses = _one_each(group, alike, order)
        until = min((of_name[name] for name in uses), key=len)[:_LOOKED_AT][-1]  # of the rarest so many
        return joined(uses, [events[n] for n in sorted(n for name in uses for n in of_name[name]) if n <= until])

    taken: set[str] = set()
    for group in _groups(alike, regular):
        uses = _one_each(group, alike, order)
        field = Counter(field for (field,) in uses.values()).most_common(1)[0][0]
        name = field if field not in taken else f"{field} of {next(iter(uses)).partition(':')[2]}"
        if name not in taken:
            taken.add(name)
            yield name, uses


def _groups(alike: dict[tuple[Slot, Slot], float], regular: Callable[[set[Slot]], float]) -> list[set[Slot]]:
    """Fields that join events in pairs; then fields that do so only with the others, such as one begin of several."""
    groups: dict[Slot, set[Slot]] = {}
    failed: Counter[Slot] = Counter()
    for one, other in sorted(alike, key=lambda pair: (-alike[pair], pair)):
        mine, others = groups.get(one, {one}), groups.get(other, {other})
        if mine is others or max(failed[one], failed[other]) >= _TRIED:
            continue
        if regular({one, other}):
            groups.update(dict.fromkeys(mine | others, mine | others))
        else:
            failed.update((one, other))
    found = list({id(group): group for group in groups.values()}.values())
    for group in found:
        near = {slot for pair in alike if group & {*pair} for slot in pair if slot not in groups}
        near -= {slot for slot in near if slot[0] in {name for name, _ in group}}
        before = regular(group)
        for more in (near, *({slot} for slot in sorted(near))):
            if more and not more <= group and regular(group | more) >= before - _WORSE:
                group |= more
    return found


def _alike(values: dict[Slot, set[int | str]]) -> dict[tuple[Slot, Slot], float]:
    """Pairs of fields of different events, and the share of common values."""
    holders: dict[int | str, list[Slot]] = defaultdict(list)
    for slot, seen in values.items():
        for value in seen:
            holders[value].append(slot)
    both: Counter[tuple[Slot, Slot]] = Counter()
    for slots in holders.values():
        if len(slots) <= _EVERYWHERE:
            both.update((a, b) for a, b in combinations(sorted(slots), 2) if a[0] != b[0])
    shares = {(a, b): n / max(len(values[a]), len(values[b])) for (a, b), n in both.items()}
    return {pair: share for pair, share in shares.items() if share >= _SAME}


def _one_each(group: set[Slot], alike: dict[tuple[Slot, Slot], float], order: Sequence[str]) -> Uses:
    """For an event with several of the fields, the field most similar to the others; in the order of the events."""
    best: dict[str, tuple[float, str]] = {}
    for name, field in sorted(group):
        like = sum(share for pair, share in alike.items() if (name, field) in pair and group.issuperset(pair))
        if name not in best or like > best[name][0]:
            best[name] = like, field
    return {name: (best[name][1],) for name in dict.fromkeys(order) if name in best}
