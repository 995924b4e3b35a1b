# SPDX-License-Identifier: MIT
"""What is said to the person, on standard error: standard output is data."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator
    from contextlib import AbstractContextManager
    from typing import TypeVar

    T = TypeVar("T")

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


class Progress:
    """A line on stderr that says how far something is, where stderr is a terminal. The first one comes after
    ``after_s`` seconds.
    """

    def __init__(self, on: bool, what: str, after_s: float = 0.5) -> None:
        self._on = on and sys.stderr.isatty()
        self._what = what
        self._next = time.monotonic() + after_s
        self._shown = False
        self._step = 0  # the passes that were shown, this one included
        self._passing = False

    def show(self, share: float | None, more: str = "") -> bool:
        """Shows the share that is done (0 to 1; None: unknown), and more about it, if the line is not new; tells
        whether it did.
        """
        now = time.monotonic()
        if not self._on or now < self._next:
            return False
        self._next = now + 0.2
        self._shown = True
        how_far = "" if share is None else f" {share:4.0%}"
        sys.stderr.write(f"\r{self._what}{how_far}{more} ")
        sys.stderr.flush()
        return True

    def clear(self) -> None:
        """Takes the line away."""
        if self._shown:
            self._shown, self._next = False, 0.0
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    @contextmanager
    def during(self) -> Iterator[None]:
        """Has the line, without a share, while a question is answered that is no part of a pass."""
        if self._passing or _in_another_thread():
            yield
            return
        self.show(None, ": querying")
        try:
            yield
        finally:
            self.clear()

    def through(self, items: Iterable[T], whole: int, size: Callable[[T], int]) -> Iterator[T]:
        """The items, with the line while they last; of passes inside each other the outer one has the line."""
        if self._passing or _in_another_thread():
            yield from items
            return
        self._passing, done, counted = True, 0, False
        try:
            for item in items:
                if self.show(done / whole if whole else None, f", step {self._step + (not counted)}") and not counted:
                    self._step, counted = self._step + 1, True
                yield item
                done += size(item)
        finally:
            self._passing = False
            self.clear()


def _in_another_thread() -> bool:
    import threading  # no command needs it to start

    return threading.current_thread() is not threading.main_thread()


_progress: Progress | None = None


@contextmanager
def progressing(on: bool, what: str) -> Iterator[None]:
    """Whether ``passing`` has a line on stderr, inside, from the second second on."""
    global _progress
    before, _progress = _progress, Progress(on, what, after_s=1.0)
    try:
        yield
    finally:
        _progress.clear()
        _progress = before


def passing(items: Collection[T]) -> Iterator[T]:
    """The items of an analysis that goes through them all: tells the person how far it is."""
    return passing_rows(items, len(items), lambda _item: 1)


def passing_rows(items: Iterable[T], whole: int, size: Callable[[T], int]) -> Iterator[T]:
    """The same of items whose sizes are ``whole`` together."""
    return iter(items) if _progress is None else _progress.through(items, whole, size)


def asking() -> AbstractContextManager[None]:
    """Around a question to a run's tables: tells the person that the command is at work."""
    return nullcontext() if _progress is None else _progress.during()


def talk(line: str, *more: str) -> None:
    """One line, after the program's name, and perhaps more of the same message below it."""
    if _progress is not None:
        _progress.clear()
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
