# SPDX-License-Identifier: MIT
"""`opline csv RUN`: one row per op, one column per stage."""

from __future__ import annotations

import argparse
from pathlib import Path

from opline_analyses.client_files import find_log
from opline_analyses.client_log import join_client_log
from opline_analyses.commands.common import add_output, add_run, opened, output, talk
from opline_analyses.op_csv import FIXED, op_rows, stage_rows, write_csv
from opline_analyses.selection import add_filters, add_which, selection

NAME = "csv"
HELP = "one row per op, one column per stage"
_COLUMNS = "\n".join(f"  {column:11} {meaning}" for column, _, meaning in FIXED)
EXAMPLES = f"""\
columns:
{_COLUMNS}
  STAGE_ns    Time in that stage, in the order in which an op meets the stages.
  unattributed_ns  What no stage claims: with the stages it sums to latency_ns.

RFC 4180, lines end in LF, an empty cell is unknown. One row per complete op;
--all adds the incomplete ones. --stages is the long form: one row per interval
(op_id, seq, stage, kind, from_point, to_point, begin_ns, duration_ns, tid,
request_id).

examples:
  opline csv run1 > ops.csv
  opline csv run1 --slowest 100 -o slow.csv
  opline csv run1 --stages > stages.csv
"""


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    add_run(parser)
    parser.add_argument("--stages", action="store_true", help="one row per interval of an op instead")
    parser.add_argument("--all", action="store_true", help="incomplete ops too")
    parser.add_argument(
        "--client-log", metavar="FILE", type=Path, help="the client's own begin and end of each op, CSV, for client_ns"
    )
    add_which(parser)
    add_filters(parser)
    add_output(parser)


def run(args: argparse.Namespace) -> int:
    """Writes the CSV."""
    with opened(args, tables=("ops", "stages", "links", "bios")) as opened_run:
        which = selection(opened_run, args)
        if not args.all:
            (left_out,) = opened_run.row(
                f"SELECT count(*) FROM ops o WHERE ({which.where}) AND NOT o.complete", which.parameters
            )
            if left_out:
                talk(f"opline: left out: {left_out} incomplete (--all writes them too).")
            which = which.also("o.complete")
        if args.stages:
            columns, result = stage_rows(opened_run, which)
        else:
            log = args.client_log or next(filter(None, map(find_log, opened_run.places())), None)
            if log:
                join_client_log(opened_run, log)
            columns, result = op_rows(opened_run, which, client=log is not None)
        with output(args.output) as out:
            write_csv(columns, result, out)
    return 0
