# SPDX-License-Identifier: MIT
"""The rows of `opline iostat`: from a run, through the engine, one per interval, or one per interval and group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opline.talk import talk
from opline_analyses.block.io_filter import Window, batches
from opline_analyses.block.io_series import count_rows
from opline_analyses.block.io_sources import requests
from opline_analyses.block.iostat import FLUSH, READ, WRITE, Row, kinds
from opline_analyses.intervals.intervals import Cell, Occupancy, Tally

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from opline_analyses.block.io_filter import Rows
    from opline_analyses.block.io_series import Series
    from opline_analyses.intervals.intervals import Batch, Cells
    from opline_analyses.runs.run import Run

MERGES = "(SELECT r.merge_count FROM requests r WHERE r.request_id = id)"  # of a counted request, as SQL


#: Of a row: what is complete, then what waits.
_TIMES = ("area_ns", "busy_ns", "wait_area_ns", "wait_busy_ns")


def await_begins(run: Run) -> str:
    """The begin of iostat's await: the allocation of the request, or the nearest traced step."""
    columns = ("getrq", "queue", "insert")
    counts = run.row(f"SELECT {', '.join(f'count({c}_ns)' for c in columns)} FROM requests")
    start = next((c for c, n in zip(columns, counts, strict=True) if n), "issue")
    if start == "issue" and run.row("SELECT count(*) FROM requests")[0]:
        talk("no event before the issue was traced: await and aqu-sz are from the issue on.")
    return start


def _presence(run: Run, rows: Rows, series: Series, by: str) -> Occupancy:
    """Of the rows, those that end after the window too: they were there in it. Until the window ends."""
    import numpy as np

    found = Occupancy(series.grid)
    until_ns = rows.window.until_ns
    for batch in batches(run, rows.replaced(window=Window()), by):
        if until_ns is not None and batch.begin_ns is not None:
            batch.begin_ns, batch.at_ns = (np.minimum(times, until_ns) for times in (batch.begin_ns, batch.at_ns))
        found.add(batch)
    return found


def merges_of(run: Run, rows: Rows, by: str | None) -> Iterator[Batch]:
    """The rows for a tally whose sizes are merges; none where a row is no request."""
    return batches(run, rows, by, with_kind=True, size=MERGES) if rows.source.name == "requests" else iter(())


def merges_over_time(run: Run, rows: Rows, series: Series, by: str | None) -> dict[int, Cells] | None:
    """Merges into the requests of each interval, as the sizes of cells. None: not known of what is counted."""
    if rows.source.name != "requests":
        return None
    tally = Tally(series.grid)
    for batch in merges_of(run, rows, by):
        tally.add(batch)
    return dict(tally.intervals())


def rows_over_time(
    run: Run, rows: Rows, series: Series, by: str | None, waits_from: str | None = None,
    merges: Mapping[int, Cells] | None = None,
) -> list[Row]:  # fmt: skip
    """In order of time, then of the devices' numbers, or the groups' names. With ``by`` (a key of io_filter.PER) queue
    and utilisation are known, too: of the rows, or with ``waits_from`` of requests from issue to completion, and from
    there to the issue. ``merges``: see ``merges_over_time``.
    """
    tally = count_rows(run, rows, series, per=by, with_kind=True)
    parts = [] if by is None else [_presence(run, part, series, by) for part in present(rows, waits_from)]
    return rows_of(run, dict(tally.intervals()), parts, series, by, merges)


def present(rows: Rows, waits_from: str | None) -> list[Rows]:
    """The sources of presence: the rows themselves; with ``waits_from`` two, the I/Os at the device and the I/Os
    before.
    """
    if waits_from is None:
        return [rows]
    sources = [requests("issue"), *([requests(waits_from, "issue")] if waits_from != "issue" else [])]
    return [rows.replaced(source=source) for source in sources]


def rows_of(
    run: Run, counted: Mapping[int, Cells], parts: list[Occupancy], series: Series, by: str | None,
    merges: Mapping[int, Cells] | None = None,
) -> list[Row]:  # fmt: skip
    """The rows of the series' intervals, of cells by group and kind, of presence, and of merges."""
    groups = _by_name(counted)
    merged = None if merges is None else _by_name(merges)
    names: dict[str, None] = {name: None for of_interval in groups.values() for name in of_interval}
    if by is None:
        names = {"": None}
    for part in parts:  # an I/O in flight all the time is present, although nothing ended
        for name in part.groups():
            if any(part.area_and_busy_ns(name, series.first, series.last)[0]):
                names[name] = None
    numbers = {name: dev for dev, name in run.device_names().items()}
    known = {name: [p.area_and_busy_ns(name, series.first, series.last) for p in parts] for name in names}
    found = []
    for index in range(series.first, series.last + 1):
        begin, end = (at_ns - series.zero_ns for at_ns in (series.grid.begin_ns(index), series.end_ns(index)))
        for name in sorted(names, key=lambda n: (numbers.get(n, 1 << 32), n)):
            place = index - series.first
            times = [part[place] for pair in known[name] for part in pair]
            cells_of = groups.get(index, {}).get(name, {})
            into = {} if merged is None else merged.get(index, {}).get(name, {})
            row = Row(begin, end, name, *kinds(cells_of), cells_of.get(FLUSH, Cell()), end - begin)
            of_row: dict[str, object] = dict(zip(_TIMES, times, strict=False))
            if merged is not None:
                of_row["merges"] = [into[k].size if k in into else 0 for k in (READ, WRITE)]
            found.append(row.replaced(**of_row))
    return found


def _by_name(counted: Mapping[int, Cells]) -> dict[int, dict[str, dict[str, Cell]]]:
    """Interval → name → kind → cell."""
    found: dict[int, dict[str, dict[str, Cell]]] = {}
    for index, cells in counted.items():
        for (group, _), cell in cells.items():
            name, _, kind = group.rpartition(" ")
            found.setdefault(index, {}).setdefault(name, {})[kind] = cell
    return found
