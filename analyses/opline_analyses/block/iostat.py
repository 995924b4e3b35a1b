# SPDX-License-Identifier: MIT
"""Rates, sizes, latencies, queue and utilisation per interval: iostat's figures, from events instead of counters.

Counts, bytes and latencies are those of the I/Os that ended in the interval; queue size and utilisation are of all that
were there in it. Takes tallies and occupancies (`intervals`); gives rows of numbers, None where there is none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opline.values import Value
from opline_analyses.base.result_table import Column, text
from opline_analyses.intervals.intervals import Cell

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

READ, WRITE, FLUSH = "read", "write", "flush"
EXTENDED = "extended"  # the style of -x


class Row(Value):
    """One device, or another group of I/Os, in one interval. Times are ns, rates per second."""

    begin_ns: int  # from the run's first event
    end_ns: int
    name: str  # of the group; empty: all I/Os
    reads: Cell
    writes: Cell
    others: Cell  # flushes, discards and all other kinds
    flushes: Cell  # contained in `others`
    length_ns: int
    area_ns: int | None = None  # sum of the times of I/Os in the interval: divided by the length, the mean number
    busy_ns: int | None = None  # time with at least one I/O
    wait_area_ns: int | None = None  # the same for waiting I/Os, from the queue to the issue
    wait_busy_ns: int | None = None
    # into the reads and into the writes; None: not asked for, or unknown
    merges: Sequence[int] | None = None

    def per_second(self, number: float) -> float:
        """A number of the interval as a rate."""
        return number * 1e9 / self.length_ns

    def share(self, ns: int | None) -> float | None:
        """A time of the interval as a share of the interval, or an area as a mean number."""
        return None if ns is None else ns / self.length_ns

    @property
    def all(self) -> Cell:
        """All I/Os."""
        whole = Cell()
        for cell in (self.reads, self.writes, self.others):
            whole.add(cell)
        return whole

    def record(self, by: str | None) -> dict[str, object]:
        """As JSON and CSV have it: exact numbers of the interval, no rates. ``by``: what the groups are."""
        found: dict[str, object] = {"begin_ns": self.begin_ns, "end_ns": self.end_ns, by or "device": self.name}
        for name, cell in zip(_CELLS, (self.reads, self.writes, self.others, self.flushes), strict=True):
            found |= {
                f"{name}_count": cell.count, f"{name}_bytes": cell.size, f"{name}_sum_ns": cell.total,
                f"{name}_min_ns": cell.least, f"{name}_max_ns": cell.most,
            }  # fmt: skip
        found |= dict(zip(_MERGES, self.merges or (None, None), strict=True))
        found |= {"in_flight_area_ns": self.area_ns, "busy_ns": self.busy_ns}
        return found | {"wait_area_ns": self.wait_area_ns, "wait_busy_ns": self.wait_busy_ns}


_CELLS = ("read", "write", "other", "flush")
_MERGES = ("read_merges", "write_merges")
_OF = ("count", "bytes", "sum_ns", "min_ns", "max_ns")


def columns(by: str | None) -> tuple[Column, ...]:
    """Of ``Row.record``."""
    return (
        Column("begin_ns"), Column("end_ns"), text(by or "device"),
        *(Column(f"{name}_{of}") for name in _CELLS for of in _OF),
        *(Column(name) for name in (*_MERGES, "in_flight_area_ns", "busy_ns", "wait_area_ns", "wait_busy_ns")),
    )  # fmt: skip


def kinds(cells: Mapping[str, Cell]) -> tuple[Cell, Cell, Cell]:
    """Reads, writes, others, of cells by kind."""
    others = Cell()
    for kind, cell in cells.items():
        if kind not in (READ, WRITE):
            others.add(cell)
    return cells.get(READ, Cell()), cells.get(WRITE, Cell()), others


def rate(value: float) -> str:
    """A whole number as one; below 10 what would be lost by rounding is shown."""
    if value >= 10 or value == int(value):
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 1 else f"{value:.2g}"


def _microseconds(cell: Cell) -> str:
    return rate(cell.mean / 1e3) if cell.mean is not None else "0"


DTRACE_HEADER = f"{'time':>8} {'r/s':>11} {'Kr/s':>8} {'us/r':>8} {'w/s':>11} {'Kw/s':>8} {'us/w':>8}"


def dtrace_line(row: Row, time: str) -> str:
    """The seven columns of "Beyond iostat 1 second samples with DTrace"; a mean of nothing is 0 there."""
    cells = [f"{time:>8}"]
    for cell in (row.reads, row.writes):
        cells.append(f"{rate(row.per_second(cell.count)):>11}")
        cells.append(f"{rate(row.per_second(cell.size / 1024)):>8}")
        cells.append(f"{_microseconds(cell):>8}")
    return " ".join(cells)


def _milliseconds(cell: Cell) -> str:
    return "" if cell.mean is None else f"{cell.mean / 1e6:.3f}"


LINUX_HEADER = (
    "r/s", "rkB/s", "r_await", "w/s", "wkB/s", "w_await", "o/s", "areq-sz", "aqu-sz", "%util",
)  # fmt: skip


EXTENDED_HEADER = (
    "r/s", "rkB/s", "rrqm/s", "r_await", "w/s", "wkB/s", "wrqm/s", "w_await", "o/s", "f/s", "f_await", "await",
    "areq-sz", "aqu-sz", "%util",
)  # fmt: skip


def linux_cells(row: Row, extended: bool = False) -> list[str]:
    """As iostat -x of sysstat names them; o/s: flushes, discards. Awaits are ms, sizes KiB. ``extended``: those of
    EXTENDED_HEADER, where await is of reads and writes.
    """
    cells = [row.name]
    for place, cell in enumerate((row.reads, row.writes)):
        cells += [rate(row.per_second(cell.count)), rate(row.per_second(cell.size / 1024))]
        if extended:
            cells.append("" if row.merges is None else rate(row.per_second(row.merges[place])))
        cells.append(_milliseconds(cell))
    both = row.reads.count + row.writes.count
    area, busy = row.share(row.area_ns), row.share(row.busy_ns)
    cells.append(rate(row.per_second(row.others.count)))
    if extended:
        whole = Cell()
        for cell in (row.reads, row.writes):
            whole.add(cell)
        cells += [rate(row.per_second(row.flushes.count)), _milliseconds(row.flushes), _milliseconds(whole)]
    cells.append(f"{(row.reads.size + row.writes.size) / 1024 / both:.1f}" if both else "")
    cells += ["" if area is None else f"{area:.2f}", "" if busy is None else f"{100 * busy:.1f}"]
    return cells


SOLARIS_HEADER = ("r/s", "w/s", "kr/s", "kw/s", "wait", "actv", "svc_t", "%w", "%b")


def solaris_cells(row: Row) -> list[str]:
    """As iostat -x of Solaris: wait and actv are mean numbers in the queue and at the device, svc_t is ms in both."""
    whole = row.all

    def number(value: float | None, digits: int = 1) -> str:
        return "" if value is None else f"{value:.{digits}f}"

    parts = [row.per_second(n) for n in (row.reads.count, row.writes.count)]
    parts += [row.per_second(n / 1024) for n in (row.reads.size, row.writes.size)]
    cells = [
        row.name,
        *(f"{p:.1f}" for p in parts),
        number(row.share(row.wait_area_ns)),
        number(row.share(row.area_ns)),
    ]
    cells.append(number(whole.mean / 1e6 if whole.mean is not None else 0.0))
    for ns in (row.wait_busy_ns, row.busy_ns):
        part = row.share(ns)
        cells.append(number(None if part is None else 100 * part, 0))
    return cells
