# SPDX-License-Identifier: MIT
"""Block requests as a result: all columns for machines, a line of 80 columns for people. Takes rows of `requests`.

A text of millions of requests is made by DuckDB, in two turns. The first one finds the extremes of each column, which
are as wide as the column, and the kinds of requests that differ in their texts: names, flags, marks. The second one
makes the lines. Only extremes and kinds are Python objects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from opline.talk import shown
from opline_analyses.base.result_table import Column, ResultTable, plain, text, time
from opline_analyses.base.screen import WIDTH
from opline_analyses.base.text import device_name, shortened
from opline_analyses.block.requests import COLUMNS, Wanted, ids_of, in_parts, requests
from opline_analyses.runs import cgroups
from opline_analyses.runs.columns import fetched, give_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opline_analyses.block.requests import Ids
    from opline_analyses.runs.run import Run

INTERVALS = ("q2g_ns", "g2i_ns", "i2d_ns", "d2c_ns", "q2c_ns")
MOSTLY = 0.9  # share of the names that fit; otherwise names are more important than decimals
NUMBERS = ("at_ns", "sector", "bytes", *INTERVALS, "in_flight")  # their extremes are as wide as the column
OWNER = """CASE WHEN owner IS NULL THEN CASE WHEN op_count > 0 THEN '*' || op_count ELSE '-' END
                WHEN op_count > 1 THEN owner || '+' || (op_count - 1) ELSE owner::VARCHAR END"""
DIGITS = "length(coalesce(tid::VARCHAR, '?'))"
KIND = ("dev", "rwbs", "comm", "digits", "cgroup", "ambiguous", "later", "outcome", "error")


class Kind(NamedTuple):
    """What all texts of a request depend on, and how many requests are so. ``digits``: characters of the thread's
    number.
    """

    dev: int | None
    rwbs: str | None
    comm: str | None
    digits: int
    cgroup: str | None
    ambiguous: bool | None
    later: bool
    outcome: str | None
    error: int | None

    def room(self, room: int) -> str:
        """The thread's name, cut to what its number leaves of the room."""
        return shortened(self.comm or "?", room - 1 - self.digits) + ":"

    def fits(self, room: int) -> bool:
        """Whether name and number of the thread have room."""
        return len(self.room(WIDTH)) + self.digits <= room

    def marks(self, owners: dict[str, str]) -> str:
        """Marks of such requests, and their owner if there are several cgroups."""
        marks = (
            (self.cgroup in owners, owners.get(self.cgroup or "", "")),
            (self.ambiguous, "ambiguous"),
            (self.later, "later"),
            (self.outcome != "completed", str(self.outcome)),
            (self.error, f"error {self.error}"),
        )
        return "".join(f" {mark}" for on, mark in marks if on)


class Text(NamedTuple):
    """The layout of the text: decimals of microseconds, unit of sizes, columns before the thread, and the thread's
    room.
    """

    digits: int
    unit: str
    table: ResultTable
    room: int


def result(run: Run, wanted: Wanted) -> ResultTable:
    """A row per request. Nothing is read before it is asked for."""
    return ResultTable(
        COLUMNS, lambda: requests(run, wanted), text=lambda found: (_seen(run, _ids(run, wanted, found)),),
        records=lambda found: found.items(),
    )  # fmt: skip


def _ids(run: Run, wanted: Wanted, found: ResultTable) -> Ids:
    """The requests of the table: its rows may be others by now, or in another order."""
    if not found.kept:
        return ids_of(run, wanted)
    import numpy as np

    return np.array(found.column("request_id"), np.int64)


def _sector(sector: int | None) -> str:
    return "flush" if sector is None else str(sector)


def _kib(size: int | None) -> str:
    return "" if size is None else f"{size / 1024:.{1 if size % 1024 else 0}f}"


def _extremes(run: Run, ids: Ids) -> tuple[list[dict[str, Any]], dict[Kind, int]]:
    """Values of which the widest are those of the requests, and the kinds with their numbers."""
    import numpy as np

    asked = [f"{which}({name})" for name in NUMBERS for which in ("min", "max")]
    asked += [f"max(bytes) FILTER (bytes % 1024 {sign} 0)" for sign in ("=", "<>")]
    asked += [f"arg_max({OWNER}, length({OWNER}))"]
    kinds: dict[Kind, int] = {}
    least: list[Any] = [None] * len(asked)
    groups = f"dev, rwbs, comm, {DIGITS} AS digits, cgroup, ambiguous, later, outcome, error"
    for sql in in_parts(run, np.sort(ids), first_owner=True):
        for row in run.rows(f"SELECT {groups}, count(*), {', '.join(asked)} FROM ({sql}) GROUP BY ALL"):
            kind = Kind(*row[: len(KIND)])
            kinds[kind] = kinds.get(kind, 0) + row[len(KIND)]
            for at, value in enumerate(row[len(KIND) + 1 :]):
                known = [v for v in (least[at], value) if v is not None]
                order = len if at == len(asked) - 1 else None
                pick = min if at < 2 * len(NUMBERS) and at % 2 == 0 else max
                least[at] = pick(known, key=order) if known else None
    values = dict.fromkeys((*NUMBERS, "device", "rwbs", "owner"))
    found = [values | {name: least[2 * at + which]} for at, name in enumerate(NUMBERS) for which in range(2)]
    found += [values | {"bytes": size} for size in least[-3:-1]] + [values | {"owner": least[-1]}]
    names = run.device_names()
    found += [
        values | {"device": "" if dev is None else device_name(names, dev), "rwbs": rwbs}
        for dev, rwbs in {(kind.dev, kind.rwbs) for kind in kinds}
    ]
    return found, kinds


def _table(run: Run, found: Sequence[dict[str, Any]], digits: int, unit: str) -> ResultTable:
    """Without the queueing thread. With scheduler none nothing is inserted: such columns are left out."""
    first = run.core("first_ns") or 0
    known = [name for name in INTERVALS if any(r[name] is not None for r in found)]
    columns = [
        Column("at_ns", "time (s)", lambda ns: "" if ns is None else f"{(ns - first) / 1e9:.6f}"),
        text("device", "dev"),
        text("rwbs", "rwbs"),
        Column("sector", "sector", _sector),
        Column("bytes", unit, plain if unit == "bytes" else _kib),
        *(time(name, name.removesuffix("_ns").upper(), digits, "i64") for name in known),
        Column("in_flight", "fly"),
        Column("owner", "op"),
    ]
    return ResultTable(columns, [[r[c.name] for c in columns] for r in found], gap=" ")


def _layout(run: Run, found: Sequence[dict[str, Any]], kinds: dict[Kind, int]) -> Text:
    """A line fits 80 columns, unless its numbers do not: then intervals are whole microseconds, names are cut, and at
    last sizes are in KiB.
    """
    number = sum(kinds.values())
    for digits, unit in ((1, "bytes"), (0, "bytes"), (0, "KiB")):
        table = _table(run, found, digits, unit)
        widths = table.widths()
        room = WIDTH - sum(widths) - len(widths)
        if digits:
            fit, least = sum(n for kind, n in kinds.items() if kind.fits(room)), MOSTLY * number
        else:
            fit = sum(n for kind, n in kinds.items() if len(kind.room(room)) + kind.digits <= room)
            least = number
        if fit >= least:
            break
    return Text(digits, unit, table, room)


def _cell(name: str, laid_out: Text, first_ns: int) -> str:
    """SQL of the cell of a column, as `_table` has it. DuckDB's printf rounds as Python does."""
    if name == "at_ns":
        return f"coalesce(printf('%.6f', (at_ns - {first_ns})::DOUBLE / 1e9), '')"
    if name in INTERVALS:
        zero = f"{0:.{laid_out.digits}f}"
        us = f"printf('%.{laid_out.digits}f', {name}::DOUBLE / 1e3)"
        return f"CASE WHEN {name} IS NULL THEN '' ELSE coalesce(nullif({us}, '-{zero}'), '{zero}') END"
    if name == "bytes" and laid_out.unit != "bytes":
        half = "CASE WHEN bytes % 1024 = 0 THEN '' ELSE '.5' END"  # of two sectors
        return f"coalesce((bytes // 1024) || {half}, '')"
    return {
        "sector": "coalesce(sector::VARCHAR, 'flush')",
        "owner": OWNER,
        "device": "k.device",
        "rwbs": "k.flags",
    }.get(name, f"coalesce({name}::VARCHAR, '')")


def _seen(run: Run, ids: Ids) -> ResultTable:
    """Times count from the run's first event. What is special about a request, and whose it is where there are several
    cgroups, is behind its thread, or in a line of its own where there is no room.
    """
    found, kinds = _extremes(run, ids)
    laid_out = _layout(run, found, kinds)
    _give_kinds(run, kinds, laid_out.room)
    first_ns = run.core("first_ns") or 0
    columns = [*laid_out.table.columns, text("thread", "thread")]
    cells = [_cell(c.name, laid_out, first_ns) for c in columns[:-1]]
    cells.append("k.name || coalesce(tid::VARCHAR, '?') || k.marks")
    same = " AND ".join(f"k.{name} IS NOT DISTINCT FROM r.{name}" for name in KIND if name != "digits")
    joined = f"r JOIN kinds k ON {same} AND k.digits = {DIGITS}"

    def asked(what: str) -> Iterator[tuple[Any, ...]]:
        for sql in in_parts(run, ids, first_owner=True):
            rows = run.con.execute(f"SELECT {what} FROM ({sql}) {joined} ORDER BY place")
            for batch in fetched(rows, 4096):
                yield from batch

    def lines() -> Iterator[str]:
        padded = [
            f"{'rpad' if c.left else 'lpad'}({cell}, {width}, ' ')"
            for c, cell, width in zip(columns, cells, laid_out.table.widths(), strict=False)
        ]
        for line, below in asked(f"concat_ws(' ', {', '.join([*padded, cells[-1]])}), k.below"):
            yield line
            if below is not None:
                yield below

    people = [c._replace(name="", cell=plain) for c in columns]
    widths = [*laid_out.table.widths(), 0]
    return ResultTable(people, lambda: asked(", ".join(cells)), gap=" ", lines=(widths, lines))


def _give_kinds(run: Run, kinds: dict[Kind, int], room: int) -> None:
    """Makes the table `kinds` with the texts of each: device, flags, the thread's name, what is behind its number, and
    the line below.
    """
    names = run.device_names()
    paths = dict.fromkeys(kind.cgroup for kind in kinds if kind.cgroup is not None)
    owners = cgroups.names(run, list(paths)) if len(paths) > 1 else {}
    rows = []
    for kind in kinds:
        marks, below = kind.marks(owners), None
        if len(kind.room(room)) + kind.digits + len(marks) > room and marks:
            marks, below = "", shown(f"{marks:>{WIDTH}}")
        device = "" if kind.dev is None else device_name(names, kind.dev)
        texts = (shown(device), shown(kind.rwbs or ""), shown(kind.room(room)), shown(marks).rstrip(), below)
        rows.append((*kind, *texts))
    types = {"i64": "BIGINT", "text": "VARCHAR", "bool": "BOOLEAN"}
    kinds_of = ("i64", "text", "text", "i64", "text", "bool", "bool", "text", "i64", *["text"] * 5)
    named = (*KIND, "device", "flags", "name", "marks", "below")
    give_rows(run, "kinds", {name: types[kind] for name, kind in zip(named, kinds_of, strict=True)}, rows)
