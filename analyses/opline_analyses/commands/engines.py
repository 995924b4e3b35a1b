# SPDX-License-Identifier: MIT
"""--engine and --also: one command about many recordings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opline.errors import OplineError, UsageError
from opline_analyses.commands.common import input_path

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager

    from opline_analyses.engine.recordings import Answers, Asking

DEFAULT = "processes"
HELP = """
--engine: RUN is a cluster, or a folder of recordings, each summarised by a
process or a worker of Dask. The sums are exact with any number of workers. A
recording without an answer is named: exit status 3.
"""


def add_engine(parser: argparse.ArgumentParser, also: bool = True) -> None:
    """The options; without ``also`` the command takes several runs itself."""
    group = parser.add_argument_group("many recordings")
    group.add_argument(
        "--engine", metavar="E",
        help="a task per recording: processes, processes:N (at once), dask:ADDRESS or dask:ssh:HOSTFILE",
    )  # fmt: skip
    if not also:
        return
    group.add_argument(
        "--also", metavar="RUN", type=input_path, action="append", default=[],
        help="count the ops or I/Os of this recording, too; may be given again",
    )  # fmt: skip


def wanted(args: argparse.Namespace) -> bool:
    """Whether the command is about many recordings."""
    return args.engine is not None or bool(args.also)


def refuse(args: argparse.Namespace, options: Mapping[str, str]) -> None:
    """Raises UsageError for options that have no meaning over several recordings, by the argument's name."""
    for name, option in options.items():
        if getattr(args, name, None):
            raise UsageError(f"{option} is about one recording: leave out --engine and --also, or {option}.")


def question(args: argparse.Namespace, options: Mapping[str, Any]) -> dict[str, Any]:
    """What is asked of each recording: the options of the command and those of every command. Raises UsageError."""
    refuse(args, {"extents": "--extents"})
    return {"model": args.model, "reader": args.reader, "all_programs": args.all_programs, **options}


def answers(
    args: argparse.Namespace, task: str, options: Mapping[str, Any], paths: Sequence[str] | None = None
) -> Answers:
    """The summaries of RUN and of what --also names, or of ``paths``. Raises OplineError."""
    from opline_analyses.engine.recordings import ask

    paths = [str(args.run), *args.also] if paths is None else paths
    return ask(args.engine or DEFAULT, task, paths, question(args, options))


def asked(args: argparse.Namespace, options: Mapping[str, Any]) -> AbstractContextManager[Asking]:
    """What asks RUN and what --also names several questions. Raises OplineError."""
    from opline_analyses.engine.recordings import asking

    return asking(args.engine or DEFAULT, [str(args.run), *args.also], question(args, options))


def status(args: argparse.Namespace, found: Answers) -> int:
    """Says which recordings are not whole, when all is written; the exit status. Raises OplineError if more was lost
    than --max-loss.
    """
    from opline_analyses.engine.recordings import INCOMPLETE

    found.tell_gaps()
    lost = sum(summary["lost"] for summary in found.summaries)
    if args.max_loss is not None and lost > args.max_loss:
        raise OplineError(f"{lost} lost, more than --max-loss {args.max_loss}.", exit_code=3)
    return INCOMPLETE if found.missing else 0
