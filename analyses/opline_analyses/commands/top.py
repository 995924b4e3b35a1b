# SPDX-License-Identifier: MIT
"""`opline top [INTERVAL]`: one screen of what the block layer does now."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from typing import IO, TYPE_CHECKING, Any

from opline.errors import UsageError
from opline_analyses.commands.arguments import not_negative
from opline_analyses.commands.live import add_recording, apart, look_on
from opline_analyses.commands.options import add_io_filters

if TYPE_CHECKING:
    from collections.abc import Sequence

NAME = "top"
HELP = "devices, threads, slow I/Os, ops now: one screen with keys"
#: What it lacks of the vocabulary (options.py), and why.
LACKS = {
    "--since --until": "it begins now",
    "--host": "it is about this machine",
    "--latency": "devices and threads are of all I/Os",
    "--slowest --limit": "the screen has as many rows as fit",
    "--csv --json --output": "a screen; `opline live` writes",
}
INTERMIXED = True  # INTERVAL also behind options
SORTS = ("ios", "bytes", "latency", "name")
EXAMPLES = """\
`opline top RUN` has who did the I/Os of a run, of a recording or a trace, by
thread, process, file and others: `opline top RUN --help`.

Devices are as in `opline live iostat -x`. Threads are those that queued the I/O
(name:TID). The source is BPF: root, and no recording. With -- COMMAND, top ends
with COMMAND and then prints its output. Keys:
  q quits; f or space freezes the screen
  s sorts by the next of I/Os, bytes, latency, name
  i shows all, reads, writes
  c shows cgroups instead of threads
  / filters by a part of a name (Enter ends, Escape removes)
  1 to 9 open one of the slowest I/Os with its steps (Escape closes)

With --model, top records COMMAND, or the processes of -p, and shows the ops of
now (0.8 s behind): classes, each stage's part of the mean, the slowest ops. 1 to
9 open a slow op. A filter on a class selects the stages of the class, too.

examples:
  opline top
  opline top 0.5 --sort latency
  opline top -d sda -i writes
  opline top --by cgroup
  opline top -- fio job.fio
  opline top --model syscalls -- fio job.fio
  opline top --model demo --keep run1 -- ./bench --seconds 60
  opline top run1 --by object
"""


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    parser.add_argument("interval", metavar="INTERVAL", nargs="?", default="1", help="seconds between screens (1)")
    parser.add_argument("--sort", choices=SORTS, default="ios", help="by what (default: ios); s changes it")
    parser.add_argument("--by", choices=("thread", "cgroup"), default="thread", help="whose I/Os a row has (thread)")
    parser.add_argument("--duration", dest="live_duration", metavar="T", help="end after T: 10 (seconds), 5m")
    add_recording(parser)
    parser.add_argument(
        "--max-loss", metavar="N", type=not_negative, help="exit status 3 if more than N events are lost"
    )
    add_io_filters(parser, latency=False)
    for action in parser._actions:  # of what has been recorded
        if action.dest in ("since", "until", "window", "at", "host"):
            action.help = argparse.SUPPRESS
    parser.set_defaults(
        every=None,
        count=None,
        style="linux",
        extended=True,
        per_device=True,
        per=None,
        latency=None,
        json=False,
        csv=False,
        output=None,
    )


class Chosen:
    """The command `top -- COMMAND`."""

    NAME, HELP, EXAMPLES, INTERMIXED = NAME, HELP, EXAMPLES, INTERMIXED
    prepare_parser = staticmethod(prepare_parser)

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command

    def run(self, args: argparse.Namespace) -> int:
        """Shows the screen while the command runs, and then what the command has written."""
        with tempfile.TemporaryFile(prefix="opline-top-") as kept:
            try:
                return run(args, self._command, kept)
            finally:
                kept.seek(0)
                shutil.copyfileobj(kept, sys.stdout.buffer)
                sys.stdout.flush()


def chosen(argv: Sequence[str]) -> tuple[Any, list[str]]:
    """The command that the arguments mean, and its own ones. What comes first and is no time is a run."""
    if argv and (argv[0] == "-" or not argv[0].startswith("-")) and not _is_time(argv[0]):
        from opline_analyses.commands.top_run import OfRun

        return OfRun(), list(argv)
    own, command = apart(argv)
    return (Chosen(command) if command else sys.modules[__name__]), own


def _is_time(text: str) -> bool:
    from opline_analyses.base.quantities import duration_ns

    try:
        duration_ns(text, "INTERVAL")
    except UsageError:
        return False
    return True


def run(args: argparse.Namespace, command: Sequence[str] = (), kept: IO[bytes] | None = None) -> int:
    """Shows the screen."""
    if not sys.stdout.isatty() or not sys.stdin.isatty():
        raise UsageError("top needs a terminal: `opline live iostat -x` says the same to a file or a pipe.")
    if os.environ.get("TERM", "dumb") == "dumb":
        raise UsageError("top needs a terminal that TERM names: `opline live iostat -x` needs none.")
    from opline_analyses.live.terminal import restore

    try:
        return look_on(args, "top", command, kept)
    finally:
        restore()
