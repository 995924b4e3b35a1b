# SPDX-License-Identifier: MIT
"""Damaged traces are the same to both readers, crash none and take none long: a quick part of ``tests.mutants``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.lib.damages import DAMAGES

QUICK = "app-sync-2m-nvme-split"


def test_both_readers_agree_on_damaged_traces() -> None:
    # In a small process: the memory of the one that runs the tests would count as its children's.
    command = [sys.executable, "-m", "tests.mutants", QUICK, "--count", str(len(DAMAGES)), "--seed", "1"]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
