# SPDX-License-Identifier: MIT
"""The op model's language (docs/model.md): its words, and the types that a model is made of.

``reader.py`` makes them of a TOML text, ``lint.py`` looks whether they fit, ``compile.py`` makes the core's plan.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from opline.values import Value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from .probes import Probe

SCOPES = ("process", "global", "thread")
#: In a model's words, and in the plan's.
ROLES = {"begin": "begin", "end": "end", "begin?": "soft_begin", "end?": "soft_end"}
THREAD_RULES = ("enter", "leave", "switch")
BATCH_DOINGS = ("open", "join", "work", "close", "leave")
BATCH_DOINGS_1 = (*BATCH_DOINGS[:-1], "open_or_work", "open_or_join")
BATCH_SAYS = ("count", "needs", "reaches", "among")  # fields of the event that a point of a batch names
WINDOWS = ("begin", "end")  # of bytes in flight, of a sync
DIRECTIONS = ("read", "write")
#: Steps of a block request, where the core cuts: no point has such a name.
BLOCK_STEPS = {
    "Q": "bio queued", "G": "request allocated", "preflush": "the flush before its data is done", "I": "inserted",
    "D": "issued to the driver", "C": "completed", "postflush": "the flush behind its data is done",
}  # fmt: skip
STAGE_KINDS = ("work", "wait", "network", "device", "unknown")
UNITS_NS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}

IOS_FIELDS = ("submit", "wait", "count", "ring", "submitted", "reaped", "names")
BIOS_FIELDS = ("class", "threads", "except")

VERSIONS = (1, 2)
#: What version 1 had no words for.
MODEL_FIELDS_2 = ("version", "groups", "defaults", "batches")
MODEL_FIELDS = (
    "title", "text", "claims", "ignore", "linger_ns", "keys", "facts", "points", "stages", "bios", "preload", "probes",
    *MODEL_FIELDS_2,
)  # fmt: skip
KEY_FIELDS = ("fields", "scope", "by_order", "with")
FACT_FIELDS = ("of", "value", "scope", "unordered")
POINT_FIELDS = (
    "event", "when", "role", "key", "bind", "release", "join", "optional", "child", "learn", "stamp", "thread",
    "class", "object", "io", "aside", "once", "after", "passed_with", "each_with", "batch", "ios",
)  # fmt: skip
#: In `release` in a key's field's place: whatever of that space names the op.
ALL = "*"
JOIN_FIELDS = ("wait", "meet", "sole")
STAMP_FIELDS = ("mark", "at", "duration", "unit")
IO_FIELDS = ("in_flight", "offset", "length", "direction", "file_by", "sync")
PARTS = {"join": JOIN_FIELDS, "stamp": STAMP_FIELDS, "io": IO_FIELDS}
#: Version 1 had the words of ``join``, ``stamp`` and ``io`` in the point itself, two of them by other names.
NAMES_1 = {"in_flight": "io", "sync": "sync_wait"}
POINT_FIELDS_1 = (
    *(f for f in POINT_FIELDS if f not in ("join", "stamp")), *JOIN_FIELDS, *STAMP_FIELDS[:-1], *IO_FIELDS[1:-1],
    "end_of", "sync_wait",
)  # fmt: skip
#: Of a point's fields, those that are read, and handed to the plan, by their names: what is true or false; the names of
#: an event's fields; one word of some; keys; names of points. The part of the point in which they stand, "": the point
#: itself.
FLAGS = ("optional", "child", "aside", "once")
TEXTS = {"object": "", "mark": "stamp", "at": "stamp", "offset": "io", "length": "io", "file_by": "io"}
WORDS = {
    "thread": ("", THREAD_RULES), "in_flight": ("io", WINDOWS), "direction": ("io", DIRECTIONS), "sync": ("io", WINDOWS)
}  # fmt: skip
KEYS = {"bind": "", "release": "", "wait": "join", "meet": "join", "sole": "join"}
POINTS = ("after", "passed_with", "each_with")
STAGE_FIELDS = ("from", "to", "kind", "behind")

DEFAULT_LINGER_NS = 100_000_000
MAX_LINGER_NS = 3_600_000_000_000

PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


class Problem(Value):
    """One finding: an error (the model can't be used), a warning or a note. Lines count from 1; 0 is the whole file."""

    line: int
    severity: str
    message: str

    def __lt__(self, other: Problem) -> bool:
        return (self.line, self.severity, self.message) < (other.line, other.severity, other.message)


class KeySpace(Value):
    """A kind of identity; ``fields`` are those of a use that names none."""

    name: str
    fields: tuple[str, ...]
    scope: str
    line: int
    by_order: bool = False
    carries: tuple[str, ...] = ()  # spaces that whoever has this key in hand has as well: `with`


class Fact(Value):
    """What a field's value stands for, as an event tells it: a descriptor's two ports."""

    name: str
    of: str
    value: tuple[str, ...]
    scope: str
    unordered: bool
    line: int


class KeyUse(Value):
    """A key as an event carries it. Empty ``fields``: those of its space. ``fd@peers``: what the fact says of fd."""

    space: str
    fields: tuple[str, ...]
    line: int


class Condition(Value):
    """The field's value is one of ``values``."""

    field: str
    values: tuple[int | str, ...]


class Ios(Value):
    """What a call does to I/Os that outlive it: its entry queues or awaits them, its exit says how many it did."""

    submit: KeyUse | None = None
    wait: KeyUse | None = None
    count_field: str | None = None
    ring: bool = False
    submitted: str | None = None
    reaped: str | None = None  # a field's name, or "*": all that are done
    names: str | None = None  # the field that says which I/Os they are

    @property
    def entry(self) -> bool:
        """The point is a call's entry; else it is its exit."""
        return self.submit is not None or self.wait is not None


class Bios(Value):
    """Threads whose bios are ops of their own where no other op is found: globs of their names."""

    op_class: str
    threads: tuple[str, ...]
    exceptions: tuple[str, ...]


class Rule(Value):
    """One way to pass a point: the events, and what they mean. Several rules may share a name."""

    name: str  # with its placeholder, if any: "flag:{msg}"
    name_field: str | None
    line: int
    events: tuple[str, ...]
    when: tuple[Condition, ...] = ()
    role: str | None = None
    end_of: tuple[str, ...] = ()
    key: tuple[KeyUse, ...] = ()
    bind: tuple[KeyUse, ...] = ()
    release: tuple[KeyUse, ...] = ()
    wait: tuple[KeyUse, ...] = ()
    meet: tuple[KeyUse, ...] = ()
    sole: tuple[KeyUse, ...] = ()
    optional: bool = False
    child: bool = False
    learn: str | None = None
    mark: str | None = None
    at: str | None = None
    thread: str | None = None
    class_text: str | None = None
    class_field: str | None = None
    object: str | None = None
    offset: str | None = None
    length: str | None = None
    in_flight: str | None = None
    duration_field: str | None = None
    duration_unit_ns: int = 1
    aside: bool = False
    once: bool = False
    after: tuple[str, ...] = ()
    passed_with: tuple[str, ...] = ()
    each_with: tuple[str, ...] = ()
    batch_do: str | None = None
    batch_space: str | None = None
    batch_says: tuple[tuple[str, str], ...] = ()  # of BATCH_SAYS, and the event's field
    ios: Ios | None = None
    sync: str | None = None
    direction: str | None = None
    file_by: str | None = None


class Stage(Value):
    """A name for the intervals from any of ``sources`` to any of ``targets``."""

    name: str
    sources: tuple[str, ...]
    targets: tuple[str, ...]
    kind: str
    behind: bool
    line: int


class Model(Value):
    """A parsed op model."""

    name: str
    path: str
    title: str
    text: str  # the TOML itself
    description: str
    claims: list[str]
    claims_line: int
    ignore: tuple[str, ...]
    linger_ns: int
    keys: tuple[KeySpace, ...]
    rules: tuple[Rule, ...]
    stages: tuple[Stage, ...]
    bios: Bios | None = None
    facts: tuple[Fact, ...] = ()
    preload: tuple[str, ...] = ()  # what `opline record` preloads into the command
    probes: tuple[Probe, ...] = ()
    probes_on_request: bool = False  # not placed unless that is asked for
    broken_points: tuple[str, ...] = ()  # names of points that have mistakes of their own

    def placed_probes(self, asked: bool) -> tuple[Probe, ...]:
        """The probes that a recording places. ``asked``: it is to place those on request, too."""
        return self.probes if asked or not self.probes_on_request else ()

    def plan(self, match: str = "pointer") -> dict[str, Any]:
        """The compiled model (docs/stitching.md, "The plan"); for a model without errors."""
        from .compile import compile_plan  # compile needs this class

        return compile_plan(self, match)

    def plan_json(
        self, match: str = "pointer", files: Sequence[Mapping[str, Any]] = (), lost: Sequence[Mapping[str, Any]] = ()
    ) -> str:
        """The plan as the text that the core reads, with the maps of files that the trace comes with, and the intervals
        in which something is known to be missing.
        """
        plan = self.plan(match) | {"files": list(files), "lost": list(lost)}
        return json.dumps(plan, ensure_ascii=False, separators=(",", ":"))


def template(name: str) -> tuple[str, str | None]:
    """Split a point's name at its placeholder: ``flag:{msg}`` gives ``("flag:{}", "msg")``."""
    found = PLACEHOLDER.search(name)
    return (name, None) if found is None else (name[: found.start()] + "{}" + name[found.end() :], found[1])
