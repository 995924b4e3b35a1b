# SPDX-License-Identifier: MIT
"""Why slow ops are slow, as a result: a row per stage, the sentences and tables for people, the document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from opline_analyses.base.result_table import Column, ResultTable, of_items, text
from opline_analyses.base.text import fitted, wrapped
from opline_analyses.client.loop import closed_loop
from opline_analyses.client.schedule import corrected_latencies, loop_lines
from opline_analyses.client.schedule import document as document_of
from opline_analyses.ops.stages import left_out
from opline_analyses.ops.waited import spent_on
from opline_analyses.why.answer import answer
from opline_analyses.why.brief import brief_lines
from opline_analyses.why.classes import slow_class
from opline_analyses.why.forecast import forecast_lines, forecasts
from opline_analyses.why.separators import what_separates
from opline_analyses.why.tail import ahead_of_them, tail_blame
from opline_analyses.why.tail_text import cause_lines, caused_sentence, percentile_lines
from opline_analyses.why.text import command_lines, place_sentence, sentence, separation_lines, set_lines, table_lines
from opline_analyses.why.waits import waits_of
from opline_analyses.why.waits_text import cpu_sentence, wait_lines, wait_sentence
from opline_analyses.why.when import rhythms, when_slow
from opline_analyses.why.when_text import when_lines
from opline_analyses.why.why import STATES, compare_sets

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opline_analyses.base.result_table import Part
    from opline_analyses.client.schedule import Corrected
    from opline_analyses.runs.run import Run
    from opline_analyses.why.classes import SlowClass
    from opline_analyses.why.forecast import Forecast
    from opline_analyses.why.separators import Separation
    from opline_analyses.why.sets import Sets
    from opline_analyses.why.tail import Tail
    from opline_analyses.why.waits import Waits
    from opline_analyses.why.when import Bursts, Companion, Rhythm
    from opline_analyses.why.why import Compared, Why


def row_of(s: Compared, w: Why) -> dict[str, Any]:
    """A stage, or the latency."""
    row: dict[str, Any] = {"stage": s.stage, "kind": s.kind}
    for side in ("slow", "typical"):
        of = getattr(s, side)
        row |= {f"{side}_ops": of.ops, f"{side}_total_ns": of.total_ns, f"{side}_mean_ns": of.mean_ns}
        row |= {f"{side}_{state}": getattr(of, state) for state in (*STATES, "state_unknown_ns")}
    return {**row, "more_ns": s.more_ns, "share": w.share(s.more_ns)}


def columns_of() -> list[Column]:
    """The columns of `row_of`."""
    sides = [
        Column(f"{side}_{of}", type="f64" if of == "mean_ns" else "i64")
        for side in ("slow", "typical")
        for of in ("ops", "total_ns", "mean_ns", *STATES, "state_unknown_ns")
    ]
    return [text("stage"), text("kind"), *sides, Column("more_ns", type="f64"), Column("share", type="f64")]


class _Found(NamedTuple):
    """All that is said beside the first table."""

    tail: Tail
    separation: Separation
    bursts: Bursts | None
    companions: list[Companion]
    rhythms: list[Rhythm]
    commands: list[str]
    of_class: SlowClass | None
    loop: int | None
    schedule: Corrected | None
    waits: Waits | None
    forecasts: list[Forecast]


def waits_document(waits: Waits | None) -> list[dict[str, Any]] | None:
    """The causes of the waits."""
    return waits and [
        {**c.spent._asdict(), **c._asdict(), "spent": spent_on(c.spent), "stages": dict(c.stages)} for c in waits.causes
    ]


def notes_of(w: Why, tainted: bool) -> list[str]:
    """Which ops did not count, and whether the stages sum to the latency."""
    notes = [] if w.sums else ["the stages do not sum to the latency: the run is damaged."]
    return [*left_out(w.sets.incomplete, w.sets.tainted, tainted), *notes]


def _document(w: Why, found: _Found) -> dict[str, Any]:
    t, separation = found.tail, found.separation
    return {
        "schema": "opline why 1",
        "sentence": sentence(w),
        "wait_sentence": wait_sentence(w, found.waits),
        "cpu_sentence": cpu_sentence(w, found.waits),
        "caused_sentence": caused_sentence(t),
        "place_sentence": place_sentence(w),
        "places": [{**vars(p), "more_ns": p.more_ns} for p in w.places],
        "sets": vars(w.sets),
        "closed_loop": found.loop,
        "schedule": document_of(found.schedule),
        "sums": w.sums,
        "stages": [row_of(s, w) for s in w.stages],
        "latency": row_of(w.latency, w),
        "caused": {
            **{f: v for f, v in t._asdict().items() if f not in ("causes", "percentiles")},
            "sums": t.sums,
            "causes": [
                {**c._asdict(), "ahead": [a._asdict() for a in c.ahead], "more_ns": t.more_ns(c)} for c in t.causes
            ],
            "percentiles": [{**q._asdict(), "parts": [p._asdict() for p in q.parts]} for q in t.percentiles],
        },
        "class": found.of_class and found.of_class._asdict(),
        "separation": {
            name: value._asdict() if name in ("found", "best") and value is not None else value
            for name, value in separation._asdict().items()
        },
        "when": found.bursts and {**found.bursts._asdict(), "companions": [c._asdict() for c in found.companions]},
        "waits": waits_document(found.waits),
        "forecasts": [vars(f) for f in found.forecasts],
        "rhythms": [{"owner": r.owner, **r.bursts._asdict()} for r in found.rhythms],
        "commands": found.commands,
    }


def _brief(w: Why, found: _Found) -> Iterator[Part]:
    yield from wrapped(answer(w, found.waits, found.tail), 0)
    yield ""
    loop = found.loop if found.schedule is None else None
    yield from brief_lines(
        w, found.tail, found.separation, found.bursts, found.rhythms, loop, found.of_class, found.commands[0]
    )
    if found.schedule is not None:
        yield from loop_lines(None, found.schedule)


def _lines(w: Why, found: _Found) -> Iterator[Part]:
    t = found.tail
    yield from wrapped(answer(w, found.waits, found.tail), 0)
    yield ""
    yield from set_lines(w)
    yield from loop_lines(found.loop, found.schedule)
    yield ""
    yield from table_lines(w)
    if found.waits is not None:
        yield ""
        yield from wait_lines(w, found.waits)
    yield ""
    yield from cause_lines(t)
    yield ""
    yield from percentile_lines(t)
    yield ""
    if found.forecasts:
        yield from forecast_lines(found.forecasts)
        yield ""
    yield from separation_lines(found.separation, w)
    yield from when_lines(found.bursts, found.companions, found.rhythms)
    yield ""
    yield "to look further:"
    for command in found.commands:
        yield f"  {command}"


def result(
    run: Run,
    sets: Sets,
    source: Sequence[str],
    filters: Sequence[str],
    *,
    tainted: bool = False,
    every_ns: int | None = None,
    everything: bool = False,
    rows_only: bool = False,
) -> ResultTable:
    """The slow ops of ``sets`` against the typical ones; a `Why` was found. ``source``, ``filters``: the words that
    open the run and choose the ops, for the commands that look further; ``everything``: every table for people;
    ``rows_only``: neither text nor document is wanted, which take longer.
    """
    w = compare_sets(run, sets)
    notes = notes_of(w, tainted)
    rows = [row_of(s, w) for s in (*w.stages, w.latency)]
    if rows_only:
        return of_items(columns_of(), rows, totals=1, found=w, notes=notes)
    (requests,) = run.row("SELECT coalesce(request_count, 0) FROM ops WHERE op_id = ?", [sets.example])
    of_class = None if "--class" in filters else slow_class(run, sets)
    commands = command_lines(w, source, filters, requests > 0, of_class and of_class.name)
    tail = tail_blame(run, sets)
    beside = _Found(
        tail, what_separates(run), *when_slow(run), rhythms(run, ahead_of_them(tail)), commands, of_class,
        closed_loop(run), corrected_latencies(run, every_ns), waits_of(run, sets), forecasts(run, w),
    )  # fmt: skip
    return of_items(
        columns_of(), rows, totals=1, found=w, text=lambda _: fitted((_lines if everything else _brief)(w, beside)),
        document=lambda _: _document(w, beside), notes=notes,
    )  # fmt: skip
