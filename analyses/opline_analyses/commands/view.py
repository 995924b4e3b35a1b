# SPDX-License-Identifier: MIT
"""`opline view RUN ...`: the page, served to a browser on this machine, of runs of any size."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from opline.errors import OplineError
from opline.store.underway import is_underway
from opline.talk import talk
from opline_analyses.client.defaults import default_selection
from opline_analyses.commands.common import add_model
from opline_analyses.commands.options import add_filters, add_slowest, add_tainted, op_filters
from opline_analyses.runs import ledger
from opline_analyses.runs.not_yours import line_of_run
from opline_analyses.runs.notices import gaps_line, tell_before, tell_gaps, tell_not_yours
from opline_analyses.runs.selection import Selection

if TYPE_CHECKING:
    from opline_analyses.runs.run import Run

NAME = "view"
HELP = "the page of runs of any size, in a browser on this machine"
#: What it lacks of the vocabulary (options.py), and why.
LACKS = {
    "--limit --sort": "the page sorts its lists",
    "--csv --json --output": "it serves a page; `opline report -o FILE` writes one",
}
EXAMPLES = """\
The page is that of `opline report`, for runs of any size: zooming gives finer
cells, a marked region sums all ops, and every op opens in full. opline follows
a recording that still runs: ops appear seconds after they end. Ctrl-C ends the
server.

The server listens on 127.0.0.1 alone, and only reads. The address contains a
token: anybody with the address may look. From another machine:
ssh -L 8700:127.0.0.1:8700 HOST, and there `opline view run1 --port 8700`.

examples:
  opline view run1
  opline view before after --port 8700
"""


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text}: must be 0 to 65535")
    return int(text)


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    parser.add_argument("runs", metavar="RUN", nargs="+", help="runs, recordings, or traces (with --model)")
    parser.add_argument("--port", metavar="N", type=_port, default=0, help="the port (default: one that is free)")
    add_model(parser)
    add_filters(parser)
    add_slowest(parser)
    add_tainted(parser)


def run(args: argparse.Namespace) -> int:
    """Serves until Ctrl-C."""
    from opline_analyses.runs.run import open_run
    from opline_analyses.view.followed import Followed
    from opline_analyses.view.pages import Pages, Viewed
    from opline_analyses.view.server import HOST, Server

    with ExitStack() as stack:
        viewed: list[Viewed] = []
        pages: list[Pages] = []
        lost = 0
        for number, path in enumerate(args.runs):
            name = Path(path).resolve().name
            if is_underway(path):
                talk(f"{path} is still being recorded: the page follows it.")

                def ended(run: Run, number: int = number, name: str = name) -> None:
                    tell_not_yours(line_of_run(run))
                    tell_gaps(gaps_line(run))
                    pages[0].replace(number, Viewed(run, name, default_selection(run, op_filters(args)), args.tainted))

                which = partial(default_selection, filters=op_filters(args))
                followed = Followed(path, args.model, which, args.tainted, ended, args.all_programs)
                viewed.append(Viewed(None, name, Selection(), args.tainted, followed))
                continue
            opened = stack.enter_context(
                open_run(
                    path, args.model, args.reader, args.extents, interruptible=False, all_programs=args.all_programs
                )  # queries are in threads
            )
            whose = f"{name}: " if len(args.runs) > 1 else ""
            tell_before(opened, whose)
            tell_gaps(gaps_line(opened), whose)
            lost += ledger.bad_count(ledger.entries(opened))
            viewed.append(Viewed(opened, name, default_selection(opened, op_filters(args)), args.tainted))
        if args.max_loss is not None and lost > args.max_loss:
            raise OplineError(f"{lost} lost, more than --max-loss {args.max_loss}.", exit_code=3)
        pages.append(Pages(viewed))
        for one in viewed:
            if one.followed is not None:
                stack.enter_context(one.followed)
        try:
            server = stack.enter_context(Server(pages[0], args.port))
        except OSError as error:
            raise OplineError(f"Cannot listen on {HOST}, port {args.port}: {error.strerror}.") from error
        server.pages.prepare()
        print(server.address, flush=True)
        server.serve_forever()
    return 0
