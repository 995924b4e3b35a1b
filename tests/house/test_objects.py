# SPDX-License-Identifier: MIT
"""How large an object of the C++ code may be: one that holds more state, or does more, is several objects
(docs/internals/design.md, "Objects of the core").

A class counts with its methods and data members as they are declared. A record is no object: a struct of up to three
short functions is a row of values, as long as what it describes.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("correlator/native/src", "correlator/native/python", "correlator/native/bt2")
METHODS, MEMBERS, OF_A_RECORD = 30, 15, 3

NO_CODE = re.compile(
    r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+'|^[ \t]*#[^\n]*", re.DOTALL | re.MULTILINE
)
HEAD = re.compile(
    r"(?:^|[;{}]|\btemplate\s*<[^;{}]*>)\s*(class|struct)\s+(?:\[\[[^\]]*\]\]\s*)?"
    r"([\w:]+)\s*(?:final\s*)?(?::[^;{}]*)?$"
)
NO_MEMBER = re.compile(r"^(?:using|typedef|friend|static_assert|enum|struct|class|union|public|private|protected)\b|^$")


class Object(NamedTuple):
    """A class: as what it is declared, and how many functions and data members of its own it has."""

    name: str
    kind: str
    methods: int
    members: int

    @property
    def is_record(self) -> bool:
        return self.kind == "struct" and self.methods <= OF_A_RECORD


def closing(code: str, at: int) -> int:
    """Where the brace that opens at ``at`` closes."""
    depth = 0
    for i in range(at, len(code)):
        depth += {"{": 1, "}": -1}.get(code[i], 0)
        if depth == 0:
            return i
    raise AssertionError(code[at : at + 80])


def without_templates(text: str) -> str:
    """A declaration without the arguments of templates."""
    while (shorter := re.sub(r"(?<=\w)(?<!operator)<[^<>;]*>", "", text)) != text:
        text = shorter
    return text


def declared(statement: str) -> tuple[int, int]:
    """Functions and data members that one declaration of a class' body makes."""
    text = re.sub(r"\b(?:public|private|protected)\s*:", "", statement).strip()
    text = re.sub(r"\[\[.*?\]\]|\btemplate\s*<[^{}]*?>\s*(?=[\w\[~])|\balignas\([^)]*\)", "", text).strip()
    if NO_MEMBER.match(text):
        return 0, 0
    text = without_templates(text)
    begin = re.split(r"=(?!=)|\{", text, maxsplit=1)[0]
    if "(" in begin or re.search(r"\boperator\b", begin):
        return 1, 0
    return 0, 1 + re.sub(r"\{[^{}]*\}|\([^()]*\)|\[[^\]]*\]", "", text).count(",")


def body_of(code: str) -> tuple[int, int]:
    """Functions and data members of a class' body, without those of the classes in it."""
    methods = members = 0
    at = begin = 0
    while at < len(code):
        if code[at] == ";":  # one behind a class' body is an empty declaration
            more = declared(code[begin:at])
            methods, members = methods + more[0], members + more[1]
            begin = at + 1
        elif code[at] == "{":
            before, past = code[begin:at], closing(code, at)
            is_type = re.search(r"\b(?:class|struct|enum|union)\b[^()=]*$", before) is not None
            if is_type:  # `struct { … } name;` is a member as well
                members += (name := re.match(r"\s*(\w+)\s*(?:\{\}|=[^;]*)?;", code[past + 1 :])) is not None
                begin = at = past + 1 + (name.end() if name else 0)
                continue
            function = declared(before + "{}")[0]
            is_value = before.count("(") > before.count(")") or re.match(r"\s*[,;{]", code[past + 1 :])
            if function and not is_value:
                methods += 1
                begin = past + 1
            at = past
        at += 1
    return methods, members


def objects_of(text: str) -> list[Object]:
    """The classes that a file declares with their bodies, those inside of others as well."""
    code = NO_CODE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    found = []
    for brace in re.finditer(r"\{", code):
        head = HEAD.search(code[max(0, brace.start() - 400) : brace.start()])
        if head:
            body = code[brace.start() + 1 : closing(code, brace.start())]
            found.append(Object(head[2].split("::")[-1], head[1], *body_of(body)))
    return found


def all_objects() -> list[Object]:
    listed = subprocess.run(["git", "ls-files", *SOURCES], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    paths = [ROOT / name for name in listed.splitlines() if name.endswith((".hpp", ".cpp"))]
    return [found for path in paths if path.is_file() for found in objects_of(path.read_text())]


@pytest.mark.parametrize(
    ("text", "methods", "members"),
    [
        ("class A { int a_, b_ = f(1, 2); };", 0, 2),
        ("class A { public: A() : a_(1) {} int a() const { return a_; } private: int a_ = 1; };", 2, 1),
        ("class A { std::function<void(int, int)> f_; std::array<int, 3> g_{}; };", 0, 2),
        ("class A { template <class F> void each(F f); void g(std::map<int, int> m = {}); };", 2, 0),
        ("class A { struct B { int a; void f(); }; B b_; enum class C { kOne, kTwo } c_ = C::kOne; };", 0, 2),
        ("class A { A(int b) : b_{b}, c_{b} { f(); } bool operator<(const A &o) const { return b_ < o.b_; } };", 2, 0),
        ("class A : public B { // int no; \n  using T = int; friend class C; static int f(); };", 1, 0),
    ],
)
def test_what_a_class_declares_is_counted(text: str, methods: int, members: int) -> None:
    found = next(o for o in objects_of(text) if o.name == "A")
    assert (found.methods, found.members) == (methods, members)


def test_objects_are_small() -> None:
    found = [o for o in all_objects() if not o.is_record]
    assert len(found) > 50
    over = [o for o in found if o.methods > METHODS or o.members > MEMBERS]
    assert not over, "\n".join(map(str, over))
