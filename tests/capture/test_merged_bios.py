# SPDX-License-Identifier: MIT
"""Bios that the kernel merges while a thread holds them back: the collector names their request at its issue."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.lib.block_capture import loop_device
from tests.lib.recorder import status

pytestmark = pytest.mark.live

DEPTH, COUNT = 16, 1024
Program = Callable[..., subprocess.CompletedProcess[str]]


def test_each_further_bio_is_found_by_its_pointer(opline: Program, tmp_path: Path) -> None:
    """The name has the time of the issue, and the record with that issue comes behind."""
    run = tmp_path / "run"
    with loop_device() as path:
        writer = [
            "fio", "--name=x", f"--filename={path}", "--direct=1", "--bs=4k", "--rw=write", f"--size={COUNT * 4}k",
            "--ioengine=libaio", f"--iodepth={DEPTH}", f"--iodepth_batch_submit={DEPTH}",
            f"--iodepth_batch_complete_min={DEPTH}",
        ]  # fmt: skip
        done = opline("record", "-o", str(run), "--quiet", "--", *writer)
    assert status(done) == 0, done.stderr
    told = json.loads(opline("losses", str(run), "--json").stdout)
    fates = sum(row["count"] for row in told["fates"] if row["event"] == "block:bio")
    unknown = sum(row["count"] for row in told["losses"] if row["loss"] == "unmatched_rq_bio")
    assert fates >= COUNT
    assert unknown < COUNT // 10  # some of other programs of the machine may have been queued before the recording
