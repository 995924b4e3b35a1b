# SPDX-License-Identifier: MIT
"""Regular expressions that take quadratic time: finds every pattern of a package and tries texts that are made for it.

A pattern is an argument of ``re.compile``, ``re.search`` and so on; it is tried with the methods that the code calls.
The texts repeat one piece after the begin of a match: the pieces come from the pattern's own repeats and classes.
"""

from __future__ import annotations

import ast
import importlib
import re
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

METHODS = ("match", "fullmatch", "search", "findall", "finditer", "sub", "split")
SIZES = (16, 20, 24, *(1 << n for n in range(5, 16)))  # characters
SCREENED, SUSPECT_S = 1 << 11, 0.0006  # a linear pattern takes a tenth of that; then larger sizes are not tried
MOST_S = 0.25  # of any, in CPU time: linear patterns take some ms for the largest, quadratic ones from 0.5 s on
_PIECES = (
    " ",
    "\n",
    "\t",
    "a",
    "0",
    "_",
    "-",
    '"',
    "\\",
    "{",
    "(",
    "<",
    ".",
    ",",
    ":",
    "=",
    "|",
    "é",
    "a ",
    "a=",
    "0 ",
)
_OF_CATEGORY = {
    codes.CATEGORY_DIGIT: ("0",), codes.CATEGORY_NOT_DIGIT: ("a", " "), codes.CATEGORY_SPACE: (" ", "\n"),
    codes.CATEGORY_NOT_SPACE: ("a", "0"), codes.CATEGORY_WORD: ("a", "0"), codes.CATEGORY_NOT_WORD: (" ", "."),
}  # fmt: skip


class Pattern(NamedTuple):
    """A pattern, where it stands, and the methods it is used with."""

    where: str
    text: str
    flags: int
    methods: tuple[str, ...]


def patterns_of(package: str) -> Iterator[Pattern]:
    """All patterns of a package whose text is known without running a function."""
    root = Path(str(importlib.import_module(package).__file__)).parent
    trees = {path: ast.parse(path.read_text()) for path in sorted(root.rglob("*.py"))}
    called: dict[tuple[Path | None, str], set[str]] = {}  # by name, of names with _ by file too
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in METHODS:
                name = ast.unparse(node.func.value).rpartition(".")[2]
                called.setdefault((path if name.startswith("_") else None, name), set()).add(node.func.attr)
    for path, tree in trees.items():
        names = {id(n.value): ast.unparse(n.targets[0]) for n in ast.walk(tree) if isinstance(n, ast.Assign)}
        for node in ast.walk(tree):
            if not (isinstance(node, ast.Call) and ast.unparse(node.func).startswith("re.") and node.args):
                continue
            method = ast.unparse(node.func)[3:]
            if method not in (*METHODS, "compile"):
                continue
            spaces = vars(importlib.import_module(_module(package, root, path)))
            try:
                text = eval(ast.unparse(node.args[0]), dict(spaces))
                at = {"sub": 4, "split": 3}.get(method, 1 if method == "compile" else 2)
                given = [k.value for k in node.keywords if k.arg == "flags"] or node.args[at : at + 1]
                flags = eval(ast.unparse(given[0]), dict(spaces)) if given else 0
            except NameError:  # made of a function's own values
                continue
            name = names.get(id(node), "")
            uses = called.get((path if name.startswith("_") else None, name), {"fullmatch"})
            uses = uses if method == "compile" else {method}
            if isinstance(text, str):
                yield Pattern(f"{path.relative_to(root)}:{node.lineno}", text, int(flags), tuple(sorted(uses)))


def _module(package: str, root: Path, path: Path) -> str:
    parts = [package, *path.relative_to(root).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _texts_of(item: Any, most: int = 3) -> list[str]:
    """Some texts that a node of a parsed pattern matches."""
    op, value = item
    if op is codes.LITERAL:
        return [chr(value)]
    if op is codes.NOT_LITERAL:
        return [c for c in "a 0" if ord(c) != value][:most]
    if op is codes.ANY:
        return ["a", " "]
    if op is codes.IN:
        return _of_class(value)[:most]
    if op is codes.BRANCH:
        return [text for branch in value[1] for text in _of_sequence(branch)[:1]][:most]
    if op is codes.SUBPATTERN:
        return _of_sequence(value[3])
    if op is codes.ATOMIC_GROUP:
        return _of_sequence(value)
    if op in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
        low, high, inner = value
        return [text * max(low, min(1, int(high))) for text in _of_sequence(inner)]
    return [""]  # places, assertions, references


def _of_class(value: Any) -> list[str]:
    negated = value[0][0] is codes.NEGATE
    if negated:
        excluded = re.compile("[" + "".join(re.escape(t) for part in value[1:] for t in _of_class([part])) + "]")
        return [c for c in "a 0\n." if not excluded.match(c)]
    found: list[str] = []
    for op, one in value:
        if op is codes.LITERAL:
            found.append(chr(one))
        elif op is codes.RANGE:
            found.append(chr(one[0]))
        elif op is codes.CATEGORY:
            found.extend(_OF_CATEGORY.get(one, ("a",)))
    return found


def _of_sequence(items: Iterable[Any]) -> list[str]:
    """Texts of a sequence: the first of every node, and for each node its other ones in its place."""
    choices = [_texts_of(item) or [""] for item in items]
    first = "".join(choice[0] for choice in choices)
    others = [
        "".join(other if i == n else choice[0] for i, choice in enumerate(choices))
        for n, these in enumerate(choices)
        for other in these[1:]
    ]
    return [first, *others][:6]


def _repeats(items: Iterable[Any], before: str = "") -> Iterator[tuple[str, list[str]]]:
    """Each repeat of a pattern: a text that leads to it, and texts of what is repeated."""
    for op, value in items:
        if op in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
            yield before, _of_sequence(value[2])
            yield from _repeats(value[2], before)
        elif op is codes.SUBPATTERN:
            yield from _repeats(value[3], before)
        elif op is codes.ATOMIC_GROUP:
            yield from _repeats(value, before)
        elif op is codes.BRANCH:
            for branch in value[1]:
                yield from _repeats(branch, before)
        before += (_texts_of((op, value)) or [""])[0]


def _cpu_s(pattern: re.Pattern[str], method: str, text: str) -> float:
    begin = time.thread_time()
    if method == "sub":
        pattern.sub("", text)
    elif method == "finditer":
        for _ in pattern.finditer(text):
            pass
    else:
        getattr(pattern, method)(text)
    return time.thread_time() - begin


def slow_text(pattern: Pattern) -> str | None:
    """How a text takes too long, as the begin and the piece that is repeated after it; None: none was found."""
    tree = parser.parse(pattern.text, pattern.flags)
    compiled = re.compile(pattern.text, pattern.flags)
    places = [("", list(_PIECES)), ("", _of_sequence(tree)), *_repeats(tree)]
    own = [piece for _, pieces in places[1:] for piece in pieces]
    own += [before for before, _ in places]
    tried = dict.fromkeys((before, piece) for before, _ in places for piece in (*_PIECES, *own) if piece)
    for before, piece in tried:
        for end in ("", "\0", " \0", "\n\0"):
            for method in pattern.methods:

                def took(size: int) -> float:
                    return _cpu_s(compiled, method, before + piece * (size // len(piece)) + end)  # noqa: B023

                spent, size = 0.0, 0
                for size in SIZES:
                    spent = took(size)
                    if spent > MOST_S or (size == SCREENED and spent < SUSPECT_S):
                        break
                if spent > MOST_S and took(size) > MOST_S:
                    return f"{pattern.where}: {method} of {before!r} + {piece!r} * n + {end!r}: {pattern.text}"
    return None
