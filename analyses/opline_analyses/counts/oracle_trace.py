# SPDX-License-Identifier: MIT
"""Oracle's extended SQL trace (event 10046): each WAIT line is a wait with its length and its end, in microseconds.

WAIT #46929157733848: nam='db file sequential read' ela= 977 file#=7 block#=29618220 blocks=1 tim=1377520823036634
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opline.errors import OplineError
from opline_analyses.counts.two_columns import batch_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from opline_analyses.intervals.intervals import Batch

LINE = re.compile(
    r"WAIT\s+#.*?\bnam(?:e)?='(?P<name>[^']+)'.*?\bela=\s*(?P<ela>\d+)\b.*?\btim=\s*(?P<tim>\d+)\b.*", re.IGNORECASE
)
EVENT = "db file sequential read"
_TOLD = 5


def read(lines: Iterable[str], path: str, event: str = EVENT, exactly: bool = False) -> Batch:
    """All waits for an event, with their exact lengths in ns. ``exactly``: its name in the same case.

    Raises OplineError where there is none; then the message names the events that there are.
    """
    wanted = event if exactly else event.lower()
    times: list[int] = []
    waits: list[int] = []
    others: dict[str, int] = {}
    for line in lines:
        found = LINE.match(line)
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
    return batch_of(times, waits, path)
