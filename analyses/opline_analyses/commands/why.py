# SPDX-License-Identifier: MIT
"""`opline why RUN`: why the slow ops are slow, against typical ones."""

from __future__ import annotations

import argparse

from opline import memory
from opline_analyses.commands.common import (
    add_every,
    add_form,
    add_run,
    opened,
    write,
)
from opline_analyses.commands.engines import HELP as ENGINE
from opline_analyses.commands.engines import add_engine, asked, refuse, status, wanted
from opline_analyses.commands.options import add_filters, add_tainted, op_filters

NAME = "why"
HELP = "why the slow ops are slow: against typical ones, stage by stage"
PROGRESS = True
#: What it lacks of the vocabulary (options.py), and why. --slowest and --latency say which ops are the slow ones.
LACKS = {
    "--limit --sort": "rows are in the order of what they explain; --all prints all",
}
EXAMPLES = f"""\
Slow ops are the slowest 1 %, or as --slowest or --latency say. Typical ops are
the middle half (p25 to p75) of the others. Incomplete ops do not count; ops
whose begin or end can be lost count with --tainted only.

The first sentence names the stage that makes most of the difference. The table
has means per op in microseconds. `more` is slow minus typical, `share%` the
part of the whole difference. `own` is time in the slow ops, `behind others` the
time that slow ops waited for another op in that stage.

--all prints every table: stages, threads, causes, p99 without each cause, and
the test of what slow ops have in common (30 slow ops are needed). docs/why.md
explains the output.
{ENGINE}
With --engine the slow ops are those of all recordings together: the sentence,
the table of stages, and how many slow ops each recording has.

examples:
  opline why run1
  opline why run1 --class read --slowest 0.1%
  opline why run1 --latency '>5ms' --since 5 --until 10
  opline why run1 --csv > why.csv
"""


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    add_run(parser)
    add_filters(parser, latency=False)
    slow = parser.add_mutually_exclusive_group()
    slow.add_argument(
        "--slowest",
        dest="slow",
        metavar="N",
        default="1%",
        help="which ops are slow: 0.1%%, or a number (default: 1%%)",
    )
    slow.add_argument("--latency", dest="over", metavar="'>5ms'", help="which ops are slow: those that take longer")
    add_tainted(parser)
    add_every(parser)
    parser.add_argument("--all", action="store_true", help="every table, not only the short answer")
    add_engine(parser)
    add_form(parser)


def _words(args: argparse.Namespace) -> tuple[list[str], list[str]]:
    """RUN with what opens it, and the filters: as they were given."""
    source = [args.run]
    for option in ("model", "reader"):
        if (value := getattr(args, option)) is not None:
            source += [f"--{option}", value]
    for file in args.extents:
        source += ["--extents", str(file)]
    return source, op_filters(args).words()


def run(args: argparse.Namespace) -> int:
    """Prints the sentence, the table and the commands."""
    memory.keep_little()
    if wanted(args):
        return _of_many(args)
    from opline_analyses.api.ops import why
    from opline_analyses.runs.database import bounded

    with opened(args) as opened_run, bounded(opened_run.con):
        found = why(
            opened_run, op_filters(args), slowest=args.slow, latency=args.over, tainted=args.tainted,
            every_ns=args.every, everything=args.all, rows_only=args.csv, words=_words(args),
        )  # fmt: skip
        write(args, found)
    return 0 if found.found.sums else 1


def _of_many(args: argparse.Namespace) -> int:
    """Of several recordings, by an engine."""
    from opline_analyses.engine.exact import why_of_many
    from opline_analyses.why.of_many import result
    from opline_analyses.why.sets import rule_of

    refuse(args, {"every": "--every"})
    rule = rule_of(args.slow, args.over)
    options = {"filters": vars(op_filters(args)), "tainted": args.tainted, "over_ns": rule.over_ns}
    with asked(args, options) as asking:
        found, answers = why_of_many(asking, rule)
    source, filters = _words(args)
    source[0] = found.example
    write(args, result(found, source, filters, tainted=args.tainted, everything=args.all))
    ended = status(args, answers)
    return ended if found.why.sums else 1
