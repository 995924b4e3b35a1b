# SPDX-License-Identifier: MIT
"""Each block device over the run's time: completions, bytes, requests in flight, D2C and offsets, in bins.

Takes a run; adds columns. Of all requests of the trace, whoever made them. In flight is the mean of the bin, from the
exact sum of the requests' time between D and C.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opline_analyses.base.text import device_name
from opline_analyses.block.io_sources import AT_DEVICE
from opline_analyses.intervals.intervals import time_within
from opline_analyses.ops.rows import Column
from opline_analyses.report.columns import Columns
from opline_analyses.runs.run import Run

BINS = 600
ROWS = 24  # of D2C, by powers of the fourth root of 10 from 1 us; and of offsets, equal parts
MOST_DEVICES = 16
DEPTH_UNIT = 100  # in flight is written in hundredths


def d2c_row(d2c_ns: Column) -> Column:
    """The row of a D2C: the first is below 1 us, the last is open."""
    rows = np.floor(4 * np.log10(np.maximum(d2c_ns, 1) / 1000)) + 1
    return np.asarray(np.clip(rows, 0, ROWS - 1).astype(np.int64))


def add_devices(
    columns: Columns, run: Run, start_ns: int, window: tuple[int, int], whole: bool = False
) -> dict[str, Any]:
    """The devices of the run, those that serve ops first. ``start_ns``: of the run's clock; ``window``: the time axis,
    ns from there. Counted are the requests that touch it; with ``whole`` all requests of the run.
    """
    first, last = window
    width = max(1, -(-(last - first) // BINS))
    names = run.device_names()
    devices: list[dict[str, Any]] = []
    low, high = start_ns + first, start_ns + first + width * BINS
    end = "coalesce(complete_ns, issue_ns, insert_ns, getrq_ns, queue_ns)"
    begin = "coalesce(issue_ns, insert_ns, getrq_ns, queue_ns, complete_ns)"
    touches = AT_DEVICE if whole else f"{AT_DEVICE} AND {end} >= {low} AND {begin} < {high}"
    found = run.con.execute(
        f"""SELECT dev, count(*), count(*) FILTER (op_count > 0 AND population IS NOT FALSE) AS ours,
                   count(*) FILTER (complete_ns IS NULL)
            FROM all_requests WHERE {touches} GROUP BY dev ORDER BY ours > 0 DESC, count(*) DESC, dev"""
    ).fetchall()
    edges = low + np.arange(BINS + 1) * width
    for number, (dev, requests, ours, open_ones) in enumerate(found[:MOST_DEVICES]):
        data = run.con.execute(
            f"""SELECT issue_ns, complete_ns, d2c_ns, nr_sectors, sector FROM all_requests
                WHERE dev = ? AND issue_ns IS NOT NULL AND complete_ns IS NOT NULL AND {touches}""",
            [dev],
        ).fetchnumpy()
        issue, complete, d2c = (np.asarray(data[n], np.int64) for n in ("issue_ns", "complete_ns", "d2c_ns"))
        length = np.asarray(np.ma.filled(np.ma.asarray(data["nr_sectors"]), 0), np.int64) * 512
        bins = (complete - low) // width
        kept = (bins >= 0) & (bins < BINS)
        key = f"device{number}"
        columns.add(f"{key}.count", np.bincount(bins[kept], minlength=BINS))
        columns.add(f"{key}.bytes", np.bincount(bins[kept], length[kept], BINS).astype(np.int64))
        depth = time_within(issue, complete, edges)
        columns.add(f"{key}.in_flight", np.round(depth * DEPTH_UNIT / width).astype(np.int64))
        place = bins[kept] * ROWS + d2c_row(d2c[kept])
        columns.add(f"{key}.d2c", np.bincount(place, minlength=BINS * ROWS))
        sectors = np.ma.asarray(data["sector"])
        has = kept & ~np.ma.getmaskarray(sectors)
        sector = np.asarray(np.ma.filled(sectors, 0)).astype(np.int64)
        lowest, highest = (int(sector[has].min()), int(sector[has].max())) if has.any() else (0, 0)
        part = max(1, -(-(highest - lowest + 1) // ROWS))
        place = bins[has] * ROWS + (sector[has] - lowest) // part
        columns.add(f"{key}.offset", np.bincount(place, minlength=BINS * ROWS))
        devices.append(
            {
                "name": device_name(names, dev), "requests": requests, "of_ops": ours, "not_completed": open_ones,
                "outside": int(len(bins) - kept.sum()), "sector": [lowest, highest],
            }
        )  # fmt: skip
    return {
        "from_ns": first,
        "width_ns": width,
        "bins": BINS,
        "rows": ROWS,
        "list": devices,
        "left_out": max(0, len(found) - MOST_DEVICES),
    }
