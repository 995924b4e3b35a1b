# SPDX-License-Identifier: MIT
"""The recipes of docs/recipes.md run on the CSV of a recorded trace, and say what the run says."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RECIPES = ROOT / "examples" / "recipes"
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def ops_csv(
    trace: Callable[[str], Path],
    opline: Callable[..., subprocess.CompletedProcess[str]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    path = tmp_path_factory.mktemp("recipes") / "ops.csv"
    done = opline("csv", trace("app-sync-qd4-nvme"), "--model", ROOT / "tests" / "models" / "lab.toml", "-o", path)
    assert done.returncode == 0, done.stderr
    return path


def test_gnuplot(ops_csv: Path, tmp_path: Path) -> None:
    picture = tmp_path / "latency.png"
    done = subprocess.run(
        ["gnuplot", "-e", f"csv='{ops_csv}'; out='{picture}'", RECIPES / "latency.gnuplot"],
        text=True,
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert picture.read_bytes().startswith(PNG)


def test_pandas(ops_csv: Path, tmp_path: Path) -> None:
    picture = tmp_path / "slow.png"
    done = subprocess.run(
        [sys.executable, RECIPES / "slow_ops.py", ops_csv, picture], text=True, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert picture.read_bytes().startswith(PNG)
    # the classes of latency are ordered, and their stages sum to what the CSV says of the ops in them
    columns = [
        float(sum(c)) for c in zip(*(map(float, ln.split()[-4:]) for ln in done.stdout.splitlines()[1:]), strict=True)
    ]
    assert columns == sorted(columns)
    rows = [line.split(",") for line in ops_csv.read_text().splitlines()]
    latency = sorted(int(row[rows[0].index("latency_ns")]) for row in rows[1:])
    slowest = latency[len(latency) * 99 // 100 :]
    assert columns[-1] == pytest.approx(sum(slowest) / len(slowest) / 1000, rel=0.001)
