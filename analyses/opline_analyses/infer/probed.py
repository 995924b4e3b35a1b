# SPDX-License-Identifier: MIT
"""The probes of a recording: a model proposed for the recording must declare these probes, too.

Takes a recording's folder, gives the probes of its model, unless the model has changed since the recording.
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

_ADDRESS = 1 << 32  # an integer always at or above may be an address
_FEW = 4  # so many values are listed


class Probed(NamedTuple):
    """The model's probes, its facts about variables, and the probes that were too hot."""

    model: Model
    refused: Sequence[Mapping[str, Any]]


def probes_of(trace: Path) -> Probed | None:
    """None: a recording without probes, or with a missing or changed model."""
    try:
        document = recording.load(trace)
        model = load_model(recorded_model(trace, document["model"]["argument"]))
        same = recording.digest(model.text) == document["model"]["sha256"]
        refused = list((document["probes"] or {}).get("refused", []))
    except (OplineError, KeyError, TypeError, AttributeError):
        return None
    return Probed(model, refused) if same and document["probes"] and model.probes else None


def table(probed: Probed, used: Collection[str], events: Sequence[Event]) -> Iterator[str]:
    """The lines of ``[probes]``: probes of ``used`` events; other probes as comments."""
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
    """For each variable with more facts in the model than the name, one field."""
    paths = [path for probe in probes for field in probe.fields for path in field.paths()]
    return list({path.variable: path for path in paths if path.variable and (path.builds or path.compared)}.values())


def _question(probe: Probe, events: Sequence[Event]) -> Iterator[str]:
    """Comments on fields with plain numbers: a question about possible addresses, and the values of the others."""
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
    """A summary of a field's values."""
    different = sorted(set(values))
    if len(different) == 1:
        return f"always {different[0]}"
    if len(different) <= _FEW:
        return f"{', '.join(map(str, different[:-1]))} or {different[-1]}"
    return f"{different[0]} to {different[-1]}, {len(different)} values"


def _printable(text: str) -> str:
    return re.sub(r"[^ -~]", "?", text)
