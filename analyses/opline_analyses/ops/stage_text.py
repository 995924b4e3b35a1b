# SPDX-License-Identifier: MIT
"""The statistics of stages as a result: rows, sentences below, document. Takes a `StageTable`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opline_analyses.base.result_table import Column, ResultTable, label, share, text, time
from opline_analyses.base.text import count_of, duration, table_digits, us, wrapped
from opline_analyses.ops.stages import left_out

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import TypeAlias

    from opline_analyses.base.result_table import Part
    from opline_analyses.ops.stages import BothWays, StageRow, StageTable

    Bounds: TypeAlias = Mapping[str, int]

PROGRAMS = 3
EXACT_OPS = 1 << 18  # of one run: as Distribution::kExact
TIMES = {"min_ns": "min", "p50_ns": "p50", "p90_ns": "p90", "p99_ns": "p99", "p999_ns": "p99.9", "max_ns": "max"}
_SPREAD = ("min_ns", "std_ns")  # columns shown to people only on demand


def result(
    t: StageTable,
    bounds: Bounds | None = None,
    ways: Sequence[BothWays] = (),
    tainted: bool = False,
    spread: bool = False,
    first: str = "stage",
) -> ResultTable:
    """A row per stage, then the time in no stage, and the latency. ``bounds``, of a cluster: by stage
    (opline_analyses.hosts.bounds); ``ways``: there and back between two hosts; ``tainted``: tainted ops count;
    ``spread``: the text has min and standard deviation, too; ``first``: the text's head of the first column.
    """
    notes = left_out(t.incomplete, t.tainted, tainted)
    notes += [] if t.sums else ["the stages do not sum to the latency: the run is damaged."]
    digits = table_digits(t.latency.mean_ns)
    columns = [label("stage", f"{first} (us)"), text("kind"), Column("count", "count"), time("mean_ns", "mean", digits)]
    columns += [time(name, head, digits, "i64") for name, head in TIMES.items()]
    columns += [time("std_ns", "std", digits), Column("total_ns"), share()]
    people = ["stage", "count", "mean_ns", *TIMES, "std_ns", "share"]
    people = [name for name in people if spread or name not in _SPREAD]
    if bounds is not None:
        columns.append(time("bound_ns", "±", digits, "i64"))
        people.insert(3, "bound_ns")
    return ResultTable(
        columns, [_row(s, t, bounds) for s in (*t.stages, t.unattributed, t.latency)], people=people, totals=2,
        found=t, notes=notes, gap=" ", text=lambda found: _text(t, found, bounds, ways),
        document=lambda found: _document(t, found, bounds, ways),
    )  # fmt: skip


def _row(s: StageRow, t: StageTable, bounds: Bounds | None) -> list[object]:
    part = s.total_ns / t.latency.total_ns if t.latency.total_ns else None
    return [*vars(s).values(), part, *([] if bounds is None else [bounds.get(s.stage)])]


def _text(t: StageTable, found: ResultTable, bounds: Bounds | None, ways: Sequence[BothWays]) -> Iterator[Part]:
    whole = t.latency.total_ns
    rows = list(found.rows)
    if t.unknown.total_ns:
        rows.append(["of it unknown", *_row(t.unknown, t, bounds)[1:]])
    yield found.with_rows(rows, len(rows) - len(found) + found.totals)
    stages, rest = sum(s.total_ns for s in t.stages), t.unattributed.total_ns
    sign = "=" if t.sums else "IS NOT"
    check = (
        f"stages {us(stages / t.ops, 3)} + unattributed {us(rest / t.ops, 3)} {sign} latency {us(whole / t.ops, 3)} us"
    )
    yield from wrapped(f"mean of {count_of(t.ops, 'op')}: {check}")
    for way in ways:
        both, each = duration(way.mean_ns), duration(way.bound_ns, 3)
        yield from wrapped(
            f"{way.parent_host} to {way.child_host} and back: {both} per message and reply, without a bound; "
            f"each way is right within {each}"
        )
    if t.deferred.rows:
        d = t.deferred
        when = f", on the disk {duration(d.wait_ns / d.done)} after the write" if d.done else ""
        yield from wrapped(
            f"written back later, outside of it: {d.bytes / t.ops:.0f} bytes per op{when} (table deferred)"
        )
    if len(t.programs) > 1:
        most = [f"{name} {count_of(n, 'op')}" for name, n in t.programs[:PROGRAMS]]
        if others := t.programs[PROGRAMS:]:
            most.append(f"{len(others)} more {count_of(sum(n for _, n in others), 'op')}")
        yield from wrapped(f"of {len(t.programs)} programs: {', '.join(most)} (--comm or --pid takes one)")
    if not t.exact:
        why = " (more than 262144 ops)" if t.ops > EXACT_OPS else ""
        yield f"percentiles: within 0.2 %{why}"


def _document(t: StageTable, found: ResultTable, bounds: Bounds | None, ways: Sequence[BothWays]) -> dict[str, Any]:
    """The rows with a sum, then the sum."""
    document = {
        "schema": "opline stages 1",
        "ops": t.ops,
        "incomplete": t.incomplete,
        "tainted": t.tainted,
        "sums": t.sums,
        "exact": t.exact,
        "deferred": vars(t.deferred),
        "programs": dict(t.programs),
        "stages": list(found.items()),
        "of_it_unknown": dict(zip(found.names, _row(t.unknown, t, None), strict=False)),
    }
    return document if bounds is None else {**document, "both_ways": [vars(way) for way in ways]}
