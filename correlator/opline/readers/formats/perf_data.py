# SPDX-License-Identifier: MIT
"""A recording of perf, perf.data, which perf itself makes text of. Magic: tools/perf/util/header.c."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opline.readers.registry import CERTAIN, NO, NOTHING

if TYPE_CHECKING:
    from opline.readers.registry import Head

CALLED, HAS = "a recording of perf", NOTHING
ADVICE = "make text of it (perf script -i {} --ns --show-lost-events > events.txt), and give that"


def probe(head: Head) -> int:
    """CERTAIN by its first bytes."""
    return CERTAIN if head.data.startswith((b"PERFILE2", b"2ELIFREP")) else NO
