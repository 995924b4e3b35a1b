# SPDX-License-Identifier: MIT
"""Files of other tools, each with what is true of it: the list in tests/corpus, as ``benchmarks.corpora`` checks it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from benchmarks.corpora import Case, judge, main, read_cases

CORPUS = Path(__file__).resolve().parents[1] / "corpus"
UNHURRIED_S = 60.0  # nothing here depends on how busy the machine is


@pytest.mark.parametrize("case", read_cases(CORPUS), ids=lambda case: case.about)
def test_opline_says_what_is_true(case: Case) -> None:
    found = judge(case, CORPUS, UNHURRIED_S)
    assert found.word == "right", found.why


def test_a_wrong_figure_is_seen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy(CORPUS / "bpftrace-unit" / "ns.txt", tmp_path)
    told = '[[case]]\nabout = "{}"\nrun = ["hist", "ns.txt"]\nsays = ["{}"]\n'
    (tmp_path / "corpus.toml").write_text(told.format("right", "4 events") + told.format("unit", "mean about 1.248 ms"))
    assert main([str(tmp_path), "--seconds", str(UNHURRIED_S)]) == 1
    shown = capsys.readouterr().out
    assert "wrong   unit" in shown and "no `mean about 1.248 ms`" in shown and "1 right, 1 wrong, 0 broken" in shown


@pytest.mark.parametrize(
    "text", ["", "nonsense", '[[case]]\nabout = "x"', '[[case]]\nabout = "x"\nrun = ["a"]\nsay = []']
)
def test_a_list_that_is_none_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    (tmp_path / "corpus.toml").write_text(text)
    assert main([str(tmp_path)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
