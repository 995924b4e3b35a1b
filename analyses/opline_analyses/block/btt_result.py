# SPDX-License-Identifier: MIT
"""btt's tables as a result: a row per device and interval; for people also shares, merges, seeks and depths."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from opline_analyses.base.result_table import Column, ResultTable, of_items, text
from opline_analyses.base.text import device_name
from opline_analyses.block import io_filter
from opline_analyses.block.btt import ORDER, Device, Plugs, devices
from opline_analyses.block.io_sources import requests

if TYPE_CHECKING:
    from opline_analyses.base.result_table import Part
    from opline_analyses.block.io_filter import IoFilters
    from opline_analyses.runs.run import Run


def _slowest(device: Device) -> float:
    return -device.intervals["D2C"].avg_ns if "D2C" in device.intervals else 0.0


SORTS: dict[str, Callable[[Device], float]] = {
    "device": lambda d: d.dev, "ios": lambda d: -d.issued, "latency": _slowest,
}  # fmt: skip


def _seconds(ns: float) -> str:
    return f"{ns / 1e9:.9f}"


def _percent(part: float | None) -> str:
    return "" if part is None else f"{100 * part:z.1f}"


def _plugged(part: float | None) -> str:
    return "" if part is None else f"{100 * part:.9f}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"


INTERVALS = (
    text("name", ""), Column("min_ns", "MIN", _seconds), Column("avg_ns", "AVG", _seconds, "f64"),
    Column("max_ns", "MAX", _seconds), Column("count", "N"),
)  # fmt: skip
MERGES = (
    text("device", "DEV"), Column("queued", "#Q"), Column("issued", "#D"), Column("", "Q/D"),
    Column("blk_min", "BLKmin"), Column("blk_avg", "BLKavg", _number), Column("blk_max", "BLKmax"),
    Column("blk_total", "total"),
)  # fmt: skip
SEEKS = (
    text("device", "DEV"), Column("seeks", "NSEEKS"), Column("seek_mean", "MEAN", _number),
    Column("seek_median", "MEDIAN", _number), Column("depth_avg", "depth avg", _number),
    Column("depth_max", "depth max"),
)  # fmt: skip
PLUGS = (
    text("device", "DEV"), Column("plugs", "# Plugs"), Column("timers", "# Timer Us"),
    Column("plugged", "% Time Q Plugged", _plugged), Column("ios", "IOs/Unp", _number),
    Column("timer_ios", "IOs/Unp(to)", _number),
)  # fmt: skip
COLUMNS = (
    text("device"), text("name"), Column("min_ns"), Column("avg_ns", type="f64"), Column("max_ns"), Column("total_ns"),
    Column("count"),
)  # fmt: skip


def text_lines(found: list[Device], names: dict[int, str]) -> Iterator[Part]:
    """The tables for people."""
    for d in found:
        yield f"==================== {device_name(names, d.dev)} ===================="
        yield ResultTable(INTERVALS, [(i.name, i.min_ns, i.avg_ns, i.max_ns, i.count) for i in d.intervals.values()])
        yield ""
    yield "share of Q2C, % (over bios that have both, each one's own way)"
    parts = [name for name in ORDER if name not in ("Q2Q", "Q2C")]
    rows: list[list[object]] = []
    for d in found:
        left = 1 - sum(d.share.values()) if d.share else None
        rows.append([device_name(names, d.dev), *map(d.share.get, parts), left])
    yield ResultTable([text("device", "DEV"), *(Column(p, p, _percent) for p in (*parts, "left"))], rows)
    yield ""
    yield "merges (requests in sectors)"
    rows = []
    for d in found:
        ratio = f"{d.queued / d.issued:.2f}" if d.issued else ""
        sizes = [d.blk_min, d.blk_avg, d.blk_max, d.blk_total]
        rows.append([device_name(names, d.dev), d.queued, d.issued, ratio, *sizes])
    yield ResultTable(MERGES, rows)
    yield ""
    yield "seeks between issues (sectors), and bios in flight at Q"
    rows = []
    for d in found:
        numbers = [d.seek_mean, d.seek_median, d.depth_avg, d.depth_max]
        rows.append([device_name(names, d.dev), d.seeks, *numbers])
    yield ResultTable(SEEKS, rows)
    plugged = [(device_name(names, d.dev), d.plugs) for d in found if d.plugs is not None]
    if plugged:
        yield ""
        yield "plugs, of the whole trace"
        yield ResultTable(PLUGS, [[name, *_of_plugs(plugs)] for name, plugs in plugged])


def _of_plugs(p: Plugs) -> list[float | None]:
    """The row of a device: I/Os for each plug, for each timer, and the share of the time, 0 to 1."""
    plugged = p.plugged_ns / p.observed_ns if p.observed_ns else None
    of_plugs = p.ios / p.plugs if p.plugs else None
    return [p.plugs, p.timers, plugged, of_plugs, p.timer_ios / p.timers if p.timers else None]


def result(found: list[Device], names: dict[int, str]) -> ResultTable:
    """A row per device and interval."""
    rows = ({"device": device_name(names, d.dev), **vars(i)} for d in found for i in d.intervals.values())

    def document(_: ResultTable) -> dict[str, object]:
        listed = [{"device": device_name(names, d.dev), **d.record()} for d in found]
        return {"schema": "opline btt 1", "devices": listed}

    return of_items(COLUMNS, rows, text=lambda _: text_lines(found, names) if found else (), document=document)


def of_requests(run: Run, filters: IoFilters, sort: str = "device", limit: int | None = None) -> ResultTable:
    """For the selected requests and their bios: the first ``limit`` devices in the order ``sort``."""
    rows = io_filter.rows_of(run, filters, requests(parts=True))
    found = sorted(devices(run, io_filter.chosen_ids(rows)), key=SORTS[sort])[:limit]
    if not found:
        io_filter.tell_nothing(run, rows)
    return result(found, run.device_names())
