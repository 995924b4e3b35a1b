# SPDX-License-Identifier: MIT
"""Traces whose times do not compare are not read as one."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from opline import _core
from opline.readers.clock import clock_of_ns, wall_offset_ns
from opline_analyses.cli import main

LAB = str(Path(__file__).parents[1] / "models" / "lab.toml")


def moved(trace: Callable[[str], Path], tmp_path: Path, digit: int) -> Path:
    """A recorded run with its kernel trace's clock offset changed in that digit (from the left)."""
    run = tmp_path / "run"
    shutil.copytree(trace("app-sync-qd4-nvme"), run / "trace")
    metadata = run / "trace" / "kernel" / "metadata"
    content = metadata.read_bytes()
    at = content.index(b"offset = ", content.index(b"clock {")) + 9 + digit
    other = bytes([ord("0") + (content[at] - ord("0") + 1) % 10])
    metadata.write_bytes(content[:at] + other + content[at + 1 :])
    return run


def host_says(run: Path, **host: object) -> None:
    (run / "recording.json").write_text(json.dumps({"schema": "opline-recording", "schema_version": 1, "host": host}))


@pytest.mark.parametrize("reader", ["native", "bt2"])
def test_clocks_of_two_time_namespaces_do_not_compare(
    trace: Callable[[str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], reader: str
) -> None:
    """One boot, one uuid, and another offset: LTTng-UST has the clock of its own time namespace."""
    stages = ["stages", "--model", LAB, "--reader", reader]
    assert main([*stages, str(trace("app-sync-qd4-nvme"))]) == 0
    capsys.readouterr()
    assert main([*stages, str(moved(trace, tmp_path, 0))]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert "two time namespaces" in said.err and "s apart" in said.err


def test_a_recording_knows_its_time_namespace(
    trace: Callable[[str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The kernel's tracer reads its offset once: on a virtual machine that waits in between it is off by milliseconds,
    and the clock is the same. A recorder in a namespace of its own has another clock, however near.
    """
    run = moved(trace, tmp_path, 12)  # ns of 19 digits: 1 ms or more
    boot = json.loads(_core.NativeReader([str(run / "trace" / "kernel")]).environment())[0]["clock"]["uuid"]
    for host, status in (
        ({}, 1),
        ({"boot_id": "another", "clock_offset_ns": 0}, 1),
        ({"boot_id": boot, "clock_offset_ns": 0}, 0),
        ({"boot_id": boot, "clock_offset_ns": 500}, 1),
    ):
        host_says(run, **host)
        assert main(["stages", str(run), "--model", LAB]) == status
    assert " 5e-07 s apart" in capsys.readouterr().err


def test_a_clock_says_the_time_of_day_or_does_not() -> None:
    whole = {"frequency": 3, "offset_s": 2, "offset_cycles": 2}
    assert wall_offset_ns(whole) == 2_666_666_666, "rounded down"
    assert wall_offset_ns({"frequency": 1_000_000_000, "offset_s": 0, "offset_cycles": 0}) is None
    assert wall_offset_ns({}) is wall_offset_ns(clock_of_ns("kernel", None)) is None
    for offset in (1, 1_795_976_311_313_600_866, -7):
        assert wall_offset_ns(clock_of_ns("kernel", offset)) == offset
