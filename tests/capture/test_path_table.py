# SPDX-License-Identifier: MIT
"""The collectors' table of paths, which must not grow with the files that a recording of days meets."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from tests.lib.recorder import ROOT

MOST_PATHS, MOST_BYTES = 32768, 4 << 20  # tracepoints/path_table.h, of each of two generations


@pytest.fixture(scope="module")
def meet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``meet COUNT LENGTH``: so many files with paths of so many bytes."""
    binary = tmp_path_factory.mktemp("paths") / "meet"
    source = Path(__file__).with_name("path_table.c")
    options = ["-O1", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined", f"-I{ROOT / 'tracepoints'}"]
    subprocess.run(["gcc", *options, "-o", binary, source], check=True, timeout=120)
    return binary


def met(binary: Path, count: int, length: int) -> dict[str, int]:
    done = subprocess.run([binary, str(count), str(length)], check=True, capture_output=True, text=True, timeout=120)
    return dict(json.loads(done.stdout))


def test_few_files_are_all_known(meet: Path) -> None:
    found = met(meet, 20_000, 40)
    assert found == {
        "told": 20_000, "told_often": 1, "paths": 20_001, "bytes": 20_001 * 41, "first": 1, "wrong": 0, "told_again": 0
    }  # fmt: skip


@pytest.mark.parametrize("length", [40, 4095])
def test_many_files_take_no_more_memory(meet: Path, length: int) -> None:
    """What is met again and again stays, and is told once; what was not met for long is forgotten, and told again."""
    found = met(meet, 200_000, length)
    assert found["told"] == 200_000 and found["told_often"] == 1
    assert MOST_PATHS // 32 < found["paths"] <= 2 * MOST_PATHS + 2
    assert found["bytes"] <= 2 * (MOST_BYTES + 4096)
    assert (found["first"], found["wrong"], found["told_again"]) == (0, 0, 1)
