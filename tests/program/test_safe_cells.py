# SPDX-License-Identifier: MIT
"""--safe-cells: no text of a CSV is a formula to a spreadsheet; without it the CSV is exact."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from tests.lib.build_run import P, Rq, RunBuilder

from opline_analyses.cli import main

FORMULA = "=cmd|' /C calc'!A0,\"x\"\n"
COMMANDS = (["csv"], ["csv", "--stages"], ["stages", "--csv"], ["requests", "--csv"], ["sql", "FROM ops", "--csv"])


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: "-".join(c))
def test_texts_are_no_formulas(command: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run = RunBuilder()
    for name in (FORMULA, "@SUM(1)", "-1+2", "plain"):
        points = [P("a", 0, comm=name), P("m", 5, stage=name), P("b", 900, stage=name)]
        run.op(points, [Rq(q=10, g=20, d=30, c=500)], op_class=name, obj=name)
    for row in run.rows["requests"]:
        row["queue_comm"] = FORMULA
    path = str(run.write(tmp_path / "run"))
    read = []
    for options in ([], ["--safe-cells"], ["--safe-cells", "-o", str(tmp_path / "out.csv")]):
        assert main([command[0], path, *command[1:], *options]) == 0
        text = capfd.readouterr().out or (tmp_path / "out.csv").read_bytes().decode()
        read.append(list(csv.reader(io.StringIO(text, newline=""))))
    exact, safe, file = read
    assert any(cell == FORMULA for row in exact for cell in row)
    assert safe == file
    for was, now in zip(exact, safe, strict=True):
        for a, b in zip(was, now, strict=True):
            assert b == (f"'{a}" if a.startswith((FORMULA, "@SUM(1)", "-1+2")) else a)
