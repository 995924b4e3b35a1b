# SPDX-License-Identifier: MIT
"""`opline ops RUN`: each op's transitions, with its block requests between them."""

from __future__ import annotations

import argparse

from opline.applications import table as applications
from opline.talk import talk
from opline_analyses.api.ops import listed
from opline_analyses.base.result_table import encoded, json_text
from opline_analyses.commands.common import add_output, add_run, add_safe_cells, opened, output
from opline_analyses.commands.csv import of_run
from opline_analyses.commands.options import add_filters, add_sort, add_which, op_filters
from opline_analyses.ops.transitions import STYLES

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
    all_of_them = args.op is not None or args.output is not None or args.json
    with opened(args) as opened_run:
        found = listed(
            opened_run,
            op_filters(args),
            style=args.style if apart else "default",
            states=args.states or bool(args.op),
            behind=args.behind or bool(args.op),
            unfold=args.unfold,
            most=None if all_of_them else FIRST,
        )
        with output(args.output) as out:
            if args.json:
                out.writelines(json_text(record, indent=None, ascii=False).encode() for record in found.records())
            else:
                for n, parts in enumerate(found.parts()):
                    out.write(encoded(parts if apart or n == 0 else ["", *parts]))
        if args.states and found.states_missing:
            talk(
                "what their threads did is not in the trace: it takes the scheduler's events, as `opline record` does."
            )
        if found.hidden:
            talk(f"{found.hidden} more ops: --limit N prints N, --slowest 3 the slowest; -o FILE has all.")
        if found.left_out:
            talk(f"{found.left_out} incomplete ops are not printed.")
    return 0
