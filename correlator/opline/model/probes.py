# SPDX-License-Identifier: MIT
"""The table ``[probes]`` of a model: places in programs built without tracepoints, and the data of a hit.

Takes the TOML reader's values; gives ``Probe`` values, and reports every mistake with its line. Whether the program has
such a place is known only at the recording (``opline.capture.probes.declared``).
"""

from __future__ import annotations

import fnmatch
import re
from typing import TYPE_CHECKING, TypeAlias

from opline.applications import table
from opline.values import Value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any, Protocol

    from .language import Model, Problem
    from .positions import Path

    class _Reader(Protocol):
        """The needed part of the model's reader."""

        def line(self, path: Path) -> int: ...
        def error(self, path: Path, message: str) -> None: ...
        def known(self, path: Path, table: Mapping[str, Any], fields: tuple[str, ...], what: str) -> bool: ...
        def table(self, path: Path, field: str) -> Mapping[str, Any]: ...
        def text(self, path: Path, field: str, table: Mapping[str, Any]) -> str | None: ...
        def typed(self, path: Path, field: str, table: Mapping[str, Any], kind: type[Any], wanted: str) -> Any: ...


#: A variable's place in known builds, and the function whose code tells the place in other builds.
_Variables: TypeAlias = "dict[str, tuple[tuple[tuple[str, int], ...], tuple[str, int] | None]]"

KINDS = ("usdt", "function", "return", "tracepoint")  # the last is in the kernel, of no program
PROBE_FIELDS = (*KINDS, "program", "fields")
MAX_PROBES = 200
MAX_FIELDS = 12
MAX_TEXT_BYTES = 128  # of one field
MAX_PAYLOAD_BYTES = 256  # of all fields of one hit
_TEXT_STEP = 8

_EVENT = re.compile(r"[A-Za-z_]\w*:[A-Za-z_]\w*", re.ASCII)
_FIELD_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_NUMBER = r"(?:0x[0-9a-fA-F]+|\d+)"
# argN, ret, a register or a variable's address, and offsets to follow
_PATH = re.compile(
    r"(?P<base>arg(?P<argument>[1-9]\d?)|ret|%(?P<register>[a-z]\w{1,2})|@(?P<variable>[A-Za-z_][\w.$]*))"
    rf"(?P<offsets>(?:->-?{_NUMBER})*)",
    re.ASCII,
)
# a path, an added number, and a type; for a text the place of its length
_VALUE = re.compile(
    rf"(?P<path>[^:\[+]+?)(?P<plus>(?<!>)[+-]{_NUMBER})?"
    r"(?::(?P<type>[us](?:8|16|32|64)|text(?P<bytes>\d+)(?:\[(?P<length>[^\[\]]+)\])?))?",
    re.ASCII,
)
#: Of x86-64, all 64 bits of each.
REGISTERS = ("ax", "bx", "cx", "dx", "si", "di", "bp", "sp", *(f"r{number}" for number in range(8, 16)))
_BUILD = re.compile(r"[0-9a-f]{8,128}", re.ASCII)
_KERNEL_NAME = re.compile(r"(?:[A-Za-z_]\w*:)?[A-Za-z_][\w.]*", re.ASCII)
_GLOB = re.compile(r"[*?\[]")
_WANTED = (
    "argN, ret, %REGISTER or @VARIABLE, then ->OFFSET to follow an address, then +N or -N, then :TYPE (u8 ... s64, "
    "textN, textN[LENGTH])"
)
_CONTEXT = {"vpid", "vtid", "procname"}  # further data of every hit
_OURS = ("block", "syscall", "sched", *table.relayed())  # providers of opline's own collectors


class ProbeField(Value):
    """A field of a hit. ``argument``: 1 is the first, 0 the return value. ``offsets``: each offset is added to the
    address before, and the contents there are the next address; the contents at the last address are the value.
    ``type``: empty (as at the place), ``u8`` to ``s64``, or ``text``, then of ``bytes`` with the NUL. ``variable``:
    begins with the address of the program's variable instead, ``builds``: the variable's place in builds without its
    name. ``register``: begins with the contents of the processor's register. ``plus``: added to the result, before the
    type is applied. ``length``: the place of the length of a text without a NUL. ``compared``: for a variable, the
    function that compares a member of the variable, and the member's distance from the begin.
    """

    name: str
    argument: int
    offsets: tuple[int, ...]
    type: str
    bytes: int
    variable: str = ""
    builds: tuple[tuple[str, int], ...] = ()
    register: str = ""
    plus: int = 0
    length: ProbeField | None = None
    compared: tuple[str, int] | None = None

    def paths(self) -> tuple[ProbeField, ...]:
        """The field, and the field of its length."""
        return (self,) if self.length is None else (self, self.length)


class Probe(Value):
    """A declared probe: ``event`` is the name of its hits, ``target`` the probed place in ``program`` (empty: in the
    kernel).
    """

    event: str
    kind: str
    target: str
    program: str
    fields: tuple[ProbeField, ...]
    line: int


_TABLE_FIELDS = ("program", "variables", "on_request")  # names of non-probes


def on_request(reader: _Reader) -> bool:
    """Whether the model's probes are placed only on request."""
    return bool(reader.typed(("probes",), "on_request", reader.table((), "probes"), bool, "true or false"))


def read_probes(reader: _Reader) -> Iterator[Probe]:
    """The correctly declared probes of a model; the others are errors."""
    table = reader.table((), "probes")
    program = reader.text(("probes",), "program", table)
    variables = _variables(reader, table)
    declared = [name for name in table if name not in _TABLE_FIELDS]
    if len(declared) > MAX_PROBES:
        reader.error(("probes",), f"{len(declared)} probes; at most {MAX_PROBES} are possible")
    for name in declared:
        probe = _probe(reader, name, table[name], program, variables)
        if probe is not None:
            yield probe


def _variables(reader: _Reader, table: Mapping[str, Any]) -> _Variables:
    """Places of variables in builds whose files have no names: by the build's ID, as printed by ``readelf -n``, or by
    the code of a function.
    """
    found: _Variables = {}
    for name, written in (reader.typed(("probes",), "variables", table, dict, "a table") or {}).items():
        builds: dict[str, Any] = dict(written) if isinstance(written, dict) else {"": None}
        function, behind = builds.pop("compared_in", None), builds.pop("behind", 0)
        known = all(_BUILD.fullmatch(b) and isinstance(a, int) and 0 < a < 2**63 for b, a in builds.items())
        if not known or not isinstance(behind, int) or not (isinstance(function, str) or builds):
            what = (
                f'variable {name}: {name} = {{ "BUILD ID" = ADDRESS }} is wanted, the ID as `readelf -n` has it, '
                'or { compared_in = "FUNCTION", behind = BYTES }'
            )
            reader.error(("probes", "variables", name), what)
            continue
        found[name] = tuple(builds.items()), (function, behind) if isinstance(function, str) else None
    return found


def _probe(reader: _Reader, name: str, value: object, program: str | None, variables: _Variables) -> Probe | None:
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
    in_kernel = kinds[0] == "tracepoint"
    where = "" if in_kernel else reader.text(path, "program", value) or program
    if in_kernel and "program" in value:
        reader.error((*path, "program"), f"probe {name}: `program`: a tracepoint is the kernel's")
    if in_kernel and target is not None and not _KERNEL_NAME.fullmatch(target):
        reader.error((*path, kinds[0]), f'probe {name}: `tracepoint = "{target}"`: its name is wanted')
        return None
    if where is None:
        reader.error(path, f"probe {name}: `program` is missing, here or for all of [probes]")
    if target is not None and kinds[0] == "usdt" and not _EVENT.fullmatch(target):
        reader.error((*path, "usdt"), f'probe {name}: `usdt = "{target}"`: "provider:name" is wanted')
        return None
    fields = tuple(_fields(reader, path, name, (kinds[0], variables), value))
    if len(fields) > MAX_FIELDS:
        reader.error((*path, "fields"), f"probe {name}: {len(fields)} fields; at most {MAX_FIELDS} are possible")
    if sum(field.bytes for field in fields) > MAX_PAYLOAD_BYTES:
        reader.error((*path, "fields"), f"probe {name}: its fields have more than {MAX_PAYLOAD_BYTES} bytes together")
    if target is None or where is None:
        return None
    return Probe(name, kinds[0], target, where, fields, reader.line(path))


def _fields(
    reader: _Reader, path: Path, name: str, about: tuple[str, _Variables], value: Mapping[str, Any]
) -> Iterator[ProbeField]:
    kind, variables = about
    written = reader.typed(path, "fields", value, dict, 'a table { name = "arg1" }') or {}
    for field, text in written.items():
        here = (*path, "fields", field)
        if not _FIELD_NAME.fullmatch(field):
            reader.error(here, f"probe {name}: field {field}: a name is letters, digits and _")
            continue
        try:
            yield _field(kind, variables, field, text)
        except ValueError as error:
            wrong = str(error) or f'field {field} = "{text}": {_WANTED} is wanted, as in "arg1->0x10:u32"'
            reader.error(here, f"probe {name}: {wrong}")


def _field(kind: str, variables: _Variables, field: str, text: object) -> ProbeField:
    """A field from its text. Raises ValueError with the mistake; without a text: no value at all."""
    found = _VALUE.fullmatch(text) if isinstance(text, str) else None
    path = _PATH.fullmatch(found["path"]) if found else None
    length = _PATH.fullmatch(found["length"]) if found and found["length"] else None
    if found is None or path is None or (found["length"] and length is None):
        raise ValueError
    for part in (path, length):
        if part is not None and (wrong := _wrong(kind, part, bool(found["bytes"] and part is path))) is not None:
            raise ValueError(f"field {field}: {wrong}")
    if found["bytes"] and not 2 <= int(found["bytes"]) <= MAX_TEXT_BYTES:
        raise ValueError(f"field {field}: a text has 2 to {MAX_TEXT_BYTES} bytes, with its NUL")
    bytes_ = -(-int(found["bytes"]) // _TEXT_STEP) * _TEXT_STEP if found["bytes"] else 8
    of_type = "text" if found["bytes"] else found["type"] or ""
    of_length = None if length is None else _part(length, variables, field, "", 8)
    return _part(path, variables, field, of_type, bytes_, int(found["plus"] or "0", 0), of_length)


def _part(
    found: re.Match[str], variables: _Variables, name: str, of_type: str, bytes_: int, plus: int = 0,
    length: ProbeField | None = None,
) -> ProbeField:  # fmt: skip
    offsets = tuple(int(offset, 0) for offset in found["offsets"].split("->")[1:])
    variable, register = found["variable"] or "", found["register"] or ""
    builds, compared = variables.get(variable, ((), None))
    number = int(found["argument"] or 0)
    return ProbeField(name, number, offsets, of_type, bytes_, variable, builds, register, plus, length, compared)


def _wrong(kind: str, found: re.Match[str], text: bool) -> str | None:
    """The mistake of a value at a probe of this kind; None: none. ``text``: the value is a text's address."""
    if found["variable"] and not found["offsets"] and not text:
        return f"{found['base']} is an address: what is there is {found['base']}->0"
    if found["register"] and (kind not in ("function", "return") or found["register"] not in REGISTERS):
        return f"%{found['register']}: registers are {', '.join(REGISTERS)}, at a function's entry or return"
    if found["variable"] and kind == "tracepoint":
        return "a variable is a program's, not the kernel's"
    if kind == "return" and found["argument"]:
        return "when a function returns, its arguments are gone: use ret"
    if kind != "return" and found["base"] == "ret":
        return "ret is for `return` only"
    if kind == "function" and int(found["argument"] or 0) > 6:
        return "of a function arg1 to arg6 are in registers"
    return None


def probe_text(probe: Probe, program: str = "") -> str:
    """The line that declares a probe. ``program``: the table's program for all probes."""
    said = [f"{probe.kind} = {_quoted(probe.target)}"]
    if probe.program != program:
        said.append(f"program = {_quoted(probe.program)}")
    if probe.fields:
        fields = ", ".join(f'{field.name} = "{_field_text(field)}"' for field in probe.fields)
        said.append(f"fields = {{ {fields} }}")
    return f"{_quoted(probe.event)} = {{ {', '.join(said)} }}"


def _field_text(field: ProbeField) -> str:
    base = f"@{field.variable}" if field.variable else f"%{field.register}" if field.register else ""
    base = base or (f"arg{field.argument}" if field.argument else "ret")
    moved = f"{field.plus:+d}" if field.plus else ""
    length = f"[{_field_text(field.length)}]" if field.length else ""
    of_type = f":text{field.bytes}{length}" if field.type == "text" else f":{field.type}" if field.type else ""
    return base + "".join(f"->{offset}" for offset in field.offsets) + moved + of_type


def _quoted(text: str) -> str:
    import json

    return json.dumps(text, ensure_ascii=False)


def lint_probes(model: Model) -> Iterator[Problem]:
    """Points of events without a probe, probes without a point, fields missing in a hit."""
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
    """The claims for LTTng: without the claims of probes alone."""
    events = [probe.event for probe in model.probes]
    others = [event for rule in model.rules for event in rule.events if event not in events]
    return [
        claim
        for claim in model.claims
        if not any(fnmatch.fnmatchcase(event, claim) for event in events)
        or any(fnmatch.fnmatchcase(event, claim) for event in others)
    ]
