# SPDX-License-Identifier: MIT
"""The screen that a text goes to: its width, whether it shows weight and colour, and a pager where the text is long.

A file and a pipe are PAPER: 80 columns, no weight, no pager. So what a script reads is the same everywhere.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import TextIO

WIDTH = 80  # columns of a text
NARROWEST = 40
BOLD, DIM, RED = "1", "2", "31"


class Screen(NamedTuple):
    """Columns, lines (None: no end), and whether ECMA-48 codes give texts weight and colour."""

    width: int = WIDTH
    height: int | None = None
    weighs: bool = False

    def styled(self, text: str, code: str) -> str:
        """The text with a weight or colour, where the screen has such."""
        return f"\x1b[{code}m{text}\x1b[0m" if self.weighs and code else text


PAPER = Screen()


def screen_of(stream: TextIO, environment: Mapping[str, str] = os.environ) -> Screen:
    """The terminal behind a stream, or PAPER. NO_COLOR (https://no-color.org) and TERM=dumb switch weight off."""
    if not stream.isatty():
        return PAPER
    try:
        width, height = os.get_terminal_size(stream.fileno())
    except OSError:
        return PAPER
    weighs = not environment.get("NO_COLOR") and environment.get("TERM", "dumb") != "dumb"
    return Screen(max(width, NARROWEST) if width else WIDTH, height or None, weighs)


def page(lines: Iterable[bytes], screen: Screen, environment: Mapping[str, str] = os.environ) -> Iterable[bytes]:
    """Shows a text that is longer than the screen with $PAGER, or `less`. Gives the lines that are still to be written:
    all of them where they fit, or where there is no pager.

    LESSSECURE keeps a pager that root runs from starting other programs or writing files (less(1), SECURITY).
    """
    if screen.height is None or not sys.stdin.isatty():
        return lines
    import shlex
    import shutil
    from itertools import chain, islice

    words = shlex.split(environment.get("PAGER", "less"))
    if not words or words == ["cat"] or shutil.which(words[0]) is None:
        return lines
    rest = iter(lines)
    first = list(islice(rest, screen.height))
    if len(first) < screen.height:
        return first
    import subprocess

    given = {"LESS": "FRX", **environment, "LESSSECURE": "1"}
    with subprocess.Popen(words, stdin=subprocess.PIPE, env=given) as pager, suppress(BrokenPipeError):  # q: it ends
        assert pager.stdin is not None
        pager.stdin.writelines(chain(first, rest))
    return ()
