# SPDX-License-Identifier: MIT
"""A packed run (opline.store.packed): whatever opens a run opens it, and there is no event to read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opline.paths import begins_packed
from opline.readers.registry import CERTAIN, NO, RUN

if TYPE_CHECKING:
    from opline.readers.registry import Head

CALLED, HAS = "a packed run", RUN


def probe(head: Head) -> int:
    """CERTAIN by its first bytes."""
    return CERTAIN if begins_packed(head.data) else NO
