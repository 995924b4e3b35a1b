# SPDX-License-Identifier: MIT
"""The rows of `opline iostat`: from a run, through the engine, one per interval or per interval and device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opline.talk import talk
from opline_analyses.block.io_filter import DEVICE_AND_IO, Window, batches
from opline_analyses.block.io_series import count_rows
from opline_analyses.block.io_sources import requests
from opline_analyses.block.iostat import Row, kinds
from opline_analyses.intervals.intervals import Occupancy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opline_analyses.block.io_filter import Rows
    from opline_analyses.block.io_series import Series
    from opline_analyses.intervals.intervals import Cell, Cells
    from opline_analyses.runs.run import Run


def await_begins(run: Run) -> str:
    """Where iostat's await begins: where the request was allocated, or as near to it as was traced."""
    columns = ("getrq", "queue", "insert")
    counts = run.row(f"SELECT {', '.join(f'count({c}_ns)' for c in columns)} FROM requests")
    start = next((c for c, n in zip(columns, counts, strict=True) if n), "issue")
    if start == "issue" and run.row("SELECT count(*) FROM requests")[0]:
        talk("no event before the issue was traced: await and aqu-sz are from the issue on.")
    return start


def _presence(run: Run, rows: Rows, series: Series) -> Occupancy:
    """Of the rows, those that end after the window too: they were there in it. Until the window ends."""
    import numpy as np

    found = Occupancy(series.grid)
    until_ns = rows.window.until_ns
    for batch in batches(run, rows.replaced(window=Window()), "device"):
        if until_ns is not None and batch.begin_ns is not None:
            batch.begin_ns, batch.at_ns = (np.minimum(times, until_ns) for times in (batch.begin_ns, batch.at_ns))
        found.add(batch)
    return found


def rows_over_time(run: Run, rows: Rows, series: Series, per_device: bool, waits_from: str | None = None) -> list[Row]:
    """In order of time, then of the devices' numbers. With ``per_device`` queue and utilisation are known, too: of the
    rows, or with ``waits_from`` of requests from issue to completion, and from there to the issue.
    """
    tally = count_rows(run, rows, series, None, DEVICE_AND_IO if per_device else "io")
    parts = [_presence(run, part, series) for part in present(rows, waits_from)] if per_device else []
    return rows_of(run, dict(tally.intervals()), parts, series, per_device)


def present(rows: Rows, waits_from: str | None) -> list[Rows]:
    """What says who was there: the rows themselves; with ``waits_from`` two, those at the device and those before."""
    if waits_from is None:
        return [rows]
    sources = [requests("issue"), *([requests(waits_from, "issue")] if waits_from != "issue" else [])]
    return [rows.replaced(source=source) for source in sources]


def rows_of(
    run: Run, counted: Mapping[int, Cells], parts: list[Occupancy], series: Series, per_device: bool
) -> list[Row]:
    """The rows of the series' intervals, of cells by kind (with ``per_device`` by device and kind) and presence."""
    groups: dict[int, dict[str, dict[str, Cell]]] = {}  # interval → device → kind
    devices: dict[str, None] = {}
    for index, cells in counted.items():
        for (name, _), cell in cells.items():
            device, _, kind = name.rpartition(" ")
            devices[device] = None
            groups.setdefault(index, {}).setdefault(device, {})[kind] = cell
    if not per_device:
        devices = {"": None}
    for part in parts:  # one that was in flight all the time is there, although nothing of it ended
        for device in part.groups():
            if any(part.area_and_busy_ns(device, series.first, series.last)[0]):
                devices[device] = None
    numbers = {name: dev for dev, name in run.device_names().items()}
    known = {d: [p.area_and_busy_ns(d, series.first, series.last) for p in parts] for d in devices}
    found = []
    for index in range(series.first, series.last + 1):
        begin, end = (at_ns - series.zero_ns for at_ns in (series.grid.begin_ns(index), series.end_ns(index)))
        for device in sorted(devices, key=lambda d: (numbers.get(d, 1 << 32), d)):
            place = index - series.first
            times = [part[place] for pair in known[device] for part in pair]
            cells_of = groups.get(index, {}).get(device, {})
            found.append(Row(begin, end, device, *kinds(cells_of), end - begin, *times))
    return found
