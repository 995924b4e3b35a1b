# SPDX-License-Identifier: MIT
"""A recording of trace-cmd, trace.dat, which trace-cmd itself makes text of. Magic: trace-cmd.dat(5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opline.readers.registry import CERTAIN, NO, NOTHING

if TYPE_CHECKING:
    from opline.readers.registry import Head

CALLED, HAS = "a recording of trace-cmd", NOTHING
ADVICE = "make text of it (trace-cmd report -t -i {} > events.txt), and give that"


def probe(head: Head) -> int:
    """CERTAIN by its first bytes."""
    return CERTAIN if head.data.startswith(b"\x17\x08Dtracing") else NO
