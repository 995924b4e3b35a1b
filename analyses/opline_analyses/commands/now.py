# SPDX-License-Identifier: MIT
"""`opline now [VIEW]`: the disks now; another name of `opline live`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from opline.errors import UsageError
from opline_analyses.commands.live import VIEWS
from opline_analyses.commands.vocabulary import EVERYTHING

if TYPE_CHECKING:
    from collections.abc import Sequence

NAME = "now"
HELP = "the disks now: hist, iostat, heatmap and others, no recording"
#: What it lacks of the vocabulary (vocabulary.py), and why.
LACKS = {EVERYTHING: "VIEW has them"}
EXAMPLES = f"""\
`opline now VIEW` is `opline live VIEW`, with the same options. VIEW is one of
{", ".join(VIEWS)}; hist without a name. `opline
top` has devices, threads and slow I/Os on one screen.

examples:
  opline now
  opline now iostat 1 -d sda
  opline now heatmap -o fio.svg -- fio job.fio
  opline now iostat --help
"""


def route(argv: Sequence[str]) -> tuple[str, Sequence[str]] | None:
    """The command that is meant, and its arguments; None: this word's own help."""
    return None if argv and argv[0] in ("-h", "--help") else ("live", argv)


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments that its help names."""
    parser.usage = "opline now [VIEW] [options of VIEW] [-- COMMAND]"
    parser.add_argument("view", metavar="VIEW", nargs="?", choices=tuple(VIEWS), help="what is shown (hist)")


def run(args: argparse.Namespace) -> int:
    """Is never asked: whatever is typed has a route."""
    raise UsageError(f"opline live {args.view}.")
