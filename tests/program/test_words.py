# SPDX-License-Identifier: MIT
"""The map of commands: thirteen words, which stand for all commands, and the manual of each."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.lib.build_run import small_run

from opline_analyses.cli import main
from opline_analyses.command_map import WORDS, modules

COMMANDS = list(modules())


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    return small_run(tmp_path / "run")


def out_of(capfd: pytest.CaptureFixture[str], *args: str | Path) -> str:
    assert main([str(a) for a in args]) == 0
    return capfd.readouterr().out


def test_overview_has_thirteen_words_and_says_how_to_see_the_rest(capfd: pytest.CaptureFixture[str]) -> None:
    text = out_of(capfd, "--help")
    assert len(text.splitlines()) <= 40
    assert max(map(len, text.splitlines())) <= 80
    assert re.findall(r"^  (\w+) +\S.* .*$", text.partition("\n\nRUN")[0], re.MULTILINE) == list(WORDS)
    assert len(WORDS) == 13 and set(WORDS) <= set(COMMANDS)
    assert "`opline help all` lists all commands" in text


def test_help_all_names_every_command(capfd: pytest.CaptureFixture[str]) -> None:
    text = out_of(capfd, "help", "all")
    assert max(map(len, text.splitlines())) <= 80
    for name in COMMANDS:
        assert re.search(rf"^  {name} ", text, re.MULTILINE)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("disk {run}", "iostat {run}"),
        ("disk hist {run} --json", "hist {run} --json"),
        ("disk log {run} --limit 2", "log {run} --limit 2"),
        ("disk --json {run}", "iostat --json {run}"),
        ("check {run} --json", "losses {run} --json"),
        ("check coverage {run} --json", "coverage {run} --json"),
        ("check what {run}", "what {run}"),
        ("page {run} -o {out}", "report {run} -o {out}"),
    ],
)
def test_a_word_stands_for_several_commands(
    run_dir: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], typed: str, meant: str
) -> None:
    said = []
    for number, words in enumerate((typed, meant)):
        out = tmp_path / f"{number}.html"
        assert main(words.format(run=run_dir, out=out).split()) == 0
        said.append((capfd.readouterr().out, out.read_bytes() if out.exists() else b""))
    assert said[0] == said[1] and any(said[0])


def test_words_without_a_run(capfd: pytest.CaptureFixture[str]) -> None:
    for word in ("disk", "page"):
        assert main([word]) == 2
        assert (
            capfd.readouterr().err
            == f"opline {word}: the following arguments are required: RUN. `opline {word} --help`\n"
        )
    assert "opline live hist" in out_of(capfd, "now", "hist", "--help")


@pytest.mark.parametrize("view", ["hist", "iostat", "outliers", "log", "bitesize", "heatmap"])
def test_help_of_a_live_view_has_no_option_that_the_view_refuses(capfd: pytest.CaptureFixture[str], view: str) -> None:
    options = re.findall(r"(?<![\w-])--[a-z][a-z-]*", out_of(capfd, "live", view, "--help"))
    assert "--duration" in options
    refused = {"--compat", "--since", "--until", "--window", "--at", "--unitstime", "--per-device", "--maxcol"}
    assert not refused & {*options}


def test_help_of_a_command_is_its_help_elsewhere_than_on_a_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    assert out_of(capfd, "help", "why") == out_of(capfd, "why", "--help")
    assert main(["help", "whi"]) == 2
    assert "no command whi. Did you mean why?" in capfd.readouterr().err


@pytest.mark.skipif(shutil.which("man") is None, reason="no man")
def test_help_of_a_command_on_a_terminal_is_its_man_page() -> None:
    code = "import pty, sys; sys.exit(pty.spawn([sys.executable, '-m', 'opline_analyses', 'help', 'why']) >> 8)"
    environment = {**os.environ, "MANPAGER": "cat", "PAGER": "cat", "TERM": "dumb"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    shown = re.sub(".\b", "", done.stdout)  # bold is a character over itself
    assert "SYNOPSIS" in shown and "EXIT STATUS" in shown
