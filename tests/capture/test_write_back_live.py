# SPDX-License-Identifier: MIT
"""Every call that leaves data behind in the page cache, on this machine, on ext4: the op knows where it wrote, and what
is written back later is charged to it. The places are computed here from what the program did.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from tests.capture.test_extents_capture import ext4
from tests.lib.recorded import Correlated
from tests.lib.recorder import status

from opline.correlation import correlate
from opline.model import load_model

pytestmark = pytest.mark.live
PAGE = 4096

# The pauses are for the watcher, which maps a file when it gets to run.
KINDS = """
import mmap, os, sys
data = b"x" * 4096
def opened(name, flags=0):
    return os.open(name, os.O_RDWR | os.O_CREAT | flags, 0o644)
fd = opened("places")
os.lseek(fd, 10 * 4096, os.SEEK_SET)
os.write(fd, data)
os.write(fd, data)
os.writev(fd, [data, data])
other = os.dup(fd)
os.write(other, data)
if os.fork() == 0:
    os.write(fd, data)
    os._exit(0)
os.wait()
os.write(fd, data)
os.pwritev(fd, [data, data], 0)
fd = opened("appended", os.O_APPEND)
for _ in range(3):
    os.lseek(fd, 0, os.SEEK_SET)
    os.write(fd, data)
os.pwrite(fd, data, 0)
os.pwritev(fd, [data, data], 0)
fd = opened("told")
os.pwrite(fd, data, 0)
os.pwritev(fd, [data], 0, os.RWF_APPEND)
os.lseek(fd, 5 * 4096, os.SEEK_SET)
os.pwritev(fd, [data], -1, os.RWF_HIPRI)
fd = opened("sent")
os.lseek(fd, 2 * 4096, os.SEEK_SET)
os.sendfile(fd, opened("places"), 10 * 4096, 2 * 4096)
fd = opened("copied")
os.copy_file_range(opened("places"), fd, 4096, 10 * 4096)
os.copy_file_range(opened("places"), fd, 2 * 4096, 10 * 4096, 5 * 4096)
fd = opened("spliced")
reader, writer = os.pipe()
os.splice(opened("places"), writer, 2 * 4096, 10 * 4096)
os.splice(reader, fd, 4096, offset_dst=3 * 4096)
os.lseek(fd, 6 * 4096, os.SEEK_SET)
os.splice(reader, fd, 4096)
fd = opened("mapped")
os.ftruncate(fd, 4 * 4096)
with mmap.mmap(fd, 4 * 4096) as pages:
    pages[:] = data * 4
reader, writer = os.pipe()
os.write(writer, data)
"""
WORK = "cd $1; dd if=/dev/zero of=dd bs=4k count=50 status=none; {python} -c '{kinds}'; sleep 0.5; sync; sleep 0.5"
# file: (class, first page, pages) of each op
WROTE = {
    "dd": [("write", page, 1) for page in range(50)],
    "places": [
        ("write", 10, 1), ("write", 11, 1), ("writev", 12, 2), ("write", 14, 1), ("write", 15, 1), ("write", 16, 1),
        ("pwritev", 0, 2),
    ],
    "appended": [("write", 0, 1), ("write", 1, 1), ("write", 2, 1), ("pwrite64", 3, 1), ("pwritev", 4, 2)],
    "told": [("pwrite64", 0, 1), ("pwritev", 1, 1), ("pwritev", 5, 1)],
    "sent": [("sendfile", 2, 2)],
    "copied": [("copy_file_range", 0, 1), ("copy_file_range", 5, 2)],
    "spliced": [("splice", 3, 1), ("splice", 6, 1)],
    "mapped": [],
}  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Correlated:
    folder = tmp_path_factory.mktemp("write-back")
    with ext4(folder / "mnt") as (_, files):
        work = WORK.format(python=sys.executable, kinds=KINDS)
        done = subprocess.run(
            [Path(sys.executable).with_name("opline"), "record", "--model", "syscalls", "-o", folder / "run", "--",
             "bash", "-c", work, "work", files],
            capture_output=True, text=True, timeout=120,
        )  # fmt: skip
    assert status(done) == 0, done.stderr
    if json.loads((folder / "run" / "recording.json").read_text())["block_source"] != "bpf":
        pytest.skip(f"not through BPF here: {done.stderr}")
    if "no maps of files" in done.stderr:
        pytest.skip(done.stderr)
    return Correlated(folder / "run", correlate(folder / "run" / "trace", load_model("syscalls"), folder / "run"))


def charged(run: Correlated) -> dict[str, dict[int, int]]:
    """Bytes that reached the disk for an op, by file: those that it left behind, and those that its sync waited for."""
    out: dict[str, dict[int, int]] = defaultdict(Counter)
    for row in run.rows("deferred"):
        assert row["confidence"] != "low"
        out[Path(row["file"]).name][row["op_id"]] += row["bytes"]
    return out


@pytest.mark.parametrize("name", WROTE)
def test_what_is_written_back_is_charged_to_the_call_that_left_it_behind(name: str, run: Correlated) -> None:
    ops = {op["op_id"]: op for op in run.rows("ops")}
    found = [
        (ops[op]["class"], ops[op]["offset_bytes"] // PAGE, count // PAGE) for op, count in charged(run)[name].items()
    ]
    assert sorted(found) == sorted(WROTE[name])
    assert all(ops[op]["no_request"] == "written_back_later" for op in charged(run)[name])


def test_a_call_that_writes_no_file_has_no_place(run: Correlated) -> None:
    (op,) = [op for op in pipe_writes(run) if op["length_bytes"] == PAGE]
    assert op["offset_bytes"] is None
    assert op["no_request"] == "not_a_file"


def pipe_writes(run: Correlated) -> list[dict[str, Any]]:
    return [op for op in run.rows("ops") if op["class"] == "write" and op["offset_bytes"] is None]


def test_no_write_of_a_file_is_without_io(run: Correlated) -> None:
    writes = [op for op in run.rows("ops") if op["class"] in ("write", "writev") and op["offset_bytes"] is not None]
    assert len(writes) >= 50 + 7
    assert not [op for op in writes if op["no_request"] == "no_io_seen"]
