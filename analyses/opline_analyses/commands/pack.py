# SPDX-License-Identifier: MIT
"""`opline pack RUN -o FILE`: a run as one file."""

from __future__ import annotations

import argparse

from opline.errors import UsageError
from opline.paths import is_packed
from opline.talk import talk
from opline_analyses.api.files import pack
from opline_analyses.base.files import complete_file, output_path
from opline_analyses.base.text import count_of
from opline_analyses.commands.common import add_run, opened
from opline_analyses.commands.vocabulary import CHOICE, FILTERS

NAME = "pack"
HELP = "a run as one file, to mail or to keep; the other commands take it"
PROGRESS = True
#: What it lacks of the vocabulary (options.py), and why.
LACKS = {
    f"{FILTERS} {CHOICE}": "the whole run is packed; filter what reads the file",
    "--csv --json": "it writes a run",
}
EXAMPLES = """\
FILE is a ZIP archive with the tables of the run, its manifest, and the output
of the recorded command, without the trace. All commands that take a run take
FILE, on any machine.

--anonymous replaces names of threads, programs, objects, files, hosts, cgroups
and keys by numbers (comm-1, object-2), the same in the whole file. The command
line, the command's output, paths and maps of files are left out. These stay: times,
numbers, sectors, process and thread numbers, device names, and the model's
names of classes, stages and events.

examples:
  opline pack run1 -o run1.opline
  opline pack run1 --anonymous -o for-the-list.opline
  opline why run1.opline
"""


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    add_run(parser)
    parser.add_argument("-o", "--output", metavar="FILE", type=output_path, required=True, help="the file to write")
    parser.add_argument("--anonymous", action="store_true", help="numbers instead of names")


def run(args: argparse.Namespace) -> int:
    """Writes the file."""
    if is_packed(args.run) and not args.anonymous:
        raise UsageError(f"{args.run} is a packed run already.")
    with opened(args) as opened_run, complete_file(args.output) as out:
        names = pack(opened_run, out, anonymous=args.anonymous)
    talk(f"wrote {args.output}: {count_of(len(names), 'file')} of {args.run}")
    return 0
