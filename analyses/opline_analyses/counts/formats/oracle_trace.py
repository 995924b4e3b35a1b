# SPDX-License-Identifier: MIT
"""Oracle's extended SQL trace (event 10046): each WAIT line is a wait with its length and its end, in microseconds.

WAIT #46929157733848: nam='db file sequential read' ela= 977 file#=7 block#=29618220 blocks=1 tim=1377520823036634
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opline.errors import OplineError
from opline.readers.registry import CERTAIN, NO, VALUES
from opline_analyses.counts.values import batch_of

if TYPE_CHECKING:
    from opline.readers.registry import Head
    from opline_analyses.counts.asked import Asked
    from opline_analyses.intervals.intervals import Batch

CALLED, HAS = "Oracle's trace of waits (10046)", VALUES
_LINE = re.compile(
    r"WAIT\s++#(?>.*?\bnam(?:e)?='(?P<name>[^']++)')(?>.*?\bela=\s*+(?P<ela>\d{1,20})\b)"
    r"(?>.*?\btim=\s*+(?P<tim>\d{1,20})\b).*+",
    re.IGNORECASE,
)
EVENT = "db file sequential read"
_TOLD = 5


def probe(head: Head) -> int:
    """CERTAIN where a line is a wait."""
    return CERTAIN if head.has_line(_LINE) else NO


def read(asked: Asked) -> tuple[Batch, str]:
    """All waits for an event, with their exact lengths in ns.

    Raises OplineError where there is none; then the message names the events that there are.
    """
    path, event, exactly = asked.path, asked.event or EVENT, asked.case_sensitive
    wanted = event if exactly else event.lower()
    times: list[int] = []
    waits: list[int] = []
    others: dict[str, int] = {}
    for line in asked.lines():
        found = _LINE.match(line)
        if found is None:
            continue
        name = found["name"]
        if (name if exactly else name.lower()) == wanted:
            times.append(int(found["tim"]) * 1000)
            waits.append(int(found["ela"]) * 1000)
        else:
            others[name] = others.get(name, 0) + 1
    if not times:
        most = sorted(others, key=lambda name: -others[name])[:_TOLD]
        raise OplineError(f"{path} has no wait for {event!r}; --event names another one: {', '.join(most) or 'none'}.")
    return batch_of(times, waits, path), "wait"
