# SPDX-License-Identifier: MIT
"""The words that users read: few pronouns, short sentences, subject before verb. Each finding names its line."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "docs"))

import generate  # noqa: E402

UNEDITED: set[str] = set()  # commands whose help has not been edited yet
#: All pages but the one that is generated.
PAGES = sorted(
    str(page.relative_to(ROOT))
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"))
    if page.name != "commands.md"
)

MOST_PRONOUNS = 7.0  # in a hundred words
MOST_WORDS = 30  # in a sentence
PRONOUNS = frozenset(
    """it its itself that this these those them they their theirs one ones who whom whose whoever what whatever which
    such others another nobody somebody""".split()  # noqa: SIM905
)
INVERTED = re.compile(r"^(Of|What|Where|Nor)\b[^?]*[,:]|\b(is|are) (said|told)\b")
_CODE = re.compile(r"```.*?```|<!--.*?-->", re.DOTALL)
_INLINE = re.compile(r"`[^`]*`|\]\([^)]*\)|https?://\S+")
# a list after a colon, and its parts, are sentences by themselves
_END = re.compile(r"(?<=[.?!])[\"*)]*\s+(?=[A-Z`\"*(\[-]|[a-z]+\b|$)|(?<=[:;])\s+")
_WORD = re.compile(r"[A-Za-z][A-Za-z'-]*|`code`")


def sentences(text: str) -> Iterator[tuple[int, str]]:
    """Line and words of each sentence of a page; code, tables and headings are no sentences."""
    bare = _CODE.sub(lambda found: "\n" * found[0].count("\n"), text)
    paragraph: list[str] = []
    begin = 1
    for number, line in enumerate([*bare.splitlines(), ""], 1):
        item = re.match(r"\s*(?:[-*]|\d+\.) ", line)
        if not line.strip() or line.startswith(("#", "|", "    ", "![")) or item:
            yield from _split(begin, " ".join(paragraph))
            paragraph, begin = [], number
            line = line[item.end() :] if item else "" if line.startswith(("#", "|", "    ", "![")) else line
        if line.strip():
            if not paragraph:
                begin = number
            paragraph.append(line.strip())


def _split(line: int, text: str) -> Iterator[tuple[int, str]]:
    text = _INLINE.sub(lambda found: "`code`" if found[0].startswith("`") else " ", text)
    for sentence in _END.split(text):
        if sentence.strip():
            yield line, sentence.strip()


def findings(text: str) -> list[str]:
    """What is wrong with a page, a line each; the share of pronouns first."""
    found, words, pronouns = [], 0, 0
    for line, sentence in sentences(text):
        own = _WORD.findall(sentence)
        words += len(own)
        pronouns += sum(word.lower() in PRONOUNS for word in own)
        if len(own) > MOST_WORDS:
            found.append(f"{line}: {len(own)} words in a sentence: {sentence[:60]} ...")
        if INVERTED.search(sentence):
            found.append(f"{line}: not subject, verb, object: {sentence[:60]} ...")
    if words and 100 * pronouns / words > MOST_PRONOUNS:
        found.insert(0, f"{100 * pronouns / words:.1f} pronouns in a hundred words, {MOST_PRONOUNS:g} at most")
    return found


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_plain_english(page: str) -> None:
    found = findings((ROOT / page).read_text())
    assert not found, "\n".join(f"{page}:{line}" for line in found)


def test_what_is_wrong_is_found() -> None:
    (line,) = findings("opline reports a loss.\n\nOf what comes before it, nobody knows.\n" + "A plain line.\n" * 40)
    assert line.startswith("3: not subject")
    assert "pronouns" in findings("It is that which this one does to it.\n")[0]
    long = findings(f"# A heading\n\n{'word ' * 31}ends.\n")
    assert len(long) == 1 and long[0].startswith("3: 32 words")
    assert not findings("```text\nIt is that which this one does to it, of which what is told.\n```\n")


def help_of(name: str) -> str:
    """The sentences at the end of a command's --help, without its examples and lists."""
    module = next(m for m in generate.command_modules() if name == m.NAME)
    text = f"\n{module.EXAMPLES}".partition("\nexamples:")[0]
    return "\n".join("" if line.startswith("  ") else line for line in text.splitlines())


@pytest.mark.parametrize("name", sorted({str(m.NAME) for m in generate.command_modules()} - UNEDITED))
def test_the_help_of_a_command_is_plain_english(name: str) -> None:
    found = findings(help_of(name))
    assert not found, "\n".join(f"opline {name} --help: line {line}" for line in found)
