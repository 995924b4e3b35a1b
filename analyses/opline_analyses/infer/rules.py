# SPDX-License-Identifier: MIT
"""The role of each event in a model: takes events and key spaces, gives roles, thread rules and their evidence."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from opline_analyses.infer.batches import Batch, batches_of
from opline_analyses.infer.events import Event, Events, Thread
from opline_analyses.infer.keys import Space
from opline_analyses.infer.logs import Log, logs_of
from opline_analyses.infer.ops import Stitched, stitch
from opline_analyses.infer.visits import early_of, visitors_of

_ALWAYS, _SOMETIMES = 0.9, 0.05
_RACE = 0.02  # share of the ops with a faster other thread; from here on no stage is cut there
_CALLS = ("pread64", "pwrite64", "fsync", "fdatasync")


@dataclass
class Seen:
    """Counts of an event: in all, in ops, and as its thread's first and last event of the op."""

    count: int = 0
    in_ops: int = 0
    first: int = 0
    last: int = 0
    bios: int = 0  # how often the thread queued a bio before its next event
    overtaken: int = 0  # how often another thread's event came right before in the op
    ops: int = 0  # number of ops with the event


@dataclass
class Findings:
    """All facts about a trace's ops."""

    trace: Events
    spaces: list[Space]
    rest: list[Space]
    batches: list[Batch]
    logs: list[Log]
    stitched: Stitched
    seen: dict[str, Seen]
    ends: dict[str, int]  # names, and how many ops end there
    # the field that tells the last of several ends
    end_values: dict[str, tuple[str, list[int | str]]] = field(default_factory=dict)
    calls: dict[str, int] = field(default_factory=dict)  # system calls in ops
    visitors: frozenset[str] = frozenset()  # with a key of another's op, in passing

    @property
    def keyed(self) -> set[str]:
        """Names of events with a key."""
        return {name for space in self.spaces for name in space.uses}


def find(trace: Events, spaces: list[Space], rest: list[Space], pair: tuple[str, str] | None) -> Findings:
    """``pair``: the events whose names mean begin and end of an op, for a trace without keys."""
    events = trace.events
    by_name = {pair[0]} if pair else set()
    early = early_of(events, stitch(spaces, events, begins=by_name))
    visitors = visitors_of(spaces, events, early)
    first = stitch(spaces, events, begins=by_name, visitors=visitors, early=early)
    keyed = {name for space in spaces for name in space.uses}
    batches = batches_of(first, events, keyed) if spaces else []
    own = {name for batch in batches for name in batch.own}
    whole = stitch(spaces, events, own, {}, by_name, visitors, early) if own else first
    ends = {pair[1]: len(whole.events_of)} if pair else _ends(whole, events, spaces, visitors)
    values = _which(whole, events, ends)
    single = {name: values.get(name) for name in ends}
    stitched = stitch(spaces, events, own, single, by_name, visitors, early)
    seen = _seen(stitched, events, visitors)
    found = Findings(
        trace, spaces, rest, batches, logs_of(rest, stitched, events), stitched, seen, ends, values, visitors=visitors
    )
    by_tid = _by_tid(events)
    found.calls = _calls(found, by_tid)
    for bio in trace.bios:
        if (number := _last_before(by_tid, bio)) is not None:
            seen[events[number].name].bios += 1
    return found


def _ends(
    whole: Stitched, events: Sequence[Event], spaces: Sequence[Space], visitors: frozenset[str]
) -> dict[str, int]:
    """The last event with the op's first key, and the following events of its thread."""
    roots = [space for space in spaces if space.starts & whole.roots and space.kind != "process"]
    roots = roots or [space for space in spaces if space.starts & whole.roots]
    names = {name for space in roots for name in space.uses} - visitors
    fewest = 1 if visitors else 2
    lasts: Counter[str] = Counter()
    for numbers in whole.events_of:
        of_root = [n for n in numbers if events[n].name in names]
        if len(of_root) < fewest:
            continue
        thread = events[of_root[-1]].thread
        after = [n for n in numbers if n >= of_root[-1] and events[n].thread == thread]
        lasts[events[after[-1]].name] += 1
    total = lasts.total()
    wanted = [name for name, n in lasts.most_common() if n >= _SOMETIMES * total]
    sets = [{events[n].name for n in numbers} for numbers in whole.events_of]
    ends: list[str] = []
    for name in wanted:  # among two events that race for the last place in the same ops, the first is the end
        mine = [passed for passed in sets if name in passed]
        if sum(bool(passed & set(ends)) for passed in mine) < 0.5 * len(mine):
            ends.append(name)
    return {name: lasts[name] for name in ends}


def _which(whole: Stitched, events: Sequence[Event], ends: dict[str, int]) -> dict[str, tuple[str, list[int | str]]]:
    """For ends repeated within an op: the field that tells the last one."""
    found = {}
    for end in ends:
        last: dict[str, Counter[int | str]] = defaultdict(Counter)
        other: dict[str, Counter[int | str]] = defaultdict(Counter)
        for numbers in whole.events_of:
            mine = [n for n in numbers if events[n].name == end]
            for n in mine:
                for name, value in events[n].fields.items():
                    (last if n == mine[-1] else other)[name][value] += 1
        for name, values in last.items():
            most = values.most_common(1)[0]
            if other and most[1] >= 0.95 * values.total() and other[name][most[0]] <= 0.05 * other[name].total():
                found[end] = (name, [most[0]])
                break
    return found


def _seen(stitched: Stitched, events: Sequence[Event], visitors: frozenset[str]) -> dict[str, Seen]:
    seen: dict[str, Seen] = defaultdict(Seen)
    threads: dict[Thread, list[int]] = defaultdict(list)
    for number, event in enumerate(events):
        seen[event.name].count += 1
        if event.name in visitors:
            seen[event.name].in_ops += stitched.ops[number] is not None
        else:
            threads[event.thread].append(number)
    for numbers in threads.values():
        ops = [stitched.ops[n] for n in numbers]
        for at, number in enumerate(numbers):
            if ops[at] is None:
                continue
            about = seen[events[number].name]
            about.in_ops += 1
            about.first += at == 0 or ops[at - 1] != ops[at]
            about.last += at + 1 == len(numbers) or ops[at + 1] != ops[at]
    for passed in stitched.events_of:
        for name in {events[n].name for n in passed}:
            seen[name].ops += 1
        for before, number in pairwise(passed):
            if events[before].thread != events[number].thread and _weak(stitched, number):
                seen[events[number].name].overtaken += 1
    return dict(seen)


def _weak(stitched: Stitched, number: int) -> bool:
    return not stitched.sure[number]


_ByTid = dict[int, tuple[list[int], list[int]]]


def _by_tid(events: Sequence[Event]) -> _ByTid:
    """For each thread the times and the numbers of its events."""
    found: _ByTid = defaultdict(lambda: ([], []))
    for number, event in enumerate(events):
        times, numbers = found[event.thread[2]]
        times.append(event.ts_ns)
        numbers.append(number)
    return found


def _last_before(by_tid: _ByTid, call: Event) -> int | None:
    times, numbers = by_tid.get(call.thread[2], ([], []))
    at = bisect_right(times, call.ts_ns) - 1
    return None if at < 0 else numbers[at]


def _calls(found: Findings, by_tid: _ByTid) -> dict[str, int]:
    """System calls of threads that worked for an op at their last event before."""
    inside: Counter[str] = Counter()
    for call in found.trace.calls:
        name = call.name.removeprefix("syscall_entry_")
        last = _last_before(by_tid, call) if name in _CALLS else None
        if last is None:
            continue
        before = found.trace.events[last].name
        if before not in found.ends and (found.stitched.ops[last] is not None or _of_batch(found, before)):
            inside[name] += 1
    return dict(inside)


def _of_batch(found: Findings, name: str) -> bool:
    return any(name in batch.own for batch in found.batches)


def thread_rule(found: Findings, name: str) -> tuple[str | None, str]:
    """The point's `thread`, and why."""
    about = found.seen[name]
    if not about.in_ops or name in found.visitors:
        return None, ""
    first, last = about.first / about.in_ops, about.last / about.in_ops
    keyed = name in found.keyed or name in found.stitched.begins
    if about.bios >= _SOMETIMES * about.in_ops:  # the thread continues to work, at least with these events
        if keyed:
            return "switch", f"its thread queued bios after it, {about.bios} in {about.in_ops} times"
        return None, ""
    if last >= _ALWAYS and not (keyed and first >= 0.5):
        return "leave", f"its thread's last of the op in {_share(about.last, about.in_ops)}"
    if keyed and first >= _SOMETIMES and last < _ALWAYS:
        return "switch", f"its thread's first of the op in {_share(about.first, about.in_ops)}"
    return None, ""


def is_aside(found: Findings, name: str) -> bool:
    """In some ops another thread continued before this event."""
    about = found.seen[name]
    leaves = about.in_ops and about.last >= _ALWAYS * about.in_ops
    return bool(leaves) and name not in found.ends and about.overtaken >= max(1, _RACE * about.in_ops)


def _share(part: int, whole: int) -> str:
    return f"all {whole}" if part == whole else f"{part} of {whole}"
