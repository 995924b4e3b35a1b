# SPDX-License-Identifier: MIT
"""Whether the client works in a closed loop: an op begins when another op ends, so a slow op delays others.

Takes a run; gives the size of the loop. The latencies do not show the waits of a client with its own schedule
(coordinated omission, Gil Tene). client/schedule.py corrects latencies with a known schedule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opline_analyses.runs.columns import queried

if TYPE_CHECKING:
    from opline_analyses.runs.run import Run

MOST = 0.3  # least share of the ops with this number in flight at their begin
ABOVE = 0.05  # largest share of the ops with more in flight
SOON = 0.1  # of the median latency: the median time from an op's end to the next begin
ALONE = 0.5  # the same for one op in flight, with a time steadier than from begin to begin


def closed_loop(run: Run) -> int | None:
    """Number of ops kept in flight; None if the ops show no loop."""
    import numpy as np  # not for a page of help

    ops = queried(run, "SELECT begin_ns, end_ns FROM ops WHERE complete ORDER BY begin_ns")
    begin, end = ops["begin_ns"], np.sort(ops["end_ns"])
    ended = np.searchsorted(end, begin, "right")
    flight = np.arange(1, len(begin) + 1) - ended
    after = ended > 0
    if not after.any():
        return None
    size = int(np.bincount(flight[after]).argmax())
    gaps = begin[after] - end[ended[after] - 1]
    gap = float(np.median(gaps))
    latency = float(np.median(ops["end_ns"] - begin))
    full = (flight[after] == size).mean() >= MOST and (flight[after] > size).mean() <= ABOVE
    soon = SOON
    if size == 1:  # a schedule has steady begins, a client that takes its time between two ops steady gaps
        middle = [float(np.subtract(*np.quantile(times, (0.75, 0.25)))) for times in (gaps, np.diff(begin))]
        soon = ALONE if middle[0] < middle[1] else SOON
    return size if full and gap <= soon * latency else None
