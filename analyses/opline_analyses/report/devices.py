# SPDX-License-Identifier: MIT
"""Each block device over the run's time: completions, bytes, requests in flight, D2C and offsets, in bins.

Takes a run; adds columns. Of all requests of the trace, whoever made them. In flight is the mean of the bin, from the
exact sum of the requests' time between D and C.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opline_analyses.base.text import device_name
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


def add_devices(columns: Columns, run: Run, start_ns: int, span_ns: int) -> dict[str, Any]:
    """The devices of the run, those that serve ops first. ``span_ns``: the length of the time axis."""
    width = max(1, -(-span_ns // BINS))
    names = run.device_names()
    devices: list[dict[str, Any]] = []
    found = run.rows(
        """SELECT dev, count(*), count(*) FILTER (op_count > 0) AS ours, count(*) FILTER (complete_ns IS NULL)
           FROM requests GROUP BY dev ORDER BY ours > 0 DESC, count(*) DESC, dev"""
    )
    edges = start_ns + np.arange(BINS + 1) * width
    for number, (dev, requests, ours, open_ones) in enumerate(found[:MOST_DEVICES]):
        data = run.con.execute(
            """SELECT issue_ns, complete_ns, d2c_ns, nr_sectors, sector, kind = 'read' AS reads FROM requests
               WHERE dev = ? AND issue_ns IS NOT NULL AND complete_ns IS NOT NULL""",
            [dev],
        ).fetchnumpy()
        issue, complete, d2c = (np.asarray(data[n], np.int64) for n in ("issue_ns", "complete_ns", "d2c_ns"))
        size = np.asarray(np.ma.filled(np.ma.asarray(data["nr_sectors"]), 0), np.int64) * 512
        bins = (complete - start_ns) // width
        kept = (bins >= 0) & (bins < BINS)
        key = f"device{number}"
        columns.add(f"{key}.count", np.bincount(bins[kept], minlength=BINS))
        columns.add(f"{key}.bytes", np.bincount(bins[kept], size[kept], BINS).astype(np.int64))
        depth = time_within(issue, complete, edges)
        columns.add(f"{key}.in_flight", np.round(depth * DEPTH_UNIT / width).astype(np.int64))
        place = bins[kept] * ROWS + d2c_row(d2c[kept])
        columns.add(f"{key}.d2c", np.bincount(place, minlength=BINS * ROWS))
        sectors = np.ma.asarray(data["sector"])
        has = kept & ~np.ma.getmaskarray(sectors)
        sector = np.asarray(np.ma.filled(sectors, 0)).astype(np.int64)
        low, high = (int(sector[has].min()), int(sector[has].max())) if has.any() else (0, 0)
        part = max(1, -(-(high - low + 1) // ROWS))
        place = bins[has] * ROWS + (sector[has] - low) // part
        columns.add(f"{key}.offset", np.bincount(place, minlength=BINS * ROWS))
        devices.append(
            {
                "name": device_name(names, dev), "requests": requests, "of_ops": ours, "not_completed": open_ones,
                "outside": int(len(bins) - kept.sum()), "sector": [low, high],
            }
        )  # fmt: skip
    return {
        "width_ns": width,
        "bins": BINS,
        "rows": ROWS,
        "list": devices,
        "left_out": max(0, len(found) - MOST_DEVICES),
    }
