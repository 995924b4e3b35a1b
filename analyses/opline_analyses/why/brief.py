# SPDX-License-Identifier: MIT
"""`opline why` in twelve lines: the answer, the numbers that prove it, the next command. Takes a `Why` and what was
found beside it; gives lines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opline_analyses.base.result_table import ResultTable, time
from opline_analyses.base.text import count_of, duration, percent, table_digits, wrapped
from opline_analyses.why.text import cells, columns

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opline_analyses.base.result_table import Part
    from opline_analyses.why.classes import SlowClass
    from opline_analyses.why.separators import Separation
    from opline_analyses.why.tail import Caused, Tail
    from opline_analyses.why.when import Bursts, Rhythm
    from opline_analyses.why.why import Why

ROWS = 3  # of the table
LEAST = 0.01  # of the difference: a row with less is among the others
BEHIND = 0.01  # of the difference: with less behind other ops the table needs no column for that time


def brief_lines(
    w: Why,
    tail: Tail,
    separation: Separation,
    bursts: Bursts | None,
    rhythms: Sequence[Rhythm],
    loop: int | None,
    of_class: SlowClass | None,
    command: str,
) -> Iterator[Part]:
    """All but the first sentence. ``loop``: the ops in flight of a closed loop; ``of_class``: the class of most slow
    ops, in a run of several; ``command``: the next one to type.
    """
    s = w.sets
    yield (
        f"slow: {s.slow} of {count_of(s.ops, 'op')}, from {duration(s.slow_from_ns)};"
        f" typical: {s.typical}, {duration(s.typical_from_ns)} to {duration(s.typical_to_ns)}"
    )
    if (part := w.monster) is not None:
        yield f"One slow op has {100 * part:.0f} % of the slow ops' time."
    if loop is not None:
        yield f"Closed loop ({loop} in flight): the latencies leave out the delay of later ops."
    yield ""
    yield from _causes(w, tail) if _is_behind(tail) else _stages(w)
    yield ""
    yield from _common(separation, of_class)
    yield from _period(bursts, rhythms)
    yield "next (or --all, for every table):"
    yield f"  {command}"


def _is_behind(t: Tail) -> bool:
    whole = t.slow_ns / t.slow - t.typical_ns / t.typical
    return sum(c.behind_ns for c in t.causes) / t.slow >= BEHIND * abs(whole)


def _stages(w: Why) -> Iterator[Part]:
    whole = w.latency.more_ns
    digits = table_digits(w.latency.slow.mean_ns)
    shown = [s for s in w.stages[:ROWS] if s.more_ns >= LEAST * whole]
    rest = len(w.stages) - len(shown)
    rows = [(s.stage, s.slow.mean_ns, s.typical.mean_ns) for s in shown]
    if rest:
        slow, typical = (
            getattr(w.latency, side).mean_ns - sum(getattr(s, side).mean_ns for s in shown)
            for side in ("slow", "typical")
        )
        rows.append((count_of(rest, "other"), slow, typical))
    yield ResultTable(columns(digits), [cells(*row, w) for row in rows])


def _causes(w: Why, t: Tail) -> Iterator[Part]:
    """The same where slow ops wait behind others: that time is in the row of what the others were doing."""
    digits = table_digits(t.slow_ns / t.slow)
    whole = t.slow_ns / t.slow - t.typical_ns / t.typical
    shown = [c for c in t.causes[:ROWS] if t.more_ns(c) >= LEAST * whole]
    rest = [c for c in t.causes if c not in shown]

    def caused(name: str, causes: Sequence[Caused]) -> list[object]:
        own, behind = (sum(getattr(c, side) for c in causes) / t.slow for side in ("own_ns", "behind_ns"))
        typical = sum(c.typical_ns for c in causes) / t.typical
        more = own + behind - typical
        return [name, own, behind, typical, more, more / whole if whole else None]

    rows = [caused(f"{c.stage}{': waiting for a CPU' if c.cpu else ''}", [c]) for c in shown]
    if rest:
        rows.append(caused(count_of(len(rest), "other"), rest))
    stage, _, *others = columns(digits)
    times = time("own_ns", "own", digits), time("behind_ns", "behind others", digits)
    yield ResultTable((stage, *times, *others), rows)


def _common(found: Separation, of_class: SlowClass | None) -> Iterator[str]:
    if (s := found.found) is None:
        if of_class is not None and (said := of_class.text()) is not None:
            yield from wrapped(said, 2)
        return
    part, of_all = percent(s.slow_met, s.slow, 0), percent(s.met, s.ops, 0 if s.met >= 0.1 * s.ops else 1)
    yield from wrapped(f"{part} % of the slow ops {s.text}, against {of_all} % of all ops.", 2)


def _period(found: Bursts | None, ahead: Sequence[Rhythm]) -> Iterator[str]:
    if found is not None:
        share = percent(found.inside, found.slow, 0)
        yield f"{share} % of the slow ops come every {duration(found.period_ns)}, within {duration(found.width_ns)}."
        return
    for r in ahead:
        yield from wrapped(
            f"Requests of {r.owner} ahead of the slow ops come every {duration(r.bursts.period_ns)}, for"
            f" {duration(r.bursts.width_ns)}.",
            2,
        )
