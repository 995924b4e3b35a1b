# SPDX-License-Identifier: MIT
"""Formats for people: times in microseconds, shares in per cent, sentences in lines.

Takes integers and texts, gives strings. Nothing here prints.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from opline.talk import shown
from opline_analyses.base.screen import WIDTH

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from opline_analyses.base.result_table import Part

SHORTEST = 3  # characters of a name that are always shown


def us(ns: float | None, digits: int = 3) -> str:
    """Nanoseconds as microseconds with ``digits`` decimals, exact for integers and 3; an empty cell for unknown."""
    if ns is None:
        return ""
    if digits == 3 and isinstance(ns, int):
        sign = "-" if ns < 0 else ""
        return f"{sign}{abs(ns) // 1000}.{abs(ns) % 1000:03d}"
    return f"{ns / 1000:z.{digits}f}"


def table_digits(typical_ns: float) -> int:
    """Decimals of a table in microseconds, so that its typical value has about four figures."""
    return 2 if typical_ns < 100e3 else 1 if typical_ns < 100e6 else 0


def plain_us(ns: float) -> str:
    """Microseconds with about four figures, as pictures have them, whose axes are in us: 0.801, 81.56, 11701."""
    digits = next((d for limit, d in ((10e3, 3), (100e3, 2), (1000e3, 1)) if abs(ns) < limit), 0)
    return f"{us(ns, digits)} us"


def duration(ns: float, figures: int = 4) -> str:
    """A duration in the unit that suits it: 812 ns, 12.3 us, 4.56 ms, 1.23 s."""

    def rounded(value: float) -> str:
        return f"{float(f'{value:.{figures}g}'):g}"

    for limit, divisor, unit in ((1e3, 1.0, "ns"), (1e6, 1e3, "us"), (1e9, 1e6, "ms")):
        if abs(ns) < limit:
            return f"{ns:z.0f} ns" if unit == "ns" else f"{rounded(ns / divisor)} {unit}"
    return f"{rounded(ns / 1e9)} s"


def percent(part: float | None, whole: float | None, digits: int = 1) -> str:
    """``part`` of ``whole`` in per cent, without the sign; empty where it is not defined."""
    if part is None or not whole:
        return ""
    return f"{100 * part / whole:z.{digits}f}"


def device(dev: int | None) -> str:
    """A kernel-internal device number (major << 20 | minor) as 8:16; empty for unknown."""
    return "" if dev is None else f"{dev >> 20}:{dev & 0xFFFFF}"


def device_name(names: dict[int, str], dev: int) -> str:
    """A device's name where it is known, else its number."""
    return names.get(dev) or device(dev)


def pasted(path: object) -> str:
    """A path as a shell takes it, which no command takes for an option."""
    text = str(path)
    return shlex.quote(f"./{text}" if text.startswith("-") else text)


def count_of(n: int, one: str, many: str | None = None) -> str:
    """1 op, 2 ops."""
    return f"{n} {one if n == 1 else many or one + 's'}"


def shortened(text: str, room: int) -> str:
    """The text, or its begin and its end with ~ between them where it is longer."""
    room = max(room, SHORTEST)
    return text if len(text) <= room else f"{text[: room // 2]}~{text[len(text) - (room - 1) // 2 :]}"


def level(widths: Sequence[int], room: int) -> int:
    """How wide each may be at most, so that all of them have room, if it can be: the widest give way first."""
    widest = max(widths, default=SHORTEST)
    return next((most for most in range(widest, SHORTEST, -1) if sum(min(w, most) for w in widths) <= room), SHORTEST)


def wrapped(line: str, hang: int | None = None) -> Iterator[str]:
    """A sentence in lines of WIDTH columns; those after the first begin in column ``hang``: four behind the first."""
    if len(line) <= WIDTH:
        yield line
        return
    import textwrap

    behind = len(line) - len(line.lstrip()) + 4 if hang is None else hang
    yield from textwrap.wrap(
        line, WIDTH, subsequent_indent=" " * behind, break_long_words=False, break_on_hyphens=False
    )


def fitted(parts: Iterable[Part]) -> Iterator[Part]:
    """The parts of a text with their sentences wrapped. Tables, and commands to type, stay what they are."""
    for line in parts:
        if not isinstance(line, str) or len(line) <= WIDTH or line.startswith("  opline "):
            yield line
        else:
            yield from wrapped(line)


def json_shown(document: str) -> str:
    """JSON with what a terminal would obey as escapes, too: it means the same."""
    return document if document.isprintable() else "".join(map(_json_character, document))


def _json_character(c: str) -> str:
    return c if c in "\n\r\t " or shown(c) == c else f"\\u{ord(c):04x}"
