# SPDX-License-Identifier: MIT
"""How long lines, files and functions may be, in everything that is written by hand.

Exempt are lines that can't be broken: rows of tables (Markdown's, a model's rules: TOML has no line break inside an
inline table), addresses, and code that a page quotes; a model is one file, however many points its program has.
"""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import lizard

from opline.applications import table

ROOT = Path(__file__).resolve().parents[2]
COLUMNS, LINES, FUNCTION_LINES, BRANCHES = 120, 400, 80, 40
SINK_METHODS, SHARED_NAMES = 6, 10

CODE = (".py", ".c", ".h", ".cpp", ".hpp", ".js")
TEXTS = (*CODE, ".css", ".html", ".toml", ".md", ".sh", ".yml")
#: Tables of rows, of which each is a line.
TABLES = ("correlator/opline/losses.py", "correlator/opline/store/schema.py", "_tp.h")
#: A page that is generated, the history, and a model.
LONG = ("docs/commands.md", "CHANGELOG.md", *(str(Path(m).relative_to(ROOT)) for m in table.models().values()))


def files(*suffixes: str) -> list[Path]:
    """Everything in the repository that ends so, and programs without an ending if "" is asked for."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    found = [ROOT / f for f in listed.splitlines() if not f.endswith(TABLES)]
    return [f for f in found if f.suffix in suffixes and f.is_file() and (f.suffix or is_script(f))]


def is_script(path: Path) -> bool:
    with path.open("rb") as f:
        return f.read(2) == b"#!" or path.name == "Makefile"


def by_hand(path: Path) -> Iterator[str]:
    """Lines of prose and code: without what is generated, quoted, or a row."""
    generated = quoted = False
    for line in path.read_text().splitlines():
        generated = generated or "[[[cog" in line
        if path.suffix == ".md" and line.lstrip().startswith(("```", "~~~")):
            quoted = not quoted
        row = line.startswith(("|", "    ")) if path.suffix == ".md" else path.suffix == ".toml" and "{" in line
        if not (generated or quoted or row or re.search(r"https?://\S{40}", line)):
            yield line
        generated = generated and "[[[end]]]" not in line


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_lines() -> None:
    over = Counter(name_of(p) for p in files(*TEXTS, "") for line in by_hand(p) if len(line) > COLUMNS)
    assert not over, f"lines over {COLUMNS} columns"


def test_files() -> None:
    sizes = {name_of(p): len(p.read_text().splitlines()) for p in files(*CODE, ".css", ".toml", ".sh", ".md", "")}
    over = {name: n for name, n in sizes.items() if n > LINES and name not in LONG}
    assert not over, f"files of more than {LINES} lines"


def test_functions() -> None:
    lines: dict[str, int] = {}
    branches: dict[str, int] = {}
    for path in files(*CODE):
        for f in lizard.analyze_file(str(path)).function_list:
            if f.length > FUNCTION_LINES:
                lines[f"{name_of(path)}:{f.name}"] = f.length
            if f.cyclomatic_complexity > BRANCHES:
                branches[f"{name_of(path)}:{f.name}"] = f.cyclomatic_complexity
    assert not lines, f"functions of more than {FUNCTION_LINES} lines"
    assert not branches, f"functions of more than {BRANCHES} branches"


NATIVE = ROOT / "correlator" / "native" / "src"
TYPE = r"^ *(?:struct|class|enum class) ([A-Z]\w*)(?: final)?(?: : [^;{]*)? \{"


def test_the_sink_of_events_is_small() -> None:
    header = (NATIVE / "event" / "event.hpp").read_text()
    body = header[header.index("class EventSink {") :]
    methods = re.findall(r"^    virtual (?!~)", body[: body.index("\n};")], re.MULTILINE)
    assert 0 < len(methods) <= SINK_METHODS


def test_names_of_types_are_of_one_thing() -> None:
    """Types of the core that share a name, in different classes or namespaces: a reader has to know which is meant."""
    declared = Counter(
        name for path in NATIVE.rglob("*.[ch]pp") for name in re.findall(TYPE, path.read_text(), re.MULTILINE)
    )
    shared = sorted(name for name, n in declared.items() if n > 1)
    assert len(shared) <= SHARED_NAMES, shared
