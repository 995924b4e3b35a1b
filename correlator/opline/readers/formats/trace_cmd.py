# SPDX-License-Identifier: MIT
"""A recording of trace-cmd, trace.dat, which trace-cmd itself makes text of. Magic: trace-cmd.dat(5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opline.readers.registry import CERTAIN, EVENTS, NO

if TYPE_CHECKING:
    from opline.readers.registry import Head
    from opline.readers.tool_text import ToolTextReader

CALLED, HAS, MODEL = "a recording of trace-cmd", EVENTS, "generic"
_WORDS = ["trace-cmd", "report", "-t", "-i"]


def probe(head: Head) -> int:
    """CERTAIN by its first bytes."""
    return CERTAIN if head.data.startswith(b"\x17\x08Dtracing") else NO


def names(head: Head) -> set[str]:
    """Of the block events at its begin."""
    return front([head.name]).names()


def files(path: str) -> list[str]:
    """The file alone."""
    return [path]


def front(paths: list[str]) -> ToolTextReader:
    """What reads it. Raises TraceError without trace-cmd."""
    from opline.readers.tool_text import ToolTextReader  # few inputs need it

    return ToolTextReader(paths[0], CALLED, _WORDS)
