# SPDX-License-Identifier: MIT
"""The comments and docstrings of the code: few pronouns, so that each names the thing that it is about. Counted per
folder; a finding names the worst files, and the lines with the most pronouns.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.house.test_english import MOST_PRONOUNS, PRONOUNS

ROOT = Path(__file__).resolve().parents[2]
CODE = ("correlator", "analyses", "tracepoints")
SUFFIXES = (".py", ".cpp", ".hpp", ".c", ".h")
#: Folders whose comments have not been edited yet, with the folders below.
NOT_YET = {
    "analyses/opline_analyses/api",
    "analyses/opline_analyses/base",
    "analyses/opline_analyses/block",
    "analyses/opline_analyses/commands",
    "analyses/opline_analyses/compare",
    "analyses/opline_analyses/export",
    "analyses/opline_analyses/pictures",
    "analyses/opline_analyses/report",
    "analyses/opline_analyses/why",
    "correlator/native/bt2",
    "correlator/native/src/identity",
    "correlator/native/tests",
    "correlator/opline",
    "correlator/opline/applications",
    "correlator/opline/capture",
    "correlator/opline/capture/bpf",
    "correlator/opline/capture/collectors",
    "correlator/opline/capture/directory",
    "correlator/opline/capture/lttng",
    "correlator/opline/capture/machine",
    "correlator/opline/capture/probes",
    "correlator/opline/capture/recorder",
    "correlator/opline/capture/sources",
    "correlator/opline/cluster",
    "correlator/opline/readers",
    "correlator/opline/readers/formats",
    "correlator/opline/store",
    "tracepoints",
}
#: A comment of C++ or C (group 2), or a text in which a comment's signs mean nothing.
_C = re.compile(r'R"(\w*)\((?:.|\n)*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|(//[^\n]*|/\*(?:.|\n)*?\*/)')
_CODE = re.compile(r"`[^`]*`|https?://\S+")
_WORD = re.compile(r"[A-Za-z][A-Za-z'-]*")


def of_c(text: str) -> Iterator[tuple[int, str]]:
    """Line and words of each comment."""
    for found in _C.finditer(text):
        if found[2]:
            yield text.count("\n", 0, found.start()) + 1, found[2]


def of_python(text: str) -> Iterator[tuple[int, str]]:
    """Line and words of each comment and docstring."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            words = ast.get_docstring(node, clean=False)
            if words:
                yield node.body[0].lineno, words


def pronouns(path: str, text: str) -> tuple[int, list[tuple[int, int]]]:
    """Words of all comments, and (pronouns, line) of each comment that has some."""
    words, found = 0, []
    for line, comment in (of_python if path.endswith(".py") else of_c)(text):
        if "SPDX" in comment:
            continue
        own = [word.lower() for word in _WORD.findall(_CODE.sub(" code ", comment))]
        words += len(own)
        count = sum(word in PRONOUNS for word in own)
        if count:
            found.append((count, line))
    return words, found


def folders() -> dict[str, list[Path]]:
    """The files of each folder with code, but for what the build makes."""
    out: dict[str, list[Path]] = {}
    for path in sorted(p for top in CODE for p in (ROOT / top).rglob("*") if p.suffix in SUFFIXES):
        own = path.relative_to(ROOT)
        if "build" not in own.parts:
            out.setdefault(str(own.parent), []).append(own)
    return out


def findings(files: list[Path]) -> list[str]:
    """What is wrong with the comments of a folder; empty: nothing."""
    words = count = 0
    worst = []
    for path in files:
        own, found = pronouns(str(path), (ROOT / path).read_text())
        words += own
        count += sum(n for n, _ in found)
        lines = ", ".join(str(line) for _, line in sorted(found, reverse=True)[:5])
        worst.append((sum(n for n, _ in found) - own * MOST_PRONOUNS / 100, f"{path}: lines {lines}"))
    if count * 100 <= words * MOST_PRONOUNS:
        return []
    share = f"{100 * count / words:.1f} pronouns in a hundred words of comments, {MOST_PRONOUNS:g} at most"
    return [share, *(line for excess, line in sorted(worst, reverse=True)[:5] if excess > 0)]


@pytest.mark.parametrize("folder", sorted(folders()))
def test_comments_name_things(folder: str) -> None:
    found = findings(folders()[folder])
    if folder in NOT_YET:
        assert found, f"{folder} is edited: it leaves NOT_YET"
    elif not any(folder.startswith(f"{above}/") for above in NOT_YET):
        assert not found, "\n".join(found)


def test_pronouns_are_found() -> None:
    cpp = 'int n; // which of them\nauto s = "// it"; /* that,\n   too */ // `it` is code\nchar c = R"(// those)"[0];\n'
    assert pronouns("a.cpp", cpp) == (8, [(2, 1), (1, 2)])
    python = '"""What it is."""\nx = "it"  # one\n\n\ndef f():\n    """Them."""\n    return "that"\n'
    assert pronouns("a.py", python) == (5, [(1, 2), (2, 1), (1, 6)])
