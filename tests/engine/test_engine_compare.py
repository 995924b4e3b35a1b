# SPDX-License-Identifier: MIT
"""`opline compare --engine`: the figures of each run are made elsewhere, and are the same."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.engine.test_engine import NAMES, runs, said

__all__ = ["runs"]
Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize("form", [(), ("--json",)], ids=["text", "json"])
def test_compare_by_an_engine_is_compare(form: tuple[str, ...], runs: Path, tmp_path: Path, capfd: Capture) -> None:
    first, *others = (runs / name for name in NAMES)
    words = ("compare", first, "--with", *others, *form)
    alone = said(capfd, *words)
    assert alone[0] == 0 and alone[1]
    for engine in ("processes:1", "processes:4"):
        status, out, err = said(capfd, *words, "--engine", engine)
        assert (status, out) == alone[:2]
        assert sorted(err.splitlines()) == sorted(alone[2].splitlines())
    folder = tmp_path / "others"
    folder.mkdir()
    for number, other in enumerate(others):
        (folder / f"{number}").symlink_to(other)
    assert said(capfd, "compare", first, folder, *form, "--engine", "processes:2")[:2] == alone[:2]


def test_a_run_that_compare_cannot_read_is_named(runs: Path, tmp_path: Path, capfd: Capture) -> None:
    first, second, third = (runs / name for name in NAMES)
    gone = Path(shutil.copytree(second, tmp_path / "gone"))
    (gone / "stages.parquet").unlink()
    expected = said(capfd, "compare", first, third)
    status, out, err = said(capfd, "compare", first, "--with", gone, third, "--engine", "processes:2")
    assert (status, out) == (3, expected[1])
    assert "opline: gone: " in err and "1 of 3 recordings are not in the figures below: gone." in err
    status, out, err = said(capfd, "compare", first, gone, "--engine", "processes:2")
    assert (status, out) == (3, "") and err.endswith("No recording of a side has an answer: the lines above say why.\n")
