# SPDX-License-Identifier: MIT
"""`opline stages RUN`: count, mean, percentiles, max and share of each stage."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from opline.correlation import stage_statistics
from opline.talk import talk
from opline_analyses.base.text import count_of, csv_text, duration, encoded, percent, table, table_digits, us, wrapped
from opline_analyses.commands.common import (
    add_form,
    add_run,
    bare_trace,
    check_losses,
    csv_output,
    opened,
    output,
    tell_gaps_of_trace,
    tell_losses,
)
from opline_analyses.ops.stages import stage_table, table_of
from opline_analyses.runs import ledger
from opline_analyses.runs.selection import add_filters, add_tainted, filtered, selection

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from opline.store.run import BareTrace
    from opline_analyses.ops.stages import StageRow, StageTable

PROGRAMS = 3
NAME = "stages"
HELP = "count, mean, percentiles, max and share of each stage"
STATES = """
--states: what the thread at the end of each stage did in it (us per op that has
the stage): on a CPU; runnable, waiting for a CPU; blocked on I/O (asleep
uninterruptibly, or while a block request of the op was between Q and C);
blocked otherwise. Of a stage between two threads it is the thread that
arrives: blocked there means that it had nothing to do before the op came.
At a completion (D2C) it is the thread that the completion lets go on.
`count` 209/211: the sched events tell all of the stage of 209 ops of 211. `woken by`: the
name that ended most sleeps, and its share; in an interrupt that is whoever was
interrupted, on an idle CPU `swapper`.
"""
EXAMPLES = f"""\
Times are microseconds. A stage that recurs in an op counts once, with its sum.
`count` is the ops that have the stage, and the mean and the percentiles are
over those; `share` is of the latency of all ops. Percentiles are by nearest
rank: of up to 262144 ops each is a measured value, of more it is within 0.2 %
of it, and the last line says so. The rows are in the order in which an op
meets the stages; with `unattributed` they sum to the latency, to the
nanosecond, and a line below checks it. Incomplete ops are left out, and those
that overlap lost events unless --tainted.

`of it unknown`, below the latency, is the stages of kind unknown together: they
have rows of their own. --csv and --json have the rows in nanoseconds, and long
names whole; what all but the last (`latency`) sum to is the last. `of it
unknown` is no row there: JSON has it by itself, `of_it_unknown`.
{STATES}
examples:
  opline stages run1
  opline stages run1 --states
  opline stages run1 --class read --since 5 --until 10
  opline stages run1 --csv > stages.csv
"""


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    add_run(parser)
    add_filters(parser)
    add_tainted(parser)
    parser.add_argument("--states", action="store_true", help="what the threads did in each stage, and who woke them")
    add_form(parser)


def _cells(s: StageRow, whole: int, digits: int) -> list[str]:
    times = (s.mean_ns, s.p50_ns, s.p90_ns, s.p99_ns, s.p999_ns, s.max_ns)
    return [s.stage, str(s.count), *(us(t, digits) for t in times), percent(s.total_ns, whole)]


def text_lines(t: StageTable) -> Iterator[str]:
    """The table for people."""
    whole = t.latency.total_ns
    digits = table_digits(t.latency.mean_ns)
    rows = [_cells(s, whole, digits) for s in (*t.stages, t.unattributed, t.latency)]
    if t.unknown.total_ns:
        rows.append(_cells(t.unknown, whole, digits))
        rows[-1][0] = "of it unknown"
    header = ["stage (us)", "count", "mean", "p50", "p90", "p99", "p99.9", "max", "share%"]
    yield from table(header, rows, gap=" ", names=(0,))
    stages, rest = sum(s.total_ns for s in t.stages), t.unattributed.total_ns
    sign = "=" if t.sums else "IS NOT"
    check = (
        f"stages {us(stages / t.ops, 3)} + unattributed {us(rest / t.ops, 3)} {sign} latency {us(whole / t.ops, 3)} us"
    )
    yield from wrapped(f"mean of {count_of(t.ops, 'op')}: {check}")
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
        yield "percentiles: within 0.2 % (more than 262144 ops)"


def _record(s: StageRow, t: StageTable) -> dict[str, Any]:
    return {**vars(s), "share": s.total_ns / t.latency.total_ns if t.latency.total_ns else None}


def _records(t: StageTable) -> Iterator[dict[str, Any]]:
    """The rows that sum, then their sum."""
    for s in (*t.stages, t.unattributed, t.latency):
        yield _record(s, t)


def render(t: StageTable, form: str) -> str:
    """The table as text, csv or json."""
    if form == "json":
        head = {
            "schema": "opline stages 1",
            "ops": t.ops,
            "incomplete": t.incomplete,
            "tainted": t.tainted,
            "sums": t.sums,
            "exact": t.exact,
            "deferred": vars(t.deferred),
            "programs": dict(t.programs),
        }
        document = {**head, "stages": list(_records(t)), "of_it_unknown": _record(t.unknown, t)}
        return json.dumps(document, indent=1) + "\n"
    if form == "csv":
        records = list(_records(t))
        return csv_text(records[0], records)
    return encoded(text_lines(t)).decode()


def run(args: argparse.Namespace) -> int:
    """Prints the table."""
    if args.states:
        return _states(args)
    trace = None if filtered(args) else bare_trace(args)
    if trace is not None:
        return _of_trace(args, trace)
    with opened(args, tables=("ops", "stages")) as opened_run:
        return _write(args, stage_table(opened_run, selection(opened_run, args), args.tainted))


def _states(args: argparse.Namespace) -> int:
    from opline_analyses.ops.states import state_lines, state_table

    with opened(args, tables=("ops", "stages", "sched")) as opened_run:
        t = state_table(opened_run, selection(opened_run, args), args.tainted)
        records = [row._asdict() for row in (*t.stages, t.covered)]
        if args.json:
            head = {"schema": "opline states 1", "ops": t.ops, "latency_ns": t.latency_ns}
            text = json.dumps({**head, "stages": records}, indent=1) + "\n"
        else:
            text = csv_text(records[0], records) if args.csv else encoded(state_lines(t)).decode()
        with csv_output(args) if args.csv else output(args.output) as out:
            out.write(text.encode())
        return _verdict(args, t.incomplete, t.tainted, "" if t.sums else "the states do not sum to the stages")


def _of_trace(args: argparse.Namespace, trace: BareTrace) -> int:
    """Without a run: the core counts while it reads."""
    found, losses = stage_statistics(
        trace.path, trace.model, reader=args.reader, extents=args.extents, tainted=args.tainted
    )
    entries = ledger.entries_of(losses)
    tell_losses(entries)
    status = _write(args, table_of(found, found["incomplete"], found["tainted"], args.run))
    tell_gaps_of_trace(trace.path)
    check_losses(args, entries)
    return status


def _write(args: argparse.Namespace, t: StageTable) -> int:
    with csv_output(args) if args.csv else output(args.output) as out:
        out.write(render(t, "json" if args.json else "csv" if args.csv else "text").encode())
    return _verdict(args, t.incomplete, t.tainted, "" if t.sums else "the stages do not sum to the latency")


def _verdict(args: argparse.Namespace, incomplete: int, tainted: int, broken: str) -> int:
    """What was left out, on stderr; the exit status."""
    if incomplete or (tainted and not args.tainted):
        talk(
            f"left out: {incomplete} incomplete"
            + (f", {tainted} tainted by lost events (--tainted counts them)." if not args.tainted else ".")
        )
    if broken:
        talk(f"{broken}: the run is damaged.")
        return 1
    return 0
