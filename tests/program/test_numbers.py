# SPDX-License-Identifier: MIT
"""Options whose number, or whose company, means nothing are refused in one line."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.lib.build_run import small_run

from opline_analyses.cli import main


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["stages", "--max-loss", "-1"], "--max-loss: -1: must be 0 or more"),
        (["stages", "--threads", "9"], "A number of threads is to be 1 or 2, not '9'"),
        (["stages", "--model", "demo", "--period", "a:b,a:c"], "not allowed with argument --model"),
        (["heatmap", "--rows", "0"], "--rows: 0: must be 1 or more"),
        (["coverage", "--every", "0"], "--every 0: must be more than 0"),
        (["events", "--limit", "0"], "--limit: 0: must be 1 or more"),
        (["btt", "--limit", "-2"], "--limit: -2: must be 1 or more"),
    ],
)
def test_numbers_that_mean_nothing_are_status_2(
    args: list[str], said: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    try:
        status: object = main([args[0], str(small_run(tmp_path / "run")), *args[1:]])
    except SystemExit as error:
        status = error.code
    captured = capfd.readouterr()
    assert (status, captured.out) == (2, "") and said in captured.err and captured.err.count("\n") == 1
