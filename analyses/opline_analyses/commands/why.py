# SPDX-License-Identifier: MIT
"""`opline why RUN`: why the slow ops are slow, against typical ones."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, NamedTuple

from opline.talk import talk
from opline_analyses.base.text import csv_text, encoded, fitted, wrapped
from opline_analyses.commands.common import (
    add_every,
    add_form,
    add_run,
    csv_output,
    opened,
    output,
)
from opline_analyses.runs.selection import FILTERS, add_filters, add_tainted, selection

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from opline_analyses.client.schedule import Corrected
    from opline_analyses.why.separators import Separation
    from opline_analyses.why.tail import Tail
    from opline_analyses.why.when import Bursts, Companion, Rhythm
    from opline_analyses.why.why import Compared, Why

NAME = "why"
HELP = "why the slow ops are slow: against typical ones, stage by stage"
EXAMPLES = """\
Slow ops are the slowest 1 % unless --slowest or --latency says otherwise;
typical ones are the middle half (p25 to p75) of the others. The first sentence
names a stage only where it makes half of the difference or more.

Times are microseconds: means per op of each set, ops without the stage
included. `more` is slow - typical, `share%` is of the difference of the
latencies. The stages and `unattributed` sum to the latency in both sets, to the
nanosecond, and a line checks it. Stages with a tenth of the difference are
split by what their thread did (see `opline stages --help`), where the sched
events say it. Incomplete ops are left out, and those that overlap lost
events unless --tainted.

`caused by` charges waits to what the ops ahead were doing: `own` is time in the
slow ops, `behind` in those that held the thread they waited for. `at p99` is
what a cause contributes there, `p99 then` what p99 would be if the cause never
took longer than in typical ops.

What separates the slow ops is said only with support: their flags are shifted
along the run 199 times, and what is named goes better with them than any
condition does in 99 % of the shifts. It needs 30 slow ops.

--csv has the rows in nanoseconds; --json all of it.

examples:
  opline why run1
  opline why run1 --class read --slowest 0.1%
  opline why run1 --latency '>5ms' --since 5 --until 10
  opline why run1 --csv > why.csv
"""


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    add_run(parser)
    add_filters(parser)
    slow = parser.add_mutually_exclusive_group()
    slow.add_argument(
        "--slowest",
        dest="slow",
        metavar="N",
        default="1%",
        help="which ops are slow: 0.1%%, or a number (default: 1%%)",
    )
    slow.add_argument("--latency", metavar="'>5ms'", help="which ops are slow: those with a longer latency")
    add_tainted(parser)
    add_every(parser)
    add_form(parser)


def _words(args: argparse.Namespace) -> tuple[list[str], list[str]]:
    """RUN with what opens it, and the filters: as they were given."""
    source = [args.run]
    for option in ("model", "reader"):
        if (value := getattr(args, option)) is not None:
            source += [f"--{option}", value]
    for file in args.extents:
        source += ["--extents", str(file)]
    filters = []
    for name in FILTERS:
        value = getattr(args, name)
        for one in value if isinstance(value, list) else [value] if value is not None else []:
            filters += [f"--{name.removeprefix('op_')}", str(one)]
    return source, filters


def _row(s: Compared, w: Why) -> dict[str, Any]:
    from opline_analyses.why.why import STATES

    row: dict[str, Any] = {"stage": s.stage, "kind": s.kind}
    for side in ("slow", "typical"):
        of = getattr(s, side)
        row |= {f"{side}_ops": of.ops, f"{side}_total_ns": of.total_ns, f"{side}_mean_ns": of.mean_ns}
        row |= {f"{side}_{state}": getattr(of, state) for state in (*STATES, "state_unknown_ns")}
    return {**row, "more_ns": s.more_ns, "share": w.share(s.more_ns)}


def _csv(w: Why) -> bytes:
    rows = [_row(s, w) for s in (*w.stages, w.latency)]
    return csv_text(rows[0], rows).encode()


class _Found(NamedTuple):
    """All that is said beside the first table."""

    tail: Tail
    separation: Separation
    bursts: Bursts | None
    companions: list[Companion]
    rhythms: list[Rhythm]
    commands: list[str]
    loop: int | None
    schedule: Corrected | None


def _json(w: Why, found: _Found) -> bytes:
    from opline_analyses.client.schedule import document as document_of
    from opline_analyses.why.tail_text import caused_sentence
    from opline_analyses.why.text import sentence

    t, separation = found.tail, found.separation
    document = {
        "schema": "opline why 1",
        "sentence": sentence(w),
        "caused_sentence": caused_sentence(t),
        "sets": vars(w.sets),
        "closed_loop": found.loop,
        "schedule": document_of(found.schedule),
        "sums": w.sums,
        "stages": [_row(s, w) for s in w.stages],
        "latency": _row(w.latency, w),
        "caused": {
            **{f: v for f, v in t._asdict().items() if f not in ("causes", "percentiles")},
            "sums": t.sums,
            "causes": [
                {**c._asdict(), "ahead": [a._asdict() for a in c.ahead], "more_ns": t.more_ns(c)} for c in t.causes
            ],
            "percentiles": [{**q._asdict(), "parts": [p._asdict() for p in q.parts]} for q in t.percentiles],
        },
        "separation": {
            name: value._asdict() if name in ("found", "best") and value is not None else value
            for name, value in separation._asdict().items()
        },
        "when": found.bursts and {**found.bursts._asdict(), "companions": [c._asdict() for c in found.companions]},
        "rhythms": [{"owner": r.owner, **r.bursts._asdict()} for r in found.rhythms],
        "commands": found.commands,
    }
    return (json.dumps(document, indent=1) + "\n").encode()


def _lines(w: Why, found: _Found) -> Iterator[str]:
    from opline_analyses.client.schedule import loop_lines
    from opline_analyses.why.tail_text import cause_lines, caused_sentence, percentile_lines
    from opline_analyses.why.text import sentence, separation_lines, set_lines, table_lines
    from opline_analyses.why.when_text import when_lines

    t = found.tail
    said = " ".join(filter(None, (sentence(w), caused_sentence(t))))
    yield from wrapped(said, 0)
    yield ""
    yield from set_lines(w)
    yield from loop_lines(found.loop, found.schedule)
    yield ""
    yield from table_lines(w)
    yield ""
    yield from cause_lines(t)
    yield ""
    yield from percentile_lines(t)
    yield ""
    yield from separation_lines(found.separation, w)
    yield from when_lines(found.bursts, found.companions, found.rhythms)
    yield ""
    yield "to look further:"
    for command in found.commands:
        yield f"  {command}"


def run(args: argparse.Namespace) -> int:
    """Prints the sentence, the table and the commands."""
    from opline_analyses.client.loop import closed_loop
    from opline_analyses.client.schedule import corrected_latencies
    from opline_analyses.why.separators import what_separates
    from opline_analyses.why.sets import choose, latency_rule, slowest_rule
    from opline_analyses.why.tail import ahead_of_them, tail_blame
    from opline_analyses.why.text import command_lines
    from opline_analyses.why.when import rhythms, when_slow
    from opline_analyses.why.why import compare_sets

    rule = latency_rule(args.latency) if args.latency is not None else slowest_rule(args.slow)
    with opened(args) as opened_run:
        sets = choose(opened_run, selection(opened_run, args), rule, args.tainted)
        w = compare_sets(opened_run, sets)
        (requests,) = opened_run.row("SELECT coalesce(request_count, 0) FROM ops WHERE op_id = ?", [sets.example])
        commands = command_lines(w, *_words(args), requests > 0)
        if args.csv:
            with csv_output(args) as out:
                out.write(_csv(w))
        else:
            tail = tail_blame(opened_run, sets)
            found = _Found(
                tail, what_separates(opened_run), *when_slow(opened_run), rhythms(opened_run, ahead_of_them(tail)),
                commands, closed_loop(opened_run), corrected_latencies(opened_run, args.every),
            )  # fmt: skip
            text = _json(w, found) if args.json else encoded(fitted(_lines(w, found)))
            with output(args.output) as out:
                out.write(text)
    if sets.incomplete or (sets.tainted and not args.tainted):
        tainted = "." if args.tainted else f", {sets.tainted} tainted by lost events (--tainted counts them)."
        talk(f"left out: {sets.incomplete} incomplete{tainted}")
    if not w.sums:
        talk("the stages do not sum to the latency: the run is damaged.")
        return 1
    return 0
