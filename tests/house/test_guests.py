# SPDX-License-Identifier: MIT
"""Applications are guests: a folder of each has all that is about it, and no generic room names one
(docs/internals/design.md, "Applications")."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from opline.applications import table

ROOT = Path(__file__).resolve().parents[2]
GENERIC = ("correlator", "analyses", "tracepoints", "tests/lib", "tests/house", "tests/faults", "tests/native")
CODE = (".py", ".pyi", ".js", ".c", ".h", ".cpp", ".hpp", ".mk")


def rooms(name: str) -> tuple[str, ...]:
    """Where an application is at home."""
    return f"correlator/opline/applications/{name}/", f"tracepoints/{name}/", f"tests/{name}/"


def words(name: str) -> set[str]:
    """The application's name, and that of its benchmark."""
    tools = {hook.TOOL.split()[0] for hook in table.hooks("client_report") if hook.__name__.split(".")[-2] == name}
    return {name, *tools}


def generic_files() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", *GENERIC], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    at_home = tuple(room for name in table.names() for room in rooms(name))
    names = [name for name in listed.splitlines() if not name.startswith(at_home)]
    return [ROOT / name for name in names if name.endswith((*CODE, "Makefile")) and (ROOT / name).is_file()]


def test_there_are_applications_and_each_has_its_rooms() -> None:
    assert table.names()
    for name in table.names():
        assert all((ROOT / room).is_dir() for room in rooms(name)), name


@pytest.mark.parametrize("name", table.names())
def test_no_generic_room_names_an_application(name: str) -> None:
    named = re.compile("|".join(sorted(map(re.escape, words(name)))), re.IGNORECASE)
    files = generic_files()
    assert len(files) > 500
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in files
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1)
        if named.search(line)
    ]
    assert not found, "\n".join(found)


def test_hooks_that_are_asked_for_are_there() -> None:
    """Each hook that code asks for is a module of some application: a hook of another spelling would never be found."""
    asked = {hook for path in generic_files() for hook in re.findall(r'\bhooks\("(\w+)"\)', path.read_text())}
    modules = {path.stem for name in table.names() for path in (ROOT / rooms(name)[0]).glob("*.py")}
    assert asked and asked <= modules
