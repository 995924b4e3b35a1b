# SPDX-License-Identifier: MIT
"""The terminal of `opline top`: lines on a separate screen, keys without Enter, everything restored at the end.

Python's own curses: knows terminals by terminfo, handles resizes, and needs no further package on a server.
"""

from __future__ import annotations

import curses
import shutil
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

_open: list[Terminal] = []


def restore() -> None:
    """Restores every terminal, after any error."""
    while _open:
        _open.pop().close()


class Terminal:
    """Begins with the first drawing. ``close`` may be called again."""

    def __init__(self) -> None:
        self._screen: Any = None
        self._size = (0, 0)

    def _begun(self) -> Any:
        if self._screen is None:
            self._screen = curses.initscr()
            curses.noecho()
            curses.cbreak()
            self._screen.nodelay(True)
            self._screen.keypad(False)
            with suppress(curses.error):  # a terminal without a way to hide the cursor
                curses.curs_set(0)
            _open.append(self)
        return self._screen

    def size(self) -> tuple[int, int]:
        """Columns and lines of the terminal now."""
        found = shutil.get_terminal_size()
        return found.columns, found.lines

    def draw(self, lines: Sequence[str]) -> None:
        """Shows the lines, from the top; the surplus is cut off."""
        screen = self._begun()
        if self._size != (size := self.size()):
            self._size = size
            curses.resizeterm(size[1], size[0])
            screen.clear()
        screen.erase()
        for place, line in enumerate(lines[: size[1]]):
            with suppress(curses.error):  # the last cell of the last line
                screen.addnstr(
                    place, 0, line, size[0], curses.A_REVERSE if place in (0, size[1] - 1) else curses.A_NORMAL
                )
        screen.redrawwin()  # removes foreign text from the screen
        screen.refresh()

    def keys(self) -> list[str]:
        """The keys pressed since the last call."""
        if self._screen is None:
            return []
        found = []
        while (key := self._screen.getch()) != -1:
            if 0 <= key < 0x100:
                found.append(chr(key))
        return found

    def close(self) -> None:
        """Restores the terminal."""
        if self._screen is not None:
            self._screen = None
            with suppress(curses.error):
                curses.curs_set(1)
            curses.endwin()
