# SPDX-License-Identifier: MIT
"""Writes that need a flush behind their data (O_DSYNC on a device without FUA): the flush is the device's time, and
`iostat -x` has it, as the kernel's own counts of the device do.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.lib.block_capture import loop_device

pytestmark = pytest.mark.live
OPLINE = str(Path(sys.executable).with_name("opline"))
WRITES = 300
WRITE_IOS = 4  # of /sys/block/DEVICE/stat (Documentation/block/stat.rst)


def stat_of(device: str) -> list[int]:
    return [int(n) for n in (Path("/sys/block") / Path(device).name / "stat").read_text().split()]


def dev_of(run: str, device: str) -> int:
    """The kernel-internal number of a device, as the recording has it."""
    devices = json.loads((Path(run) / "recording.json").read_text())["devices"]
    return next(int(d["dev"]) for d in devices if d["name"] == Path(device).name)


def said(*argv: str) -> str:
    done = subprocess.run([OPLINE, *argv], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_flush_behind_a_write_is_the_devices_time(tmp_path: Path) -> None:
    if shutil.which("fio") is None:
        pytest.skip("needs fio")
    run = str(tmp_path / "run")
    with loop_device(folder=str(tmp_path)) as device:
        queue = Path("/sys/block") / Path(device).name / "queue"
        if (queue / "write_cache").read_text().strip() != "write back" or (queue / "fua").read_text().strip() != "0":
            pytest.skip("the loop device has FUA, or no cache")
        before = stat_of(device)
        said(
            "record", "--model", "syscalls", "-o", run, "--", "fio", "--name=w", f"--filename={device}",
            "--rw=randwrite", "--bs=4k", "--direct=1", "--sync=dsync", "--ioengine=libaio",
            f"--number_ios={WRITES}", "--size=32m", "--output=/dev/null",
        )  # fmt: skip
        after = stat_of(device)
    kernel = [b - a for a, b in zip(before, after, strict=True)]
    assert kernel[WRITE_IOS] >= WRITES
    rows = json.loads(said("iostat", run, "-x", "-d", Path(device).name, "--json"))["rows"]
    writes = sum(row["write_count"] for row in rows)
    waited_ns = sum(row["write_sum_ns"] for row in rows)
    sql = (
        "SELECT count(*), count(*) FILTER (end_ns > complete_ns), sum(end_ns - getrq_ns), sum(complete_ns - getrq_ns), "
        f"(SELECT count(*) FROM requests WHERE kind = 'write' AND end_ns IS NULL AND dev = r.dev) FROM requests r "
        f"WHERE kind = 'write' AND end_ns IS NOT NULL AND dev = {dev_of(run, device)} GROUP BY dev"
    )
    count, flushed, to_end_ns, to_data_ns, unended = map(
        int, said("sql", run, sql, "--csv").splitlines()[-1].split(",")
    )
    # Every write is accounted for, and its time is that up to the end of the flush behind its data: exact, as both come
    # from the same events. No time is compared with the clock of a machine that may be busy.
    assert writes == count and count + unended == kernel[WRITE_IOS]
    assert flushed > 0.9 * WRITES and waited_ns == to_end_ns > to_data_ns
    # The kernel's own time of a request begins after its first bio is queued, and ends after its last event; it counts
    # whole milliseconds, of the sum.
    mean_ns = {r["stage"]: r["mean_ns"] for r in json.loads(said("stages", run, "--comm", "fio", "--json"))["stages"]}
    assert mean_ns["postflush"] > 0
