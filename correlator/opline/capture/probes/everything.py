# SPDX-License-Identifier: MIT
"""A model that says nothing but where to look: all that programs offer to probes, for a trial recording of them.

Takes what the programs' files have; gives TOML. Each event is a point of its own, because a model has points.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from opline.capture.probes.offers import Function, Offers, Usdt
from opline.errors import OplineError
from opline.model.probes import MAX_PROBES

_EVENT = re.compile(r"[A-Za-z_]\w*:[A-Za-z_]\w*", re.ASCII)
_MOST_ARGUMENTS = 6  # of a USDT probe
_FUNCTION_ARGUMENTS = 3  # how many a function has, its file does not say


def everything(found: Sequence[Offers]) -> str:
    """The model's text. Raises OplineError if there is nothing to probe, or too much."""
    declared: dict[str, str] = {}
    for offers in found:
        for name, line in (*_usdt(offers), *_functions(offers)):
            declared.setdefault(name, f"{json.dumps(name)} = {line}")
    if not declared:
        offered = "; ".join(f"{o.path} has no USDT probe, and {o.function_count} functions with names" for o in found)
        raise OplineError(f"{offered}: --functions GLOB takes those that matter (`opline doctor --program FILE`)")
    if len(declared) > MAX_PROBES:
        raise OplineError(f"{len(declared)} probes, at most {MAX_PROBES} are possible: a narrower --functions GLOB")
    first, *others = declared
    points = [f'{json.dumps(first)} = {{ event = {json.dumps(first)}, role = "begin", class = "?" }}']
    points += [f"{json.dumps(name)} = {{ event = {json.dumps(name)}, optional = true }}" for name in others]
    return "\n".join(["version = 2", "[probes]", *declared.values(), "[points]", *points, ""])


def _usdt(offers: Offers) -> Iterator[tuple[str, str]]:
    for probe in offers.usdt:
        if _EVENT.fullmatch(probe.name):
            yield probe.name, _line("usdt", probe.name, offers, _arguments(probe))


def _arguments(probe: Usdt) -> list[str]:
    """Those that can be read; which, is known argument by argument only where all can be."""
    if probe.readable != len(probe.arguments):
        return []
    return [f"arg{number}" for number in range(1, min(len(probe.arguments), _MOST_ARGUMENTS) + 1)]


def _functions(offers: Offers) -> Iterator[tuple[str, str]]:
    provider = re.sub(r"\W", "_", Path(offers.path).name.partition(".")[0], flags=re.ASCII)
    provider = provider if re.match(r"[A-Za-z_]", provider) else f"_{provider}"
    taken: dict[str, int] = {}
    for function in offers.functions:
        name = _plain(function)
        taken[name] = taken.get(name, 0) + 1
        name += str(taken[name]) if taken[name] > 1 else ""
        arguments = [f"arg{number}" for number in range(1, _FUNCTION_ARGUMENTS + 1)]
        yield f"{provider}:{name}", _line("function", function.symbol, offers, arguments)
        yield f"{provider}:{name}_return", _line("return", function.symbol, offers, ["ret"])


def _plain(function: Function) -> str:
    """A C++ name without its arguments, as an event may be called."""
    name = re.sub(r"\W+", "_", function.name.partition("(")[0], flags=re.ASCII).strip("_")
    return name if re.match(r"[A-Za-z_]", name) else f"f_{name}"


def _line(kind: str, target: str, offers: Offers, arguments: Sequence[str]) -> str:
    fields = ", ".join(f'{name} = "{name}"' for name in arguments)
    of_fields = f", fields = {{ {fields} }}" if fields else ""
    program = json.dumps(Path(offers.path).name)
    return f"{{ {kind} = {json.dumps(target)}, program = {program}{of_fields} }}"
