# SPDX-License-Identifier: MIT
"""Whether the client works in a closed loop: it begins an op when another one ends, so a slow op keeps others back.

Takes a run; gives the size of the loop. Its latencies do not show what a client with a schedule of its own would
have waited (coordinated omission, Gil Tene). client/schedule.py corrects them where a schedule is known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opline_analyses.runs.columns import queried

if TYPE_CHECKING:
    from opline_analyses.runs.run import Run

MOST = 0.5  # of the ops, at least, make it the same number in flight when they begin
ABOVE = 0.05  # of them, at most, make it more
SOON = 0.1  # of the median latency: the median time from an op's end to the next begin


def closed_loop(run: Run) -> int | None:
    """How many ops are kept in flight; None where the ops do not look like that."""
    import numpy as np  # not for a page of help

    ops = queried(run, "SELECT begin_ns, end_ns FROM ops WHERE complete ORDER BY begin_ns")
    begin, end = ops["begin_ns"], np.sort(ops["end_ns"])
    ended = np.searchsorted(end, begin, "right")
    flight = np.arange(1, len(begin) + 1) - ended
    after = ended > 0
    if not after.any():
        return None
    size = int(np.bincount(flight[after]).argmax())
    gap = float(np.median(begin[after] - end[ended[after] - 1]))
    latency = float(np.median(ops["end_ns"] - begin))
    full = (flight[after] == size).mean() >= MOST and (flight[after] > size).mean() <= ABOVE
    return size if full and gap <= SOON * latency else None
