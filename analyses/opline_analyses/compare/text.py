# SPDX-License-Identifier: MIT
"""A comparison for people: what changed first, what did not in a line, and what these runs can't tell.

Takes a `Comparison`; gives lines of at most 80 columns where names allow it, or records for JSON and CSV.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from opline_analyses.base.result_table import Column, ResultTable, text
from opline_analyses.base.text import count_of, duration, percent, table_digits, us, wrapped
from opline_analyses.compare.compare import mixes
from opline_analyses.compare.figures import LATENCY
from opline_analyses.compare.verdicts import change, factor, number

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from opline_analyses.base.result_table import Part
    from opline_analyses.compare.compare import Comparison, Row
    from opline_analyses.compare.figures import Figures

NAMES = 3
ADVISED = 5
MOST_RUNS = 1000
FACTOR = 2.0
HARDLY = 100.0  # a change by such a factor
LITTLE = 0.01  # of the latency: a smaller difference between single runs is folded
ONE_RUN = (
    "One run of each side: these are differences of two recordings, not the effect of a change. Record "
    f"{ADVISED} of each (opline record --repeat {ADVISED})."
)


def _side(label: str, side: Sequence[Figures]) -> str:
    names = [f.name for f in side]
    if len(names) > NAMES:
        names = [names[0], "…", names[-1]]
    ops = sorted({f.ops for f in side})
    many = f"{ops[0]}" if len(ops) == 1 else f"{ops[0]} to {ops[-1]}"
    return f"{label}  {count_of(len(side), 'run')}, {many} ops{' each' if len(side) > 1 else ''}: {' '.join(names)}"


def _value(row: Row, value: float, digits: int) -> str:
    return f"{value:.0f}" if row.figure == "iops" else us(value, digits)


def _cells(row: Row, name: str, digits: int, described: bool) -> list[str]:
    a, b = row.typical
    text = row.verdict.text
    if described and row.verdict.kind == "described" and row.figure != "iops":
        grown = us(b - a, digits)
        text = f"{text} ({'' if grown.startswith('-') else '+'}{grown})"
    return [name, _value(row, a, digits), _value(row, b, digits), text]


def _two(what: str, heading: str, rows: Sequence[Sequence[str]]) -> ResultTable:
    """A figure of A and of B, and what is to say about them."""
    return ResultTable([text("", what), Column("", "A"), Column("", "B"), text("", heading)], rows)


def _headline(c: Comparison, digits: int) -> Iterator[Part]:
    names = {"iops": "IOPS"}
    rows = [_cells(row, names.get(row.figure, row.figure), digits, c.described) for row in c.headline]
    heading = "" if c.described else "B against A"
    yield _two("latency (us)", heading, rows)


def _longest(c: Comparison) -> float:
    """The longer mean latency, ns."""
    return max(max(row.typical) for row in c.headline if row.figure == "mean")


def _stages(c: Comparison, digits: int, everything: bool) -> Iterator[Part]:
    """The changed ones; without anything changed, or with ``everything``, all."""
    shown: list[list[str]] = []
    folded: dict[str, list[str]] = {}
    by_name: dict[str, list[Row]] = {}
    for row in c.stages:
        by_name.setdefault(row.name, []).append(row)
    for name, rows in by_name.items():
        told = rows if everything else [row for row in rows if c.described or row.verdict.kind in ("more", "less")][:1]
        if c.described and told and not everything and told[0].size < LITTLE * _longest(c):
            folded.setdefault("little", []).append(name)
            continue
        for row in told:
            shown.append(_cells(row, name if row.figure == "mean" else f"{name} {row.figure}", digits, c.described))
        if not told:
            kinds = {row.verdict.kind for row in rows}
            kind = "same" if kinds == {"same"} else "maybe" if "maybe" in kinds else "undecided"
            folded.setdefault(kind, []).append(name)
    if shown:
        heading = "" if c.described else "B against A"
        yield _two("stage (us per op)", heading, shown)
    elif by_name:
        yield "stages: of none can be said that it has changed"
    if names := folded.get("little"):
        yield from wrapped(f"less than {number(LITTLE)} % of the latency apart: {', '.join(names)}", 2)
    if names := folded.get("same"):
        yield from wrapped(f"no change of {number(c.limit)} % or more: {', '.join(names)}", 2)
    if names := folded.get("maybe"):
        yield from wrapped(f"maybe changed, but {c.judged} figures were looked at: {', '.join(names)}", 2)
    if names := folded.get("undecided"):
        yield from wrapped(f"can't tell: {', '.join(names)}", 2)
    if c.small:
        yield from wrapped(
            f"not judged, less than 1 us and 1 % of the latency: {', '.join(row.name for row in c.small)}", 2
        )


def _can_be_seen(c: Comparison) -> Iterator[str]:
    apart = c.apart()
    said = [
        f"two of {side} by {f'{number(x - 1)} %' if x < FACTOR else f'a factor of {factor(x)}'}"
        for side, x in zip("AB", apart, strict=True)
        if x
    ]
    if said:
        yield from wrapped(f"How far runs of one side are apart in their mean latency: {', '.join(said)}.", 2)
    for row in c.headline:
        if row.figure != "p50" or (needed := c.needed(row)) is None or (least := c.least(row)) is None:
            continue
        many = f"about {needed}" if needed <= MOST_RUNS else f"more than {MOST_RUNS}"
        told = f"So many can tell a change of p50 from {change(least)} on"
        if least > math.log(HARDLY):
            told = "So few can tell hardly any change of p50"
        yield from wrapped(f"{told}; {number(c.limit)} % would take {many} runs of each.", 2)


def _topology(c: Comparison) -> Iterator[str]:
    for stage in c.only:
        sides = (("A", stage.a, len(c.a)), ("B", stage.b, len(c.b)))
        having = [f"{side}" if n == of else f"{n} of {of} runs of {side}" for side, n, of in sides if n]
        alone = "only " if len(having) == 1 else ""
        yield from wrapped(
            f"{alone}in {' and '.join(having)}: {stage.stage}, in {percent(stage.share, 1)} % of the ops, "
            f"{duration(stage.mean_ns)} per op",
            2,
        )


def _devices(c: Comparison, digits: int) -> Iterator[Part]:
    if c.devices:
        rows = [_cells(row, row.name, digits, c.described) for row in c.devices]
        yield _two("D2C of (us)", "", rows)
    sides = [list(dict.fromkeys(d for f in side for d in f.devices)) for side in (c.a, c.b)]
    for label, mine, other in (("A", sides[0], sides[1]), ("B", sides[1], sides[0])):
        if alone := [d for d in mine if d not in other]:
            yield from wrapped(f"devices only in {label}: {', '.join(alone)}", 2)
    rates = []
    for side in (c.a, c.b):
        requests = sum(d.requests for f in side for d in f.devices.values())
        rates.append(requests / sum(f.ops for f in side))
    if any(rates):
        same = math.isclose(*rates, rel_tol=0.005)
        yield f"block requests per op: {rates[0]:.3g}" + ("" if same else f" in A, {rates[1]:.3g} in B")


def _mix(c: Comparison) -> Iterator[str]:
    found = list(mixes(c))
    if not found:
        sizes = list(dict.fromkeys(s for f in (*c.a, *c.b) for s in f.sizes))
        known = [s for s in sizes if s != "?"]
        what = f" ({' '.join(known[:NAMES])}{' …' if len(known) > NAMES else ''} bytes)" if known else ""
        yield f"the same classes and sizes in both{what}"
    for what, name, x, y in found:
        yield f"{what} {name}: {percent(x, 1)} % of the ops in A, {percent(y, 1)} % in B"


def text_lines(c: Comparison, everything: bool = False) -> Iterator[Part]:
    """The comparison for people; ``everything``: each judged figure in a line of its own."""
    digits = table_digits(max(row.typical[0] for row in c.headline if row.figure == "mean"))
    yield from wrapped(_side("A", c.a), 3)
    yield from wrapped(_side("B", c.b), 3)
    yield ""
    yield from _headline(c, digits)
    yield ""
    yield from _stages(c, digits, everything)
    called = {row.name for row in c.stages if row.verdict.kind in ("more", "less")}
    shapes = [row for row in c.shape if row.verdict.kind in ("more", "less") and (everything or row.name not in called)]
    for row in shapes:
        yield from wrapped(
            f"beside the other stages of its run: {row.name} {row.verdict.text} (a hint, no verdict: what slows all "
            "of a run cancels)",
            2,
        )
    yield from _topology(c)
    yield ""
    yield from _devices(c, digits)
    yield from _mix(c)
    if c.described:
        yield from wrapped(ONE_RUN, 2)
    yield from _can_be_seen(c)


# --- for programs -----------------------------------------------------------------------------------------------------

NAMES_OF_RECORDS = (
    "section", "name", "figure", "a", "b", "ratio", "ratio_low", "ratio_high", "p_holm", "runs_needed", "verdict",
    "text",
)  # fmt: skip
_TEXTS = ("section", "name", "figure", "verdict", "text")
COLUMNS = tuple(
    text(name) if name in _TEXTS else Column(name, type="i64" if name == "runs_needed" else "f64")
    for name in NAMES_OF_RECORDS
)


def record(c: Comparison, section: str, row: Row) -> dict[str, Any]:
    """A row as plain values: times in ns, ratios of B to A with their 95 % interval."""
    d = row.difference
    interval = d.interval() if d else None
    a, b = row.typical
    ends = (None, None) if interval is None else tuple(_exp(x) for x in interval)
    values: tuple[Any, ...] = (
        section, row.name, row.figure, a, b, math.exp(d.log_ratio) if d else None, *ends, row.p, c.needed(row),
        row.verdict.kind, row.verdict.text,
    )  # fmt: skip
    return dict(zip(NAMES_OF_RECORDS, values, strict=True))


def _exp(x: float) -> float | None:
    """None beyond what a number can say."""
    return math.exp(x) if x < 700 else None


def records(c: Comparison) -> list[dict[str, Any]]:
    """All rows."""
    sections = {
        LATENCY: c.headline, "stage": c.stages, "device": c.devices, "small": c.small, "shape": c.shape,
    }  # fmt: skip
    return [record(c, section, row) for section, rows in sections.items() for row in rows]


def document(c: Comparison, doubts: Sequence[str]) -> dict[str, Any]:
    """The JSON document; per run the value of each figure."""
    rows = [row for rows in (c.headline, c.stages, c.devices, c.small, c.shape) for row in rows]
    of_runs = [{"a_runs": list(row.a), "b_runs": list(row.b)} for row in rows]
    return {
        "schema": "opline compare 1",
        "a": [{"name": f.name, "ops": f.ops, "tainted": f.tainted, "where": f.where} for f in c.a],
        "b": [{"name": f.name, "ops": f.ops, "tainted": f.tainted, "where": f.where} for f in c.b],
        "limit": c.limit,
        "judged": not c.described,
        "doubts": list(doubts),
        "apart": c.apart(),
        "only": [vars(stage) for stage in c.only],
        "mixes": [dict(zip(("what", "name", "a", "b"), mix, strict=True)) for mix in mixes(c)],
        "figures": [{**r, **runs} for r, runs in zip(records(c), of_runs, strict=True)],
    }
