# SPDX-License-Identifier: MIT
"""The same with babeltrace2's Python binding: a loop over all messages that reads three fields and groups by object."""

from __future__ import annotations

import sys
from collections import defaultdict

import bt2


def main(trace: str) -> None:
    """Prints the intervals with count and mean, and how many ops there were."""
    last: dict[str, tuple[str, int]] = {}
    sums: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    ops = 0
    for message in bt2.TraceCollectionMessageIterator(trace):
        if type(message) is not bt2._EventMessageConst:
            continue
        ns = message.default_clock_snapshot.ns_from_origin
        event = message.event
        name, fields = event.name, event.payload_field
        oid = str(fields["oid"])
        before = last.get(oid)
        if before is not None:
            cell = sums[before[0], name]
            cell[0] += 1
            cell[1] += ns - before[1]
        if name == "bench:s17":
            ops += 1
            del last[oid]
        else:
            last[oid] = (name, ns)
    for (begin, end), (count, total) in sums.items():
        print(f"{begin} -> {end} {count} {total / count:.0f}")
    print("ops", ops)


main(sys.argv[1])
