# SPDX-License-Identifier: MIT
"""Whole requests from BPF against single block events of the same run: the same tables, whatever they go through."""

from __future__ import annotations

import ctypes
import fcntl
import os
import shutil
import struct
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import bt2
import pytest
from tests.lib.block_capture import capture, dev_of, loop_device, standing_still
from tests.lib.both_ways import BothWays, both_ways, pairs, same_tables

pytestmark = pytest.mark.live

ABSENT = 0xFFFFFFFF  # a step of a record
UNSEEN, QUEUED = 2, 64  # flags of a record
TOLD = ("block:watermark", "block:lost")


def unmount(folder: Path) -> None:
    subprocess.run(["umount", folder], check=True)


def fio(device: str, *arguments: str) -> None:
    argv = ["fio", "--name=x", f"--filename={device}", "--direct=1", "--bs=4k", *arguments]
    subprocess.run(argv, check=True, capture_output=True)


def deep(device: str, *arguments: str) -> None:
    uring = ["--ioengine=io_uring", "--iodepth=32", "--iodepth_batch_submit=8", "--iodepth_batch_complete_min=4"]
    fio(device, "--rw=randrw", *uring, *arguments)


def in_batches(device: str) -> None:
    """Adjacent writes, 32 at a time: bios are merged into requests, and requests into each other."""
    batches = ["--iodepth=64", "--iodepth_batch_submit=32", "--iodepth_batch_complete_min=32", "--numjobs=2"]
    fio(device, "--rw=write", "--size=4m", "--ioengine=io_uring", *batches)


def too_much_at_once(device: str) -> None:
    limit = int(Path(f"/sys/block/{Path(device).name}/queue/max_sectors_kb").read_text()) << 10
    subprocess.run(
        ["dd", "if=/dev/zero", f"of={device}", f"bs={3 * limit}", "count=2", "oflag=direct"],
        check=True, capture_output=True,
    )  # fmt: skip


def synced(device: str) -> None:
    subprocess.run(
        ["dd", "if=/dev/zero", f"of={device}", "bs=64k", "count=8", "oflag=sync"], check=True, capture_output=True
    )


def discarded(device: str) -> None:
    subprocess.run(["blkdiscard", "--length=8M", device], check=True)


def file_system(device: str) -> None:
    subprocess.run(["mkfs.ext4", "-q", device], check=True)
    mount = Path(f"/tmp/opline-records-{os.getpid()}")
    mount.mkdir()
    subprocess.run(["mount", device, mount], check=True)
    try:
        what = ["--rw=write", "--bs=8k", "--size=1m", "--fsync=4", "--numjobs=3"]
        subprocess.run(["fio", "--name=x", f"--directory={mount}", *what], check=True, capture_output=True)
    finally:
        unmount(mount)
        mount.rmdir()


def partition(device: str, operation: int, first_bytes: int = 0, length_bytes: int = 0) -> None:
    """Adds (1) or deletes (2) partition 1 by the ioctl BLKPG of linux/blkpg.h: Debian 13 has no addpart."""
    described = ctypes.create_string_buffer(struct.pack("=qqi64s64s4x", first_bytes, length_bytes, 1, b"", b""))
    request = struct.pack("@iiiP", operation, 0, len(described) - 1, ctypes.addressof(described))
    with Path(device).open("rb") as file:
        fcntl.ioctl(file, 0x1269, request)


def partitioned(device: str) -> None:
    partition(device, 1, 2048 * 512, 100000 * 512)
    try:
        deep(f"{device}p1", "--size=2m")
        synced(f"{device}p1")
    finally:
        partition(device, 2)


CGROUPS = Path(f"opline-records-{os.getpid()}")  # below the root of cgroup2


def cgroup2() -> Path | None:
    """Where it is mounted."""
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    return next((Path(mount[1]) for mount in mounts if mount[2] == "cgroup2"), None)


def in_cgroups(device: str) -> None:
    """Direct reads and buffered writes by each of two cgroups, which are gone when this returns."""
    root = cgroup2()
    assert root is not None
    for name in ("a", "b"):
        folder = root / CGROUPS / name
        folder.mkdir(parents=True)
        try:
            for what in ("--rw=randread --direct=1", "--rw=randwrite --direct=0 --end_fsync=1"):
                job = ["fio", "--name=x", f"--filename={device}", "--bs=4k", "--size=400k", *what.split()]
                argv = ["sh", "-c", 'echo $$ > "$0/cgroup.procs"; exec "$@"', str(folder), *job]
                subprocess.run(argv, check=True, capture_output=True)
        finally:
            folder.rmdir()
            (root / CGROUPS).rmdir()


def without_room(device: str) -> None:
    """Writes that fail: the device's file is on a file system without room for them."""
    subprocess.run(["dd", "if=/dev/zero", f"of={device}", "bs=64k", "count=40", "oflag=direct"], capture_output=True)


WORKLOADS: dict[str, Callable[[str], None]] = {
    "psync": lambda device: fio(device, "--rw=randrw", "--size=4m", "--ioengine=psync"),
    "io_uring": lambda device: deep(device, "--size=16m"),
    "deadline": lambda device: deep(device, "--size=8m", "--iodepth=128", "--iodepth_batch_submit=64"),
    "merges": in_batches,
    "deadline merges": in_batches,
    "splits": too_much_at_once,
    "synced": synced,
    "discard": discarded,
    "ext4": file_system,
    "partition": partitioned,
    "errors": without_room,
    **({"cgroups": in_cgroups} if cgroup2() else {}),
}


def finished(device: str) -> int:
    """The reads, writes, discards and flushes that the kernel says the device has finished."""
    words = [int(word) for word in Path(f"/sys/block/{Path(device).name}/stat").read_text().split()]
    return sum(words[at] for at in (0, 4, 11, 15))  # Documentation/block/stat.rst


@dataclass(slots=True)
class Workload:
    """What a workload did: its device, and how many requests that had finished by the kernel's count."""

    dev: int
    finished: int = 0


Both = tuple[BothWays, dict[str, Workload]]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[BothWays, dict[str, Workload]]]:
    """One run, a device for each workload."""
    folder = tmp_path_factory.mktemp("both")
    with ExitStack() as stack:
        tiny = folder / "tiny"
        tiny.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", tiny], check=True)
        stack.callback(unmount, tiny)
        paths = {
            name: stack.enter_context(loop_device(128 << 20, folder=str(tiny) if name == "errors" else "/dev/shm"))
            for name in WORKLOADS
        }
        for name, path in paths.items():
            if name.startswith("deadline"):
                Path(f"/sys/block/{Path(path).name}/queue/scheduler").write_text("mq-deadline")
        done = {name: Workload(dev_of(path)) for name, path in paths.items()}
        with both_ways(folder) as recorded:
            before = {name: finished(path) for name, path in paths.items()}
            for name, work in WORKLOADS.items():
                work(paths[name])
            time.sleep(0.3)  # what the file system still writes
            for name, path in paths.items():
                done[name].finished = finished(path) - before[name]
        yield recorded, done


@pytest.mark.parametrize("workload", WORKLOADS)
def test_whole_requests_are_the_same_requests(both: Both, workload: str) -> None:
    recorded, devices = both
    single, whole = (recorded.rows(way, "requests", devices[workload].dev) for way in ("single", "whole"))
    assert len(single) > 5
    assert any(row["queue_ns"] and row["complete_ns"] for row in single)
    same_tables(pairs(single, whole))


@pytest.mark.parametrize("workload", WORKLOADS)
def test_bios_are_the_same_bios(both: Both, workload: str) -> None:
    recorded, devices = both

    def told(way: str) -> Counter[tuple[Any, ...]]:
        names = ("sector", "nr_sectors", "kind", "tid", "pid", "comm", "cgroup")
        rows = recorded.rows(way, "bios", devices[workload].dev)
        return Counter(tuple(row[name] for name in names) for row in rows)

    assert told("single") == told("whole")


@pytest.mark.parametrize("workload", WORKLOADS)
def test_both_readers_read_the_same(both: Both, workload: str) -> None:
    recorded, devices = both
    native, bt2 = (recorded.rows("whole", "requests", devices[workload].dev, reader) for reader in ("native", "bt2"))
    assert native == bt2


def test_each_workload_was_what_it_is_called(both: Both) -> None:
    recorded, devices = both
    rows = {name: recorded.rows("whole", "requests", work.dev) for name, work in devices.items()}
    assert any(row["bio_count"] > 1 for row in rows["merges"])
    assert any(row["outcome"] == "absorbed" for row in [*rows["deadline"], *rows["deadline merges"]])
    assert any(row["insert_ns"] for row in rows["deadline"])
    assert any(row["error"] for row in rows["errors"])
    assert any(row["preflush_ns"] for row in rows["ext4"])
    assert any(row["kind"] == "discard" for row in rows["discard"])
    if "cgroups" in rows:
        names = {Path(row["cgroup"]).name for row in rows["cgroups"] if row["cgroup"] and row["kind"] != "flush"}
        assert names >= {"a", "b"}
    sent = recorded.counts["requests"]["sent"]
    assert sent["block_split"] and sent["block_rq_merge"] and sent["bio"] and sent["thread"]


def requests_told(events: list[tuple[str, dict[str, Any]]]) -> int:
    """How many requests the events tell of, those included whose completion was not seen: their pointer comes back, or
    nothing more is told of them. A write that needs a flush counts when its sequence ends (block/blk-flush.c), not when
    its data are written.
    """
    under_way: set[int] = set()
    number = 0
    for name, f in events:
        if name == "block_rq_complete" and f["flush_seq"] <= 0:
            number += 1
            under_way.discard(f["rq"])
        elif name == "request":
            issued = f["issue"] != ABSENT
            number += issued and f["rq"] in under_way
            if f["complete"] != ABSENT or f["flags"] & UNSEEN:
                number += 1
                under_way.discard(f["rq"])
            elif issued:
                under_way.add(f["rq"])
    return number + len(under_way)


@pytest.mark.parametrize("workload", WORKLOADS)
def test_every_request_that_the_kernel_counts_is_told(both: Both, workload: str) -> None:
    recorded, devices = both
    mine = [(name, f) for name, _, f in recorded.told if f.get("dev") == devices[workload].dev]
    assert requests_told(mine) == devices[workload].finished


def test_events_are_in_order_and_few(both: Both) -> None:
    """A record per request, names of threads once; no loss."""
    recorded, _ = both
    times = [(name, time_ns) for name, time_ns, _ in recorded.told]
    assert [at for _, at in times] == sorted(at for _, at in times)
    counts = recorded.counts["requests"]
    names = Counter(name for name, _ in times)
    assert names["request"] == counts["sent"]["request"] >= counts["records"]
    assert names["thread"] < names["request"] / 20
    assert (counts["lost_ring"], counts["late"], counts["no_slot"], counts["unwritten"]) == (0, 0, 0, 0)


def test_every_completion_is_told(tmp_path: Path) -> None:
    """Records, and completions that were not seen, are what the device counts."""
    with loop_device(64 << 20) as path:
        with capture(tmp_path, "--requests", str(tmp_path / "whole"), enable=TOLD) as running:
            before = finished(path)
            deep(path, "--size=32m")
            device, expected = dev_of(path), finished(path) - before
        running.trace = tmp_path / "whole"
        mine = [(name, fields) for name, _, fields in running.events() if fields.get("dev") == device]
    assert requests_told(mine) == expected


def test_a_full_ring_buffer_is_told(tmp_path: Path) -> None:
    """What found no room is counted, the stream says since when something may be missing, and the rest is right."""
    with loop_device(64 << 20) as path:
        arguments = ["--requests", str(tmp_path / "whole"), "--ring-bytes=65536"]
        with capture(tmp_path, *arguments, enable=TOLD) as running, standing_still(running.pid):
            deep(path, "--size=32m")
        running.trace = tmp_path / "whole"
        events = list(running.events())
    lost = [(at, fields) for name, at, fields in events if name == "lost"]
    assert sum(fields["count"] for _, fields in lost) == running.counts["requests"]["lost_ring"] > 0
    assert all(fields["since"] <= at <= fields["until"] for at, fields in lost)
    assert all(fields["since"] < fields["until"] for _, fields in lost)


def test_a_request_that_is_open_for_long_holds_nothing_up(tmp_path: Path) -> None:
    """It is told as far as it is known, its completion comes by itself, and other requests do not wait for it: the
    stream tells of them while it is open.
    """
    mount = tmp_path / "frozen"
    mount.mkdir()
    with ExitStack() as stack:
        quick = stack.enter_context(loop_device())
        below = stack.enter_context(loop_device(128 << 20))
        subprocess.run(["mkfs.ext4", "-q", below], check=True)
        subprocess.run(["mount", below, mount], check=True)
        stack.callback(unmount, mount)
        slow = stack.enter_context(loop_device(64 << 20, folder=str(mount)))
        dev = dev_of(slow)
        with both_ways(tmp_path) as recorded:
            subprocess.run(["fsfreeze", "--freeze", mount], check=True)
            try:
                write = subprocess.Popen(
                    ["dd", "if=/dev/zero", f"of={slow}", "bs=4k", "count=1", "oflag=direct"], stderr=subprocess.DEVNULL
                )
                fio(quick, "--rw=randread", "--ioengine=psync", "--time_based", "--runtime=2")
                written = (tmp_path / "whole" / "requests_0").stat().st_size
            finally:
                subprocess.run(["fsfreeze", "--unfreeze", mount], check=True)
            assert write.wait() == 0
    assert written > 100_000
    mine = [
        (at, f) for name, at, f in recorded.whole.events() if name == "request" and f["dev"] == dev and f["rwbs"] & 1
    ]
    (begun, first), (ended, rest) = mine
    assert first["flags"] & 4 and first["flags"] & QUEUED
    assert first["issue"] != ABSENT and first["complete"] == ABSENT
    assert rest["complete"] == 0 and not rest["flags"] & QUEUED
    assert {rest[step] for step in ("getrq", "issue")} == {ABSENT}
    assert ended - begun > 1_000_000_000
    single, whole = (
        [row for row in recorded.rows(way, "requests", dev) if row["kind"] == "write"] for way in ("single", "whole")
    )
    assert len(single) == 1
    same_tables(pairs(single, whole))


def test_what_is_under_way_at_the_end_is_told(tmp_path: Path) -> None:
    """A request without completion, and what a device that makes no requests is at."""
    mount = tmp_path / "frozen"
    mount.mkdir()
    with ExitStack() as stack:
        below = stack.enter_context(loop_device(128 << 20))
        subprocess.run(["mkfs.ext4", "-q", below], check=True)
        subprocess.run(["mount", below, mount], check=True)
        stack.callback(unmount, mount)
        slow = stack.enter_context(loop_device(64 << 20, folder=str(mount)))
        dev = dev_of(slow)
        write = None
        try:
            with both_ways(tmp_path) as recorded:
                subprocess.run(["fsfreeze", "--freeze", mount], check=True)
                write = subprocess.Popen(
                    ["dd", "if=/dev/zero", f"of={slow}", "bs=4k", "count=1", "oflag=direct"], stderr=subprocess.DEVNULL
                )
                time.sleep(0.3)
        finally:
            subprocess.run(["fsfreeze", "--unfreeze", mount], check=True)
            assert write is not None and write.wait() == 0
    single, whole = (
        [row for row in recorded.rows(way, "requests", dev) if row["kind"] == "write"] for way in ("single", "whole")
    )
    assert [row["outcome"] for row in whole] == ["open"]
    same_tables(pairs(single, whole))


def test_what_could_not_be_written_is_counted_in_the_next_packet(tmp_path: Path) -> None:
    """A disk that is full for a while: the events that the trace has, and those that it counts, are all there were."""
    small = tmp_path / "small"
    small.mkdir()
    with ExitStack() as stack:
        device = stack.enter_context(loop_device())
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", small], check=True)
        stack.callback(unmount, small)
        with capture(tmp_path, "--requests", str(small / "whole"), enable=TOLD) as running:
            deep(device, "--size=1m")
            filler = small / "filler"
            subprocess.run(["dd", "if=/dev/zero", f"of={filler}", "bs=4k"], capture_output=True)
            deep(device, "--size=32m")
            filler.unlink()
            deep(device, "--size=1m")
        shutil.copytree(small / "whole", tmp_path / "whole")
    messages = list(bt2.TraceCollectionMessageIterator(str(tmp_path / "whole")))
    discarded = sum(m.count for m in messages if isinstance(m, bt2._DiscardedEventsMessageConst))
    written = sum(isinstance(m, bt2._EventMessageConst) for m in messages)
    told = running.counts["requests"]
    assert told["unwritten"] > 0 and discarded > 5000
    passed_on = sum(told["sent"].values()) + told["watermarks"] + told["lost_events"] + told["paths"]
    assert written + discarded == passed_on
