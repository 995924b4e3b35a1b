# SPDX-License-Identifier: MIT
"""What is said to the person, on standard error: standard output is data."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_explaining = False

#: What a terminal obeys, and what changes the order of a line's characters. kControls in shown.cpp is the same.
_CONTROLS = (*range(0x20), *range(0x7F, 0xA0), 0x61C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A))
_ESCAPES = {n: f"\\x{n:02x}" if n < 0x100 else f"\\u{n:04x}" for n in _CONTROLS}
_ESCAPES |= {0xDC00 + n: f"\\x{n:02x}" for n in range(0x80, 0x100)}  # a byte that is not UTF-8 (PEP 383)


def shown(text: str) -> str:
    """A text of one line as people see it: names come from traces, and a name could be an order to the terminal."""
    if text.isprintable():
        return text
    return text.translate(_ESCAPES).encode("utf-8", "backslashreplace").decode()


def talk(line: str, *more: str) -> None:
    """One line, after the program's name, and perhaps more of the same message below it."""
    sys.stderr.write("".join(f"{shown(text)}\n" for text in (f"opline: {line}", *more)))


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
