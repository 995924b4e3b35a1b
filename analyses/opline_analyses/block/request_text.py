# SPDX-License-Identifier: MIT
"""Block requests as a result: all columns for machines, a line of 80 columns for people. Takes rows of `requests`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opline_analyses.base.result_table import Column, ResultTable, of_items, text, time
from opline_analyses.base.screen import WIDTH
from opline_analyses.base.text import shortened
from opline_analyses.block.requests import COLUMNS, Wanted, requests
from opline_analyses.runs import cgroups

if TYPE_CHECKING:
    from opline_analyses.runs.run import Run

INTERVALS = ("q2g_ns", "g2i_ns", "i2d_ns", "d2c_ns", "q2c_ns")
MOSTLY = 0.9  # of the names fit, else their room is more important than decimals


def result(run: Run, wanted: Wanted) -> ResultTable:
    """A row per request. Nothing is read before it is asked for."""
    return of_items(
        COLUMNS, lambda: requests(run, wanted), text=lambda found: (_seen(run, list(found.items())),),
        records=lambda found: found.items(),
    )  # fmt: skip


def _owner(row: dict[str, Any]) -> str:
    ops, count = row["ops"], row["op_count"]
    if not ops:
        return f"*{count}" if count else "-"
    return f"{ops[0]}+{count - 1}" if count > 1 else str(ops[0])


def _marks(row: dict[str, Any], owners: dict[str, str]) -> str:
    marks = (
        (row["cgroup"] in owners, owners.get(row["cgroup"] or "", "")),
        (row["ambiguous"], "ambiguous"),
        (row["later"], "later"),
        (row["outcome"] != "completed", str(row["outcome"])),
        (row["error"], f"error {row['error']}"),
    )
    return "".join(f" {mark}" for on, mark in marks if on)


def _who(row: dict[str, Any], room: int) -> str:
    """The thread that queued it, with a name cut to the room that there is."""
    name, rest = row["comm"] or "?", f":{'?' if row['tid'] is None else row['tid']}"
    return shortened(name, room - len(rest)) + rest


def _sector(sector: int | None) -> str:
    return "flush" if sector is None else str(sector)


def _kib(size: int) -> str:
    return f"{size / 1024:.{1 if size % 1024 else 0}f}"


def _table(run: Run, found: list[dict[str, Any]], digits: int, unit: str) -> ResultTable:
    """Without who queued it. With scheduler none nothing is inserted: such columns are left out."""
    first = run.core("first_ns") or 0
    known = [name for name in INTERVALS if any(r[name] is not None for r in found)]
    columns = [
        Column("at_ns", "time (s)", lambda ns: "" if ns is None else f"{(ns - first) / 1e9:.6f}"),
        text("device", "dev"),
        text("rwbs", "rwbs"),
        Column("sector", "sector", _sector),
        Column("bytes", unit, str if unit == "bytes" else _kib),
        *(time(name, name.removesuffix("_ns").upper(), digits, "i64") for name in known),
        Column("in_flight", "fly"),
        Column("", "op"),
    ]
    return ResultTable(columns, [[*(r[c.name] for c in columns[:-1]), _owner(r)] for r in found], gap=" ")


def _seen(run: Run, found: list[dict[str, Any]]) -> ResultTable:
    """Times count from the run's first event. A line fits 80 columns, unless its numbers do not: then intervals are
    whole microseconds, names are cut, and at last sizes are in KiB. What is special about a request, and whose it is
    where there are several cgroups, is behind its thread, or in a line of its own where there is no room.
    """
    for digits, unit in ((1, "bytes"), (0, "bytes"), (0, "KiB")):
        table = _table(run, found, digits, unit)
        widths = table.widths()
        room = WIDTH - sum(widths) - len(widths)
        fit = [len(_who(r, WIDTH if digits else room)) <= room for r in found]
        if sum(fit) >= (MOSTLY if digits else 1) * len(found):
            break
    paths = dict.fromkeys(r["cgroup"] for r in found if r["cgroup"] is not None)
    owners = cgroups.names(run, list(paths)) if len(paths) > 1 else {}
    threads, below = [], {}
    for number, r in enumerate(found):
        thread, marks = _who(r, room), _marks(r, owners)
        if len(thread) + len(marks) > room and marks:
            below[number] = f"{marks:>{WIDTH}}"
            marks = ""
        threads.append(thread + marks)
    rows = [[*row, thread] for row, thread in zip(table.rows, threads, strict=True)]
    return ResultTable([*table.columns, text("thread", "thread")], rows, gap=" ", below=below.get)
