# SPDX-License-Identifier: MIT
"""What is about block requests needs no op model; what is about ops asks for one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from opline_analyses.cli import main

NAME = "fio-libaio-qd16-hdd-bfq"


@pytest.mark.parametrize(
    "command", ["hist", "iostat", "heatmap", "log", "bitesize", "outliers", "burst", "requests", "btt", "losses"]
)
def test_a_trace_alone_is_enough_for_the_block_layer(
    command: str, trace: Callable[[str], Path], capfd: pytest.CaptureFixture[str]
) -> None:
    assert main([command, str(trace(NAME))]) == 0
    alone = capfd.readouterr().out
    assert main([command, str(trace(NAME)), "--model", "generic"]) == 0
    assert alone == capfd.readouterr().out != ""


@pytest.mark.parametrize("arguments", [["stages"], ["why"], ["hist", "--of", "ops"], ["losses", "--of", "ops"]])
def test_ops_need_a_model(
    arguments: list[str], trace: Callable[[str], Path], capfd: pytest.CaptureFixture[str]
) -> None:
    command, *options = arguments
    assert main([command, str(trace(NAME)), *options]) == 2
    said = capfd.readouterr().err
    assert "is a trace: name one with --model" in said and "opline model infer" in said


def test_a_recording_without_a_model_says_what_proposes_one(
    trace: Callable[[str], Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    recorded = tmp_path / "run1"
    recorded.mkdir()
    (recorded / "recording.json").write_text("{}")
    (recorded / "trace").symlink_to(trace(NAME))
    assert main(["why", str(recorded)]) == 2
    said = capfd.readouterr().err
    assert f"{recorded} is a recording without an op model" in said
    assert f"opline model infer {recorded} > mine.toml" in said and "generic" in said and "syscalls" in said
