# SPDX-License-Identifier: MIT
"""How many threads read a trace and write its tables."""

from __future__ import annotations

import os

from opline.errors import UsageError

MOST_THREADS = 64


def number_of_threads(text: str, where: str) -> int:
    """What ``text`` says; ``where`` is what it was given as. Raises UsageError."""
    if text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= MOST_THREADS:
        return int(text)
    raise UsageError(f"A number of threads is to be from 1 to {MOST_THREADS}, not {text!r} ({where}).")


def threads_wanted(least_cpus: int = 4) -> int:
    """``OPLINE_THREADS`` (``--threads`` sets it), else 2 where there are so many processors: two can be one core's,
    where a thread that decodes is in the way of whatever else runs (docs/performance.md). Raises UsageError.
    """
    wanted = os.environ.get("OPLINE_THREADS")
    if wanted:
        return number_of_threads(wanted, "OPLINE_THREADS")
    return 2 if len(os.sched_getaffinity(0)) >= least_cpus else 1
