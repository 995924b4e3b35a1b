# SPDX-License-Identifier: MIT
"""The time namespace of this process: what it adds to the kernel's CLOCK_MONOTONIC (time_namespaces(7))."""

from __future__ import annotations

import re
from pathlib import Path

_OFFSETS = Path("/proc/self/timens_offsets")
_LINE = re.compile(r"^monotonic\s+(-?\d+)\s+(\d+)$", re.MULTILINE)


def clock_offset_ns(offsets: Path = _OFFSETS) -> int:
    """How far CLOCK_MONOTONIC of this process is ahead of that of BPF programs and of the root time namespace,
    exactly; 0 in that namespace, and where the kernel has none (before 5.6).
    """
    try:
        found = _LINE.search(offsets.read_text())
    except OSError:
        return 0
    return int(found[1]) * 1_000_000_000 + int(found[2]) if found else 0
