# SPDX-License-Identifier: MIT
"""`opline record --repeat`: what is recorded in which order, and where it goes."""

from __future__ import annotations

import json
import random
import shlex
from pathlib import Path

import pytest

from opline.errors import OplineError, UsageError
from opline_analyses.api import recording
from opline_analyses.base import series
from opline_analyses.cli import main


def test_one_command_goes_to_numbered_runs() -> None:
    turns = series.plan(["prog", "a b"], None, 3)
    assert [(t.name, t.command) for t in turns] == [(f"run{n}", ["prog", "a b"]) for n in (1, 2, 3)]


def test_two_commands_take_turns_in_either_order() -> None:
    turns = series.plan(["new"], "old --name 'a b'", 50, random.Random(1))
    assert {(t.name[0], tuple(t.command)) for t in turns} == {("a", ("old", "--name", "a b")), ("b", ("new",))}
    pairs = [{t.name for t in turns[2 * n : 2 * n + 2]} for n in range(50)]
    assert pairs == [{f"a{n}", f"b{n}"} for n in range(1, 51)]
    assert 10 < sum(turns[2 * n].name.startswith("a") for n in range(50)) < 40


@pytest.mark.parametrize(("against", "said"), [("old 'x", "no closing quotation"), ("  ", "has no command")])
def test_what_is_no_command(against: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        series.plan(["new"], against, 2)


def test_a_directory_with_something_in_it_is_refused(tmp_path: Path) -> None:
    series.make_directory(tmp_path / "new")
    series.make_directory(tmp_path / "new")
    with pytest.raises(OplineError, match="is not empty"):
        series.make_directory(tmp_path)
    with pytest.raises(OplineError, match="No such file"):
        series.make_directory(tmp_path / "no" / "where")


def test_what_to_type_next_can_be_pasted() -> None:
    (line,) = series.closing_lines(Path("a series"), two=True)
    words = shlex.split(line.split("next:")[1])
    assert words == ["opline", "compare", "a series/a*", "--", "a series/b*"]


@pytest.mark.parametrize(
    ("codes", "whole", "status", "recorded"),
    [([0] * 4, True, 0, 4), ([0, 7, 0, 0], True, 7, 2), ([0, 3, 0, 0], True, 3, 2), ([0, 3, 0, 0], False, 3, 4)],
)
def test_the_series_ends_with_the_first_that_fails(
    codes: list[int], whole: bool, status: int, recorded: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    made: list[tuple[list[str], str]] = []

    def fake(_args: object, command: list[str], _model: object, directory: Path) -> int:
        made.append((command, directory.name))
        directory.mkdir()
        (directory / "recording.json").write_text(json.dumps({"state": "complete" if whole else "incomplete"}))
        return codes[len(made) - 1]

    monkeypatch.setattr(recording, "_record", fake)
    arguments = ["record", "-o", str(tmp_path / "s"), "--repeat", "2", "--against", "old", "--", "new"]
    assert main(arguments) == status
    assert len(made) == recorded and {(c[0], name[0]) for c, name in made} <= {("old", "a"), ("new", "b")}
    assert ("opline compare" in capfd.readouterr().err) == (recorded == 4)


@pytest.mark.parametrize(
    ("options", "said"),
    [(["--repeat", "0"], "must be 1 to 1000"), (["--against", "old"], "--against needs --repeat")],
)
def test_usage_errors(options: list[str], said: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["record", *options, "--", "true"]) == 2
    assert said in capfd.readouterr().err
