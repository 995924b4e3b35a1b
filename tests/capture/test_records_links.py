# SPDX-License-Identifier: MIT
"""Whole requests and single block events of one run, with its system calls: the same ops, and the same bios of each."""

from __future__ import annotations

import subprocess
from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.capture.test_extents_capture import ext4
from tests.lib.recorder import finish, start, wait_for

from opline.correlation import correlate
from opline.model import load_model

pytestmark = pytest.mark.live

JOBS = """
read go
cd "$0"
run() { file=$1; shift; fio --name=x --filename=$file --size=2M --bs=4k --output=/dev/null --eta=never "$@"; }
run direct --direct=1 --rw=randrw --ioengine=psync
run direct --direct=1 --rw=randread --ioengine=io_uring --iodepth=16 --iodepth_batch_submit=8
run direct --direct=1 --rw=randwrite --ioengine=libaio --iodepth=8
run cached --rw=write --ioengine=psync --fsync=16
run cached --rw=read --ioengine=psync --invalidate=1
"""


def ops(run: Path) -> dict[tuple[Any, ...], list[tuple[Any, ...]]]:
    """Of each thread and class, in order of time: where the op is, how it ended, and which bios it has by what. Not its
    file's path, which each recorder asks the kernel for by itself, some milliseconds later.
    """
    bios = {row["bio_id"]: row for row in pq.read_table(run / "bios.parquet").to_pylist()}
    linked: dict[int, list[tuple[Any, ...]]] = defaultdict(list)
    for link in pq.read_table(run / "links.parquet").to_pylist():
        bio = bios[link["bio_id"]]
        place = (bio["dev"], bio["sector"], bio["nr_sectors"], bio["kind"])
        linked[link["op_id"]].append((*place, link["evidence"], link["confidence"]))
    found: dict[tuple[Any, ...], list[tuple[Any, ...]]] = defaultdict(list)
    rows = [row for row in pq.read_table(run / "ops.parquet").to_pylist() if row["comm"] == "fio" and row["population"]]
    for row in sorted(rows, key=lambda row: row["begin_ns"]):
        same = ("cgroup", "offset_bytes", "length_bytes", "complete", "reason", "request_count", "no_request")
        told = tuple(row[name] for name in same)
        found[row["begin_tid"], row["class"]].append((*told, sorted(linked[row["op_id"]])))
    return found


def test_ops_have_the_same_bios(tmp_path: Path) -> None:
    with ext4(tmp_path / "mnt") as (_, mounted):
        work = subprocess.Popen(["bash", "-c", JOBS, mounted], stdin=subprocess.PIPE, text=True)
        both = {"single": ("--events", "block:*"), "whole": ()}
        recorders = [
            start("-o", tmp_path / way, "--quiet", "--sessiond", "private", "--pid", work.pid, *arguments)
            for way, arguments in both.items()
        ]
        try:
            wait_for(lambda: all((tmp_path / way / "recording.json").exists() for way in both))
            work.communicate("go\n", timeout=120)
        finally:
            work.kill()
            ended = [finish(recorder) for recorder in recorders]
    assert [done.returncode for done in ended] == [0, 0], [done.stderr for done in ended]
    assert not (tmp_path / "single" / "trace" / "requests").exists()
    assert (tmp_path / "whole" / "trace" / "requests").exists()
    found = {}
    for way in both:
        correlate(tmp_path / way, load_model("syscalls"), tmp_path / f"run-{way}", progress=False)
        found[way] = ops(tmp_path / f"run-{way}")
    assert found["single"].keys() == found["whole"].keys() and len(found["whole"]) > 10
    assert sum(len(rows) for rows in found["whole"].values()) > 2000
    for key, rows in found["single"].items():
        assert rows == found["whole"][key], key
