# SPDX-License-Identifier: MIT
"""The op model of a trace for which none is named: chosen where the names of its events leave one.

A shipped model fits if events that begin its ops are there. If one model fits, opline takes it; an application's before
`syscalls`. Where there are block events alone, an op is a bio (`blocks`) or, without bios, a request (`requests`).
Events of an application without a shipped model leave the choice to the user.
"""

from __future__ import annotations

import os
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from opline.model import load_model, shipped_models
from opline.readers.metadata import event_names
from opline.readers.registry import head_of, trace_format
from opline.talk import talk
from opline.values import Value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from opline.model import Model

_CALLS = "syscalls"
_PROMISED_CALLS = "system_calls"  # opline/capture/directory/promises.py
_OF_KERNEL = ("block", "syscall", "sched", "tcp", "lttng_ust_*")  # providers that no application has
_COLLECTED = "syscall:"  # before the names of calls that opline's own collector records
_QUEUED = ("*block_bio_queue", "block:bio_queue")
OF_BLOCKS = ("blocks", "requests")  # models whose ops are block I/Os
_BLOCK = ("*block_rq_*", "*block_bio_*", "block:*")


class Choice(Value):
    """A shipped model and the reason, in a line."""

    name: str
    why: str


def names_in(traces: Sequence[str], recording: Mapping[str, Any] | None = None) -> set[str]:
    """The names of the events in these traces: of CTF all, of a file those that it begins with. The collector of the
    traces' ``recording`` declares system calls also where it was not asked for them.
    """
    if os.path.isdir(traces[0]):
        names = {name for folder in traces for name in event_names(folder)}
        promised = [one.get("what") for one in (recording or {}).get("promises", ())]
        if promised and _PROMISED_CALLS not in promised:
            names = {name for name in names if not name.startswith(_COLLECTED)}
        return {name.removeprefix(_COLLECTED) for name in names}
    found = trace_format(traces[0])
    return found.names(head_of(traces[0])) if hasattr(found, "names") else set()


def _any(names: set[str], globs: Sequence[str]) -> Iterator[str]:
    return (name for name in sorted(names) if any(fnmatchcase(name, glob) for glob in globs))


def _begins(model: Model) -> list[str]:
    return [event for rule in model.rules if rule.role in ("begin", "soft_begin") for event in rule.events]


def chosen(traces: Sequence[str], recording: Mapping[str, Any] | None = None) -> Choice | None:
    """The model that the events leave; None where they leave none or several. ``recording``: what `opline record` wrote
    about them.
    """
    names = names_in(traces, recording)
    if not names:
        return None
    shipped = [load_model(name) for name in shipped_models()]
    versions = {name for model in shipped for name in model.earlier.values()}
    models = [model for model in shipped if model.name not in versions]
    fitting = {m.name: begun for m in models if (begun := next(_any(names, _begins(m)), None))}
    if len(fitting) > 1:
        fitting.pop(_CALLS, None)
    claimed = [claim for m in shipped for claim in m.claims]
    strange = [
        name
        for name in names
        if ":" in name
        and not any(fnmatchcase(name.partition(":")[0], glob) for glob in _OF_KERNEL)
        and not any(fnmatchcase(name, claim) for claim in claimed)
    ]
    if len(fitting) == 1 and not (strange and _CALLS in fitting):
        ((name, begun),) = fitting.items()
        return Choice(name, f"the trace has {begun}")
    if fitting or strange or next(_any(names, _BLOCK), None) is None:
        return None
    if next(_any(names, _QUEUED), None):
        return Choice("blocks", "the trace has block events alone: an op is a request, from Q to C")
    return Choice("requests", "the trace has block events alone: an op is a request, from its first step to C")


def of_version(model: Model, traces: Sequence[str]) -> Model:
    """The model itself, or the one that it names for events of an earlier version. Raises OplineError."""
    if not model.earlier:
        return model
    names = names_in(traces)
    for glob, name in model.earlier.items():
        if begun := next(_any(names, [glob]), None):
            say(Choice(name, f"the trace has {begun}, of an earlier version of {model.name}"))
            return load_model(name)
    return model


_said: set[str] = set()


def say(choice: Choice) -> None:
    """One line on stderr, once."""
    if choice.name not in _said:
        _said.add(choice.name)
        talk(f"model: {choice.name}, as {choice.why} (--model changes it)")
