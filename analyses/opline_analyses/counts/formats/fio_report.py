# SPDX-License-Identifier: MIT
"""fio's report, as JSON (2.0 to 3.41) and as text: what a benchmark measured, for `coverage`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opline.readers.registry import CERTAIN, FIGURES, LIKELY, NO
from opline_analyses.counts.formats import fio_bins

if TYPE_CHECKING:
    from opline.readers.registry import Head

CALLED, HAS = "fio's report", FIGURES
_TEXT = re.compile(r"(?s:.{1,200}): \(groupid=\d{1,6}, jobs=\d{1,6}\): err= *+\d.*+")
_TERSE = re.compile(r"[2-5];fio-[\w.-]{1,60};.*+")


def probe(head: Head) -> int:
    """CERTAIN where it is fio's whole JSON without histograms, or its text; LIKELY while histograms can come yet."""
    if fio_bins.probe(head) != NO:
        return NO
    if head.has_line(_TERSE):
        return CERTAIN
    if b'"fio version"' in head.data:
        return CERTAIN if head.whole else LIKELY
    return CERTAIN if head.has_line(_TEXT) else NO
