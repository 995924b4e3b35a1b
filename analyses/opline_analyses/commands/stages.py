# SPDX-License-Identifier: MIT
"""`opline stages RUN`: count, mean, percentiles, max and share of each stage."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from opline.correlation import recording_of, stage_statistics
from opline.errors import OplineError, UsageError
from opline.talk import talk
from opline_analyses.client.defaults import narrows, outside_line, outside_of
from opline_analyses.commands.common import (
    add_form,
    add_run,
    add_table,
    bare_trace,
    check_losses,
    opened,
    tell_gaps_of_trace,
    tell_not_yours_of,
    write,
)
from opline_analyses.commands.engines import HELP as ENGINE
from opline_analyses.commands.engines import add_engine, answers, asked, refuse, status, wanted
from opline_analyses.commands.options import add_filters, add_slowest, add_tainted, op_filters
from opline_analyses.ops.stage_text import result
from opline_analyses.ops.stages import none_counts, table_of
from opline_analyses.runs import ledger
from opline_analyses.runs.notices import tell_losses

if TYPE_CHECKING:
    from opline.store.run import BareTrace

NAME = "stages"
HELP = "count, mean, percentiles, max and share of each stage"
PROGRESS = True
STATES = """
--states: what the thread at the end of each stage did in the stage (us per op
with the stage): on a CPU; runnable, waiting for a CPU; blocked on I/O (asleep
uninterruptibly, or while a block request of the op was between Q and C);
blocked otherwise. Between two threads that is the arriving thread, at D2C the
thread that the completion wakes. `count` 209/211: 209 of 211 ops have all sched
events of the stage. `woken by`: the name that ended most sleeps; in an
interrupt the interrupted thread, on an idle CPU `swapper`.
"""
EXAMPLES = f"""\
Times are microseconds. `count` is the number of ops with the stage; mean and
percentiles are over these ops; `share` is of the latency of all ops. A stage
that recurs in an op counts once, with the sum. Percentiles are by nearest rank:
up to 262144 ops measured values, beyond within 0.2 %. With `unattributed` the
rows sum to the latency, and a line below checks the sum. Incomplete ops do not
count. An op with lost events inside and both ends has a stage `unknown (events
lost)`. An op that can have lost its begin or end counts with --tainted only.

If the recorded command printed its own figures, as fio does, only the ops of
these figures count. Otherwise only calls count. A line says what is left out.
--class all counts every op.

A cluster (`opline join`) has a column `±`: the error bound of a stage between
two hosts. --by host has a row per host, and per way between two hosts.

`of it unknown` sums the stages of kind unknown, which also have rows. --csv and
--json have nanoseconds, whole names, min and standard deviation; the last row,
`latency`, is the sum. Only JSON has `of_it_unknown`.
{STATES}{ENGINE}
examples:
  opline stages run1
  opline stages run1 --spread --sort std
  opline stages run1 --states
  opline stages run1 --class read --since 5 --until 10
  opline stages run1 --csv > stages.csv
  opline stages runs --engine processes:4
"""


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    add_run(parser)
    add_filters(parser)
    add_slowest(parser)
    add_tainted(parser)
    parser.add_argument("--spread", action="store_true", help="min and standard deviation as well")
    parser.add_argument(
        "--by", choices=("host",), help="of a joined run: the time on each host and between two hosts, not by stage"
    )
    parser.add_argument("--states", action="store_true", help="what the threads did in each stage, and who woke them")
    add_table(parser)
    add_engine(parser)
    parser.add_argument("--exact", action="store_true", help="with --engine: measured percentiles, by a second pass")
    add_form(parser)


def run(args: argparse.Namespace) -> int:
    """Prints the table; 1 if its rows do not sum."""
    if args.by and args.states:
        raise UsageError("--states is by stage: leave out --by or --states.")
    if wanted(args):
        return _of_many(args)
    if args.exact:
        raise UsageError("--exact is about many recordings: give --engine or --also, too.")
    trace = None if args.states or args.by or op_filters(args).given else bare_trace(args)
    if trace is None or (not args.all_programs and narrows(args.run, trace.path)):
        return _of_run(args)
    return _of_trace(args, trace)


def _of_run(args: argparse.Namespace) -> int:
    from opline_analyses.api.ops import places, stages, states

    analysis, last = (states, "sched") if args.states else (places if args.by else stages, "deferred")
    with opened(args, tables=("ops", "stages", last)) as opened_run:
        spread = {} if args.states else {"spread": args.spread}
        found = analysis(opened_run, op_filters(args), tainted=args.tainted, **spread)
        write(args, found)
    return 0 if found.found.sums else 1


def _of_trace(args: argparse.Namespace, trace: BareTrace) -> int:
    """Without a run: the core counts while it reads."""
    found, losses = stage_statistics(
        trace.path,
        trace.model,
        reader=args.reader,
        extents=args.extents,
        tainted=args.tainted,
        all_programs=args.all_programs,
        without=outside_of(recording_of(trace.path)),
    )
    entries = ledger.entries_of(losses)
    tell_losses(entries, found["ops"], recording_of(trace.path) is not None)
    tell_not_yours_of(trace.path, found, args.all_programs)
    if line := outside_line(found["classes"], found["without"]):
        talk(line)
    t = table_of(found, found["incomplete"], found["tainted"], args.run, model=args.model)
    write(args, result(t, tainted=args.tainted, spread=args.spread))
    tell_gaps_of_trace(trace.path)
    check_losses(args, entries)
    return 0 if t.sums else 1


def _of_many(args: argparse.Namespace) -> int:
    """Of several recordings, by an engine."""
    from opline_analyses.engine import added
    from opline_analyses.engine.exact import exact_stages

    refuse(args, {"by": "--by", "states": "--states", "slowest": "--slowest"})
    options = {"filters": vars(op_filters(args)), "tainted": args.tainted}
    if args.exact:
        with asked(args, options) as asking:
            t, found = exact_stages(asking)
    else:
        found = answers(args, "stages", options)
        t = added.stages(found.summaries)
    if t.ops == 0:
        raise OplineError(none_counts("", t.incomplete, t.tainted))
    write(args, result(t, tainted=args.tainted, spread=args.spread))
    ended = status(args, found)
    return ended if t.sums else 1
