# SPDX-License-Identifier: MIT
"""fio's io_uring requests through BPF: submitted by the thread, by a worker, by the kernel's polling thread.

Each is one op, from the call to the completion that the application finds; figures are compared with fio's own.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.lib.block_capture import loop_device
from tests.lib.recorded import Correlated, Row
from tests.lib.recorder import status

from opline.correlation import correlate, stage_statistics
from opline.model import load_model

pytestmark = pytest.mark.live
OPLINE = str(Path(sys.executable).with_name("opline"))
COUNT, DEPTH = 800, 8
FIO = (
    "fio --name=a --output-format=json --ioengine=io_uring --rw=randrw --norandommap --bs=4k --size=16M "
    f"--iodepth={DEPTH} --number_ios={COUNT} --write_lat_log=a --log_offset=1 --filename={{}}"
)
# fio's options; the requests are the op's; the call that submits is seen
WAYS: dict[str, tuple[list[str], bool, bool]] = {
    "by the thread": (["--direct=1"], True, True),
    "in batches": (["--direct=1", "--iodepth_batch_submit=8", "--iodepth_batch_complete_min=4"], True, True),
    "by a worker": (["--direct=1", "--force_async=1"], True, True),
    "vectored": (["--direct=1", "--nonvectored=0"], True, True),
    "with registered files and buffers": (["--direct=1", "--registerfiles=1", "--fixedbufs=1"], True, True),
    "by a polling thread of the kernel": (["--direct=1", "--sqthread_poll=1"], True, False),
    "of the page cache": (["--direct=0"], False, True),
}


@pytest.fixture(scope="module")
def device() -> Iterator[str]:
    if shutil.which("fio") is None:
        pytest.skip("needs fio")
    with loop_device() as one:
        yield one


def _record(folder: Path, argv: list[str], uring: bool = True) -> Correlated:
    run = folder / "run"
    record = [OPLINE, "record", "--model", "syscalls", "-o", str(run), "--", *argv]
    with (folder / "fio.json").open("w") as said:
        done = subprocess.run(record, stdout=said, stderr=subprocess.PIPE, text=True, timeout=120, cwd=folder)
    assert status(done) == 0, done.stderr
    manifest = json.loads((run / "recording.json").read_text())
    if manifest["block_source"] != "bpf" or (uring and not manifest["collector"]["sent"].get("uring")):
        pytest.skip("the kernel does not tell io_uring's requests (before Linux 6.0), or not through BPF")
    return Correlated(run, correlate(run / "trace", load_model("syscalls"), run, progress=False))


def _said(folder: Path) -> dict[str, Any]:
    text = (folder / "fio.json").read_text()
    job: dict[str, Any] = json.loads(text[text.index("{") :])["jobs"][0]
    return job


def _ios(run: Correlated) -> list[Row]:
    return [op for op in run.rows("ops") if op["class"] in ("io_uring read", "io_uring write")]


@pytest.mark.parametrize("way", WAYS)
def test_each_request_is_an_op_until_its_completion(way: str, device: str, tmp_path: Path) -> None:
    options, direct, called = WAYS[way]
    run = _record(tmp_path, [*FIO.format(device).split(), *options])
    said, ops = _said(tmp_path), _ios(run)
    assert Counter(op["class"].removeprefix("io_uring ") for op in ops) == {
        name: said[name]["total_ios"] for name in ("read", "write")
    }
    assert all(op["complete"] and op["length_bytes"] == 4096 and op["object"] == device for op in ops)
    assert {op["comm"] for op in ops} == {"fio"}, "also of the polling thread, which is fio's"
    others = [op for op in run.rows("ops") if op["class"] == "io_uring" or op["comm"].startswith("iou-")]
    assert all(op in ops for op in others), "none appears twice"
    # fio begins before its call and ends after it has found the completion, so its latencies contain the ops'
    for name in ("read", "write"):
        of_class = [op for op in ops if op["class"] == f"io_uring {name}"]
        assert sum(op["latency_ns"] for op in of_class) <= said[name]["lat_ns"]["mean"] * len(of_class)
    entered = {t["op_id"] for t in run.rows("transitions") if t["point"] == "io_uring_enter"}
    assert ({op["op_id"] for op in ops} <= entered) == called
    if direct:
        _contain_their_requests(run, ops)
        _agree_with_the_log(tmp_path, ops)
    if called:
        _are_counted_by_the_ring(tmp_path / "run")
    if way == "by a worker":
        waits = [s for s in run.rows("stages") if s["stage"] == "wait for a worker"]
        assert len(waits) == len(ops) and all(s["kind"] == "wait" and s["duration_ns"] > 0 for s in waits)


def _events(run: Path, name: str) -> list[dict[str, Any]]:
    listed = subprocess.run([OPLINE, "events", run, "--json", "--names", name], stdout=subprocess.PIPE, check=True)
    return [json.loads(line)["fields"] for line in listed.stdout.splitlines()]


def _are_counted_by_the_ring(run: Path) -> None:
    """Each completion has the next number of the ring, and the application never takes one that is not there."""
    posted = [(c["ktime"], c["cq_tail"]) for c in _events(run, "*io_uring_complete")]
    calls = _events(run, "*syscall_entry_io_uring_enter")
    if {number for _, number in posted} == {-1}:
        return  # before Linux 6.15
    assert [number for _, number in posted] == list(range(1, COUNT + 1))
    for call in calls:
        assert 0 <= call["cq_head"] <= sum(ns <= call["ktime"] for ns, _ in posted)
    assert calls[-1]["cq_head"] > 0
    found, _losses = stage_statistics(run / "trace", load_model("syscalls"), progress=False)
    assert found["takes_unseen"] <= DEPTH  # those that came after the last call


def _contain_their_requests(run: Correlated, ops: list[Row]) -> None:
    """Each op has the request of its own bytes. Completions that no BPF program sees are no part of this."""
    requests = {r["request_id"]: r for r in run.rows("requests")}
    links: dict[int, list[Row]] = {}
    for link in run.rows("links"):
        if link["request_id"] is not None:  # else a bio of another program, at the end of the trace
            links.setdefault(link["op_id"], []).append(requests[link["request_id"]])
    for op in ops:
        (mine,) = links[op["op_id"]]
        assert mine["sector"] * 512 == op["offset_bytes"] and op["begin_ns"] <= mine["queue_ns"]
        assert mine["complete_ns"] is None or mine["complete_ns"] <= op["end_ns"]


def _agree_with_the_log(folder: Path, ops: list[Row]) -> None:
    """fio's log of single I/Os has the same places in the same directions as often."""
    log = [line.split(", ") for line in (folder / "a_lat.1.log").read_text().splitlines()]
    told = Counter((("read", "write")[int(line[2])], int(line[4])) for line in log)
    assert Counter((op["class"].removeprefix("io_uring "), op["offset_bytes"]) for op in ops) == told


def test_a_sync_is_one_op_with_its_flush(device: str, tmp_path: Path) -> None:
    """The worker that executes it queues the pages that are dirty."""
    run = _record(tmp_path, [*FIO.format(device).replace("randrw", "randwrite").split(), "--direct=0", "--fsync=40"])
    syncs = [op for op in run.rows("ops") if op["class"] == "io_uring fsync"]
    assert len(syncs) == _said(tmp_path)["sync"]["total_ios"] and all(op["complete"] for op in syncs)
    assert {link["op_id"] for link in run.rows("links")} & {op["op_id"] for op in syncs}


@pytest.mark.parametrize("engine", ["libaio", "io_uring"])
def test_an_object_is_the_path_of_the_file(engine: str, tmp_path: Path) -> None:
    """Of two files on a disk, which a filter tells apart; each job has its own number of I/Os."""
    shared = f"fio --ioengine={engine} --rw=randwrite --bs=4k --size=4M --iodepth=4 --thread --output-format=json"
    disk = tmp_path / "disk"
    disk.mkdir()
    files = {disk / "one": 40, disk / "two": 60}
    jobs = []
    for file, n in files.items():
        jobs += [f"--name={file.name}", f"--filename={file}", f"--io_size={n * 4096}"]
    with loop_device() as device:
        subprocess.run(["mkfs.ext4", "-q", device], check=True)
        subprocess.run(["mount", device, disk], check=True)
        try:
            run = _record(tmp_path, [*shared.split(), *jobs], uring=engine == "io_uring")
        finally:
            subprocess.run(["umount", disk], check=True)
    ops = [op for op in run.rows("ops") if op["class"] in ("io_submit write", "io_uring write", "io_submit")]
    assert Counter(op["object"] for op in ops) == {str(file): n for file, n in files.items()}
    listed = [OPLINE, "stages", str(run.path), "--class", ops[0]["class"], "--object", f"{disk}/tw*", "--json"]
    stages = json.loads(subprocess.run(listed, capture_output=True, check=True, text=True).stdout)["stages"]
    assert next(stage["count"] for stage in stages if stage["stage"] == "latency") == 60
