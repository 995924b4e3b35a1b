# SPDX-License-Identifier: MIT
"""`opline why` in words: the sentence, the table, and the commands that look further.

Takes a `Why`; gives lines. The sentence says what was measured, and names one stage only where that makes most of the
difference.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from opline.talk import shown
from opline_analyses.base.result_table import ResultTable, label, share, time
from opline_analyses.base.text import count_of, duration, percent, table_digits, us, wrapped
from opline_analyses.ops.places import BETWEEN
from opline_analyses.why.separators import COVER, FEW, LIFT
from opline_analyses.why.why import MOST, STATES, UNATTRIBUTED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opline_analyses.base.result_table import Column, Part
    from opline_analyses.why.separators import Separation, Separator
    from opline_analyses.why.why import Compared, Why

SHOWN = 0.01  # of the difference: rows with less are folded into one
SPLIT = 0.10  # of the difference: stages with so much of it are split by their thread's states
NAMED = 3  # stages in a sentence
PROGRAMS = 3  # by name
_KINDS = {
    "device": "time at the device",
    "block": "time in the block layer",
    "network": "time on the network",
    "wait": "time in queues",
}
STATE_NAMES = dict(zip(STATES, ("on a CPU", "waiting for a CPU", "blocked on I/O", "blocked"), strict=True))


def _where(s: Compared) -> str:
    """The stage in plain words, with its name."""
    if s.kind == "unknown":
        return f"between two threads, where no event says more ({s.stage})"
    if s.stage == UNATTRIBUTED:
        return "in no stage (unattributed)"
    if s.stage == "D2C":
        return "at the device (D2C)"
    if s.kind in ("device", "block", "network"):
        place = {"device": "at the device", "block": "in the block layer", "network": "on the network"}[s.kind]
        return f"{place} ({s.stage})"
    after = " (after the device had finished)" if s.after_device else ""
    return f"{'waiting in' if s.kind == 'wait' else 'in'} `{s.stage}`{after}"


def place_sentence(w: Why) -> str | None:
    """Which host the difference is on, and what on it; None of a run of one host."""
    if not w.places or w.alike:
        return None
    lead = w.places[0]
    there = f"between {' and '.join(lead.place.split(BETWEEN))}" if BETWEEN in lead.place else f"on host {lead.place}"
    stage, more_ns = lead.stages[0]
    what = f", {duration(more_ns)} of it in `{stage}`" if more_ns > 0 else ""
    share = w.share(lead.more_ns)
    part = "" if share is None else f" ({100 * share:.0f} % of the difference)"
    return f"{duration(lead.more_ns)} more are {there}{part}{what}."


def some(ns: float) -> str:
    """A part of a latency."""
    return duration(ns) if ns else "none"


def sentence(w: Why) -> str:
    """One sentence with its figures."""
    slow, typical = w.latency.slow.mean_ns, w.latency.typical.mean_ns
    subject = w.sets.rule[0].upper() + w.sets.rule[1:]
    one = w.sets.slow == 1
    if w.alike:
        verb = "is" if one else "are"
        return f"{subject} {verb} hardly slower than typical ones: {duration(slow)} against {duration(typical)}."
    most = MOST * w.latency.more_ns
    lead = w.stages[0]
    own, others = lead.slow.mean_ns, lead.typical.mean_ns
    where = _where(lead)
    if lead.more_ns < most:
        own, others = (
            sum(getattr(s, side).runnable_ns for s in w.stages) / getattr(w.latency, side).ops
            for side in ("slow", "typical")
        )
        lead = max(w.stages, key=lambda s: s.more_of("runnable_ns"))
        where = f"waiting for a CPU, the most of it {_where(lead).removeprefix('waiting ')}"
    elif lead.more_of("runnable_ns") >= MOST * lead.more_ns:
        own, others = (side.runnable_ns / side.ops for side in (lead.slow, lead.typical))
        where = f"waiting for a CPU {where.removeprefix('waiting ')}"
    if own - others < most and lead.more_ns < most:
        begun = f"{subject} {'takes' if one else 'take'} {duration(slow)}, typical ones {duration(typical)}"
        return f"{begun}; {_of_several(w)}."
    return (
        f"{subject} {'spends' if one else 'spend'} {duration(own)} of {duration(slow)} {where};"
        f" typical ones {some(others)} of {duration(typical)}."
    )


def _of_several(w: Why) -> str:
    """The kind of time that makes most of the difference, with its widest stages; else the widest of all stages."""
    of_kind: dict[str, float] = {}
    for s in w.stages:
        of_kind[s.kind] = of_kind.get(s.kind, 0.0) + s.more_ns
    kind = max(of_kind, key=lambda k: of_kind[k])
    whole = w.latency.more_ns
    if kind in _KINDS and of_kind[kind] >= MOST * whole:
        parts = [s for s in w.stages if s.kind == kind and s.more_ns > 0][:NAMED]
        named = ", ".join(f"{percent(s.more_ns, whole, 0)} % `{s.stage}`" for s in parts)
        return f"{percent(of_kind[kind], whole, 0)} % of the difference is {_KINDS[kind]}: {named}"
    parts = [s for s in w.stages[:NAMED] if s.more_ns > 0]
    named = ", ".join(f"{percent(s.more_ns, whole, 0)} % {_where(s)}" for s in parts)
    return f"no stage makes most of the difference: {named}"


def set_lines(w: Why) -> Iterator[str]:
    """Which ops were compared."""
    s = w.sets
    yield f"slow:    {s.slow} of {count_of(s.ops, 'op')}, {duration(s.slow_from_ns)} and more"
    yield (
        f"typical: {count_of(s.typical, 'op')}, p25 to p75 of the others:"
        f" {duration(s.typical_from_ns)} to {duration(s.typical_to_ns)}"
    )
    if len(s.programs) > 1:
        told = [f"{name} {count_of(n, 'op')}, {slow} slow" for name, n, slow in s.programs[:PROGRAMS]]
        if more := s.programs[PROGRAMS:]:
            told.append(f"{len(more)} more {sum(n for _, n, _ in more)}, {sum(slow for *_, slow in more)} slow")
        text = f"of {len(s.programs)} programs: {'; '.join(told)} (--comm or --pid takes one)"
        yield from wrapped(shown(text), 2)
    if (part := w.monster) is not None:
        yield f"one of the slow ops alone has {100 * part:.0f} % of their time: see it by itself"


def columns(digits: int) -> tuple[Column, ...]:
    """Means per op of the slow and of the typical ops, what that is more, and the share of the whole difference."""
    times = (time("slow_ns", "slow", digits), time("typical_ns", "typical", digits), time("more_ns", "more", digits))
    return (label("stage", "stage (us)"), *times, share())


def cells(name: str, slow: float, typical: float, w: Why) -> list[object]:
    """A row of those columns."""
    return [name, slow, typical, slow - typical, w.share(slow - typical)]


def _state_rows(s: Compared, w: Why) -> Iterator[list[object]]:
    if s.slow.state_unknown_ns == s.slow.total_ns:
        return
    for state, name in (*STATE_NAMES.items(), ("state_unknown_ns", "not known")):
        slow, typical = (getattr(side, state) / side.ops for side in (s.slow, s.typical))
        if slow or typical:
            yield cells(f"  {name}", slow, typical, w)


def table_lines(w: Why) -> Iterator[Part]:
    """The stages, the largest difference first; means per op of the set, us."""
    whole = w.latency.more_ns
    shown = [s for s in w.stages if abs(s.more_ns) >= SHOWN * abs(whole)]
    rest = [s for s in w.stages if s not in shown]
    rows = []
    for s in shown:
        rows.append(cells(s.stage, s.slow.mean_ns, s.typical.mean_ns, w))
        if abs(s.more_ns) >= SPLIT * abs(whole):
            rows += _state_rows(s, w)
    if rest:
        slow, typical = (
            sum(getattr(s, side).total_ns for s in rest) / getattr(w.latency, side).ops for side in ("slow", "typical")
        )
        rows.append(cells(f"{count_of(len(rest), 'other')}, less than 1 % each", slow, typical, w))
    rows.append(cells("latency", w.latency.slow.mean_ns, w.latency.typical.mean_ns, w))
    yield ResultTable(columns(table_digits(w.latency.slow.mean_ns)), rows, totals=1)
    verb = "sum" if w.sums else "DO NOT sum"
    totals = ", ".join(f"{side} {us(getattr(w.latency, side).total_ns)} us" for side in ("slow", "typical"))
    yield f"stages {verb} to the latency: {totals}"


def _table_of_two(s: Separator) -> str:
    part, of_all = percent(s.slow_met, s.slow, 0), percent(s.met, s.ops, 0 if s.met >= 0.1 * s.ops else 1)
    return f"{s.slow_met} of {s.slow} slow ops ({part} %) {s.text}, against {of_all} % of all ops"


def separation_lines(found: Separation, w: Why) -> Iterator[str]:
    """What separates the slow ops, with what speaks for it; or that nothing does."""
    if found.step > 1:
        yield f"looked at: one op in {found.step}"
    if found.too_few:
        yield f"{count_of(w.sets.slow, 'slow op')}: too few to say what separates them ({FEW} are needed)"
        return
    tested = f"{count_of(found.attributes, 'attribute')}, {count_of(found.conditions, 'condition')}"
    if found.found is not None:
        s = found.found
        yield f"what separates them: {_table_of_two(s)}"
        chance = f"{s.as_good} of" if s.as_good else "none of"
        yield f"  {s.lift:.2f} times as often; {chance} {found.shifts} shifts along the run goes as well ({tested})"
        yield from (f"  nearly the same ops {other}" for other in s.same)
        if s.above_all is not None:
            yield f"  above all those that {s.above_all}"
        return
    yield f"nothing that was recorded separates them ({tested})"
    if found.best is not None:
        b = found.best
        yield f"  nearest: {_table_of_two(b)}"
        yield f"  {b.lift:.2f} times as often; {b.as_good} of {found.shifts} shifts along the run go as well"
        if b.lift < LIFT:
            yield f"  (named from {LIFT:.0f} times on)"
        elif b.slow_met < COVER * b.slow:
            yield f"  (named from {COVER:.0%} of the slow ops on)"


def command_lines(
    w: Why, source: Sequence[str], filters: Sequence[str], has_request: bool, of_class: str | None = None
) -> list[str]:
    """The commands that look further, as a shell takes them. ``source``: RUN, and --model and its like where RUN is a
    trace; ``filters``: --class and its like; ``has_request``: a block request serves the example; ``of_class``: the
    class of most slow ops, in a run of several.
    """
    one = ["--op", str(w.sets.example)]
    lead = w.stages[0]
    found = [["why", *source, *filters, "--class", of_class]] if of_class is not None else []
    found.append(["ops", *source, *one])
    if has_request and lead.kind in ("device", "block"):
        found.append(["interference", *source, *one])
    elif lead.kind in ("work", "network", "unknown"):
        found.append(["coverage", *source, *filters])
    elif any(s.slow.runnable_ns or s.slow.on_cpu_ns for s in w.stages):
        found.append(["stages", *source, *filters, "--states"])
    else:
        found.append(["stages", *source, *filters])
    found.append(["plot", *source, *filters, "-o", "slow.png"])
    return [shlex.join(["opline", *words]) for words in found]
