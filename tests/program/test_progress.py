# SPDX-License-Identifier: MIT
"""The line on standard error that tells how far a command is (opline.talk.Progress). Time is a number here."""

from __future__ import annotations

import io
import itertools
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.lib.recorded import RunOf

from opline import talk
from opline_analyses.cli import load, main
from opline_analyses.command_map import modules
from opline_analyses.export.formats import BOTH, FORMATS

GONE = "\r\x1b[K"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Standard error, where each look at the clock is a second after the one before."""
    seconds = itertools.count()
    monkeypatch.setattr("opline.talk.time.monotonic", lambda: float(next(seconds)))
    found = Terminal()
    monkeypatch.setattr(talk, "sys", SimpleNamespace(stderr=found))  # pytest sets sys.stderr anew
    return found


def test_the_share_follows_what_is_done_and_the_line_goes(terminal: Terminal) -> None:
    with talk.progressing(True, "why"):
        assert list(talk.passing("abcd")) == [*"abcd"]
        assert list(talk.passing_rows(["x", "yzw"], 4, len)) == ["x", "yzw"]
    shares = ["why   0%, step 1 ", "why  25%, step 1 ", "why  50%, step 1 ", "why  75%, step 1 "]
    again = ["why   0%, step 2 ", "why  25%, step 2 "]
    assert terminal.getvalue() == "".join((*(f"\r{s}" for s in shares), GONE, *(f"\r{s}" for s in again), GONE))


def test_of_passes_inside_each_other_the_outer_one_tells(terminal: Terminal) -> None:
    with talk.progressing(True, "graph"):
        for _ in talk.passing(range(2)):
            assert len(list(talk.passing(range(9)))) == 9
            with talk.asking():
                pass
        with talk.asking():
            assert terminal.getvalue().endswith("\rgraph: querying ")
    lines = ["\rgraph   0%, step 1 ", "\rgraph  50%, step 1 ", GONE, "\rgraph: querying ", GONE]
    assert terminal.getvalue() == "".join(lines)


def test_what_is_said_meanwhile_has_a_line_of_its_own(terminal: Terminal) -> None:
    with talk.progressing(True, "why"):
        for _ in talk.passing("a"):
            talk.talk("something")
    assert terminal.getvalue() == f"\rwhy   0%, step 1 {GONE}opline: something\n"


def test_a_pass_that_is_left_takes_the_line_away(terminal: Terminal) -> None:
    with talk.progressing(True, "why"):
        going = talk.passing("ab")
        next(going)
    assert terminal.getvalue() == f"\rwhy   0%, step 1 {GONE}"


@pytest.mark.parametrize("on", [True, False])
def test_no_line_elsewhere(monkeypatch: pytest.MonkeyPatch, terminal: Terminal, on: bool) -> None:
    if on:
        monkeypatch.setattr(terminal, "isatty", lambda: False)
    with talk.progressing(on, "why"), talk.asking():
        assert list(talk.passing("ab")) == ["a", "b"]
    assert terminal.getvalue() == ""


def test_commands_say_themselves_that_they_have_a_line() -> None:
    telling = {name for name in modules() if getattr(load(name), "PROGRESS", False)}
    as_they_go = {name for name in modules() if getattr(load(name), "AS_IT_GOES", False)}
    assert as_they_go < telling
    assert {"why", "export", "iostat", "hist", "requests"} <= telling
    assert not telling & {"live", "record", "view"}, "these have the screen for themselves"


@pytest.mark.parametrize("rows_on_screen", [True, False])
def test_a_terminal_that_gets_rows_has_no_line(
    rows_on_screen: bool, terminal: Terminal, run_of: RunOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(run_of("demo-qd4").path)
    monkeypatch.setattr("sys.stdout.isatty", lambda: rows_on_screen, raising=False)
    monkeypatch.setenv("PAGER", "cat")
    assert main(["log", path]) == 0
    assert ("\rlog" in terminal.getvalue()) is not rows_on_screen


ALONE = [name for name in FORMATS if name not in BOTH]


@pytest.mark.parametrize(
    "command",
    ["why", "coverage", "graph", "stages", "report", "log", "requests", *(f"export --to {name}" for name in ALONE)],
)
def test_commands_tell_it_and_nothing_of_it_stays(
    command: str, terminal: Terminal, run_of: RunOf, tmp_path: Path
) -> None:
    name, *options = command.split()
    written = ["-o", str(tmp_path / "written")] if name in ("report", "export") else []
    assert main([name, str(run_of("demo-qd4").path), *options, *written]) == 0
    said = terminal.getvalue()
    passes = (f"\r{name}   0%, step 1 ", f"\r{name}, step 1 ")  # where it is not known how much there is
    if options[-1:] != ["duckdb"] and options[-1:] != ["folded"]:  # a statement for all of it
        assert any(line in said for line in passes)
    assert any(line in said for line in (*passes, f"\r{name}: querying "))
    assert f"\r{name}" not in said.rpartition(GONE)[2], "the last line stays"


@pytest.mark.parametrize("command", ["hist", "iostat", "heatmap", "outliers", "bitesize", "btt", "sql"])
def test_a_command_that_asks_tables_says_so(command: str, terminal: Terminal, run_of: RunOf) -> None:
    more = ["SELECT count(*) FROM stages"] if command == "sql" else []
    assert main([command, str(run_of("demo-qd4").path), *more]) == 0
    said = terminal.getvalue()
    assert f"\r{command}: querying " in said
    assert f"\r{command}" not in said.rpartition(GONE)[2], "the last line stays"
