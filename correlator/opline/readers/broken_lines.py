# SPDX-License-Identifier: MIT
"""Lines of a tracer that a mail program or a terminal has broken: each event is put on one line again.

A mail program breaks a line at a blank (at 72 to 78 letters), a terminal or `fold` at its width, within words and
numbers. A line is broken only where it has a time and is no whole event, and is one together with the lines behind it
that have no time. All else stays as it is.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_TIME = re.compile(rb"\b\d{1,12}\.\d{6,9}(?::|\s|$)")
_PLACE = rb"\d{1,20} [+/] \d{1,20}"
#: Ends of an event of perf, ftrace or trace-cmd (TP_printk in the kernel's include/trace/events/block.h), of fields by
#: name (perf script and trace-cmd report -R), and of blkparse.
_WHOLE = re.compile(
    rb"[^\n]{0,200}?\bblock_\w{1,30}: +(?:"
    rb"\d{1,4},\d{1,7} [A-Z]{1,12} (?:(?:\d{1,12} )?\([^()\n]{0,120}\) )?" + _PLACE + rb" "
    rb"(?:(?:[\w-]{1,12},\d{1,6},\d{1,6} )?\[[^\n]{0,32}\]|<- \(\d{1,4},\d{1,7}\) \d{1,20})"
    rb"|dev=\w{1,12}(?: \w{1,24}=[^\s=]{0,24}(?: \(-?\d{1,12}\))?){1,16} (?:comm|cmd)=[^\n]{0,64})"
    rb"|\s*\d{1,4},\d{1,7} +\d{1,5} +\d{1,12} +\d{1,9}\.\d{9} +\d{1,9} +[A-Z] +[A-Z]{1,12} "
    + _PLACE
    + rb" (?:\([^()\n]{1,24}\) )?(?:\[[^\n]{0,32}\]|<- \(\d{1,4},\d{1,7}\) \d{1,20})"
)
_MOST = 3  # lines behind the first


class BrokenLines:
    """How the lines of a text are broken that begins with ``lines``. False: none is."""

    def __init__(self, lines: list[bytes]) -> None:
        self._width = max((len(line.rstrip()) for line in lines), default=0)
        self._within_words = False
        parts = [group for group in _groups(lines) if len(group) > 1]
        at_blanks, within_words = (
            sum(_joined(group, width) is not None for group in parts) for width in (0, self._width)
        )
        self._found = at_blanks + within_words > 0
        self._within_words = within_words > at_blanks

    def __bool__(self) -> bool:
        return self._found

    def whole(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        """The lines, each with its end, as their writer wrote them."""
        widths = (self._width, 0) if self._within_words else (0, self._width)
        for group in _groups(lines):
            joined = next((line for width in widths if (line := _joined(group, width)) is not None), None)
            if joined is None:
                yield from group
            else:
                yield joined


def _groups(lines: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Each line that is broken perhaps, with the lines behind it that may belong to it; other lines alone."""
    group: list[bytes] = []
    for line in lines:
        bare = line.strip()
        if group and bare and len(group) <= _MOST and not bare.startswith(b"#") and not _TIME.search(line):
            group.append(line)
            continue
        if group:
            yield group
        group = []
        if _TIME.search(line) and not _WHOLE.fullmatch(line.rstrip()):
            group.append(line)
        else:
            yield [line]
    if group:
        yield group


def _joined(group: list[bytes], width: int) -> bytes | None:
    """The event that the first lines of a group make, and the rest of them as it is; None if they make none. ``width``:
    of lines that are broken within words; 0: they are broken at blanks.
    """
    line = group[0].rstrip()
    for n, more in enumerate(group[1:], 2):
        line = line.ljust(width) + more.rstrip() if width else line + b" " + more.strip()
        if _WHOLE.fullmatch(line):
            return b"\n".join([line, *(rest.rstrip() for rest in group[n:]), b""])
    return None
