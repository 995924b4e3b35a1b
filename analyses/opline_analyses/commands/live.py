# SPDX-License-Identifier: MIT
"""`opline live [VIEW] [-- COMMAND]`: the views of block I/O while it happens."""

from __future__ import annotations

import argparse
import importlib
import os
import select
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opline.errors import UsageError
from opline_analyses.commands.arguments import not_negative
from opline_analyses.commands.common import output

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import IO

NAME = "live"
HELP = "hist, iostat, outliers, log, bitesize or heatmap, while it runs"
DRAWS = True
#: What it lacks of the vocabulary (options.py), and why.
LACKS = {
    "--since --until": "it begins now",
    "--host": "it is about this machine",
    "--slowest": "the slowest are known at the end: `opline live outliers`",
    "--limit --sort": "as of the view; I/Os are shown as they complete",
}
EXAMPLES = """\
VIEW is hist (default), iostat, outliers, log, bitesize or heatmap, with the
options of that command (`opline live VIEW --help`). opline counts the machine's
block requests through BPF: root, and no recording. With --model also ops and
stages (--of): opline records COMMAND, or -p, and counts its I/Os alone (iostat:
those of all programs). log and outliers show I/Os in the order of completion,
and stages in the order of their ops' ends. An interval is 1 s, for outliers
10 s. The view ends with COMMAND, --duration, the processes of --pid, or Ctrl-C,
and then sums up.

Exit status: that of COMMAND; without COMMAND 0, also after Ctrl-C; 3 above
--max-loss.

examples:
  opline live hist
  opline live iostat 0.1 -x -d sda
  opline live outliers 5 --threshold 20ms
  opline live log -i reads -p 4242
  opline live heatmap -o fio.svg -- fio job.fio
  opline live hist --of ops --per class --model syscalls -- fio job.fio
  opline live log --of ops --latency '>5ms' --model syscalls -p 4242
"""
VIEWS = {
    "hist": ("hist", "Hist"), "iostat": ("iostat", "Iostat"), "outliers": ("listed", "Outliers"),
    "log": ("listed", "Log"), "bitesize": ("whole", "Bitesize"), "heatmap": ("whole", "Heatmap"),
}  # fmt: skip
#: Options that a view knows for what has been recorded alone: the help of live leaves them out.
OF_RUNS = ("since", "until", "window", "at", "host", "compat", "unitstime", "per_device", "maxcol", "percentiles")
PATIENCE_S = 0.1
SIZE_LIMIT = "4G"


class Chosen:
    """The command `live VIEW`."""

    def __init__(self, view: str, command: Sequence[str] = ()) -> None:
        self._command = command
        self._view = view
        self._module: Any = importlib.import_module(f"opline_analyses.commands.{view}")
        self.NAME = f"{NAME} {view}"
        self.HELP = f"{self._module.HELP}, while it happens"
        self.EXAMPLES = EXAMPLES
        self.INTERMIXED = True

    def prepare_parser(self, parser: argparse.ArgumentParser) -> None:
        """Adds the arguments."""
        self._module.add_options(parser)
        for action in parser._actions:
            if action.dest in OF_RUNS:
                action.help = argparse.SUPPRESS
        parser.add_argument("--duration", dest="live_duration", metavar="T", help="end after T: 10 (seconds), 5m")
        add_recording(parser)
        parser.add_argument(
            "--max-loss", metavar="N", type=not_negative, help="exit status 3 if more than N events are lost"
        )
        parser.epilog = f"-- COMMAND runs COMMAND, whose standard output goes to standard error.\n\n{EXAMPLES}"

    def run(self, args: argparse.Namespace) -> int:
        """Looks on."""
        return look_on(args, self._view, self._command)


def apart(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """Our own arguments, and the command behind `--`. Raises UsageError."""
    own = list(argv)
    if "--" not in own:
        return own, []
    at = own.index("--")
    if at + 1 == len(own):
        raise UsageError("There is no COMMAND after --.")
    return own[:at], own[at + 1 :]


def chosen(argv: Sequence[str]) -> tuple[Chosen, list[str]]:
    """The command that the arguments mean, and its own ones. Raises UsageError."""
    own, command = apart(argv)
    if own and own[0][:1].isalpha() and own[0] not in VIEWS:
        raise UsageError(f"{own[0]} is no view. Write one of {', '.join(VIEWS)}; a command goes after --.")
    view = own.pop(0) if own and own[0] in VIEWS else "hist"
    return Chosen(view, command), own


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """The arguments of the view that is meant if none is named."""
    Chosen("hist").prepare_parser(parser)


def run(args: argparse.Namespace) -> int:
    """The view that is meant if none is named."""
    return look_on(args, "hist")


def add_recording(parser: argparse.ArgumentParser) -> None:
    """The options for ops: they need a model, and what is recorded."""
    parser.add_argument("--model", metavar="M", help="record with this op model, and show its ops, too")
    parser.add_argument(
        "--keep", metavar="DIR", type=Path, help="with --model: keep the recording there (default: it is removed)"
    )
    parser.add_argument("--size-limit", metavar="SIZE", help="with --model: tracing stops at this size (default: 4G)")
    parser.add_argument(
        "--all-programs", action="store_true", help="with --model: count other programs' ops and requests, too"
    )


def _check(args: argparse.Namespace, view: str) -> None:
    if view == "iostat":
        from opline_analyses.commands import iostat

        iostat.check(args)
    of = getattr(args, "of", "requests")
    if (per := getattr(args, "per", None)) == "process" or (per == "object" and of not in ("ops", "stages")):
        raise UsageError(f"--by {per}: of a run: `opline record` first (live --by object: --of ops and --model).")
    if args.model is None:
        if of != "requests":
            raise UsageError(f"--of {of}: live counts block requests; with --model also ops and stages.")
        if args.op_class:
            raise UsageError("--class: live knows ops with --model only.")
        if args.keep is not None or args.size_limit is not None:
            raise UsageError("--keep and --size-limit are about the recording that --model makes.")
    elif of == "bios":
        raise UsageError("--of bios: not with --model; `opline record` first.")
    if args.window or args.at or args.since or args.until:
        raise UsageError("--since, --until, --window and --at are for what has been recorded.")


def look_on(args: argparse.Namespace, view: str, command: Sequence[str] = (), kept: IO[bytes] | None = None) -> int:
    """A view of what happens, until it is over; the exit status. ``kept``: what the command writes goes there. Raises
    OplineError, UsageError.
    """
    from opline.capture.sources.livesource import lacking
    from opline.errors import OplineError
    from opline.talk import talk
    from opline_analyses.base.quantities import duration_ns

    _check(args, view)
    text = args.live_duration or (args.duration if view in ("log", "bitesize") else None)
    duration = None if text is None else duration_ns(text, "--duration")
    if duration == 0:
        raise UsageError("--duration must be more than 0.")
    for pid in args.pid or ():
        if not Path(f"/proc/{pid}").is_dir():
            raise UsageError(f"--pid {pid}: there is no such process; `ps -e` lists those that run.")
    why = lacking() if args.model is None else None
    if why is not None:
        raise OplineError(f"Nothing can be seen here: {why}. `opline doctor` says what this machine can do.")
    if args.model is not None and not command and not args.pid:
        raise UsageError("--model needs -- COMMAND, or -p PID of a running process.")
    until = "until COMMAND ends" if command else "Ctrl-C ends it"
    of_devices = view in ("iostat", "top")
    if args.model is not None:
        whose = " Devices and threads are of all programs." if of_devices else ""
        talk(f"recording with the model {args.model}: {until}.{whose}")
    from opline_analyses.live.watch import Wish, watch

    whose = " of all programs" if command and not args.pid and not args.comm else ""
    wish = Wish(command, args.pid or (), duration, kept, f"tracing block I/O{whose}: {until}.")
    module, name = VIEWS[view] if view in VIEWS else (view, view.title())
    kind = getattr(importlib.import_module(f"opline_analyses.live.{module}"), name)
    with output(args.output) as out:
        write = _writer(out, args.output is None)
        if args.model is None:
            status, lost = watch(lambda *now: kind(args, *now), wish, write)
        else:
            from opline_analyses.live.recorded import TABLES, Asked, watch_recorded

            args.pid = None  # they are who is recorded
            alone = () if args.all_programs else ("ops", "stages") if of_devices else TABLES
            asked = Asked(args.model, ["--size-limit", args.size_limit or SIZE_LIMIT], args.keep, alone)
            status, lost = watch_recorded(lambda *now: kind(args, *now), wish, write, asked)
    if args.max_loss is not None and lost > args.max_loss:
        raise OplineError(f"{lost} lost, more than --max-loss {args.max_loss}.", exit_code=3)
    return status


def _writer(out: Any, to_stdout: bool) -> Callable[[bytes], None]:
    """Writes at once. Who reads slowly is waited for, but not beyond Ctrl-C."""

    def write(piece: bytes) -> None:
        if not to_stdout:
            out.write(piece)
            return
        sys.stdout.flush()
        descriptor = sys.stdout.fileno()
        for at in range(0, len(piece), select.PIPE_BUF):
            part = piece[at : at + select.PIPE_BUF]
            while not select.select([], [descriptor], [], PATIENCE_S)[1]:
                if _interrupted():
                    return
            os.write(descriptor, part)

    return write


def _interrupted() -> bool:
    import signal

    return bool(signal.sigpending() & {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
