# SPDX-License-Identifier: MIT
"""Several recordings of one command, or of two in turn: which is recorded when, and where each goes.

Takes what `opline record --repeat` is told; gives the turns. Two commands take turns, so that what the machine does
meanwhile meets both, and which of a pair comes first is drawn by lot: strict alternation would line up with anything
that comes back every other time.
"""

from __future__ import annotations

import json
import random
import shlex
from typing import TYPE_CHECKING

from opline.errors import OplineError, UsageError
from opline.values import Value
from opline_analyses.base.text import pasted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


class Turn(Value):
    """One recording: its directory's name, and the command."""

    name: str
    command: list[str]


def plan(command: Sequence[str], against: str | None, repeat: int, lot: random.Random | None = None) -> list[Turn]:
    """The turns: run1 ... of one command; a1 b1 a2 b2 ... of two, each pair in either order. ``against``: A's command,
    as a shell reads its words. Raises UsageError.
    """
    if against is None:
        return [Turn(f"run{n}", list(command)) for n in range(1, repeat + 1)]
    try:
        other = shlex.split(against)
    except ValueError as error:
        raise UsageError(f"--against {against}: {str(error).lower()}.") from error
    if not other:
        raise UsageError("--against has no command in it.")
    return turns_of_pairs("a", "b", other, command, repeat, lot)


def turns_of_pairs(
    first: str, second: str, one: Sequence[str], other: Sequence[str], repeat: int, lot: random.Random | None = None
) -> list[Turn]:
    """Pairs of two commands in either order, their directories' names numbered."""
    lot = lot or random.Random()
    turns = []
    for n in range(1, repeat + 1):
        pair = [Turn(f"{first}{n}", list(one)), Turn(f"{second}{n}", list(other))]
        lot.shuffle(pair)
        turns += pair
    return turns


def command_ns(recording: Path) -> int:
    """How long the command of a recording ran that this process has made."""
    command = json.loads((recording / "recording.json").read_text())["command"]
    return int(command["end_monotonic_ns"]) - int(command["begin_monotonic_ns"])


def make_directory(directory: Path) -> None:
    """Makes the series' directory. Raises OplineError if it is there with something in it."""
    try:
        directory.mkdir(exist_ok=True)
        if any(directory.iterdir()):
            raise OplineError(f"{directory} exists and is not empty: choose another directory with -o.")
    except OSError as error:
        raise OplineError(f"Cannot make {directory}: {error.strerror}.") from error


def closing_lines(directory: Path, two: bool) -> Iterator[str]:
    """What to type next."""
    at = pasted(directory)
    if two:
        yield f"a: the command of --against, b: the command; next:  opline compare {at}/a* -- {at}/b*"
    else:
        yield f"next:  opline compare {at}/run* --save {at}.json   # a baseline to compare later runs with"
