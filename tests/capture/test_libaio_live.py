# SPDX-License-Identifier: MIT
"""fio with libaio at a depth, through BPF, on this machine: of each direction the latencies lie within fio's own.

fio reads its clock before the call that submits and behind the one that takes, so its sum is larger, however busy the
machine is. I/Os that end in the wrong order would make one direction's sum larger than fio's: what the other one loses.
A file system tells of a write's end later than of a read's, so the calls that take I/Os take them in another order than
the block layer completes them.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.lib.block_capture import loop_device
from tests.lib.recorded import Correlated
from tests.lib.recorder import status

from opline.correlation import correlate
from opline.model import load_model

pytestmark = pytest.mark.live
FIO = (
    "fio --name=mixed --ioengine=libaio --filename={} --direct=1 --rw=randrw --bs=64k --iodepth={} --size=64M "
    "--runtime=1.5 --time_based --output-format=json --output=fio.json {}"
)
BATCHES = "--iodepth_batch=16 --iodepth_batch_complete_min=8 --iodepth_batch_complete_max=32"
CLOCKS = 1.0005  # fio counts cycles of the CPU, whose rate it measures
MADE = {"xfs": ["mkfs.xfs", "-q", "-f"], "ext4": ["mkfs.ext4", "-q", "-F"]}


@contextmanager
def place(kind: str, folder: Path) -> Iterator[str]:
    """What fio reads and writes: a loop device itself, or a file on it that has its blocks already."""
    if kind != "device" and shutil.which(MADE[kind][0]) is None:
        pytest.skip(f"needs {MADE[kind][0]}")
    with loop_device(512 << 20) as device:
        if kind == "device":
            yield device
            return
        subprocess.run([*MADE[kind], device], check=True, capture_output=True)
        folder.mkdir()
        subprocess.run(["mount", device, folder], check=True)
        try:
            path = folder / "data"
            subprocess.run(
                ["dd", "if=/dev/zero", f"of={path}", "bs=1M", "count=64", "conv=fsync", "status=none"], check=True
            )
            yield str(path)
        finally:
            subprocess.run(["umount", folder], check=True)


@pytest.mark.parametrize(
    ("kind", "depth", "batches"),
    [("device", 16, ""), ("ext4", 16, ""), ("xfs", 16, ""), ("xfs", 64, BATCHES)],
    ids=["device", "ext4", "xfs", "xfs-batches"],
)
def test_reads_and_writes_lie_within_fios_latency(kind: str, depth: int, batches: str, tmp_path: Path) -> None:
    if shutil.which("fio") is None:
        pytest.skip("needs fio")
    with place(kind, tmp_path / "mnt") as path:
        done = subprocess.run(
            [Path(sys.executable).with_name("opline"), "record", "--model", "syscalls", "-o", tmp_path / "run", "--",
             *FIO.format(path, depth, batches).split()],
            capture_output=True, text=True, timeout=180, cwd=tmp_path,
        )  # fmt: skip
    assert status(done) == 0, done.stderr
    if json.loads((tmp_path / "run" / "recording.json").read_text())["block_source"] != "bpf":
        pytest.skip(f"not through BPF here: {done.stderr}")
    manifest = correlate(tmp_path / "run" / "trace", load_model("syscalls"), tmp_path / "run", progress=False)
    run = Correlated(tmp_path / "run", manifest)
    losses = {row["loss"]: row["count"] for row in run.rows("losses")}
    if "discarded_events" in losses:
        pytest.skip(f"this machine does not keep up: {losses}")
    said = json.loads((tmp_path / "fio.json").read_text())["jobs"][0]
    for direction in ("read", "write"):
        ops = [op for op in run.rows("ops") if op["class"] == f"io_submit {direction}"]
        assert len(ops) == said[direction]["total_ios"]
        ended = [op["end_ns"] - op["begin_ns"] for op in ops if op["end_ns"] is not None]
        assert len(ended) > 0.95 * len(ops)  # what has no end has lost its completion: tracepoints/COLLECTOR.md
        theirs_ns = said[direction]["lat_ns"]["mean"] * said[direction]["total_ios"]
        print(f"{kind} {depth} {direction}: {len(ops)} ops, {sum(ended) / theirs_ns:.4f} of fio's lat")
        assert sum(ended) <= theirs_ns * CLOCKS
