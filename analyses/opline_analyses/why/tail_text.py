# SPDX-License-Identifier: MIT
"""The causes behind slow ops and percentiles, for people. Takes a `Tail`; gives lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opline_analyses.base.result_table import Column, ResultTable, identifier, label, share, text, time
from opline_analyses.base.text import count_of, duration, table_digits, us
from opline_analyses.why.tail import BAND_OPS, QUANTILES
from opline_analyses.why.why import MOST

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opline_analyses.base.result_table import Part as Line
    from opline_analyses.why.tail import Caused, Part, Tail

SHOWN = 0.01  # of the difference: causes with less are folded into one
AHEAD = 0.05  # of the difference: who was ahead at the device so long is named
ROWS = 5  # causes of a percentile
MARK = " *"


def _name(c: Caused | Part) -> str:
    return f"{c.stage}{': no CPU' if c.cpu else MARK if c.wait else ''}"


def caused_sentence(t: Tail) -> str | None:
    """One sentence where other ops' time, or others' requests, make most of the difference; None else."""
    whole = (t.slow_ns / t.slow) - (t.typical_ns / t.typical)
    lead = t.causes[0]
    if whole <= 0 or t.more_ns(lead) < MOST * whole:
        return None
    first = max(lead.ahead, key=t.more_ahead_ns, default=None)
    at_device = ""
    if first is not None and t.more_ahead_ns(first) >= MOST * whole:
        at_device = f"{duration(first.slow_ns / t.slow)} behind requests of {first.owner} at the device"
    if lead.behind_ns < MOST * (lead.own_ns + lead.behind_ns):
        return f"In `{lead.stage}` they wait {at_device}." if at_device else None
    what = f"waiting for a CPU in `{lead.stage}`" if lead.cpu else f"in `{lead.stage}`"
    return (
        f"Most of that is time behind other ops: {duration(lead.behind_ns / t.slow)} while those ahead were {what},"
        f" {duration(lead.own_ns / t.slow)} of their own there{f'; of that {at_device}' if at_device else ''}."
    )


def _sums(causes: list[Caused]) -> tuple[int, int, int]:
    return sum(c.own_ns for c in causes), sum(c.behind_ns for c in causes), sum(c.typical_ns for c in causes)


def cause_lines(t: Tail) -> Iterator[Line]:
    """The causes, the largest difference first; means per op, us."""
    digits = table_digits(t.slow_ns / t.slow)
    whole = (t.slow_ns / t.slow) - (t.typical_ns / t.typical)
    ahead = any(abs(t.more_ahead_ns(a)) >= AHEAD * whole for c in t.causes for a in c.ahead)
    if _sums(t.causes)[1] < SHOWN * whole * t.slow and not ahead:
        yield "behind other ops: less than 1 % of it, so the stages above are the causes"
        return
    shown = [c for c in t.causes if abs(t.more_ns(c)) >= SHOWN * abs(whole)]
    rest = [c for c in t.causes if c not in shown]

    def part(ns: float) -> float | None:
        return ns / whole if whole else None

    def cells(name: str, own: float, behind: float, typical: float) -> list[object]:
        means = own / t.slow, behind / t.slow, typical / t.typical
        more = means[0] + means[1] - means[2]
        return [name, *means, more, part(more)]

    rows = []
    for c in shown:
        rows.append(cells(_name(c), c.own_ns, c.behind_ns, c.typical_ns))
        for a in c.ahead:
            more = t.more_ahead_ns(a)
            if abs(more) >= AHEAD * abs(whole):
                times = a.slow_ns / t.slow, a.typical_ns / t.typical, more
                rows.append([f"  behind {a.owner}", None, *times, part(more)])
    if rest:
        rows.append(cells(f"{count_of(len(rest), 'other')}, less than 1 % each", *_sums(rest)))
    rows.append(cells("latency", *_sums(t.causes)))
    heads = {"own_ns": "own", "behind_ns": "behind", "typical_ns": "typical", "more_ns": "more"}
    columns = [time(name, head, digits) for name, head in heads.items()]
    yield ResultTable([label("cause", "caused by (us)"), *columns, share()], rows, totals=1)
    yield f"causes {'sum' if t.sums else 'DO NOT sum'} to the latency: slow {us(t.slow_ns)} us"
    if any(c.wait for c in shown):
        yield f"{MARK.strip()} no other op explains it: the thread was free, not yet on a CPU, or is not seen"
    if t.step > 1:
        yield f"charged: {count_of(t.slow, 'slow op')}, one in {t.step}, evenly by latency"
    if t.typical_step > 1:
        yield f"charged: {count_of(t.typical, 'typical op')}, one in {t.typical_step}, evenly by latency"


def percentile_lines(t: Tail) -> Iterator[Line]:
    """What makes the percentiles, and what they would be without it."""
    if not t.percentiles:
        yield f"p99 is not blamed on anything: that takes {BAND_OPS * QUANTILES[0][1]} ops"
        return
    digits = table_digits(t.percentiles[0].value_ns)
    chosen = dict.fromkeys(p[:3] for q in t.percentiles for p in q.parts[:ROWS] if p.contributes_ns > 0)
    names = {p[:3]: _name(p) for p in t.percentiles[0].parts}
    rows: list[list[object]] = []
    for key in chosen:
        row: list[object] = [names[key]]
        for q in t.percentiles:
            (part,) = (p for p in q.parts if p[:3] == key)
            without = f"≤ {us(t.cut_ns, digits)}" if part.without_ns is None else us(part.without_ns, digits)
            row += [part.contributes_ns, without]
        rows.append(row)
    total: list[object] = ["all causes, and now"]
    columns = [text("cause", "without it (us)")]
    for q in t.percentiles:
        total += [sum(p.contributes_ns for p in q.parts), us(q.value_ns, digits)]
        columns += [time(f"at_{identifier(q.name)}_ns", f"at {q.name}", digits), Column("", f"{q.name} then")]
    yield ResultTable(columns, [*rows, total], totals=1)
