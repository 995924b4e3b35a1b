# SPDX-License-Identifier: MIT
"""The lines of the parts of a TOML text: takes a text accepted by tomllib, gives the line of every key and element.

tomllib keeps no positions, and a mistake without a line number is hard to find. The text is known to be valid here, so
a distinction of strings, comments, brackets and words is enough; a property test compares with tomllib's result.
"""

from __future__ import annotations

import re

Path = tuple[str | int, ...]

# a bracket, sign or line's end; strings, the longer quotes first; a comment; a word, part of a key or a value
_TOKEN = re.compile(
    r"""[\n\[\]{},=]|"{3}(?:\\.|[^\\])*?"{3,5}(?!")|'{3}.*?'{3,5}(?!')|"(?:\\.|[^"\\\n])*"|'[^'\n]*'"""
    r"""|\#[^\n]*|[^\s"'\#,.=\[\]{}]+""",
    re.DOTALL,
)
_ESCAPE = r'\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[btnfr"\\])'
_ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", '"': '"', "\\": "\\"}


class Place:
    """The place of a value: its line from 1, its ordinal in the text, and whether the value is an inline table."""

    __slots__ = ("inline", "line", "order")

    def __init__(self, line: int, order: int, inline: bool) -> None:
        self.line = line
        self.order = order
        self.inline = inline


def positions(text: str) -> dict[Path, Place]:
    """The place of every table, key and list element of a valid TOML text, by the path from the root.

    A table extended by several headers has the place of the first.
    """
    scan = _Scan()
    for found in _TOKEN.finditer(text.replace("\r\n", "\n")):
        token = found[0]
        if token == "\n":
            scan.line += 1
            if not scan.inside:
                scan.take = scan.key
        elif token[0] != "#":
            scan.take(token)
            if token[:3] in ('"""', "'''"):
                scan.line += token.count("\n")
    return scan.places


class _Scan:
    """The state of the scan; ``take`` gets the next token, and is one of the methods below."""

    def __init__(self) -> None:
        self.places: dict[Path, Place] = {}
        self.line = 1
        self.take = self.key
        self.path: Path = ()  # of the table of the following keys, or of the next value
        self.table: Path = ()  # the last header's
        self.parts: list[str] = []  # of the current key
        self.brackets = 0  # of the current header
        self.lengths: dict[Path, int] = {}  # of arrays of tables
        # the surrounding inline tables (-1) and arrays (number of elements so far)
        self.inside: list[tuple[Path, int]] = []

    def note(self, path: Path, inline: bool = False) -> None:
        if path not in self.places:
            self.places[path] = Place(self.line, len(self.places), inline)

    def key(self, token: str) -> None:
        """A key, up to the `=`; a header; or the end of an inline table."""
        if token == "=":
            self.path = self.inside[-1][0] if self.inside else self.table
            for part in self.parts:
                self.path += (part,)
                self.note(self.path)
            self.parts = []
            self.take = self.value
        elif token == "[":
            self.brackets += 1
        elif token == "]":
            if self.parts:
                self.header()
        elif token == "}":
            self.leave()
        elif token != ",":
            self.parts.append(_text(token))

    def header(self) -> None:
        path: Path = ()
        for i, part in enumerate(self.parts, 1):
            path += (part,)
            self.note(path)
            if i == len(self.parts) and self.brackets == 2:
                self.lengths[path] = self.lengths.get(path, 0) + 1
            if path in self.lengths:
                path += (self.lengths[path] - 1,)
                self.note(path)
        self.table = path
        self.parts = []
        self.brackets = 0

    def value(self, token: str) -> None:
        """The first token of a key's value."""
        if token == "{":
            self.places[self.path].inline = True
        self.enter(token)

    def element(self, token: str) -> None:
        """The first token of an array's element, or the array's end."""
        if token == "]":
            self.leave()
        elif token != ",":
            array, count = self.inside[-1]
            self.inside[-1] = (array, count + 1)
            self.path = (*array, count)
            self.note(self.path, inline=token == "{")
            self.enter(token)

    def enter(self, token: str) -> None:
        if token == "{":
            self.inside.append((self.path, -1))
            self.take = self.key
        elif token == "[":
            self.inside.append((self.path, 0))
            self.take = self.element
        else:
            self.take = self.rest

    def leave(self) -> None:
        self.inside.pop()
        self.take = self.rest

    def rest(self, token: str) -> None:
        """The rest of a value, up to a comma or a bracket, or to the line's end."""
        if token == ",":
            self.take = self.key if self.inside[-1][1] < 0 else self.element
        elif token in ("]", "}"):
            self.leave()


def _text(token: str) -> str:
    """A key's part without quotes."""
    if token[0] not in "\"'":
        return token
    inner = token[1:-1]
    return re.sub(_ESCAPE, _unescape, inner) if token[0] == '"' and "\\" in inner else inner


def _unescape(found: re.Match[str]) -> str:
    code = found[1]
    return chr(int(code[1:], 16)) if code[0] in "uU" else _ESCAPES[code]
