# SPDX-License-Identifier: MIT
"""A model to begin with, from what a program offers: TOML text that can be recorded with as it is.

Of the USDT probes and LTTng tracepoints that come in pairs (``query__start``, ``query__done``) one pair is the op, from
its begin to its end on the same thread; the others are there as comments, to be taken up. What the program's file can't
say is a question in a comment.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from opline.capture.probes.offers import Offers, Usdt
from opline.errors import OplineError

#: How the two ends of something are called: the first pair that is there is the op.
_PAIRS = (
    ("start", "done"), ("start", "finish"), ("start", "end"), ("start", "stop"), ("start", "complete"),
    ("begin", "end"), ("begin", "done"), ("enter", "exit"), ("enter", "leave"), ("entry", "return"),
    ("entry", "exit"), ("enter", "return"),
)  # fmt: skip
_OPS = ("request", "query", "transaction", "command", "statement", "operation", "op", "call", "job", "rpc")
_MOST_FIELDS = 6
_EVENT = re.compile(r"[A-Za-z_]\w*:[A-Za-z_]\w*", re.ASCII)


def pairs(names: Sequence[str]) -> list[tuple[str, str]]:
    """Names that begin and end the same thing, in the order of the names."""
    there = set(names)
    found = []
    for name in names:
        for begin, end in _PAIRS:
            at = re.search(rf"(?<![A-Za-z]){begin}(?![A-Za-z])", name)
            if at is not None and (other := name[: at.start()] + end + name[at.end() :]) in there:
                found.append((name, other))
                break
    return found


def _fields(probe: Usdt) -> str:
    """Those that can be read; which, is known argument by argument only where all can be."""
    count = min(len(probe.arguments), _MOST_FIELDS) if probe.readable == len(probe.arguments) else 0
    listed = ", ".join(f'arg{number} = "arg{number}"' for number in range(1, count + 1))
    return f", fields = {{ {listed} }}" if listed else ""


def _declared(probe: Usdt, name: str) -> str:
    return f"{json.dumps(name)} = {{ usdt = {json.dumps(probe.name)}{_fields(probe)} }}"


def template(found: Offers, program: str) -> str:
    """The model's text. Raises OplineError if the program offers nothing that a model could name."""
    usdt = {probe.name: probe for probe in found.usdt if _EVENT.fullmatch(probe.name)}
    names = [*found.lttng, *(name for name in usdt if name not in found.lttng)]
    if not names:
        raise OplineError(
            f"{found.path} has no USDT probes and no LTTng tracepoints; it has {found.function_count} functions with "
            "names: `opline doctor --program FILE --functions GLOB` lists them, docs/probes.md says how to declare one"
        )
    both = pairs(names)
    begin, end = likely_pair(both) or (names[0], names[-1])
    return "\n".join([*_head(program), *_probes(program, usdt, (begin, end)), *_points(names, both, begin, end)])


def likely_pair(both: Sequence[tuple[str, str]]) -> tuple[str, str] | None:
    """Of pairs the one that is the op, by its name."""
    return min(both, key=_likely, default=None)


def _likely(pair: tuple[str, str]) -> tuple[bool, int]:
    """What is called as ops are called comes first, then the shortest name."""
    thing = _thing(pair[0])
    return thing not in _OPS, len(thing)


def _head(program: str) -> Iterator[str]:
    yield f"# Made by `opline model new` from what {program} offers. Questions have a ?; the language: docs/model.md"
    yield "version = 2"
    yield f"title = {json.dumps(program + ': ?')}"
    yield ""


def _probes(program: str, usdt: dict[str, Usdt], taken: Sequence[str]) -> Iterator[str]:
    if not usdt:
        return
    yield "[probes]"
    yield f"program = {json.dumps(program)}"
    yield "# ? What the arguments are, the program's documentation or source says: give them names, and texts a type"
    yield '#   (query = "arg1:text64"). Each hit costs about a microsecond: leave out what you do not need.'
    for name, probe in usdt.items():
        yield ("" if name in taken else "# ") + _declared(probe, name)
    yield ""


def _points(names: Sequence[str], both: Sequence[tuple[str, str]], begin: str, end: str) -> Iterator[str]:
    yield "[keys]"
    yield "# ? Does an op change threads? Then a field that its events have in common finds it there:"
    yield '# request = "FIELD", and key = "request" at the points.'
    yield ""
    yield "[points]"
    yield "# ? Is this the op: from the first to the second, on the same thread?"
    what = f"event = {json.dumps(begin)}, class = {json.dumps(_thing(begin))}"
    yield f'"begin" = {{ {what}, role = "begin", thread = "switch" }}'
    yield f'"end" = {{ event = {json.dumps(end)}, role = "end", thread = "leave" }}'
    for name in names:
        if name not in (begin, end):
            yield f"# {json.dumps(_point(name))} = {{ event = {json.dumps(name)}, optional = true }}"
    yield ""
    yield "[stages]"
    yield '# ? What the time between two points is called; kind = "wait" where it waits for something.'
    for first, last in both:
        if (first, last) != (begin, end):
            stage = json.dumps(_thing(first))
            yield f"# {stage} = {{ from = {json.dumps(_point(first))}, to = {json.dumps(_point(last))} }}"
    yield ""


def _point(event: str) -> str:
    return event.partition(":")[2].replace("__", ".")


def _thing(event: str) -> str:
    """What begins with that event: its name without the word that says so."""
    words = [w for w in re.split(r"_+", event.partition(":")[2]) if w and w not in {b for b, _ in _PAIRS}]
    return " ".join(words) or event.partition(":")[0]
