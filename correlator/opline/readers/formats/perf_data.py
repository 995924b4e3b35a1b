# SPDX-License-Identifier: MIT
"""A recording of perf, perf.data, which perf itself makes text of. Magic: tools/perf/util/header.c."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opline.readers.registry import CERTAIN, EVENTS, NO

if TYPE_CHECKING:
    from opline.readers.registry import Head
    from opline.readers.tool_text import ToolTextReader

CALLED, HAS, MODEL = "a recording of perf", EVENTS, "generic"
_WORDS = ["perf", "script", "-G", "--ns", "--show-lost-events", "-i"]


def probe(head: Head) -> int:
    """CERTAIN by its first bytes."""
    return CERTAIN if head.data.startswith((b"PERFILE2", b"2ELIFREP")) else NO


def names(head: Head) -> set[str]:
    """Of the block events at its begin."""
    return front([head.name]).names()


def files(path: str) -> list[str]:
    """The file alone."""
    return [path]


def front(paths: list[str]) -> ToolTextReader:
    """What reads it. Raises TraceError without perf."""
    from opline.readers.tool_text import ToolTextReader  # few inputs need it

    return ToolTextReader(paths[0], CALLED, _WORDS)
