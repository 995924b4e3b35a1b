# SPDX-License-Identifier: MIT
"""The table ``[probes]`` of a model: places in programs that were built without tracepoints, and what a hit tells.

Takes what the TOML reader has; gives ``Probe`` values, and says every mistake with its line. Whether the program has
such a place is known where it is recorded (``opline.capture.probes.declared``).
"""

from __future__ import annotations

import fnmatch
import re
from typing import TYPE_CHECKING

from opline.values import Value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any, Protocol

    from .language import Model, Problem
    from .positions import Path

    class _Reader(Protocol):
        """What this needs of the model's reader."""

        def line(self, path: Path) -> int: ...
        def error(self, path: Path, message: str) -> None: ...
        def known(self, path: Path, table: Mapping[str, Any], fields: tuple[str, ...], what: str) -> bool: ...
        def table(self, path: Path, field: str) -> Mapping[str, Any]: ...
        def text(self, path: Path, field: str, table: Mapping[str, Any]) -> str | None: ...
        def typed(self, path: Path, field: str, table: Mapping[str, Any], kind: type[Any], wanted: str) -> Any: ...


KINDS = ("usdt", "function", "return")
PROBE_FIELDS = (*KINDS, "program", "fields")
MAX_PROBES = 200
MAX_FIELDS = 12
MAX_TEXT_BYTES = 128  # of one field
MAX_PAYLOAD_BYTES = 256  # of all fields of one hit
_TEXT_STEP = 8

_EVENT = re.compile(r"[A-Za-z_]\w*:[A-Za-z_]\w*", re.ASCII)
_FIELD_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
# argN or ret, offsets to follow, and a type
_VALUE = re.compile(
    r"(arg([1-9]\d?)|ret)((?:->-?(?:0x[0-9a-fA-F]+|\d+))*)(?::([us](?:8|16|32|64)|text(\d+)))?", re.ASCII
)
_GLOB = re.compile(r"[*?\[]")
_CONTEXT = {"vpid", "vtid", "procname"}  # what every hit tells besides
_OURS = ("block", "syscall", "sched", "cephprobe", "cephring")  # providers of opline's own collectors


class ProbeField(Value):
    """A field of a hit. ``argument``: 1 is the first, 0 what a function returns. ``offsets``: each is added to the
    address before, and what lies there is the next one; what lies at the last is the value. ``type`` is empty (as the
    place has it), ``u8`` to ``s64``, or ``text``, then of ``bytes`` with its NUL.
    """

    name: str
    argument: int
    offsets: tuple[int, ...]
    type: str
    bytes: int


class Probe(Value):
    """A declared probe: ``event`` is what its hits are called, ``target`` what is probed in ``program``."""

    event: str
    kind: str
    target: str
    program: str
    fields: tuple[ProbeField, ...]
    line: int


def read_probes(reader: _Reader) -> Iterator[Probe]:
    """The probes of a model that are well declared; the others are errors."""
    table = reader.table((), "probes")
    program = reader.text(("probes",), "program", table)
    declared = [name for name in table if name != "program"]
    if len(declared) > MAX_PROBES:
        reader.error(("probes",), f"{len(declared)} probes; at most {MAX_PROBES} are possible")
    for name in declared:
        probe = _probe(reader, name, table[name], program)
        if probe is not None:
            yield probe


def _probe(reader: _Reader, name: str, value: object, program: str | None) -> Probe | None:
    path: Path = ("probes", name)
    if not _EVENT.fullmatch(name):
        reader.error(path, f'probe {name}: an event\'s name is wanted, "provider:event"')
        return None
    if name.partition(":")[0] in _OURS:
        reader.error(path, f"probe {name}: {name.partition(':')[0]} is a provider of opline's own: choose another name")
        return None
    if not isinstance(value, dict):
        reader.error(path, f"probe {name}: a table with one of {', '.join(KINDS)} is wanted")
        return None
    if not reader.known(path, value, PROBE_FIELDS, f"probe {name}"):
        return None
    kinds = [kind for kind in KINDS if kind in value]
    if len(kinds) != 1:
        reader.error(path, f"probe {name}: one of {', '.join(KINDS)} is wanted, not {' and '.join(kinds) or 'none'}")
        return None
    target = reader.text(path, kinds[0], value)
    where = reader.text(path, "program", value) or program
    if where is None:
        reader.error(path, f"probe {name}: `program` is missing, here or for all of [probes]")
    if target is not None and kinds[0] == "usdt" and not _EVENT.fullmatch(target):
        reader.error((*path, "usdt"), f'probe {name}: `usdt = "{target}"`: "provider:name" is wanted')
        return None
    fields = tuple(_fields(reader, path, name, kinds[0], value))
    if len(fields) > MAX_FIELDS:
        reader.error((*path, "fields"), f"probe {name}: {len(fields)} fields; at most {MAX_FIELDS} are possible")
    if sum(field.bytes for field in fields) > MAX_PAYLOAD_BYTES:
        reader.error((*path, "fields"), f"probe {name}: its fields have more than {MAX_PAYLOAD_BYTES} bytes together")
    if target is None or where is None:
        return None
    return Probe(name, kinds[0], target, where, fields, reader.line(path))


def _fields(reader: _Reader, path: Path, name: str, kind: str, value: Mapping[str, Any]) -> Iterator[ProbeField]:
    written = reader.typed(path, "fields", value, dict, 'a table { name = "arg1" }') or {}
    for field, text in written.items():
        here = (*path, "fields", field)
        found = _VALUE.fullmatch(text) if isinstance(text, str) else None
        if not _FIELD_NAME.fullmatch(field):
            reader.error(here, f"probe {name}: field {field}: a name is letters, digits and _")
        elif found is None:
            what = "argN or ret, then ->OFFSET to follow an address, then :TYPE (u8 ... s64, textN)"
            reader.error(here, f'probe {name}: field {field} = "{text}": {what} is wanted, as in "arg1->0x10:u32"')
        elif kind == "return" and found[1] != "ret":
            reader.error(here, f"probe {name}: field {field}: when a function returns, its arguments are gone: use ret")
        elif kind != "return" and found[1] == "ret":
            reader.error(here, f"probe {name}: field {field}: ret is for `return` only")
        elif kind == "function" and int(found[2]) > 6:
            reader.error(here, f"probe {name}: field {field}: of a function arg1 to arg6 are in registers")
        elif found[5] is not None and not 2 <= int(found[5]) <= MAX_TEXT_BYTES:
            reader.error(here, f"probe {name}: field {field}: a text has 2 to {MAX_TEXT_BYTES} bytes, with its NUL")
        else:
            offsets = tuple(int(offset, 0) for offset in found[3].split("->")[1:])
            length = -(-int(found[5]) // _TEXT_STEP) * _TEXT_STEP if found[5] else 8
            yield ProbeField(field, int(found[2] or 0), offsets, "text" if found[5] else found[4] or "", length)


def lint_probes(model: Model) -> Iterator[Problem]:
    """Points of events that no probe makes, probes that are no point's, fields that a hit does not tell."""
    import difflib

    from .language import Problem

    events = {probe.event: {field.name for field in probe.fields} for probe in model.probes}
    providers = {event.partition(":")[0] for event in events}
    wanted = [event for rule in model.rules for event in rule.events]
    for rule in model.rules:
        for event in rule.events:
            if event.partition(":")[0] in providers and event not in events and not _GLOB.search(event):
                close = difflib.get_close_matches(event, events, n=1)
                what = f"{event} is none of [probes]" + (f" (did you mean {close[0]}?)" if close else "")
                yield Problem(rule.line, "warning", f"point {rule.name}: {what}")
            for condition in rule.when:
                if condition.field not in events.get(event, {condition.field}) | _CONTEXT:
                    what = f"`when.{condition.field}`: the probe {event} has no such field"
                    yield Problem(rule.line, "warning", f"point {rule.name}: {what}")
    for probe in model.probes:
        if not any(fnmatch.fnmatchcase(probe.event, glob) for glob in (*wanted, *model.ignore)):
            yield Problem(probe.line, "note", f"probe {probe.event}: no point is for it, and each hit costs")


def lttng_claims(model: Model) -> list[str]:
    """The claims that LTTng is asked for: without those that only probes answer."""
    events = [probe.event for probe in model.probes]
    others = [event for rule in model.rules for event in rule.events if event not in events]
    return [
        claim
        for claim in model.claims
        if not any(fnmatch.fnmatchcase(event, claim) for event in events)
        or any(fnmatch.fnmatchcase(event, claim) for event in others)
    ]
