# SPDX-License-Identifier: MIT
"""The demo store's log of its faults, by which benchmarks/planted_faults.py judges."""

from __future__ import annotations

import csv
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.live

STORE = Path(__file__).resolve().parents[2] / "examples" / "demo-store"
BENCH: list[str | Path] = [STORE / "build" / "demo-bench", "--device"]


def test_each_time_that_a_fault_acts_is_logged(tmp_path: Path) -> None:
    """An object's delay once for each op on it; a lock that is held for as long as was asked, each period."""
    (tmp_path / "disk").write_bytes(bytes(64 << 20))
    argv: list[str | Path] = [
        STORE / "build" / "demo-bench", "--device", tmp_path / "disk", "--backend", "buffered", "--ops", "320",
        "--fault", "object:3000:bench_object_3", "--fault", "lock:5000:20000",
        "--log", tmp_path / "log.csv", "--log-faults", tmp_path / "faults.csv",
    ]  # fmt: skip
    subprocess.run(argv, check=True, capture_output=True, timeout=60)
    with (tmp_path / "faults.csv").open(newline="") as file, (tmp_path / "log.csv").open(newline="") as log:
        acted = list(csv.DictReader(file))
        on_it = sum(row["object"] == "bench_object_3" for row in csv.DictReader(log))
    held = {
        kind: [int(r["end_ns"]) - int(r["begin_ns"]) for r in acted if r["fault"] == kind]
        for kind in ("object", "lock")
    }
    assert len(held["object"]) == on_it > 0
    assert min(held["object"]) >= 3_000_000
    assert len(held["lock"]) >= 2
    assert sorted(held["lock"])[1] >= 5_000_000  # the last one may have been cut short
    assert {r["thread"] for r in acted if r["fault"] == "lock"} == {"demo-lock"}


def test_a_log_of_faults_that_cannot_be_written_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "disk").write_bytes(bytes(1 << 20))
    argv = [*BENCH, tmp_path / "disk", "--log-faults", "/nonexistent/faults.csv"]
    done = subprocess.run(argv, text=True, capture_output=True, check=False, timeout=20)
    assert done.returncode == 1
    assert 'cannot write the log: path="/nonexistent/faults.csv"' in done.stderr
