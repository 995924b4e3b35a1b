# SPDX-License-Identifier: MIT
"""`opline losses` beside the kernel's counters: each request of a device is told, syncs without data included."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.lib.block_capture import loop_device

pytestmark = pytest.mark.live
WRITES = 60


def test_the_kernel_counts_what_is_recorded(
    tmp_path: Path, opline: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    """Of a write that is synced the kernel counts the write, the sync's request, and the flush."""
    with loop_device() as device:
        writes = ["dd", "if=/dev/zero", f"of={device}", "bs=4k", f"count={WRITES}", "oflag=direct,dsync"]
        done = opline("record", "-o", tmp_path / "run", "--model", "syscalls", "--", *writes)
    assert done.returncode in (0, 3), done.stderr  # 3: completions that no program saw
    told = json.loads(opline("losses", tmp_path / "run", "--json").stdout)
    (row,) = [row for row in told["completions"] if row["device"] == Path(device).name]
    assert row["kernel"] >= 3 * WRITES
    assert (row["recorded"] + row["unseen"], row["others"]) == (row["kernel"], 0)
    lost = {loss["loss"] for loss in told["losses"]}
    gate = opline("losses", tmp_path / "run", "--max-loss", "0").returncode
    assert ("completions_missing" in lost) == (done.returncode == 3) == (gate == 3), "one verdict"
