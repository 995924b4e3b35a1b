# SPDX-License-Identifier: MIT
"""`opline disk [VIEW] RUN`: the commands about block I/O of a run, in one word."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from opline.errors import UsageError
from opline_analyses.command_map import meant_by
from opline_analyses.commands.vocabulary import EVERYTHING

if TYPE_CHECKING:
    from collections.abc import Sequence

NAME = "disk"
HELP = "disks of a run: iostat, hist, heatmap, log, outliers and others"
#: What it lacks of the vocabulary (vocabulary.py), and why.
LACKS = {EVERYTHING: "VIEW has them"}
VIEWS = ("iostat", "hist", "heatmap", "log", "outliers", "bitesize", "burst", "btt", "requests", "interference")
EXAMPLES = f"""\
VIEW is a command about block I/O, iostat without a name:
  {", ".join(VIEWS[:7])},
  {", ".join(VIEWS[7:])}.
`opline disk hist RUN` is `opline hist RUN`, with the same options. `opline now`
has views of the disks without a recording.

examples:
  opline disk run1
  opline disk heatmap run1 -o latency.svg
  opline disk outliers run1 --threshold 5ms
  opline disk hist --help
"""


def route(argv: Sequence[str]) -> tuple[str, Sequence[str]] | None:
    """The command that is meant, and its arguments; None: this word's own help, or nothing at all."""
    if not argv or argv[0] in ("-h", "--help"):
        return None
    return meant_by(argv, VIEWS, "view")


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments that its help names."""
    parser.usage = "opline disk [VIEW] RUN [options of VIEW]"
    parser.add_argument("view", metavar="VIEW", nargs="?", choices=VIEWS, help="the command that prints")
    parser.add_argument("run", metavar="RUN", help="a run, a recording, or a trace")


def run(args: argparse.Namespace) -> int:
    """Is never asked: a run has a route."""
    raise UsageError(f"which run? opline disk RUN, or opline disk {args.view} RUN.")
