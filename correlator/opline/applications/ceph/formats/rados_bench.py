# SPDX-License-Identifier: MIT
"""What rados bench reports at its end, as text and as JSON, for `coverage`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opline.readers.registry import CERTAIN, FIGURES, NO

if TYPE_CHECKING:
    from opline.readers.registry import Head

CALLED, HAS = "the report of rados bench", FIGURES
_TEXT = re.compile(r"Total (?:writes|reads) made: *+\d{1,15}\s*+")


def probe(head: Head) -> int:
    """CERTAIN where it says how many writes or reads were made, and in which seconds."""
    both = b'"total_time_run"' in head.data and b'"average_latency"' in head.data
    return CERTAIN if both or (head.has_line(_TEXT) and b"Average Latency(s)" in head.data) else NO
