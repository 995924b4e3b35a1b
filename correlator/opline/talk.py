# SPDX-License-Identifier: MIT
"""What is said to the person, on standard error: standard output is data."""

from __future__ import annotations

import sys
from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_explaining = False


def talk(line: str) -> None:
    """One line, after the program's name."""
    sys.stderr.write(f"opline: {line}\n")


def explain(line: str) -> None:
    """What was decided, and why: said with --verbose only."""
    if _explaining:
        talk(line)


@contextmanager
def explaining(on: bool) -> Iterator[None]:
    """Whether ``explain`` says something, inside."""
    global _explaining
    before, _explaining = _explaining, on
    try:
        yield
    finally:
        _explaining = before
