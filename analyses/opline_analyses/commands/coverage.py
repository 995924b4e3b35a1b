# SPDX-License-Identifier: MIT
"""`opline coverage RUN`: how much of the time that the client reports is accounted for."""

from __future__ import annotations

import argparse
from pathlib import Path

from opline import memory
from opline.applications import table as applications
from opline_analyses.base.files import output_path
from opline_analyses.commands.common import add_every, add_form, add_run, opened, write
from opline_analyses.commands.options import add_filters, op_filters

NAME = "coverage"
HELP = "how much of the time that the client reports is accounted for"
PROGRESS = True
#: What it lacks of the vocabulary (options.py), and why.
LACKS = {
    "--slowest": "the client's mean is of all ops",
    "--limit --sort": "the parts sum to the client's mean, in the order of an op's way",
}
EXAMPLES = (
    """\
opline compares the stages with the mean latency in the client's report (without
a report: in the trace). Accounted for is time in stages; not accounted for is
time between threads without evidence on both sides (unknown), and in no stage.
Explained is the part in short stages (at most 10 % of the mean), in devices and
in the waits of the model. The effect of tainted ops is a row by itself. For
stages above 10 % opline lists what the thread at the end did meanwhile: `behind
STAGE` of another op, between ops, or not yet seen. The report is --client FILE,
or in the recording: a JSON file, or the command's output. --client takes the
report of fio (text, JSON) and of demo-bench.
"""
    + applications.help_text("coverage")
    + """\

--client-log splits the time outside of the op's points, op by op. FILE is fio's
PREFIX_lat.1.log (write_lat_log=PREFIX log_offset=1, from fio 3.38 on
log_issue_time=1 as well; opline finds the other logs beside FILE), or a CSV
with the client's own begin_ns and end_ns per op (and class, object; begun_ns
and ended_ns, the client's clock right after the first and last tracepoint).

opline leaves out ops outside of the client's measurement: outside of its running
time or its number of ops, beyond a pause, within fio's ramp_time. Without
--class opline also leaves out ops of others: without a line in the client's
log, or of classes that the client does not count.

Then come places for the next tracepoint: intervals that no event splits, with
their share of the mean and of the variance. Below each: what its thread did,
who woke the thread, points aside, and recorded events without a point.

Then come checks:
  completions against the client's IOPS (2 %), and bytes per op;
  each op against its line in the client's log: 99.9 % within 20 us, the mean
  within 0.5 % or 2 us;
  Little's law, stages without gaps, sums to the nanosecond;
  the widest stage that no tracepoint splits, and unknown time;
  how often independent rules agree on each hop to the device, and which ops
  lack which step (Q queued, G allocated, I inserted, D issued, C completed).

examples:
  opline coverage run1
"""
    + applications.examples("coverage")
    + """\
  opline coverage run1 --per-op ops.csv
  opline coverage run1 --csv > parts.csv
"""
)


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    add_run(parser)
    parser.add_argument(
        "--client",
        metavar="FILE",
        type=Path,
        help="the client's report, or a folder of CBT (default: found in the recording)",
    )
    parser.add_argument(
        "--client-log", metavar="FILE", type=Path, help="the client's own log of each op: fio's, or CSV"
    )
    parser.add_argument("--per-op", metavar="FILE", type=output_path, help="write each op's parts to FILE, CSV, ns")
    add_filters(parser)
    add_every(parser)
    add_form(parser, csv="CSV of the parts of the mean alone, nanoseconds")


def run(args: argparse.Namespace) -> int:
    """Prints the coverage and the checks; 0 whatever they say."""
    memory.keep_little()
    from opline_analyses.api.ops import coverage
    from opline_analyses.runs.database import bounded

    with opened(args) as opened_run, bounded(opened_run.con):
        write(args, coverage(
            opened_run, op_filters(args), client=args.client, client_log=args.client_log, per_op=args.per_op,
            every_ns=args.every,
        ))  # fmt: skip
    return 0
