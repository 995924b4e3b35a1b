# SPDX-License-Identifier: MIT
"""`opline csv RUN`: one row per op, one column per stage."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from opline.correlation import recording_of
from opline.talk import talk
from opline_analyses.api.files import csv, csv_of_trace
from opline_analyses.base.text import count_of
from opline_analyses.client.client_files import find_log
from opline_analyses.commands.common import (
    add_output,
    add_run,
    add_safe_cells,
    bare_trace,
    check_losses,
    csv_output,
    opened,
    tell_gaps_of_trace,
    tell_not_yours_of,
)
from opline_analyses.commands.options import add_filters, add_which, op_filters
from opline_analyses.ops.op_csv import FIXED
from opline_analyses.runs import ledger
from opline_analyses.runs.notices import tell_losses

if TYPE_CHECKING:
    from opline.store.run import BareTrace

NAME = "csv"
HELP = "one row per op, one column per stage"
PROGRESS = AS_IT_GOES = True
#: What it lacks of the vocabulary (options.py), and why.
LACKS = {
    "--sort": "rows are in the order of the ops' begins, of --slowest by latency",
    "--csv --json": "the output is CSV; `opline ops --json` has the same ops",
}
_COLUMNS = "\n".join(f"  {column:11} {meaning}" for column, meaning in FIXED)
EXAMPLES = f"""\
columns:
{_COLUMNS}
  STAGE_ns    Time in that stage, in the order of an op's way.
  unattributed_ns  Time in no stage. All stages and this sum to latency_ns.

RFC 4180, lines end in LF, an empty cell is unknown. The stage `shard queue` is
the column shard_queue_ns, `begin → dequeued` is begin_to_dequeued_ns. --stages
has one row per interval, with the stage's own name (op_id, seq, stage, kind,
from_point, to_point, begin_ns, duration_ns, tid, request_id).

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
    add_safe_cells(parser)


def run(args: argparse.Namespace) -> int:
    """Writes the CSV."""
    some = op_filters(args).given or any(getattr(args, name) is not None for name in ("op", "limit", "client_log"))
    trace = None if some else bare_trace(args)
    if trace is not None and not any(map(find_log, _places(args, trace))):
        return _of_trace(args, trace)
    return of_run(args, args.all, args.stages, args.client_log)


def _places(args: argparse.Namespace, trace: BareTrace) -> list[Path]:
    """As Run.places() has them."""
    return [Path(args.run), *([Path(trace.path).parent] if recording_of(trace.path) else [])]


def _tell_left_out(incomplete: int) -> None:
    if incomplete:
        talk(f"left out: {count_of(incomplete, 'incomplete op')} (--all writes these too).")


def _of_trace(args: argparse.Namespace, trace: BareTrace) -> int:
    """Without a run: the core makes the rows while it reads."""
    with csv_of_trace(
        trace, incomplete=args.all, stages=args.stages, reader=args.reader, extents=args.extents,
        all_programs=args.all_programs,
    ) as rows:  # fmt: skip
        entries = ledger.entries_of(rows.losses)
        tell_losses(entries, rows.summary["ops"], recording_of(trace.path) is not None)
        tell_not_yours_of(trace.path, rows.summary, args.all_programs)
        _tell_left_out(rows.left_out)
        with csv_output(args) as out:
            rows.write(out)
    tell_gaps_of_trace(trace.path)
    check_losses(args, entries)
    return 0


def of_run(args: argparse.Namespace, incomplete: bool, stages: bool = False, client_log: Path | None = None) -> int:
    """Writes the ops that the options choose, ``incomplete`` ones too; with ``stages`` a row per interval."""
    tables = ("ops", "stages", "links", "bios")
    with (
        opened(args, tables=tables) as opened_run,
        csv(opened_run, op_filters(args), incomplete=incomplete, stages=stages, client_log=client_log) as rows,
    ):
        _tell_left_out(rows.left_out)
        with csv_output(args) as out:
            rows.write(out)
    return 0
