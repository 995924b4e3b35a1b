# SPDX-License-Identifier: MIT
"""fio's logs of histograms (write_hist_log: PREFIX_clat_hist.N.log): completion latencies of an interval on each line.

    time ms, direction, bytes, count of bin 0, count of bin 1, ...

fio has 64 bins for each power of two: 1856 in ns, and before 3.0 1216 in us (stat.h, FIO_IO_U_PLAT_NR). With
log_hist_coarseness=C each count is of 2^C bins. Directions have lines of their own, a few ms apart.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opline.errors import OplineError
from opline.readers.registry import CERTAIN, COUNTS, NO
from opline.talk import talk
from opline_analyses.base.quantities import DURATIONS
from opline_analyses.counts.snapshot import Snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opline.readers.registry import Head
    from opline_analyses.counts.asked import Asked

CALLED, HAS = "fio's log of histograms", COUNTS
_LINE = re.compile(r"\s*+(\d{1,15}), ([012]), \d{1,12}((?:, \d{1,18})++)\s*+")
_DIRECTIONS = ("read", "write", "trim")
_BITS = 6  # FIO_IO_U_PLAT_BITS
_COARSEST = 6
_BINS = {
    bins >> coarse: (unit, coarse) for unit, bins in (("ns", 1856), ("us", 1216)) for coarse in range(_COARSEST + 1)
}


def probe(head: Head) -> int:
    """CERTAIN where the first line has as many counts as fio has bins."""
    return CERTAIN if any(_parsed(line) for line in head.begun(1)) else NO


def _parsed(line: str) -> tuple[int, str, str, int, list[int]] | None:
    """The time in ms, the direction, the unit, the coarseness and the counts."""
    found = _LINE.fullmatch(line)
    if found is None or found[3].count(",") not in _BINS:
        return None
    return int(found[1]), _DIRECTIONS[int(found[2])], *_BINS[found[3].count(",")], [*map(int, found[3][2:].split(", "))]


def low_edge(number: int) -> int:
    """Of a bin, in its unit (stat.c, plat_idx_to_val)."""
    group = number >> _BITS
    return number if group < 2 else ((1 << _BITS) + number % (1 << _BITS)) << (group - 1)


def read(asked: Asked) -> Iterator[Snapshot]:
    """A snapshot for each interval, a group for each direction. Raises OplineError."""
    found: Snapshot | None = None
    last_ms = cut = 0
    for number, line in enumerate(asked.lines(), 1):
        row = _parsed(line)
        if row is None:
            cut = cut or (number if line.strip() else 0)
            continue
        if cut:
            raise OplineError(f"{asked.path}, line {cut}: no line of fio's log of histograms.")
        time_ms, direction, unit, coarse, counts = row
        if found is not None and direction in found.groups and found.at_us != time_ms * 1000:
            yield found
            found = None
        if found is None:
            found = Snapshot("us", number, length_us=max(1, time_ms - last_ms) * 1000)
        found.at_us = max(found.at_us or 0, time_ms * 1000)
        last_ms = max(last_ms, time_ms)
        for place, count in enumerate(counts):
            if count:
                low, high = (low_edge(edge << coarse) * DURATIONS[unit] for edge in (place, place + 1))
                found.add(direction, (low, high), count)
        found.groups.setdefault(direction, {})
    if cut:
        talk(f"{asked.path}, line {cut}: cut off, and left out.")
    if found is not None:
        yield found
