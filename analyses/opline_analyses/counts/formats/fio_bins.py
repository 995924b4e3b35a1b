# SPDX-License-Identifier: MIT
"""fio's report as JSON with histograms (--output-format=json+): completion latencies in `bins`, by job and direction.

A bin is named by a value in ns in its middle, of 3.0 to 3.41 (fio's stat.c, plat_idx_to_val); so its edges are halfway
to the values that its neighbours would have. fio has 64 bins for each power of two. Jobs are summed.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from opline.errors import OplineError
from opline.readers.registry import CERTAIN, COUNTS, NO
from opline_analyses.counts.snapshot import SECOND_US, Snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opline.readers.registry import Head
    from opline_analyses.counts.asked import Asked

CALLED, HAS = "fio's report with histograms (json+)", COUNTS
_BITS = 6  # FIO_IO_U_PLAT_BITS of stat.h: 1 << 6 bins for each power of two


def probe(head: Head) -> int:
    """CERTAIN where it is fio's JSON with bins."""
    shows = b'"fio version"' in head.data and b'"bins"' in head.data
    return CERTAIN if shows else NO


def bucket_of(value: int) -> tuple[int, int]:
    """The edges in ns of the bin that has this value in its middle."""
    if value < 1 << (_BITS + 1):
        return value, value + 1
    width = 1 << (value.bit_length() - 1 - _BITS)
    low = value // width * width
    return low, low + width


def read(asked: Asked) -> Iterator[Snapshot]:
    """One snapshot, a group for each direction. Raises OplineError."""
    text = "".join(asked.lines())
    try:
        document = json.loads(text[max(0, text.find("{")) :])
        jobs = document["jobs"]
        longest = max((int(job.get("job_runtime", 0)) for job in jobs), default=0)
        found = Snapshot("us", 1, longest * 1000 or SECOND_US, longest * 1000 or SECOND_US)
        for job in jobs:
            for name in ("read", "write", "trim"):
                _add(found, name, job.get(name) or {})
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        raise OplineError(f"{asked.path} is cut off, or no report of fio: {error}.") from error
    if found.groups:
        yield found


def _add(found: Snapshot, name: str, stats: dict[str, Any]) -> None:
    bins = (stats.get("clat_ns") or {}).get("bins") or (stats.get("lat_ns") or {}).get("bins") or {}
    for value, count in bins.items():
        found.add(name, bucket_of(int(value)), int(count))
