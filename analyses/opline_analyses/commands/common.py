# SPDX-License-Identifier: MIT
"""What the commands share: the RUN argument, opening it with its ledger on stderr, and where the output goes."""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import contextmanager

from opline.errors import OplineError, UsageError
from opline.paths import plain
from opline.store.run import BareTrace, is_run, locate
from opline.talk import talk
from opline_analyses import ledger
from opline_analyses.text import complete_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path
    from typing import BinaryIO

    from opline_analyses.run import Run


def add_run(parser: argparse.ArgumentParser, optional: bool = False) -> None:
    """RUN, and what add_model adds."""
    parser.add_argument(
        "run", metavar="RUN", nargs="?" if optional else None, help="a run, a recording, or a trace (with --model)"
    )
    add_model(parser)


def add_model(parser: argparse.ArgumentParser) -> None:
    """--model, --reader, --extents and --max-loss."""
    parser.add_argument("--model", metavar="M", help="a trace's op model: a shipped one's name, or a TOML file")
    parser.add_argument(
        "--reader", choices=("auto", "native", "bt2"), help="what reads a trace (default: $OPLINE_READER, else auto)"
    )
    parser.add_argument(
        "--extents",
        metavar="FILE",
        type=file_path,
        action="append",
        default=[],
        help="where files lie on disk: extents.json, or the text of `filefrag -v -b512`; may be given again",
    )
    parser.add_argument("--max-loss", metavar="N", type=int, help="exit status 3 above N losses (data_loss and error)")


def file_path(text: str) -> Path:
    """An argument that is a path."""
    from pathlib import Path  # 5 ms to import: only where there is one

    return Path(text)


def add_output(parser: argparse.ArgumentParser) -> None:
    """-o FILE."""
    parser.add_argument(
        "-o", "--output", metavar="FILE", type=file_path, help="write to FILE instead of standard output"
    )


def bare_trace(args: argparse.Namespace) -> BareTrace | None:
    """The trace that RUN means, where no run is kept of it; a recording gets its run first. Raises OplineError."""
    path = plain(args.run)
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError, ValueError) as error:  # ValueError: a NUL
        raise UsageError(f"{path} does not exist.") from error
    if args.model is None and args.reader is None and not args.extents and is_run(path):
        return None
    found = locate(path, args.model, reader=args.reader, extents=args.extents)
    return found if isinstance(found, BareTrace) else None


def tell_losses(found: list[ledger.Entry]) -> None:
    """What was lost, on stderr, before anything else."""
    for line in ledger.warnings(found):
        talk(line)


def check_losses(args: argparse.Namespace, found: list[ledger.Entry]) -> None:
    """Raises OplineError with exit status 3 if more was lost than --max-loss. For the end, when all is written."""
    lost = ledger.bad_count(found)
    if args.max_loss is not None and lost > args.max_loss:
        raise OplineError(f"{lost} lost, more than --max-loss {args.max_loss}.", exit_code=3)


@contextmanager
def opened(
    args: argparse.Namespace, losses: bool = True, path: str | Path | None = None, tables: Sequence[str] | None = None
) -> Iterator[Run]:
    """The run that RUN (or ``path``) names; what was lost in it goes to stderr first. A trace's temporary run has rows
    of these ``tables`` only.

    Raises OplineError with exit status 3 at the end, when all is written, if that is more than --max-loss.
    """
    from opline_analyses.run import open_run

    with open_run(path or args.run, args.model, args.reader, args.extents, tables) as run:
        if losses:
            tell_losses(ledger.entries(run))
        yield run
        if args.max_loss is not None:
            check_losses(args, ledger.entries(run))


@contextmanager
def output(path: Path | None) -> Iterator[BinaryIO]:
    """Standard output, or a file that appears when it is complete."""
    if path is None:
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    else:
        with complete_file(path) as out:
            yield out
