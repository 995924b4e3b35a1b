# SPDX-License-Identifier: MIT
"""Histograms as text: opline's own table, and the layouts of iolatency, SystemTap's @hist_log and bcc's biolatency.

Takes buckets with their cells; gives lines. Every layout has all rows: each value has a bucket, and the buckets between
the first and the last are shown, empty buckets too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opline.errors import UsageError
from opline_analyses.base.quantities import DURATIONS
from opline_analyses.base.result_table import Column, ResultTable, text
from opline_analyses.base.screen import WIDTH
from opline_analyses.base.text import count_of, duration, percent
from opline_analyses.intervals.intervals import Cell

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from opline_analyses.base.result_table import Part
    from opline_analyses.intervals.buckets import Buckets

    Histogram = Mapping[int, Cell]  # bucket → cell

MOST_ROWS = 100_000  # of a table
UNITS = {"ns": "nanoseconds", "us": "microseconds", "ms": "milliseconds", "s": "seconds"}


def bar(value: int, most: int, width: int, mark: str = "#") -> str:
    """A bar of at most ``width`` marks; a value above 0 has at least one mark."""
    return mark * -(-width * value // most) if most else ""


def whole(histogram: Histogram) -> Cell:
    """All of a histogram."""
    total = Cell()
    for cell in histogram.values():
        total.add(cell)
    return total


def sums_line(total: Cell, one: str, measured: str) -> str:
    """How many, and the exact mean, least, most and sum (not from the buckets)."""
    if not total.count or total.mean is None or total.least is None or total.most is None:
        return f"no {one}"
    return (
        f"{count_of(total.count, one)}, {measured} mean {duration(total.mean)}, min {duration(total.least)}, "
        f"max {duration(total.most)}, sum {duration(total.total)}"
    )


def _edge(value: int, unit_ns: int) -> str:
    return str(value // unit_ns) if value % unit_ns == 0 else f"{value / unit_ns:g}"


def table_lines(groups: Mapping[str, Histogram], buckets: Buckets, unit: str) -> Iterator[Part]:
    """One histogram with shares and running shares, or several side by side, on one scale. ``unit`` of the edges."""
    used = [index for histogram in groups.values() for index in histogram]
    if not used:
        return
    rows: list[list[object]] = []
    shown = range(min(used), max(used) + 1)
    if len(shown) > MOST_ROWS:
        raise UsageError(f"{len(shown)} rows: too many (> {MOST_ROWS}). Choose a longer --step, or --csv.")
    edges = [[_edge(e, DURATIONS[unit]) for e in buckets.edges(index)] for index in shown]
    most = max(cell.count for histogram in groups.values() for cell in histogram.values())
    if len(groups) == 1:
        (histogram,) = groups.values()
        total, running = whole(histogram).count, 0
        header = [f">= {unit}", f"< {unit}", "count", "share%", "running%", ""]
        widths = [max(len(header[side]), *(len(e[side]) for e in edges)) for side in (0, 1)]
        left = WIDTH - sum(widths) - max(5, len(str(most))) - len("share%running%") - 5 * 2
        for index, (low, high) in zip(shown, edges, strict=True):
            count = histogram[index].count if index in histogram else 0
            running += count
            shares = percent(count, total), percent(running, total)
            rows.append([low, high, count, *shares, bar(count, most, max(8, left))])
        columns = [*(Column("", head) for head in header[:-1]), text("", "")]
        yield ResultTable(columns, rows)
        return
    left = (WIDTH - 2 * (max(len(e) for pair in edges for e in pair) + 6)) // len(groups) - len(str(most)) - 4
    columns = [Column("", f">= {unit}"), Column("", f"< {unit}")]
    for name in groups:
        columns += [Column("", name), text("", "")]
    for index, (low, high) in zip(shown, edges, strict=True):
        cells: list[object] = [low, high]
        for histogram in groups.values():
            count = histogram[index].count if index in histogram else 0
            cells += [count, bar(count, most, max(1, left))]
        rows.append(cells)
    yield ResultTable(columns, rows)


def iolatency_lines(histogram: Histogram, unit: str) -> Iterator[str]:
    """The layout of iolatency in perf-tools; buckets are PowerOfTwo of ``unit``."""
    last = max(histogram, default=0)
    counts = [histogram[i].count if i in histogram else 0 for i in range(last + 1)]
    label = [f">=({unit})", f"<({unit})"]
    yield f"{label[0]:>8} .. {label[1]:<8}: {'I/O':<8} |{'Distribution':<38}|"
    for index, count in enumerate(counts):
        low = 1 << index - 1 if index else 0
        yield f"{low:>8} -> {1 << index:<8}: {count:<8} |{bar(count, max(counts), 38):<38}|"


def iolatency_micro_lines(histogram: Histogram, unit: str, length_ns: int, guessed: bool) -> Iterator[str]:
    """The layout of iolatency_micro: I/Os per second and their time, in ``unit`` per second, from the first nonempty
    bucket. ``guessed``: the time as guessed by iolatency_micro, 1.5 times the lower bound for each I/O.
    """
    counts = {index: cell.count for index, cell in histogram.items() if cell.count}
    label = [f">=({unit})", f"<({unit})"]
    yield f"{label[0]:>8} .. {label[1]:<8}: {'IOPS':<8} {'IO_latency/DeltaT':<17} |{'Distribution':<28}|"
    for index in range(min(counts, default=0), max(counts, default=-1) + 1):
        low, count = (1 << index - 1 if index else 0), counts.get(index, 0)
        waited = low * 1.5 * count if guessed else (histogram[index].total / DURATIONS[unit] if count else 0)
        per_s, waited_per_s = count * 1e9 / length_ns, waited * 1e9 / length_ns
        numbers = f"{per_s:<8.{0 if per_s >= 100 else 1}f} {waited_per_s:<17.0f}"
        yield f"{low:>8} -> {1 << index:<8}: {numbers} |{bar(count, max(counts.values()), 28):<28}|"


def hist_log_lines(histogram: Histogram) -> Iterator[str]:
    """The layout of SystemTap's @hist_log: 50 wide, two empty rows beside a nonempty row; `~` for longer gaps."""
    counts = {i: cell.count for i, cell in histogram.items() if cell.count}
    if not counts:
        return
    around = {i + d for i in counts for d in (-2, -1, 0, 1, 2) if i + d >= 0}
    most = max(counts.values())
    scale = max(1, -(-most // 50))
    width = max(len("value"), *(len(str(1 << max(i - 1, 0))) for i in around))
    yield f"{'value':>{width}} |{'-' * 50} count"
    before = None
    for index in sorted(around):
        if before is not None and index > before + 1:
            yield f"{'~':>{width}}"
        before = index
        count = counts.get(index, 0)
        value = 1 << index - 1 if index else 0
        yield f"{value:>{width}} |{'@' * (count // scale):<50} {count:>{len(str(most))}}"


def biolatency_lines(histogram: Histogram, unit: str) -> Iterator[str]:
    """The layout of bcc's biolatency: 0 and 1 are in one bucket, upper edges are inside."""
    counts: dict[int, int] = {}
    for index, cell in histogram.items():
        counts[max(1, index)] = counts.get(max(1, index), 0) + cell.count
    most = max(counts.values(), default=0)
    yield f"     {unit + 'ecs':<19} : count     distribution"
    for slot in range(1, max(counts, default=0) + 1):
        low, high = (1 << slot) >> 1, (1 << slot) - 1
        count = counts.get(slot, 0)
        low = 0 if low == high else low
        yield f"{low:>10} -> {high:<10} : {count:<8} |{'*' * (40 * count // most):<40}|"


def latencymap_record(
    histogram: Histogram, at_us: int, date: str, label: str, unit: str, source: str = "systemtap"
) -> Iterator[str]:
    """A record for PyLatencyMap, with counts that grow from record to record. Bucket B holds B to 2 B, as in SystemTap;
    with ``source`` oracle B/2 to B. PyLatencyMap has no bucket below 1.
    """
    counts: dict[int, int] = {}
    named = 0 if source == "oracle" else 1  # difference between an ordinal and the exponent in the bucket's name
    for index, cell in histogram.items():
        counts[max(named, index)] = counts.get(max(named, index), 0) + cell.count
    yield "<begin record>"
    yield f"timestamp,microsec,{at_us},{date.replace(',', ' ')}"
    yield f"label,{label.replace(',', ' ')}"
    yield f"latencyunit,{UNITS[unit].removesuffix('onds')}"
    yield f"datasource,{source}"
    for index in sorted(counts):
        yield f"{1 << index - named},{counts[index]}"
    yield "<end record>"


def filters_header(size: str | None, operation: int, major: int, minor: int, one: str = "I/O") -> Sequence[str]:
    """The first lines of the SystemTap script: the filters, -1 for an absent filter. ``one``: the counted thing."""
    return (
        "Block I/O latency histograms from kernel trace points" if one == "I/O" else f"Latency histograms of {one}s",
        "Filters:",
        f"    IO_size = {size if size is not None else -1}",
        f"    IO_operation = {operation} (0=read, 1=write, -1=disable filter)",
        f"    IO_devmaj = {major} (-1=disable filter)",
        f"    IO_devmin = {minor} (-1=disable filter)",
        "",
    )


def hist_log_title(seconds: str, count: int, unit: str, one: str = "I/O") -> Sequence[str]:
    """The lines before each histogram. ``one``: the counted thing."""
    what, each = ("Block I/O latency", "I/O operations") if one == "I/O" else (f"{one} latency".capitalize(), f"{one}s")
    return (
        f"{what} histogram, measurement time: {seconds} seconds, {one} count: {count}",
        f"Value = latency bucket ({UNITS[unit]}), count={each} in {seconds} seconds",
    )
