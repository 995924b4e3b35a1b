# SPDX-License-Identifier: MIT
"""`opline losses RUN`: the fate of every event, what is missing, and what to do about it."""

from __future__ import annotations

import argparse

from opline.errors import OplineError, UsageError
from opline_analyses.commands.common import add_form, add_run, opened, write
from opline_analyses.commands.options import add_io_filters, io_filters
from opline_analyses.commands.vocabulary import CHOICE
from opline_analyses.runs import integrity
from opline_analyses.runs.run import Run

NAME = "losses"
HELP = "the fate of every event, what is missing, and what to do about it"
#: What it lacks of the vocabulary (options.py), and why.
LACKS = {CHOICE: "the list is short, the worst loss first"}
EXAMPLES = """\
Every event has exactly one fate; the fates of an event class sum to its input.
A loss has a severity (info, notice, data_loss, error) and an origin: recording
(the tracer lost events) or correlation (opline could not use events).
docs/losses.md lists all losses.

--max-loss N: exit status 3 above N losses of severity data_loss and error.
--verify: exit status 1 if a table of the run is damaged. With filters: how many
I/Os opline can measure, and why not the others.

examples:
  opline losses run1
  opline losses run1 --max-loss 0 || echo "don't trust it"
  opline losses run1 --json
  opline losses run1 -d sda -i reads --window 10:12
  opline losses run1 --verify
"""


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    add_run(parser)
    parser.add_argument(
        "--verify",
        action="store_true",
        help="check the checksums of the run's tables instead, and name the damaged parts",
    )
    add_io_filters(parser)
    add_form(parser, csv="the losses alone, as CSV", json="JSON")


def verify(args: argparse.Namespace, run: Run) -> int:
    """Says of each table whether it is what was written, and where it is not. Raises OplineError if one is not."""
    checked = integrity.tables(run)
    write(args, integrity.result(checked), "json" if args.json else "text")
    bad = [t.file for t in checked if t.faults]
    if bad:
        of = f"{len(bad)} of {len(checked)} tables of {run.path}"
        raise OplineError(f"{of} are damaged: {', '.join(bad)}. Correlate its trace again.")
    return 0


def run(args: argparse.Namespace) -> int:
    """Prints the ledger; the exit status says whether it exceeds --max-loss."""
    from opline_analyses.api.block import losses

    blocks = args.of in ("requests", "bios")  # what there is without a model: an application's events are of no op
    with opened(args, losses=False, blocks=blocks) as opened_run:
        if args.verify:
            return verify(args, opened_run)
        found = losses(opened_run, io_filters(args))
        if args.csv and found.found is not None:
            raise UsageError("--csv prints the losses of the whole run and takes no filter: use --json.")
        write(args, found)
    return 0
