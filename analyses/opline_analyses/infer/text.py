# SPDX-License-Identifier: MIT
"""The text of a proposed model: takes findings, gives TOML with the evidence, and questions, as comments."""

from __future__ import annotations

import json
import re
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence

from opline.model.language import BLOCK_STEPS
from opline_analyses.base.text import duration
from opline_analyses.infer.keys import LENGTH_NAMES, PLACE_NAMES, VPID, Space
from opline_analyses.infer.probed import Probed, table
from opline_analyses.infer.rules import Findings, is_aside, thread_rule
from opline_analyses.infer.stages import stages_of
from opline_analyses.infer.unnamed import what_is_it

_WIDTH = 120
_RARELY = 0.2  # an event in a lower share of ops is left out
_CALL_POINTS = {
    "pread64": 'io = { in_flight = "begin", offset = "pos", length = "count", direction = "read", file_by = "fd" }',
    "pwrite64": 'io = { in_flight = "begin", offset = "pos", length = "count", direction = "write", file_by = "fd" }',
    "fsync": 'io = { sync = "begin", file_by = "fd" }',
    "fdatasync": 'io = { sync = "begin", file_by = "fd" }',
}
_ENDS_OF = {"pread64": "in_flight", "pwrite64": "in_flight", "fsync": "sync", "fdatasync": "sync"}


_WHAT = {
    "address": "an address",
    "counter": "a number that counts up",
    "number": "a number that hardly comes again",
    "process": "the number of a process whose own events are there",
    "text": "a text",
    "small": "a small number",
}


class Writer:
    """Writes one model."""

    def __init__(self, found: Findings, source: str, probed: Probed | None = None) -> None:
        self.found, self.source, self.probed = found, source, probed
        self.names = _point_names(found)
        self.spaces = _space_names(found.spaces)

    def text(self) -> str:
        """The whole file."""
        parts = (self._head(), self._keys(), self._points(), self._calls(), self._batches(), self._stages())
        return "\n".join(line for part in parts for line in part).rstrip("\n") + "\n"

    def _head(self) -> Iterator[str]:
        found = self.found
        events, ops = len(found.trace.events), len(found.stitched.events_of)
        first = " (the first ones)" if found.trace.cut else ""
        yield from _said(
            f"Made by `opline model infer` from {events} events{first}. Above each rule stands what speaks for it; a ? "
            "is what the trace can't say. The language: docs/model.md"
        )
        yield "version = 2"
        yield f"title = {_quoted(self.source + ': ?')}"
        if found.trace.probed and self.probed is None:
            yield from _said(
                f"? {', '.join(sorted(found.trace.probed))}: probes of a model. To record with this one, take "
                "[probes] over from there."
            )
        providers = sorted({name.partition(":")[0] for name in self.names})
        calls = [f"syscall_{half}_{name}" for name in found.calls for half in ("entry", "exit")]
        yield f"claims = {json.dumps([f'{p}:*' for p in providers] + calls)}"
        if left := [name for name in found.seen if name not in self.names and name.partition(":")[0] in providers]:
            yield "# ? In (almost) no op, as far as keys and threads tell. What are they?"
            for name in left:
                yield f"#   {name}: {found.seen[name].in_ops} of {found.seen[name].count}"
            yield f"ignore = {json.dumps(left)}"
        yield f"# {ops} ops, of which {sum(found.ends.values())} end"
        yield ""
        if self.probed is not None:
            yield from table(self.probed, self.names, found.trace.events)

    # -- Keys ----------------------------------------------------------------------------------------------------------

    def _keys(self) -> Iterator[str]:
        found = self.found
        if not found.spaces:
            yield from _said(
                "? No field's values join events of several threads: an op lasts from its begin to its end on one "
                "thread here. If it does change threads, a field that its events have in common is needed there."
            )
            yield ""
            return
        yield "[keys]"
        for space in found.spaces:
            yield from self._evidence(space)
            if not space.uses.keys() & self.names.keys():
                yield from _said(f"? {', '.join(map(self._rest, sorted(space.uses)))}: in no op. Which is it, then?")
                continue
            fields = _fields(space)
            scope = f', scope = "{space.scope}"' if space.scope != "process" else ""
            own = json.dumps(fields[0] if len(fields) == 1 else list(fields))
            written = f"{{ fields = {own}{scope} }}" if scope or len(fields) > 1 else own
            yield f"{_key(self.spaces[space.name])} = {written}"
        scales = [{field for _, field in (log.needs, log.reaches)} for log in found.logs]
        for space in found.rest:
            if {f for use in space.uses.values() for f in use} in scales:
                continue
            if space.regular and space.kind != "small":
                names = sorted({f for use in space.uses.values() for f in use})
                where = ", ".join(sorted(self._rest(n) for n in space.uses)[:4])
                yield from _said(
                    f"not needed, or not proven: {' = '.join(names)} ({where}) joins what is joined without it"
                )
        yield ""

    def _evidence(self, space: Space) -> Iterator[str]:
        fields = " and ".join(sorted({f for use in space.uses.values() for f in use}))
        yield from _said(
            f"{fields}: {_WHAT[space.kind]}, in {len(space.uses)} kinds of events, {space.values} values, "
            f"{len(space.episodes)} times begun; as usual in {space.regular:.1%}; {space.crossing:.0%} of the steps go "
            f"to another thread, {space.interleaved} times another one came in between"
        )
        if question := what_is_it(space.uses):
            yield from _said(question)
        again = space.kind in ("address", "process") and 4 * space.values < len(space.episodes)
        if again and space.starts & self.found.stitched.begins and not _ended(self.found, space):
            yield from _said(
                f"? The same {space.values} values again and again: are these {len(space.episodes)} ops, or does one "
                "take several (a transaction)?"
            )
        if space.kind == "counter" and len(_fields(space)) == 1 and space.scope == "process":
            yield from _said(
                '? Whose number is it? If it travels between processes: scope = "global", and a field that says whose'
            )

    def _use(self, space: Space, event: str) -> str:
        own = space.uses[event]
        name = self.spaces[space.name]
        return name if own == _fields(space) else f"{name}({', '.join(own)})"

    # -- Points --------------------------------------------------------------------------------------------------------

    def _points(self) -> Iterator[str]:
        yield "[points]"
        for event in self.names:
            if not any(event in batch.own for batch in self.found.batches):
                yield from self._point(event)
        yield from self._places()

    def _point(self, event: str) -> Iterator[str]:
        found = self.found
        about = found.seen[event]
        fields, notes = self._keyed(event)
        rule, why = thread_rule(found, event)
        end = event in found.ends
        if (
            end
            and about.first >= 0.5 * about.in_ops
            and about.last >= 0.5 * about.in_ops
            and event not in found.end_values
        ):
            rule = None  # the thread does not work for the op
        for batch in found.batches:
            if event == batch.joins:
                fields.append(f'batch = {{ join = "{batch.name}" }}')
                notes.append(f"members: {', '.join(f'{k} {n} times' for k, n in list(batch.members.items())[:6])}")
        if of_log := self._of_log(event):
            fields.append(of_log[0])
            notes += of_log[1:]
        if about.in_ops < 0.99 * about.count and event not in found.stitched.begins:
            fields.append("optional = true")
            notes.append(f"in an op {about.in_ops} of {about.count} times")
        if is_aside(found, event):
            fields.append("aside = true")
            notes.append(f"another thread was at it already {about.overtaken} times")
        if rule == "switch" and not any(field.startswith(("role", "key", "bind")) for field in fields):
            rule = None  # the thread already works for the op
        if rule and not end:
            fields.append(f'thread = "{rule}"')
            notes.append(why)
        if end:
            notes.append(f"the last of {found.ends[event]} ops")
        name, quoted = _key(self.names[event]), f"event = {_quoted(event)}"
        said = ", ".join([quoted, *fields])
        if notes:
            yield from _said("; ".join(notes))
        if not end:
            yield f"{name} = {{ {said} }}"
        elif event in found.end_values:
            field, values = found.end_values[event]
            yield f"# (the last one of an op has {field} = {json.dumps(values[0])})"
            yield f"{name} = ["
            when = f"when = {{ {field} = {json.dumps(values)} }}"
            yield f'    {{ {", ".join([quoted, when, *fields])}, role = "end", thread = "leave" }},'
            yield f"    {{ {said} }},"
            yield "]"
        else:
            again = about.in_ops > 1.1 * about.ops
            if again:
                yield f"# ? It comes {about.in_ops / max(1, about.ops):.1f} times per op: which of them is the end?"
            leave = ', thread = "leave"' if about.first < 0.5 * max(1, about.in_ops) or not found.spaces else ""
            yield f'{name} = {{ {said}, role = "{"end?" if again else "end"}"{leave} }}'

    def _of_log(self, event: str) -> list[str]:
        """The batch rule of an event for an op waiting for a log, and the reason."""
        for log in self.found.logs:
            among = f', among = "{log.among}"' if log.among else ""
            if event == log.needs[0]:
                doing = f'batch = {{ open = "{log.name}", needs = "{log.needs[1]}"{among} }}'
                why = f"{self._rest(log.reaches[0])} reached {log.needs[1]} before the op went on in {log.reached} of "
                return [doing, f"{why}{log.times}, {log.others} times on another thread"]
            if event == log.reaches[0]:
                return [
                    f'batch = {{ work = "{log.name}", reaches = "{log.reaches[1]}"{among} }}',
                    f"{log.reaches[1]} never falls",
                ]
            if event == log.done:
                return [f'batch = {{ close = "{log.name}" }}', f"always comes next after {self._rest(log.reaches[0])}"]
            if event == log.goes_on:
                return [f'batch = {{ leave = "{log.name}" }}', "the op goes on"]
        return []

    def _keyed(self, event: str) -> tuple[list[str], list[str]]:
        """Role, keys and the op's facts in the event."""
        found = self.found
        here = [space for space in found.spaces if event in space.uses]
        fields: list[str] = []
        notes: list[str] = []
        if event in found.stitched.begins:
            soft = bool(here) and all(event in space.soft for space in here)
            fields.append(f'role = "begin{"?" if soft else ""}"')
            if here:
                fields.append(f"key = {_list([self._use(space, event) for space in here])}")
            fields.append(f"class = {_quoted(self._rest(event))}")
            fields += self._object(event)
            if not here and found.spaces:
                notes.append("what its threads pass first, and always right before a key comes up")
            if here:
                notes.append(
                    f"{_fields(here[0])[0]} comes up here, and nothing that its thread was at goes on: a begin"
                )
            if soft:
                notes.append(f"it comes {found.seen[event].in_ops / max(1, found.seen[event].ops):.1f} times per op")
            return fields, notes
        about = found.seen[event]
        finds = [s for s in here if event not in s.starts]
        if finds and all(s.kind == "process" for s in finds) and about.first < 0.05 * about.in_ops:
            finds = []  # the thread already works for the op
        binds = [s for s in here if event in s.starts]
        if finds:
            fields.append(f"key = {_list([self._use(space, event) for space in finds])}")
        if binds:
            fields.append(f"bind = {_list([self._use(space, event) for space in binds])}")
            parent = found.stitched.links.parent.get(event)
            if parent is not None:
                n, of = found.stitched.links.votes[event]
                notes.append(f"its thread was at an op of {self.spaces[parent.name]} in {n} of {of}")
        return fields, notes

    def _object(self, event: str) -> Iterator[str]:
        """A text field that may name the op's object, and the field of the size."""
        mine = [e for e in self.found.trace.events if e.name == event]
        texts = Counter(f for e in mine for f, v in e.fields.items() if isinstance(v, str))
        for field, n in texts.items():
            if n == len(mine) and len({e.fields[field] for e in mine}) > 1:
                yield f"object = {_quoted(field)}"
                break
        lengths = [f for f in mine[0].fields if f in LENGTH_NAMES] if mine else []
        if lengths:
            yield f"io = {{ length = {_quoted(lengths[0])} }}"

    def _rest(self, event: str) -> str:
        return event.partition(":")[2]

    # -- The parts of the model around the points
    # ------------------------------------------------------------------------

    def _batches(self) -> Iterator[str]:
        automatic = []
        for batch in self.found.batches:
            several = sum(n for k, n in batch.members.items() if k > 1)
            yield f"# {batch.name}: done once for several ops, {several} of {batch.times} times"
            closing = len(batch.works) > 1
            for event in batch.own:
                doing = "open" if event == batch.opens else "close" if closing and event == batch.works[-1] else "work"
                said = f'event = {_quoted(event)}, batch = {{ {doing} = "{batch.name}" }}'
                yield f"{_key(self.names[event])} = {{ {said} }}"
            if batch.opens is None:
                automatic.append(batch.name)
        yield ""
        if automatic:
            yield "[batches]"
            yield from (f"{_key(name)} = {{ auto = true }}  # nothing says that it begins" for name in automatic)
            yield ""

    def _places(self) -> Iterator[str]:
        """Points with bytes: the trace does not tell whether these are bytes of the file or of the device."""
        for event in self.names:
            fields = next(e.fields for e in self.found.trace.events if e.name == event)
            place = next((f for f in fields if f in PLACE_NAMES), None)
            length = next((f for f in fields if f in LENGTH_NAMES), None)
            if place and length:
                yield from _said(
                    f"? {self.names[event]} has {place} and {length}: the bytes' place in the file or on the device? "
                    f'Then io = {{ in_flight = "begin", offset = "{place}", length = "{length}" }}, and where they are '
                    'done with io = { in_flight = "end" }, finds the block requests of buffered writes'
                )
                break

    def _calls(self) -> Iterator[str]:
        for name, n in sorted(self.found.calls.items()):
            yield f"# {name} by threads that were at an op: {n} times"
            for log in self.found.logs if name != "pread64" else ():
                work = f'optional = true, batch = {{ work = "{log.name}" }}'
                yield f'"{log.name} {name}" = {{ event = "syscall_entry_{name}", {work} }}'
                yield f'"{log.name} {name} returned" = {{ event = "syscall_exit_{name}", {work} }}'
            yield f'"{name}" = {{ event = "syscall_entry_{name}", optional = true, {_CALL_POINTS[name]} }}'
            done = f'io = {{ {_ENDS_OF[name]} = "end" }}'
            yield f'"{name} returned" = {{ event = "syscall_exit_{name}", optional = true, {done} }}'

    def _stages(self) -> Iterator[str]:
        proposed = [stage for stage in stages_of(self.found) if {stage.begin, stage.end} <= self.names.keys()]
        if not proposed:
            return
        yield "[stages]"
        yield from _said(
            '? Others have their two ends as names. Which of them wait (kind = "wait"), which are "device"?'
        )
        for name in dict.fromkeys(stage.name for stage in proposed):
            rows = [stage for stage in proposed if stage.name == name]
            for row in rows:
                yield f"# {row.times} times, {duration(row.mean_ns)} in the mean"
            said = [self._stage(row.begin, row.end, row.kind) for row in rows]
            yield f"{_quoted(name)} = {said[0] if len(said) == 1 else '[' + ', '.join(said) + ']'}"

    def _stage(self, begin: str, end: str, kind: str | None) -> str:
        of_kind = f', kind = "{kind}"' if kind else ""
        return f"{{ from = {_quoted(self.names[begin])}, to = {_quoted(self.names[end])}{of_kind} }}"


def _ended(found: Findings, space: Space) -> bool:
    """The op ends with an event that has the value: the value is free again."""
    return any(name in space.uses for name in found.ends)


def _fields(space: Space) -> tuple[str, ...]:
    """The space's own field: the most frequent field among its events."""
    uses = Counter(use for use in space.uses.values() if use != (VPID,))
    return uses.most_common(1)[0][0]


def _space_names(spaces: Sequence[Space]) -> dict[str, str]:
    """A space has the name of its first field; spaces with the same name are numbered."""
    found: dict[str, str] = {}
    for space in spaces:
        base = re.sub(r"\W", "_", space.name)
        taken = set(found.values())
        found[space.name] = base if base not in taken else f"{base}{len(taken)}"
    return found


def _point_names(found: Findings) -> dict[str, str]:
    """Points by their event's name, in the order of their passes."""
    order: dict[str, tuple[float, int]] = {}
    places: dict[str, list[float]] = {}
    for passed in found.stitched.events_of:
        for at, number in enumerate(passed):
            places.setdefault(found.trace.events[number].name, []).append(at)
    for k, name in enumerate(found.seen):
        mine = places.get(name, [])
        order[name] = (sum(mine) / len(mine) if mine else 1e9, k)
    own = {name for batch in found.batches for name in batch.own}
    wanted = [
        n for n in sorted(order, key=lambda n: order[n])
        if n in own or n in found.ends or found.seen[n].in_ops >= max(1, _RARELY * found.seen[n].count)
    ]  # fmt: skip
    rests = Counter(name.partition(":")[2] for name in wanted)
    names = {}
    for name in wanted:
        provider, _, rest = name.partition(":")
        names[name] = rest if rests[rest] == 1 and rest not in BLOCK_STEPS else f"{provider}.{rest}"
    return names


def _said(text: str) -> Iterator[str]:
    """A comment, wrapped."""
    return iter(textwrap.wrap(text, _WIDTH, initial_indent="# ", subsequent_indent="#   ", break_long_words=False))


def _quoted(text: str) -> str:
    return json.dumps(text)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name, re.A) else _quoted(name)


def _list(uses: Sequence[str]) -> str:
    return _quoted(uses[0]) if len(uses) == 1 else json.dumps(list(uses))
