# SPDX-License-Identifier: MIT
"""`opline page RUN`: the page of a run, served to a browser or written to a file."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from opline.errors import UsageError
from opline_analyses.commands.vocabulary import EVERYTHING

if TYPE_CHECKING:
    from collections.abc import Sequence

NAME = "page"
HELP = "a run as a page: every op over time, its stages, why it is slow"
#: What it lacks of the vocabulary (vocabulary.py), and why.
LACKS = {EVERYTHING: "`opline view` or `opline report` has them"}
EXAMPLES = """\
`opline page RUN` is `opline view RUN`: opline serves the page to a browser on
this machine and prints the address. `opline page RUN -o FILE` is `opline report
RUN -o FILE`: one HTML file, to mail. All options of both commands work.

examples:
  opline page run1
  opline page run1 -o run1.html
  opline page before after -o change.html
"""


def route(argv: Sequence[str]) -> tuple[str, Sequence[str]] | None:
    """The command that is meant, and its arguments; None: this word's own help, or nothing at all."""
    if not argv or argv[0] in ("-h", "--help"):
        return None
    writes = any(word.startswith(("-o", "--output")) for word in argv)
    return "report" if writes else "view", argv


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments that its help names."""
    parser.usage = "opline page RUN [RUN2] [-o FILE] [options of opline view or report]"
    parser.add_argument("run", metavar="RUN", help="a run, a recording, or a trace")
    parser.add_argument("run2", metavar="RUN2", nargs="?", help="another run, beside the first")
    parser.add_argument("-o", dest="written", metavar="FILE", help="write the page to FILE, instead of serving it")


def run(args: argparse.Namespace) -> int:
    """Is never asked: a run has a route."""
    raise UsageError(f"opline view {args.run}.")
