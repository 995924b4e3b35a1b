# SPDX-License-Identifier: MIT
"""NetApp's latency counters, as `stats show -r` of ONTAP prints them, one bucket on a line.

    beautifier: NetApp performance counter: volume:vol1:nfs_protocol_read_latency
    volume:vol1:nfs_protocol_read_latency.<20us:5
    volume:vol1:nfs_protocol_read_latency.>120s:0

A bucket is named by its upper end, the last one (`>`) is open and ends a histogram, which has one interval's counts.
What asks a filer for them is PyLatencyMap's NetApp_histogram_Cmode.pl (-jp PATH -user U -password P -clustermgmt HOST
-histogram nfs_reads|nfs_writes -iteractions N -interval SECONDS); its title is the line `beautifier`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opline.errors import OplineError
from opline.readers.registry import CERTAIN, COUNTS, NO
from opline_analyses.base.quantities import DURATIONS
from opline_analyses.counts.snapshot import Snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opline.readers.registry import Head
    from opline_analyses.counts.asked import Asked

CALLED, HAS = "NetApp's latency counters", COUNTS
_LINE = re.compile(r"\s*+([^:]++:[^:]++:[^:<>]*+)([<>])(\d{1,9})(us|ms|s)\s*+:\s*+(\d{1,18})\s*+")
_TITLE = re.compile(r"\s*+beautifier:(.*+)\s?")


def probe(head: Head) -> int:
    """CERTAIN where a line is a bucket."""
    return CERTAIN if head.has_line(_LINE) else NO


def read(asked: Asked) -> Iterator[Snapshot]:
    """A snapshot for each histogram that is there to its end. Raises OplineError."""
    label = ""
    found: Snapshot | None = None
    low = 0
    for number, line in enumerate(asked.lines(), 1):
        if title := _TITLE.fullmatch(line):
            label = title[1].strip()
        row = _LINE.fullmatch(line)
        if row is None:
            continue
        edge, count = int(row[3]) * DURATIONS[row[4]], int(row[5])
        if found is None:
            found, low = Snapshot("us", number, label=label or row[1].removesuffix("."), upper=True), 0
        if row[2] == ">":
            found.add("", (edge, None), count)
            yield found
            found = None
            continue
        if edge <= low:
            raise OplineError(
                f"{asked.path}, line {number}: the bucket <{row[3]}{row[4]} is not above the one before it."
            )
        found.add("", (low, edge), count)
        low = edge
