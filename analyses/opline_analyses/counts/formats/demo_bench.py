# SPDX-License-Identifier: MIT
"""What demo-bench reports with --json, for `coverage`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opline.readers.registry import CERTAIN, FIGURES, NO

if TYPE_CHECKING:
    from opline.readers.registry import Head

CALLED, HAS = "the report of demo-bench", FIGURES
_SHOWS = re.compile(rb'"tool"\s*+:\s*+"demo-bench"')


def probe(head: Head) -> int:
    """CERTAIN where the tool is named."""
    return CERTAIN if _SHOWS.search(head.data) else NO
