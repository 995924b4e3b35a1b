# SPDX-License-Identifier: MIT
"""The probes that a recording was made with: what a model proposed for it has to declare, too.

Takes a recording's folder, gives the probes of its model if that is still the one that recorded.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from opline.capture.directory import recording
from opline.errors import OplineError
from opline.model import Model, Probe, ProbeField, load_model, probe_text
from opline.paths import recorded_model
from opline_analyses.infer.events import Event
from opline_analyses.infer.unnamed import is_numbered

_ADDRESS = 1 << 32  # an integer that is never below may be one
_FEW = 4  # so many values are listed


class Probed(NamedTuple):
    """The model's probes, what it knows of variables, and which of its probes were too hot."""

    model: Model
    refused: Sequence[Mapping[str, Any]]


def probes_of(trace: Path) -> Probed | None:
    """None: it is no recording with probes, or its model is not there any more, or another one by now."""
    try:
        document = recording.load(trace)
        model = load_model(recorded_model(trace, document["model"]["argument"]))
        same = recording.digest(model.text) == document["model"]["sha256"]
        refused = list((document["probes"] or {}).get("refused", []))
    except (OplineError, KeyError, TypeError, AttributeError):
        return None
    return Probed(model, refused) if same and document["probes"] and model.probes else None


def table(probed: Probed, used: Collection[str], events: Sequence[Event]) -> Iterator[str]:
    """The lines of ``[probes]``: those of ``used`` events, the others as comments."""
    probes = probed.model.probes
    programs = [probe.program for probe in probes if probe.program]
    program = max(sorted(set(programs)), key=programs.count, default="")
    yield "[probes]"
    if program:
        yield f"program = {json.dumps(program)}"
    for field in _variables(probes):
        known = [f"{json.dumps(build)} = {address:#x}" for build, address in field.builds]
        if field.compared:
            known += [f"compared_in = {json.dumps(field.compared[0])}", f"behind = {field.compared[1]}"]
        yield f"variables.{json.dumps(field.variable)} = {{ {', '.join(known)} }}"
    seen = {event.name for event in events}
    for probe in probes:
        if probe.event in used:
            yield from _question(probe, events)
            yield probe_text(probe, program)
    left = [probe for probe in probes if probe.event not in used]
    if left:
        yield "# Not needed as far as this goes: never hit, or in no op."
    for probe in left:
        yield f"# {probe_text(probe, program)}" + ("" if probe.event in seen else "  # never hit")
    for one in probed.refused:
        text = f"{one.get('event')} was removed, too hot: {one.get('hits_per_s')} hits a second"
        yield from textwrap.wrap(_printable(text), 120, initial_indent="# ", subsequent_indent="#   ")
    yield ""


def _variables(probes: Sequence[Probe]) -> list[ProbeField]:
    """Of each variable that the model says more of than its name one field."""
    paths = [path for probe in probes for field in probe.fields for path in field.paths()]
    return list({path.variable: path for path in paths if path.variable and (path.builds or path.compared)}.values())


def _question(probe: Probe, events: Sequence[Event]) -> Iterator[str]:
    """Fields that were plain numbers: those that look as addresses do, of what? Of the others what they were."""
    plain = [f.name for f in probe.fields if not (f.offsets or f.type or f.plus or f.variable)]
    mine = [event.fields for event in events if event.name == probe.event] if plain else []
    values = {name: [value for f in mine if isinstance(value := f.get(name), int)] for name in plain}
    found = [name for name, of in values.items() if of and all(abs(v) >= _ADDRESS for v in of)]
    if found:
        names = ", ".join(found)
        yield f"# ? {names}: always as large as an address. Of a text (argN:text32), of a structure (argN->OFFSET)?"
    others = [f"{n} {_range(of)}" for n, of in values.items() if of and n not in found and is_numbered(n)]
    if others:
        yield from textwrap.wrap(
            f"? What are they: {'; '.join(others)}", 118, initial_indent="# ", subsequent_indent="#   "
        )


def _range(values: Sequence[int]) -> str:
    """What a field was."""
    different = sorted(set(values))
    if len(different) == 1:
        return f"always {different[0]}"
    if len(different) <= _FEW:
        return f"{', '.join(map(str, different[:-1]))} or {different[-1]}"
    return f"{different[0]} to {different[-1]}, {len(different)} values"


def _printable(text: str) -> str:
    return re.sub(r"[^ -~]", "?", text)
