# SPDX-License-Identifier: MIT
"""What the slow ops waited for, in words. Takes `Waits`; gives the sentence and the table."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from opline_analyses.base.result_table import Column, ResultTable, share, text, time
from opline_analyses.base.text import count_of, duration, table_digits
from opline_analyses.ops.waited import brief, folded, spent_on
from opline_analyses.why.text import some
from opline_analyses.why.why import MOST

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opline_analyses.base.result_table import Part
    from opline_analyses.why.waits import WaitedFor, Waits
    from opline_analyses.why.why import Why

SHOWN = 0.01  # of the difference: causes with less are folded into one
NAMED = 3  # causes in a sentence
OF_CPU = 0.1  # of the time without a CPU: a program that ran for less is not named


def _begun(w: Why, slow_ns: float) -> str:
    subject = w.sets.rule[0].upper() + w.sets.rule[1:]
    verb = "waits" if w.sets.slow == 1 else "wait"
    return f"{subject} {verb} {duration(slow_ns)} of {duration(w.latency.slow.mean_ns)}"


def _ended(w: Why, typical_ns: float) -> str:
    return f"typical ones {some(typical_ns)} of {duration(w.latency.typical.mean_ns)}."


def _waited(c: WaitedFor) -> str:
    return f"{f'in {c.function} ' if c.function else ''}for {spent_on(c.spent)}"


def wait_sentence(w: Why, t: Waits | None) -> str | None:
    """One sentence where one cause, or one thread, makes most of the difference. None where the stages say it as well:
    the op's own requests are stages, and where a stage that waits has most of it, the model says for what.
    """
    whole = w.latency.more_ns
    if t is None or w.alike or whole <= 0:
        return None
    if any(stage.kind == "wait" and stage.more_ns >= MOST * whole for stage in w.stages):
        return None
    lead = t.causes[0]
    if t.more_ns(lead) >= MOST * whole:
        if lead.spent.own_request or not (lead.spent.path or lead.spent.cause):
            return None
        said = f"{_begun(w, lead.slow_ns / t.slow)} {_waited(lead)}"
        return f"{said}; {_ended(w, lead.typical_ns / t.typical)}"
    by_thread: dict[str, list[WaitedFor]] = {}
    for cause in t.causes:
        thread = cause.spent.first or (cause.spent.who if cause.spent.own_request else None)
        if thread is not None:
            by_thread.setdefault(thread, []).append(cause)
    if not by_thread:
        return None
    first, causes = max(by_thread.items(), key=lambda item: t.more_ns(*item[1]))
    if t.more_ns(*causes) < MOST * whole or all(c.spent.own_request for c in causes):
        return None
    slow, typical = sum(c.slow_ns for c in causes) / t.slow, sum(c.typical_ns for c in causes) / t.typical
    widest = [c for c in causes[:NAMED] if t.more_ns(c) >= SHOWN * whole]
    parts = "; ".join(f"{duration(c.slow_ns / t.slow)} {_waited(c)}" for c in widest)
    return f"{_begun(w, slow)} for {first}; {_ended(w, typical)} Of that {parts}."


def cpu_sentence(w: Why, t: Waits | None) -> str | None:
    """How long they wait for a CPU, and which programs ran meanwhile, where that makes most of the difference; None
    else, and where the recording does not tell.
    """
    whole = w.latency.more_ns
    waited = [] if t is None else [c for c in t.causes if c.spent.kind == "cpu" and c.spent.path is None]
    if t is None or w.alike or not waited or t.more_ns(*waited) < MOST * whole:
        return None
    ran_ns: Counter[str] = Counter()
    for c in waited:
        if c.spent.instead is not None:
            ran_ns[c.spent.instead] += c.slow_ns
    waited_ns = sum(c.slow_ns for c in waited)
    least_ns = OF_CPU * waited_ns
    ran = [f"{name} ({duration(ns / t.slow)})" for name, ns in ran_ns.most_common(NAMED) if ns >= least_ns]
    if not ran:
        return None
    programs = f"{', '.join(ran[:-1])}{' and ' if ran[1:] else ''}{ran[-1]}"
    subject = "It waits" if t.slow == 1 else "They wait"
    return f"{subject} {duration(waited_ns / t.slow)} for a CPU, while mostly {programs} ran."


def _empty_where_none(c: Column) -> Column:
    """A line that goes on has no numbers."""
    return c._replace(cell=lambda value: "" if value is None else c.cell(value))


def wait_lines(w: Why, t: Waits | None) -> Iterator[Part]:
    """The causes, the largest difference first; means per op, us."""
    if t is None:
        return
    whole = w.latency.more_ns
    digits = table_digits(w.latency.slow.mean_ns)
    shown = [c for c in t.causes if abs(t.more_ns(c)) >= SHOWN * abs(whole)]
    rest = [c for c in t.causes if c not in shown]

    def cells(name: str, causes: Sequence[WaitedFor]) -> list[object]:
        slow, typical = sum(c.slow_ns for c in causes) / t.slow, sum(c.typical_ns for c in causes) / t.typical
        return [slow, typical, slow - typical, w.share(slow - typical), name]

    rows = [cells(brief(c.spent) + (f", in {c.function}" if c.function else ""), [c]) for c in shown]
    if rest:
        rows.append(cells(f"{count_of(len(rest), 'other')}, less than 1 % each", rest))
    rows.append(cells("all waits", t.causes))
    times = (time("slow_ns", "slow", digits), time("typical_ns", "typical", digits), time("more_ns", "more", digits))
    yield folded(ResultTable([*map(_empty_where_none, (*times, share())), text("cause", "waited for (us)")], rows))
    slow = sum(c.slow_ns for c in t.causes)
    if inferred := sum(c.inferred_ns for c in t.causes):
        part = f"{duration(inferred / t.slow)} of {duration(slow / t.slow)}"
        yield f"not certain: {part} in a slow op (an interrupt may have met the thread that is named)"
