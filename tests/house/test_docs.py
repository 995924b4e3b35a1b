# SPDX-License-Identifier: MIT
"""The documentation names everything that there is: commands, columns, losses, fates, targets of links.

What is generated is compared by `make docs-check` (tests/house/test_house.py); these tests say what is missing.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = sorted((ROOT / "docs").rglob("*.md"))
sys.path.insert(0, str(ROOT / "docs"))

import generate  # noqa: E402


def text(name: str) -> str:
    return (ROOT / name).read_text()


@pytest.mark.parametrize("module", generate.command_modules(), ids=lambda m: str(m.NAME))
def test_command_is_documented(module: object) -> None:
    name = str(module.NAME)  # type: ignore[attr-defined]
    assert f"\n## opline {name}\n" in text("docs/commands.md"), "run `make docs`"
    assert f"`opline {name}`" in text("docs/README.md")
    assert module.EXAMPLES, "a command shows examples at the end of its --help"  # type: ignore[attr-defined]


def test_every_column_is_documented() -> None:
    from opline.store.schema import TABLES

    page = text("docs/tables.md")
    for table in TABLES:
        section = page.split(f"\n## {table.name}\n", 1)[1].split("\n## ", 1)[0]
        for column in table.columns:
            assert column.meaning.endswith("."), f"{table.name}.{column.name}: one sentence, with its full stop"
            kind = (
                "(?=[,:])"
                if column.type == generate.TOLD.get(f"_{column.name.split('_')[-1]}")
                else f" {column.type}\\b"
            )
            assert re.search(rf"^- [^:]*`{column.name}`{kind}", section, re.MULTILINE)


def test_units_are_in_names() -> None:
    from opline.store.schema import TABLES

    for table in TABLES:
        for column in table.columns:
            if column.name.endswith("_ns"):
                assert column.type == "i64", f"{table.name}.{column.name}: times are integers"
            assert not re.search(r"_(us|ms|sec|time|ts)$", column.name)


def test_every_loss_is_documented() -> None:
    from opline.losses import LOSSES

    page = text("docs/losses.md") + text("docs/internals/losses.md")
    for loss in LOSSES:
        assert re.search(rf"^- `{loss.name}`( \(\w+\))?: ", page, re.MULTILINE)
        assert loss.advice.strip().endswith("."), f"{loss.name}: the advice is a sentence"


def test_every_reason_for_no_request_is_documented() -> None:
    """Those of the core's source, no more and no fewer."""
    from opline.losses import NO_REQUEST

    source = text("correlator/native/src/link/no_request.cpp")
    given = re.findall(r'return "(\w+)"|[?:] "(\w+)"', source)
    assert set(NO_REQUEST) == {"no_block_events"} | {a or b for a, b in given}
    page = " ".join(text("docs/losses.md").split())
    assert all(f"- `{name}`: {meaning} " in page for name, meaning in NO_REQUEST.items())


def test_every_fate_is_documented() -> None:
    page = text("docs/internals/losses.md")
    names = generate.fate_names()
    assert names
    for name, _meaning in names:
        assert f"| `{name}` |" in page


@pytest.mark.parametrize("path", [ROOT / "README.md", *DOCS], ids=lambda p: p.name)
def test_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text()):
        if "://" in target or target.startswith("#"):
            continue
        file, _, anchor = target.partition("#")
        there = (path.parent / file).resolve()
        assert there.exists(), target
        if anchor:
            heads = re.findall(r"^#+ (.+)$", there.read_text(), re.MULTILINE)
            anchors = {re.sub(r"[^a-z0-9 _-]", "", head.lower()).replace(" ", "-") for head in heads}
            assert anchor in anchors, target


def test_every_page_is_reachable() -> None:
    pages = text("docs/README.md")
    assert "](docs/README.md)" in text("README.md")
    for path in DOCS:
        page = path.relative_to(ROOT / "docs")
        if page.name != "README.md":
            assert f"]({page})" in pages, f"docs/README.md does not lead to {page}"


def test_the_readme_is_short_and_begins_with_the_two_commands() -> None:
    lines = text("README.md").splitlines()
    assert len(lines) <= 130
    assert {"./demo", "./check"} <= {line.split(" ")[0] for line in lines[:30] if line}


def test_make_help_lists_every_target() -> None:
    makefile = text("Makefile")
    phony = " ".join(re.findall(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)).split()
    defined = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    assert set(phony) == defined


def test_the_modules_are_mended_in_the_virtual_machine_as_the_page_says() -> None:
    program = re.compile(r"-e '(s/.*hrtimer.*)' \\")
    assert program.findall(text("docs/capture.md")) == program.findall(text("tests/vm/image")) != []
