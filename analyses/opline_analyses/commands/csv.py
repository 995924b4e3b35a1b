# SPDX-License-Identifier: MIT
"""`opline csv RUN`: one row per op, one column per stage."""

from __future__ import annotations

import argparse
from pathlib import Path

from opline import _core
from opline.correlation import feed_csv, recording_of
from opline.store.run import BareTrace
from opline.talk import talk
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
    tell_losses,
)
from opline_analyses.ops.op_csv import FIXED, collector, feed, write
from opline_analyses.runs import ledger
from opline_analyses.runs.selection import add_filters, add_which, filtered, selection

NAME = "csv"
HELP = "one row per op, one column per stage"
_COLUMNS = "\n".join(f"  {column:11} {meaning}" for column, meaning in FIXED)
EXAMPLES = f"""\
columns:
{_COLUMNS}
  STAGE_ns    Time in that stage, in the order in which an op meets the stages.
  unattributed_ns  What no stage claims: with the stages it sums to latency_ns.

RFC 4180, lines end in LF, an empty cell is unknown. One row per complete op;
--all adds the incomplete ones. --stages is the long form: one row per interval
(op_id, seq, stage, kind, from_point, to_point, begin_ns, duration_ns, tid,
request_id).

A stage's column is its name with _ns, blanks and arrows included: "shard
queue_ns" in SQL, df["shard queue_ns"] in pandas. In the long form stages are
values, and no column needs quotes.

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
    some = filtered(args) or any(
        getattr(args, name) is not None for name in ("op", "at", "slowest", "limit", "client_log")
    )
    trace = None if some else bare_trace(args)
    with collector(args.stages) as rows:
        if trace is not None and not any(map(find_log, _places(args, trace))):
            return _of_trace(args, trace, rows)
        return _of_run(args, rows)


def _places(args: argparse.Namespace, trace: BareTrace) -> list[Path]:
    """As Run.places() has them."""
    return [Path(args.run), *([Path(trace.path).parent] if recording_of(trace.path) else [])]


def _tell_left_out(incomplete: int) -> None:
    if incomplete:
        talk(f"left out: {incomplete} incomplete (--all writes them too).")


def _of_trace(args: argparse.Namespace, trace: BareTrace, rows: _core.OpCsv) -> int:
    """Without a run: the core makes the rows while it reads."""
    summary, losses = feed_csv(
        trace.path, trace.model, rows, incomplete=args.all, reader=args.reader, extents=args.extents
    )
    entries = ledger.entries_of(losses)
    tell_losses(entries)
    if not args.all:
        _tell_left_out(summary["ops"]["incomplete"])
    with csv_output(args) as out:
        write(rows, out, stages=args.stages)
    tell_gaps_of_trace(trace.path)
    check_losses(args, entries)
    return 0


def _of_run(args: argparse.Namespace, rows: _core.OpCsv) -> int:
    with opened(args, tables=("ops", "stages", "links", "bios")) as opened_run:
        which = selection(opened_run, args)
        if not args.all:
            (left_out,) = opened_run.row(
                f"SELECT count(*) FROM ops o WHERE ({which.where}) AND NOT o.complete", which.parameters
            )
            _tell_left_out(left_out)
            which = which.also("o.complete")
        log = args.client_log or next(filter(None, map(find_log, opened_run.places())), None)
        if log and not args.stages:
            from opline_analyses.client.client_log import join_client_log

            join_client_log(opened_run, log)
        feed(opened_run, which, rows, stages=args.stages, client=log is not None)
        with csv_output(args) as out:
            write(rows, out, stages=args.stages)
    return 0
