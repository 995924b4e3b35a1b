# SPDX-License-Identifier: MIT
"""What an error advises helps in the case that it is about."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.lib.build_run import small_run

from opline_analyses.base.literal import LiteralFiles
from opline_analyses.cli import main

Capture = pytest.CaptureFixture[str]


def test_ops_that_the_options_leave_out_are_not_the_models_fault(tmp_path: Path, capfd: Capture) -> None:
    run = small_run(tmp_path / "run")
    assert main(["stages", str(run), "--comm", "no such thread"]) == 1
    said = capfd.readouterr().err
    assert "the options select no" in said and "No op to count" in said and "model lint" not in said


def test_a_table_that_may_not_be_read_is_not_damaged(
    tmp_path: Path, capfd: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_files: LiteralFiles, path: Path) -> str:
        raise PermissionError(13, "Permission denied", str(path))

    run = small_run(tmp_path / "run")
    monkeypatch.setattr(LiteralFiles, "open", refused)
    assert main(["stages", str(run)]) == 1
    said = capfd.readouterr().err
    assert "losses.parquet: permission denied. Run as the user who recorded it, or as root." in said
    assert "Correlate" not in said


@pytest.mark.live
def test_why_there_is_nothing_to_record(tmp_path: Path, capfd: Capture) -> None:
    assert main(["record", "-o", str(tmp_path / "r"), "--no-block", "--model", "syscalls", "--", "true"]) == 1
    said = capfd.readouterr().err
    assert "no block events can be had (--no-block). `opline doctor` says what" in said
