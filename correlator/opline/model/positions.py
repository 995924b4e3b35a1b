# SPDX-License-Identifier: MIT
"""Where things stand in a TOML text: takes a text that tomli has accepted, gives the line of every key and element.

tomli keeps no positions, and a mistake without a line number is hard to find. The text is known to be valid here, so
the scan only has to tell strings, comments, brackets and keys apart; a property test holds it against tomli's result.
"""

from __future__ import annotations

import itertools
import re
from functools import cache

from opline.values import Value

Path = tuple[str | int, ...]

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_BLANK = re.compile(r"(?:[ \t\n]|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_BARE_VALUE = re.compile(r"[^,\]}\n#]+")
_STRINGS = {  # by what they begin with, the longer first; compiled when one is met
    '"""': r'"""(?:\\.|[^\\])*?"{3,5}(?!")',
    "'''": r"'''.*?'{3,5}(?!')",
    '"': r'"(?:\\.|[^"\\\n])*"',
    "'": r"'[^'\n]*'",
}
_ESCAPE = r'\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[btnfr"\\])'
_ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", '"': '"', "\\": "\\"}


class Place(Value):
    """Where a value was written: its line from 1, its ordinal in the text, and whether it is an inline table."""

    line: int
    order: int
    inline: bool = False


def positions(text: str) -> dict[Path, Place]:
    """The place of every table, key and list element of a valid TOML text, by its path from the root.

    A table that several headers add to has the place of the first.
    """
    return _Scanner(text.replace("\r\n", "\n")).document()


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.line = 1
        self.counted = 0  # newlines are counted up to here
        self.places: dict[Path, Place] = {}
        self.lengths: dict[Path, int] = {}  # of arrays of tables

    def skip(self, pattern: re.Pattern[str]) -> None:
        if found := pattern.match(self.text, self.at):
            self.at = found.end()

    def note(self, path: Path, inline: bool = False) -> None:
        self.line += self.text.count("\n", self.counted, self.at)
        self.counted = self.at
        self.places.setdefault(path, Place(self.line, len(self.places), inline))

    def here(self, char: str) -> bool:
        return self.text.startswith(char, self.at)

    def document(self) -> dict[Path, Place]:
        base: Path = ()
        while True:
            self.skip(_BLANK)
            if self.at >= len(self.text):
                return self.places
            if self.here("["):
                base = self.header()
            else:
                self.pair(base)

    def header(self) -> Path:
        array = self.here("[[")
        self.at += 2 if array else 1
        parts = self.dotted_key()
        self.at += 2 if array else 1
        path: Path = ()
        for i, part in enumerate(parts):
            path += (part,)
            self.note(path)
            last = i == len(parts) - 1
            if last and array:
                self.lengths[path] = self.lengths.get(path, 0) + 1
            if path in self.lengths:
                path += (self.lengths[path] - 1,)
                self.note(path)
        return path

    def pair(self, base: Path) -> None:
        parts = self.dotted_key()
        path = base
        for part in parts[:-1]:
            path += (part,)
            self.note(path)
        path += (parts[-1],)
        self.note(path)
        place = self.places[path]
        self.at += 1  # '='
        self.skip(_SPACE)
        if self.here("{"):
            self.places[path] = Place(place.line, place.order, inline=True)
        self.value(path)

    def dotted_key(self) -> list[str]:
        parts: list[str] = []
        while True:
            self.skip(_SPACE)
            if found := _BARE_KEY.match(self.text, self.at):
                self.at = found.end()
                parts.append(found[0])
            else:
                parts.append(self.string())
            self.skip(_SPACE)
            if not self.here("."):
                return parts
            self.at += 1

    def string(self) -> str:
        for quotes in _STRINGS:
            if self.here(quotes) and (found := _string_in(quotes).match(self.text, self.at)):
                self.at = found.end()
                inner = found[0][1:-1]
                return re.sub(_ESCAPE, _unescape, inner) if quotes == '"' and "\\" in inner else inner
        raise AssertionError("not TOML that tomli accepts")

    def value(self, path: Path) -> None:
        if self.here('"') or self.here("'"):
            self.string()
        elif self.here("["):
            self.at += 1
            for i in itertools.count():
                self.skip(_BLANK)
                if self.here("]"):
                    break
                self.note((*path, i), inline=self.here("{"))
                self.value((*path, i))
                self.skip(_BLANK)
                if self.here(","):
                    self.at += 1
            self.at += 1
        elif self.here("{"):
            self.at += 1
            while True:
                self.skip(_SPACE)
                if self.here("}"):
                    break
                self.pair(path)
                self.skip(_SPACE)
                if self.here(","):
                    self.at += 1
            self.at += 1
        else:
            self.skip(_BARE_VALUE)


@cache
def _string_in(quotes: str) -> re.Pattern[str]:
    return re.compile(_STRINGS[quotes], re.DOTALL)


def _unescape(found: re.Match[str]) -> str:
    code = found[1]
    return chr(int(code[1:], 16)) if code[0] in "uU" else _ESCAPES[code]
