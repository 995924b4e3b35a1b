# SPDX-License-Identifier: MIT
"""The op model's language (docs/model.md): the words, and the types of a model's parts.

``reader.py`` makes the types from a TOML text, ``lint.py`` checks their consistency, ``compile.py`` makes the core's
plan.
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
BATCH_SAYS = ("count", "needs", "reaches", "among")  # the event's fields named by a batch's point
WINDOWS = ("begin", "end")  # of bytes in flight, of a sync
MESSAGES = ("send", "receive")  # acts of a point on a message between hosts
DIRECTIONS = ("read", "write")
#: Steps of a block request, where the core cuts: no point may have such a name.
BLOCK_STEPS = {step.letter: step.meaning for step in STEPS} | {
    "preflush": "the flush before its data is done", "postflush": "the flush behind its data is done",
}  # fmt: skip
STAGE_KINDS = ("work", "wait", "network", "device", "unknown")

IOS_FIELDS = ("submit", "wait", "count", "least", "ring", "submitted", "reaped", "names", "told", "taken", "posted")
BIOS_FIELDS = ("class", "threads", "except")

VERSION = 2  # of the language; optional in a model
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
#: In `release`, in place of a key's field: every key of the space that names the op.
ALL = "*"
JOIN_FIELDS = ("wait", "meet", "sole")
STAMP_FIELDS = ("mark", "at")
IO_FIELDS = ("in_flight", "offset", "length", "direction", "file_by", "sync")
PARTS = {"join": JOIN_FIELDS, "stamp": STAMP_FIELDS, "io": IO_FIELDS}
#: Former words of models, and the present ones.
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
#: A point's fields that are read and put into the plan by name alone: flags; names of an event's fields; a word of a
#: list; keys; names of points. The value: the part of the point with the field, "": the point itself.
FLAGS = ("optional", "child", "aside")
TEXTS = {"object": "", "mark": "stamp", "at": "stamp", "offset": "io", "length": "io", "file_by": "io"}
WORDS = {
    "thread": ("", THREAD_RULES), "in_flight": ("io", WINDOWS), "direction": ("io", DIRECTIONS), "sync": ("io", WINDOWS)
}  # fmt: skip
KEYS = {"bind": "", "release": "", "wait": "join", "meet": "join", "sole": "join"}
POINTS = ("after",)
#: Words of a point that opline no longer reads. A model with these words works as without.
IGNORED = ("passed_with", "each_with")
STAGE_FIELDS = ("from", "to", "kind", "behind")

DEFAULT_LINGER_NS = 100_000_000
MAX_LINGER_NS = 3_600_000_000_000

PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


class Problem(Value):
    """One finding: an error (the model is unusable), a warning or a note. Lines count from 1; 0 is the whole file."""

    line: int
    severity: str
    message: str

    def __lt__(self, other: Problem) -> bool:
        return (self.line, self.severity, self.message) < (other.line, other.severity, other.message)


class KeySpace(Value):
    """A kind of identity; ``fields``: the default for uses without fields."""

    name: str
    fields: tuple[str, ...]
    scope: str
    line: int
    by_order: bool = False
    carries: tuple[str, ...] = ()  # spaces always held together with this key: `with`


class Fact(Value):
    """The meaning of a field's value, as told by an event: a descriptor's two ports."""

    name: str
    of: str
    value: tuple[str, ...]
    scope: str
    unordered: bool
    line: int


class KeyUse(Value):
    """A key in an event. Empty ``fields``: the space's fields. ``fd@peers``: the fact's value for fd."""

    space: str
    fields: tuple[str, ...]
    line: int


class Condition(Value):
    """The field has one of ``values``."""

    field: str
    values: tuple[int | str, ...]


class Ios(Value):
    """The act of a call on I/Os that outlive the call: the entry queues or awaits I/Os, the exit tells the number."""

    submit: KeyUse | None = None
    wait: KeyUse | None = None
    count_field: str | None = None
    least: str | None = None  # the field with the number of awaited completions
    ring: bool = False
    submitted: str | None = None
    reaped: str | None = None  # a field's name, or "*": all done I/Os
    names: str | None = None  # the field with the names of the I/Os
    told: str | None = None  # outside of a call: the event is the begin or the end of one I/O, as `in_flight`
    taken: str | None = None  # the field with the number of completions taken by the application before the call
    posted: str | None = None  # with told = "end": the number of completions up to this one

    @property
    def entry(self) -> bool:
        """The point is a call's entry; else the exit."""
        return self.submit is not None or self.wait is not None


class Bios(Value):
    """Threads whose bios (without another op) or requests are ops: globs of thread names."""

    op_class: str
    threads: tuple[str, ...]
    exceptions: tuple[str, ...]


class Rule(Value):
    """One way to pass a point: the events, and their meaning. Several rules may share a name."""

    name: str  # with the placeholder, if any: "flag:{msg}"
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
    identity: tuple[KeyUse, ...] = ()  # of the message: the same at both ends


class Stage(Value):
    """A name for the intervals from any of ``sources`` to any of ``targets``."""

    name: str
    sources: tuple[str, ...]
    targets: tuple[str, ...]
    kind: str | None  # None: `wait` if the stage ends on another thread than the first, else `work`
    behind: bool
    line: int


class Model(Value):
    """A parsed op model."""

    name: str
    path: str
    title: str
    text: str  # the TOML text
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
    preload: tuple[str, ...] = ()  # preloaded into the command by `opline record`
    probes: tuple[Probe, ...] = ()
    probes_on_request: bool = False  # placed only on request
    earlier: Mapping[str, str] = {}  # globs of an earlier version's events, with the shipped model for these events
    broken_points: tuple[str, ...] = ()  # names of points with own mistakes

    def placed_probes(self, asked: bool) -> tuple[Probe, ...]:
        """The probes of a recording. ``asked``: probes on request are wanted, too."""
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
        """The plan as text for the core, with the trace's maps of files, the intervals known to have losses, the
        recorded processes, and the disks. ``population`` None: no processes, even if the trace declares some.
        ``commands``: the processes forked by the recorder. ``of_cluster``: the plan's facts about several hosts
        (`hosts`, `files`, `clock_bounds`, `absent`). ``stacks``: facts from the recording's kernel stacks.
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
