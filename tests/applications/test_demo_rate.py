# SPDX-License-Identifier: MIT
"""The demo store's benchmark with a schedule: ops begin when they are due, and late ones count from there."""

from __future__ import annotations

import csv
import json
import math
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.live

STORE = Path(__file__).resolve().parents[2] / "examples" / "demo-store"


def test_with_a_rate_ops_begin_when_they_are_due(tmp_path: Path) -> None:
    """Two stalls of 60 ms at depth 1: the ops that were due meanwhile begin late, and only one of each is slow."""
    results, log = tmp_path / "results.json", tmp_path / "log.csv"
    options = ["--qd", "1", "--ops", "400", "--rate", "1000", "--inject", "worker:60000:0.005"]
    command = [str(STORE / "run"), *options, "--json", str(results), "--log", str(log)]
    text = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
    said = json.loads(results.read_text())
    with log.open(newline="") as file:
        rows = list(csv.DictReader(file))
    late = [int(row["begin_ns"]) - said["begin_ns"] - 1_000_000 * n for n, row in enumerate(rows)]
    assert min(late) >= 0
    since_due = sorted(ns + int(row["latency_ns"]) for ns, row in zip(late, rows, strict=True))
    assert said["rate"] == 1000
    for name, p in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99)):
        assert said["since_due_ns"][name] == since_due[math.ceil(p * 400) - 1]
    assert said["since_due_ns"]["mean"] == pytest.approx(sum(since_due) / 400, abs=0.01)
    assert said["since_due_ns"]["p90"] > 20_000_000 > said["latency_ns"]["p90"]
    assert f"Since due: p99 (us):    {said['since_due_ns']['p99'] / 1000:.3f}" in text


@pytest.mark.parametrize("rate", ["0", "-5", "nan", "many"])
def test_a_rate_that_is_none_is_one_clear_line(rate: str) -> None:
    command = [str(STORE / "build" / "demo-bench"), "--device", "/dev/null", "--rate", rate]
    done = subprocess.run(command, text=True, capture_output=True, check=False, timeout=20)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"demo-bench: not a rate in ops per second: {rate}\n"
