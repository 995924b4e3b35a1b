# SPDX-License-Identifier: MIT
"""Sizes in the native core that a reader has to hold in mind: lines of a file, lines of a function, columns of a line.

What is larger than it should be is named here with its size, so that it can shrink and nothing else can grow.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

NATIVE = Path(__file__).resolve().parent.parent / "correlator" / "native"
FILES = sorted(p for part in ("src", "python", "bt2") for p in (NATIVE / part).rglob("*.[ch]pp"))
FILE_LINES, FUNCTION_LINES, COLUMNS = 400, 80, 120
# Files that are longer, with their lines.
LONGER_FILES = {
    "python/core_type.cpp": 416,
}
# Functions that are longer, with their lines.
LONGER_FUNCTIONS = {
    "src/binding/classes.cpp: bind_class": 87,
    "src/ctf/decode/decode.cpp: decode": 119,
    "src/ctf/decode/straight.cpp: Straight::Straight": 82,
    "src/output/parquet/file.cpp: File::add_values": 93,
    "src/stitch/joins.cpp: Stitcher::unite": 91,
}
# So many lines have more columns, by folder.
WIDER_LINES = {
    "bt2": 87,
    "python": 60,
    "src/base": 14,
    "src/binding": 9,
    "src/block": 40,
    "src/core": 35,
    "src/ctf": 96,
    "src/ctf/decode": 24,
    "src/ctf/metadata": 46,
    "src/event": 10,
    "src/link": 46,
    "src/model": 12,
    "src/op": 10,
    "src/output/csv": 8,
    "src/output": 35,
    "src/output/parquet": 19,
    "src/sched": 10,
    "src/stages": 22,
    "src/statistics": 29,
    "src/stitch": 30,
}

TEXTS = re.compile(r"""//[^\n]*|/\*.*?\*/|R"\(.*?\)"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'""", re.DOTALL)
# What stands before a brace that no function's body begins with.
NO_FUNCTION = re.compile(r"^\s*(template\s*<.*>\s*)?(namespace|class|struct|union|enum|extern)\b|=\s*$", re.DOTALL)


def bare(text: str) -> str:
    """Source with comments and literals blanked, line by line as it was."""
    return TEXTS.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)


def functions(text: str) -> Iterator[tuple[str, int]]:
    """Name and lines of each function that has a body, those inside of others left out."""
    text = bare(text)
    start = 0  # of what may be a function's head
    inside: list[str | None] = []  # a brace each: the function's head, "" for what is none, None for a value in braces
    begins: list[int] = []
    for at in (m.start() for m in re.finditer(r"[{};]", text)):
        what, head = text[at], text[start:at]
        if what == "{" and head and not head[-1].isspace():
            inside.append(None)
            begins.append(at)
        elif what == "{":
            is_function = ")" in head and not NO_FUNCTION.search(head) and not any(inside)
            inside.append(head if is_function else "")
            begins.append(at - len(head.lstrip()))
            start = at + 1
        elif what == ";":
            start = at + 1
        elif inside:
            begun, begin = inside.pop(), begins.pop()
            if begun is None:
                continue
            start = at + 1
            if begun:
                name = re.search(r"([\w~:]+|operator[^\s(]+)\s*\(", begun)
                yield (name[1] if name else begun.strip()), text.count("\n", begin, at) + 1


def test_what_counts_as_a_function() -> None:
    text = """namespace a {
struct B : C {
    int small() const { return "}"[0]; }  // {
    B() : x{1} {
        for (;;) {
        }
    }
};
int table[] = {1, 2};
template <class T>
void B::large(int a,
              int b) {
    auto inner = [&](int c) { return c; };
}
}"""
    assert list(functions(text))[-1] == ("B::large", 5)
    assert ("small", 1) in list(functions(text))


def test_no_file_grows_beyond_400_lines() -> None:
    long = {str(p.relative_to(NATIVE)): n for p in FILES if (n := p.read_text().count("\n")) > FILE_LINES}
    assert long == LONGER_FILES


def test_no_function_grows_beyond_80_lines() -> None:
    long = {
        f"{path.relative_to(NATIVE)}: {name}": lines
        for path in FILES
        for name, lines in functions(path.read_text())
        if lines > FUNCTION_LINES
    }
    assert long == LONGER_FUNCTIONS


def test_no_more_lines_are_wider_than_120_columns() -> None:
    wide: Counter[str] = Counter()
    for path in FILES:
        wide[str(path.parent.relative_to(NATIVE))] += sum(len(line) > COLUMNS for line in path.read_text().splitlines())
    assert +wide == WIDER_LINES
