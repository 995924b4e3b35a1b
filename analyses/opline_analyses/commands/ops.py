# SPDX-License-Identifier: MIT
"""`opline ops RUN`: each op's transitions, with its block requests between them."""

from __future__ import annotations

import argparse

from opline.applications import table as applications
from opline.talk import talk
from opline_analyses.base.result_table import encoded, json_text
from opline_analyses.client.defaults import default_selection
from opline_analyses.commands.common import add_output, add_run, add_safe_cells, opened, output
from opline_analyses.commands.csv import of_run
from opline_analyses.commands.options import add_filters, add_sort, add_which, op_filters
from opline_analyses.ops.met import met, met_list
from opline_analyses.ops.oplist import read_ops
from opline_analyses.ops.transitions import STYLES, state_list
from opline_analyses.runs.selection import selection

FIRST = 20  # ops on the screen, if nothing says how many
NAME = "ops"
HELP = "each op's transitions, with its block requests between them"
PROGRESS = AS_IT_GOES = True
EXAMPLES = (
    """\
Columns: us since the op's begin; us since the line before on the critical path;
the stage that ends here; the point, or the step of a block request (Q queued, M
merged, G allocated, I inserted, D issued to the driver, C completed); the
thread (of a step only if it changes); the CPU. On a narrow screen threads stand
in lines of their own, and ~ shortens names; --json has whole names. `-`: a
stage without a name. `(aside)`: off the critical path. `(late)`: after the op's
end. ?: a step without an event.

--behind adds the other ops at the op's threads while the op waited for them.
"""
    + applications.help_text("ops")
    + """
examples:
  opline ops run1 --slowest 3
  opline ops run1 --op 17
  opline ops run1 --latency '>5ms' --limit 10
  opline ops run1 --class write --since 1.5 --until 1.6
  opline ops run1 --at 9.53                 # what was in flight at a point of a picture
"""
    + applications.examples("ops")
    + """\
  opline ops run1 --json | head -1
"""
)


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    add_run(parser)
    add_which(parser)
    add_sort(parser)
    add_filters(parser)
    parser.add_argument(
        "--style", choices=sorted(STYLES), default="default", help="how to print (default: %(default)s)"
    )
    parser.add_argument(
        "--states", action="store_true", help="what the threads did in each stage, too (with --op: always)"
    )
    parser.add_argument(
        "--behind", action="store_true", help="which other ops its threads were at meanwhile, too (with --op: always)"
    )
    parser.add_argument(
        "--unfold",
        action="store_true",
        help="every step of an op with many block requests (default: the first and last)",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--csv", action="store_true", help="CSV, a row per op, nanoseconds: as `opline csv --all`")
    form.add_argument("--json", action="store_true", help="one JSON object per op and line, nanoseconds")
    add_output(parser)
    add_safe_cells(parser)


def run(args: argparse.Namespace) -> int:
    """Prints the selected ops."""
    if args.csv:
        return of_run(args, incomplete=True)
    apart = args.style != "default" and not args.json
    with opened(args) as opened_run:
        filters = op_filters(args)
        ranked = filters.slowest is not None or filters.sort is not None
        which = (default_selection if ranked else selection)(opened_run, filters)
        if apart:
            (left_out,) = opened_run.row(
                f"SELECT count(*) FROM ops o WHERE ({which.where}) AND NOT o.complete", which.parameters
            )
            which = which.also("o.complete")
        hidden = 0
        if which.limit is None and args.op is None and args.output is None and not (args.json or apart):
            (total,) = opened_run.row(f"SELECT count(*) FROM ({which.sql()})", which.parameters)
            which, hidden = which.first(FIRST), max(0, total - FIRST)
        style, printed, states = STYLES[args.style], 0, False
        with output(args.output) as out:
            for n, op in enumerate(read_ops(opened_run, which, with_blocks=not apart)):
                others = met(opened_run, op) if (args.behind or args.op) and not apart else []
                if args.json:
                    record = op.record() | {"behind": [other._asdict() for other in others]}
                    out.write(json_text(record, indent=None, ascii=False).encode())
                    continue
                lines, told = list(style(op, args.unfold)), [] if apart else list(state_list(op))
                printed, states = printed + 1, states or bool(told)
                if args.states or args.op:
                    lines += told
                lines += met_list(others)
                out.write(encoded(lines if apart or n == 0 else ["", *lines]))
        if printed and args.states and not states and not apart:
            talk(
                "what their threads did is not in the trace: it takes the scheduler's events, as `opline record` does."
            )
        if hidden:
            talk(f"{hidden} more ops: --limit N prints N, --slowest 3 the slowest; -o FILE has all.")
        if apart and left_out:
            talk(f"{left_out} incomplete ops are not printed.")
    return 0
