# SPDX-License-Identifier: MIT
"""The words of docs/glossary.md: a column of a run's tables has none that the glossary gives for another one, nor has a
name in the core or the program. Nor are the core's names and comments made of words that say nothing of a thing.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

from opline.store.schema import TABLES

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\|([^|]+)\|([^|]+)\|([^|]*)\|$", re.MULTILINE)


def rows() -> list[tuple[str, str, str]]:
    """Words, what they are, and what they are not, without the heads of the tables."""
    found = ROW.findall((ROOT / "docs" / "glossary.md").read_text())
    return [
        (words.strip(), what, other.strip()) for words, what, other in found if words.strip(" -") not in ("word", "")
    ]


def words(cell: str) -> set[str]:
    return {w.strip().lower() for w in re.split("[,;]", re.sub(r"\([^)]*\)", "", cell)) if w.strip()}


def test_columns_have_the_glossarys_words() -> None:
    own = {part for cell, _, _ in rows() for word in words(cell) for part in word.split()}
    others = {word for _, _, other in rows() for word in words(other) if " " not in word} - own
    assert len(rows()) >= 45 and len(others) >= 30
    columns = {c.name for table in TABLES for c in table.columns} | {table.name for table in TABLES}
    wrong = {name: sorted(set(name.split("_")) & others) for name in columns if set(name.split("_")) & others}
    assert not wrong
    ends = {c.name.rpartition("_")[2] for table in TABLES for c in table.columns}
    assert not ends & {"us", "ms", "sec", "time", "size", "len", "kb"}


def test_a_word_is_explained_once() -> None:
    seen = [word for cell, _, _ in rows() for word in words(cell)]
    assert sorted(seen) == sorted(set(seen))


#: What a thing is not, of the glossary's last column, and what tells nothing. A word of one part of a name.
OTHERS = {"handle", "phase", "layer", "elapsed", "bundle", "score", "svctm", "lba"}
EMPTY = {"usual", "usually", "straight", "along", "ahead", "somebody", "whom"}
SOURCES = ("correlator/native/src", "correlator/native/bt2", "correlator/native/python")
PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def test_names_and_comments_of_the_core() -> None:
    """`read_ahead` is the kernel's word."""
    wrong: dict[str, set[str]] = {}
    for path in (p for folder in SOURCES for p in (ROOT / folder).rglob("*.[ch]pp")):
        text = re.sub(r'"[^"\n]*"', "", path.read_text().replace("read_ahead", "").replace("read-ahead", ""))
        code = re.sub(r"//.*", "", text)
        names = {part.lower() for name in re.findall(r"\b[A-Za-z_]\w*", code) for part in PARTS.findall(name)}
        found = (names & OTHERS) | ({w.lower() for w in re.findall("[A-Za-z]+", text)} | names) & EMPTY
        if found:
            wrong[str(path.relative_to(ROOT))] = found
    assert not wrong


#: Where a word is another field's own: the kernel's and Matplotlib's handles, Chrome's phases of events, and the phase
#: of what returns with a period.
THEIRS = {"handle": {"processes.py", "plot.py", "server.py"}, "phase": {"chrome.py", "when.py"}}


def names_of(tree: ast.Module) -> set[str]:
    """What the file names: its classes, functions, arguments and variables."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
    return found


def test_names_of_the_program() -> None:
    files = [p for folder in ("correlator/opline", "analyses", "docs") for p in (ROOT / folder).rglob("*.py")]
    wrong: dict[str, set[str]] = {}
    for path in files:
        parts = {part.lower() for name in names_of(ast.parse(path.read_text())) for part in PARTS.findall(name)}
        if found := {word for word in parts & OTHERS if path.name not in THEIRS.get(word, ())}:
            wrong[str(path.relative_to(ROOT))] = found
    assert len(files) > 200 and not wrong
