# SPDX-License-Identifier: MIT
"""`opline check [SUBJECT] [RUN]`: the commands that say whether to trust figures, in one word."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from opline.errors import UsageError
from opline_analyses.command_map import meant_by
from opline_analyses.commands.vocabulary import EVERYTHING

if TYPE_CHECKING:
    from collections.abc import Sequence

NAME = "check"
HELP = "what is missing in a run, and what this machine can record"
#: What it lacks of the vocabulary (vocabulary.py), and why.
LACKS = {EVERYTHING: "SUBJECT has them"}
SUBJECTS = ("losses", "coverage", "hosts", "doctor", "what")
EXAMPLES = f"""\
`opline check RUN` is `opline losses RUN`: missing events, and advice. `opline
check` alone is `opline doctor`: the sources of events on a machine. SUBJECT
names another command, with all options of the command:
  {", ".join(SUBJECTS)}.

examples:
  opline check
  opline check run1
  opline check coverage run1
  opline check losses run1 --max-loss 0
"""


def route(argv: Sequence[str]) -> tuple[str, Sequence[str]] | None:
    """The command that is meant, and its arguments; None: this word's own help."""
    if not argv:
        return "doctor", argv
    if argv[0] in ("-h", "--help"):
        return None
    return meant_by(argv, SUBJECTS, "subject")


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments that its help names."""
    parser.usage = "opline check [SUBJECT] [RUN] [options of SUBJECT]"
    parser.add_argument("subject", metavar="SUBJECT", nargs="?", choices=SUBJECTS, help="the command that checks")
    parser.add_argument("run", metavar="RUN", nargs="?", help="a run, a recording, or a trace")


def run(args: argparse.Namespace) -> int:
    """Is never asked: whatever is typed has a route."""
    raise UsageError(f"which run? opline check {args.subject} RUN.")
