# SPDX-License-Identifier: MIT
"""The op model's language (docs/model.md): its words, and the types that a model is made of.

``reader.py`` makes them of a TOML text, ``lint.py`` looks whether they fit, ``compile.py`` makes the core's plan.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from opline.applications import table
from opline.steps import STEPS
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
BATCH_SAYS = ("count", "needs", "reaches", "among")  # fields of the event that a point of a batch names
WINDOWS = ("begin", "end")  # of bytes in flight, of a sync
MESSAGES = ("send", "receive")  # what a point does to a message between hosts
DIRECTIONS = ("read", "write")
#: Steps of a block request, where the core cuts: no point has such a name.
BLOCK_STEPS = {step.letter: step.meaning for step in STEPS} | {
    "preflush": "the flush before its data is done", "postflush": "the flush behind its data is done",
}  # fmt: skip
STAGE_KINDS = ("work", "wait", "network", "device", "unknown")

IOS_FIELDS = ("submit", "wait", "count", "least", "ring", "submitted", "reaped", "names", "told", "taken", "posted")
BIOS_FIELDS = ("class", "threads", "except")

VERSION = 2  # of the language; a model may leave it out
MODEL_FIELDS = (
    "title", "text", "claims", "ignore", "linger_ns", "keys", "facts", "points", "stages", "bios", "requests",
    "preload", "probes", "version", "groups", "defaults", "batches", "earlier",
)  # fmt: skip
KEY_FIELDS = ("fields", "scope", "by_order", "with")
FACT_FIELDS = ("of", "value", "scope", "unordered")
POINT_FIELDS = (
    "event", "when", "role", "key", "bind", "release", "join", "optional", "child", "learn", "stamp", "thread",
    "class", "object", "io", "aside", "after", "quorum", "batch", "ios", "message",
)  # fmt: skip
#: In `release` in a key's field's place: whatever of that space names the op.
ALL = "*"
JOIN_FIELDS = ("wait", "meet", "sole")
STAMP_FIELDS = ("mark", "at")
IO_FIELDS = ("in_flight", "offset", "length", "direction", "file_by", "sync")
PARTS = {"join": JOIN_FIELDS, "stamp": STAMP_FIELDS, "io": IO_FIELDS}
#: Words that models had, and what to write instead.
GONE = {
    **{word: f'join = {{ {word} = "KEY" }}' for word in JOIN_FIELDS},
    **{word: f'stamp = {{ {word} = "MARK" }}' for word in STAMP_FIELDS},
    **{word: f'io = {{ {word} = "FIELD" }}' for word in ("offset", "length", "file_by")},
    "direction": 'io = { direction = "read" }',
    "sync_wait": 'io = { sync = "begin" }',
    "end_of": 'role = { end = ["CLASS"] }',
    "open_or_work": 'work = "BATCH", and [batches] BATCH = { auto = true }',
    "open_or_join": 'join = "BATCH", and [batches] BATCH = { auto = true }',
    "once": "nothing: every time that an op passes the point is recorded",
    "duration": "a point for an event at the begin of what took so long",
    "unit": "nothing: `duration` is gone as well",
}
#: Of a point's fields, those that are read, and handed to the plan, by their names: what is true or false; the names of
#: an event's fields; one word of some; keys; names of points. The part of the point in which they stand, "": the point
#: itself.
FLAGS = ("optional", "child", "aside")
TEXTS = {"object": "", "mark": "stamp", "at": "stamp", "offset": "io", "length": "io", "file_by": "io"}
WORDS = {
    "thread": ("", THREAD_RULES), "in_flight": ("io", WINDOWS), "direction": ("io", DIRECTIONS), "sync": ("io", WINDOWS)
}  # fmt: skip
KEYS = {"bind": "", "release": "", "wait": "join", "meet": "join", "sole": "join"}
POINTS = ("after",)
#: Words of a point that opline no longer reads. A model that has them works as without them.
IGNORED = ("passed_with", "each_with")
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
    least: str | None = None  # the field that says how many completions the call waits for
    ring: bool = False
    submitted: str | None = None
    reaped: str | None = None  # a field's name, or "*": all that are done
    names: str | None = None  # the field that says which I/Os they are
    told: str | None = None  # not of a call: the event is the begin or the end of one I/O, as `in_flight`
    taken: str | None = None  # the field that says how many completions the application has taken when it calls
    posted: str | None = None  # with told = "end": how many completions there have been with this one

    @property
    def entry(self) -> bool:
        """The point is a call's entry; else it is its exit."""
        return self.submit is not None or self.wait is not None


class Bios(Value):
    """Threads whose bios (where no other op is found) or requests are ops of their own: globs of their names."""

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
    aside: bool = False
    after: tuple[str, ...] = ()
    quorum: int | None = None  # how many children of `after` the op waits for; None: all
    batch_do: str | None = None
    batch_space: str | None = None
    batch_says: tuple[tuple[str, str], ...] = ()  # of BATCH_SAYS, and the event's field
    ios: Ios | None = None
    sync: str | None = None
    direction: str | None = None
    file_by: str | None = None
    message: str | None = None  # of MESSAGES
    identity: tuple[KeyUse, ...] = ()  # of the message: the same at both of its ends


class Stage(Value):
    """A name for the intervals from any of ``sources`` to any of ``targets``."""

    name: str
    sources: tuple[str, ...]
    targets: tuple[str, ...]
    kind: str | None  # None: `wait` where it ends on another thread than it begins on, else `work`
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
    bios: tuple[Bios, ...] = ()
    requests: tuple[Bios, ...] = ()
    facts: tuple[Fact, ...] = ()
    preload: tuple[str, ...] = ()  # what `opline record` preloads into the command
    probes: tuple[Probe, ...] = ()
    probes_on_request: bool = False  # not placed unless that is asked for
    earlier: Mapping[str, str] = {}  # globs of an earlier version's events, and the shipped model for these
    broken_points: tuple[str, ...] = ()  # names of points that have mistakes of their own

    def placed_probes(self, asked: bool) -> tuple[Probe, ...]:
        """The probes that a recording places. ``asked``: it is to place those on request, too."""
        return self.probes if asked or not self.probes_on_request else ()

    def plan(self, match: str = "pointer") -> dict[str, Any]:
        """The compiled model (docs/internals/stitching.md, "The plan"); for a model without errors."""
        from .compile import compile_plan  # compile needs this class

        return compile_plan(self, match)

    def plan_json(
        self,
        match: str = "pointer",
        files: Sequence[Mapping[str, Any]] = (),
        lost: Sequence[Mapping[str, Any]] = (),
        population: Sequence[int] | None = (),
        devices: Sequence[Mapping[str, Any]] = (),
        of_cluster: Mapping[str, Any] | None = None,
        stacks: Sequence[Mapping[str, Any]] = (),
        commands: Sequence[int] = (),
    ) -> str:
        """The plan as the text that the core reads, with the maps of files that the trace comes with, the intervals in
        which something is known to be missing, the processes that the recording is about, and its disks. ``population``
        None: none is told, whatever the trace declares. ``commands``: the processes that the recorder forked.
        ``of_cluster``: what the plan says of several hosts (`hosts`, `files`, `clock_bounds`, `absent`). ``stacks``:
        what kernel stacks of the recording tell.
        """
        plan = self.plan(match) | {"files": list(files), "lost": list(lost)} | table.providers()
        if population is None or population:
            plan["population"] = population and list(population)
        if commands:
            plan["commands"] = list(commands)
        if devices:
            plan["devices"] = list(devices)
        if stacks:
            plan["stacks"] = list(stacks)
        return json.dumps(plan | dict(of_cluster or {}), ensure_ascii=False, separators=(",", ":"))


def template(name: str) -> tuple[str, str | None]:
    """Split a point's name at its placeholder: ``flag:{msg}`` gives ``("flag:{}", "msg")``."""
    found = PLACEHOLDER.search(name)
    return (name, None) if found is None else (name[: found.start()] + "{}" + name[found.end() :], found[1])
