# SPDX-License-Identifier: MIT
"""Names come from traces: whatever is in them, a terminal gets nothing to obey, and a picture's file is well-formed."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from tests.lib.build_run import P, Rq, RunBuilder

from opline.talk import shown
from opline_analyses.cli import main

EVIL = '\x1b]0;owned\x07\x1b[2J\r\n\x9b31m\u202e\u2028\x7f\x00$\\frac<&>"'
OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
TEXTS = (
    ["ops"], ["ops", "--op", "0"], ["ops", "--style", "ceph-devel"], ["stages"], ["requests"],
    ["interference", "--op", "0"], ["btt"], ["losses"], ["graph"], ["graph", "--format", "dot"], ["coverage"],
    ["sql", "SELECT class, object, comm FROM ops"], ["sql", "SELECT object AS \"a\x1bb\" FROM ops"],
    ["ops", "--json"], ["losses", "--json"], ["graph", "--format", "json"], ["btt", "--json"],
)  # fmt: skip


@pytest.fixture
def run(tmp_path: Path) -> str:
    built = RunBuilder()
    for n in range(3):
        t = n * 1_000_000
        points = [P(EVIL, t, comm=EVIL), P("b" + EVIL, t + 900_000, stage=EVIL, comm=EVIL)]
        built.op(points, [Rq(q=t + 1000, g=t + 2000, d=t + 3000, c=t + 500_000)], op_class=EVIL, obj=EVIL)
    built.fate(EVIL, "transition", 3)
    for row in built.rows["requests"]:
        row["queue_comm"] = row["issue_comm"] = EVIL
    return str(built.write(tmp_path / "run"))


@pytest.mark.parametrize("command", TEXTS, ids=lambda c: "-".join(c)[:24])
def test_nothing_is_left_to_obey(command: list[str], run: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main([command[0], run, *command[1:]]) == 0
    said = capfd.readouterr()
    for text in (said.out, said.err):
        assert not OBEYED.search(text), ascii(text)
    if "--json" in command:
        for line in said.out.splitlines() if command[0] == "ops" else [said.out]:
            json.loads(line)


def test_messages(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["stages", str(tmp_path / "no\x1b[2Jrun")]) == 2
    assert capfd.readouterr().err.endswith("no\\x1b[2Jrun does not exist.\n")


def test_json_and_csv_are_exact(run: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["ops", run, "--json"]) == 0
    assert json.loads(capfd.readouterr().out.splitlines()[0])["object"] == EVIL
    assert main(["csv", run]) == 0
    assert EVIL.replace('"', '""') in capfd.readouterr().out


@pytest.mark.parametrize("form", ["graph.graphml", "plot.svg"])
def test_pictures_are_well_formed(form: str, run: str, tmp_path: Path) -> None:
    assert main([form.split(".")[0], run, "-o", str(tmp_path / form)]) == 0
    text = "".join(ET.parse(tmp_path / form).getroot().itertext())
    assert not OBEYED.search(text.replace("\n", "").replace("\t", ""))


def test_what_is_shown_as_it_is() -> None:
    for plain in ("a b", "a\\b", "→ é 漢 …", "·", ""):
        assert shown(plain) == plain
    assert shown("\udc9b") == "\\x9b" and shown("\ud89b") == "\\ud89b"
