# SPDX-License-Identifier: MIT
"""Traces whose times do not compare are not read as one."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from opline_analyses.cli import main

LAB = str(Path(__file__).parents[1] / "models" / "lab.toml")


def test_clocks_of_two_time_namespaces_do_not_compare(
    trace: Callable[[str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One boot, one uuid, and another offset: LTTng-UST has the clock of its own time namespace."""
    run = shutil.copytree(trace("app-sync-qd4-nvme"), tmp_path / "run")
    metadata = run / "kernel" / "metadata"
    content = metadata.read_bytes()
    at = content.index(b"offset = ", content.index(b"clock {")) + 9
    other = bytes([ord("0") + (content[at] - ord("0") + 1) % 10])
    assert main(["stages", str(run), "--model", LAB]) == 0
    capsys.readouterr()
    metadata.write_bytes(content[:at] + other + content[at + 1 :])
    for reader in ("native", "bt2"):
        assert main(["stages", str(run), "--model", LAB, "--reader", reader]) == 1
        said = capsys.readouterr()
        assert said.out == ""
        assert "two time namespaces" in said.err and "s apart" in said.err
