# SPDX-License-Identifier: MIT
"""Reads a trace: pushes all its events through the core, and tells the core before that what the trace lacks."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from opline import _core, losses, mapped
from opline.readers.native import NativeReader
from opline.talk import Progress, explain
from opline.values import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, TypeAlias

    from opline.losses import Gap
    from opline.readers.front import Front

    Unreadable: TypeAlias = Sequence[Mapping[str, Any]]  # as NativeReader.survey() has them


class ReadAgainError(Exception):
    """The trace is to be read again: reading met bytes that cannot be decoded, and ops of that time were settled before
    it did. ``front`` reads it once more; the core is to know ``unreadable`` before the first event.
    """

    def __init__(self, front: Front, unreadable: Unreadable) -> None:
        super().__init__()
        self.front, self.unreadable = front, unreadable


class Done(Value):
    """What is known when the trace has been read: the core's summary, losses that are not zero, the reader's words."""

    summary: dict[str, Any]
    losses: dict[str, int]
    messages: list[str]


def push(
    front: Front,
    core: _core.Core,
    progress: bool,
    gaps: Sequence[Gap],
    after_slice: Callable[[], None],
    unreadable: Unreadable = (),
    recording: Mapping[str, Any] | None = None,
) -> Done:
    """All events through the core; ``after_slice`` is called now and then. ``gaps`` are losses, too. ``unreadable``:
    what an earlier reading met. ``recording``: what its recorder says. Raises ReadAgainError.
    """
    line = Progress(progress, "correlating")
    survey = front.survey()
    known = [*survey.get("unreadable", ())] or [*unreadable]
    _say_missing(survey, core)
    for part in known:
        core.unreadable(part["host"], part["kernel"], part["channel"], part["begin_ns"], part["end_ns"])
    try:
        for share in front.read(core):
            line.show(share, f", {core.events_seen():,} events")
            mapped.check()
            after_slice()
        mapped.check()
    finally:
        line.clear()
    if isinstance(front, NativeReader) and (found := front.survey()["unreadable"]) and not known:
        explain("the trace has bytes that cannot be decoded: it is read again, as ops of that time are doubtful")
        raise ReadAgainError(front.again(), found)
    summary = json.loads(core.summary())
    counts, messages = front.losses()
    lost = losses.from_core(summary, counts, recording)
    for gap in gaps:
        lost[gap.loss] = lost.get(gap.loss, 0) + gap.count
    return Done(summary, {name: count for name, count in lost.items() if count}, messages)


def _say_missing(survey: dict[str, Any], core: _core.Core) -> None:
    """Tells the core what was there and is not: the same, whichever reader goes on to read the rest."""
    for gone in survey.get("missing", ()):
        core.missing(gone["stream"], gone["kernel"], gone["begin_ns"], gone["end_ns"], gone["packets"])
    for host, cpus in survey.get("kernel_cpus", {}).items():
        core.expect_cpus(host, cpus)
