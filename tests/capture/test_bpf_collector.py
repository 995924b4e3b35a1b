# SPDX-License-Identifier: MIT
"""The BPF collector in a real LTTng session, on a real loop device."""

from __future__ import annotations

import itertools
import mmap
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.lib.block_capture import MODULE, Capture, capture, dev_of, loop_device, standing_still
from tests.lib.namespaces import PID_NAMESPACE

pytestmark = pytest.mark.live

WRITES = 23
BLOCK = 4096
WRITE, READ, FLUSH, PREFLUSH = 1, 4, 256, 1024  # LTTng's rwbs


def write_directly(device: str, offsets: list[int], cpu: int | None = None) -> tuple[int, list[tuple[int, int]]]:
    """O_DIRECT writes by one thread: its tid, and (begin, end) of each call in CLOCK_MONOTONIC ns."""
    told: list[int] = []
    calls: list[tuple[int, int]] = []

    def work() -> None:
        told.append(threading.get_native_id())
        if cpu is not None:
            os.sched_setaffinity(0, {cpu})
        with mmap.mmap(-1, BLOCK) as page:
            page.write(b"x" * BLOCK)
            fd = os.open(device, os.O_RDWR | os.O_DIRECT)
            try:
                for offset in offsets:
                    begin = time.monotonic_ns()
                    assert os.pwrite(fd, page, offset) == BLOCK
                    calls.append((begin, time.monotonic_ns()))
            finally:
                os.close(fd)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return told[0], calls


@dataclass(slots=True)
class Recorded:
    """What was done, and what the trace says of it."""

    running: Capture
    tid: int
    calls: list[tuple[int, int]]
    devices: dict[str, int]  # workload → dev
    events: list[tuple[str, int, dict[str, Any]]]

    def of(self, workload: str) -> list[tuple[str, dict[str, Any]]]:
        return [(name, payload) for name, _, payload in self.events if payload.get("dev") == self.devices[workload]]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """One session, five workloads, a device for each; then half a second of nothing."""
    folder = tmp_path_factory.mktemp("collector")
    with ExitStack() as stack:
        paths = {name: stack.enter_context(loop_device()) for name in ("direct", "merged", "split", "flush", "synced")}
        with capture(folder) as running:
            assert running.ready["ready"] and running.ready["enabled"], running.ready
            tid, calls = write_directly(paths["direct"], [BLOCK * 3 * i for i in range(WRITES)])
            write_batches(paths["merged"])
            write_too_much_at_once(paths["split"])
            write_and_sync(paths["flush"])
            write_synced(paths["synced"])
            time.sleep(0.5)
        devices = {name: dev_of(path) for name, path in paths.items()}
    return Recorded(running, tid, calls, devices, list(running.events()))


def write_batches(device: str) -> None:
    """Adjacent writes, 32 at a time: the block layer merges them."""
    batches = ["--iodepth=32", "--iodepth_batch_submit=32", "--iodepth_batch_complete_min=32"]
    what = [
        "--name=x",
        f"--filename={device}",
        "--ioengine=io_uring",
        "--direct=1",
        "--rw=write",
        "--bs=4k",
        "--size=1m",
    ]
    subprocess.run(["fio", *what, *batches], check=True, capture_output=True)


def write_too_much_at_once(device: str) -> None:
    """One write of three times what a request may have."""
    limit = int(Path(f"/sys/block/{Path(device).name}/queue/max_sectors_kb").read_text()) << 10
    fd = os.open(device, os.O_RDWR | os.O_DIRECT)
    with mmap.mmap(-1, 3 * limit) as pages:
        assert os.pwrite(fd, pages, 0) == 3 * limit
    os.close(fd)


def write_and_sync(device: str) -> None:
    fd = os.open(device, os.O_RDWR)
    os.pwrite(fd, b"x" * BLOCK, 0)
    os.fsync(fd)
    os.close(fd)


def write_synced(device: str) -> None:
    fd = os.open(device, os.O_RDWR | os.O_DIRECT | os.O_DSYNC)
    with mmap.mmap(-1, BLOCK) as page:
        assert os.pwrite(fd, page, 0) == BLOCK
    os.close(fd)


def test_every_direct_write_is_seen_once(recorded: Recorded) -> None:
    mine = recorded.of("direct")
    queued = [payload for name, payload in mine if name == "block_bio_queue" and payload["tid"] == recorded.tid]
    issued = {payload["rq"] for name, payload in mine if name == "block_rq_issue" and payload["rwbs"] & WRITE}
    done = [payload for name, payload in mine if name == "block_rq_complete" and payload["rwbs"] & WRITE]
    assert len(queued) == WRITES
    assert len(done) == WRITES
    for i, (event, end, (begin_ns, end_ns)) in enumerate(zip(queued, done, recorded.calls, strict=True)):
        assert event["sector"] == BLOCK * 3 * i // 512 and event["nr_sector"] == BLOCK // 512
        assert event["rwbs"] & (WRITE | READ) == WRITE and event["comm"]
        assert begin_ns < event["ktime"] < end["ktime"] < end_ns
        assert end["sector"] == event["sector"] and end["nr_sector"] == BLOCK // 512 and end["error"] == 0
        assert end["bio"] == event["bio"] and end["rq"] in issued


def test_what_was_sent_is_recorded_in_order_and_without_a_gap(recorded: Recorded) -> None:
    counts, events = recorded.running.counts, recorded.events
    assert recorded.running.discarded == 0 and counts["lost_ring"] == 0 and counts["late"] == 0
    names = Counter(name for name, _, _ in events)
    assert names["watermark"] == counts["watermarks"] > 0
    assert {name: n for name, n in names.items() if name.startswith("block_")} == counts["sent"]
    order = [payload["ktime"] for _, _, payload in events]
    assert order == sorted(order)
    for cpu in {payload["cpu"] for _, _, payload in events if "seq" in payload}:
        numbers = [payload["seq"] for _, _, payload in events if "seq" in payload and payload["cpu"] == cpu]
        assert numbers == list(range(1, len(numbers) + 1))


def test_the_watermark_rises_when_nothing_happens_and_is_true(recorded: Recorded) -> None:
    through = 0
    marks = []
    for name, at_ns, payload in recorded.events:
        if name == "watermark":
            assert through <= payload["drained_through"] == at_ns
            through = payload["drained_through"]
            marks.append(at_ns)
        else:
            assert payload["ktime"] > through, "an event that its watermark had passed"
    assert max(b - a for a, b in itertools.pairwise(marks)) < 400_000_000


def test_merged_bios_are_named_at_issue(recorded: Recorded) -> None:
    events = recorded.of("merged")
    queued = Counter(
        payload["bio"] for name, payload in events if name == "block_bio_queue" and payload["rwbs"] & WRITE
    )
    named = Counter(
        payload["bio"]
        for name, payload in events
        if name in ("block_rq_issue", "block_rq_bio") and payload["rwbs"] & WRITE and payload["bio"]
    )
    merges = sum(name == "block_bio_backmerge" for name, _ in events)
    further = sum(name == "block_rq_bio" for name, _ in events)
    assert queued == named
    assert merges == further > 0


def test_a_split_bio_names_its_parent(recorded: Recorded) -> None:
    events = recorded.of("split")
    splits = [payload for name, payload in events if name == "block_split"]
    pointers = {payload["bio"] for name, payload in events if name in ("block_bio_queue", "block_split")}
    assert splits
    for split in splits:
        assert split["parent"] in pointers and split["bio"] != split["parent"]
        assert split["sector"] < split["new_sector"]


def test_flushes_have_the_sectors_that_lttng_gives(recorded: Recorded) -> None:
    events = recorded.of("flush")
    issues = [payload for name, payload in events if name == "block_rq_issue" and payload["rwbs"] & FLUSH]
    completions = [payload for name, payload in events if name == "block_rq_complete" and payload["rwbs"] & FLUSH]
    assert issues and len(issues) == len(completions)
    assert all(payload["sector"] == 0 and payload["nr_sector"] == 0 for payload in issues)
    assert all(payload["sector"] == 2**64 - 1 for payload in completions)
    assert any(name == "block_bio_queue" and payload["rwbs"] & PREFLUSH for name, payload in events)


def test_io_of_excluded_processes_is_left_out_to_the_last_event(tmp_path: Path) -> None:
    with loop_device() as device:
        with capture(tmp_path, f"--exclude-pid={os.getpid()}") as running:
            write_directly(device, [0, BLOCK, 5 * BLOCK])
            subprocess.run(["dd", "if=/dev/zero", f"of={device}", "bs=4k", "count=2", "oflag=direct"], check=True,
                           capture_output=True)  # fmt: skip
        dev = dev_of(device)
    names = Counter(name for name, _, payload in running.events() if payload.get("dev") == dev and payload["rwbs"] & 1)
    assert running.counts["own_bios"] >= 3
    for name in ("block_bio_queue", "block_getrq", "block_rq_issue", "block_rq_complete"):
        assert names[name] == 2, names


def test_requests_name_their_hardware_queue_and_the_step_of_their_flush(recorded: Recorded) -> None:
    """A loop device has one hardware queue. An O_DSYNC write is issued when its pre-flush is done, or was not needed
    (1), and is in its sequence until its data is done; the flush machinery's own request has no step done.
    """
    steps: dict[str, set[tuple[str, int]]] = {}
    for workload in ("direct", "flush", "synced"):
        requests = [(n, p) for n, p in recorded.of(workload) if n in ("block_rq_issue", "block_rq_complete")]
        assert {payload["queue"] for _, payload in requests} == {0}, workload
        data = [p for n, p in requests if n == "block_rq_issue" and not p["rwbs"] & FLUSH]
        assert all(p["tag"] >= 0 for p in data), workload
        steps[workload] = {
            (("flush " if p["rwbs"] & FLUSH else "") + n.removeprefix("block_rq_"), p["flush_seq"]) for n, p in requests
        }
    assert steps["direct"] == {("issue", -1), ("complete", -1)}
    assert {("flush issue", 0), ("flush complete", 0)} <= steps["flush"] & steps["synced"]
    assert {("issue", 1), ("complete", 1)} <= steps["synced"]
    assert ("issue", -1) not in steps["synced"]
    assert ("complete", -1) in steps["synced"]  # behind its flush it is in no sequence any more


def test_a_flush_of_excluded_processes_is_whole(tmp_path: Path) -> None:
    """What flushes has no bio that says whose it is: so the bio that asks for it is not left out."""
    with loop_device() as device:
        with capture(tmp_path, f"--exclude-pid={os.getpid()}") as running:
            fd = os.open(device, os.O_RDWR)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)
        dev = dev_of(device)
    events = [(name, payload["rwbs"]) for name, _, payload in running.events() if payload.get("dev") == dev]
    flushes = [name for name, rwbs in events if rwbs & FLUSH]
    assert flushes == ["block_rq_issue", "block_rq_complete"]
    assert sum(name == "block_getrq" and rwbs & PREFLUSH != 0 for name, rwbs in events) == 1


def test_a_full_ring_is_counted_and_shows_as_a_gap(tmp_path: Path) -> None:
    """A tiny ring buffer, and a collector that stands still for a while."""
    with loop_device() as device, capture(tmp_path, "--ring-bytes=65536") as running:
        with standing_still(running.pid):
            write_directly(device, [BLOCK * i for i in range(1000)], cpu=0)
        for _ in range(2):
            time.sleep(0.3)
            write_directly(device, [BLOCK * i for i in range(10)], cpu=0)
    lost: Counter[int] = Counter()
    last: Counter[int] = Counter()
    gaps: Counter[int] = Counter()
    for name, _, payload in running.events():
        if name == "lost" and payload["reason"] == "ring":
            lost[payload["cpu"]] += payload["count"]
        elif "seq" in payload:
            gaps[payload["cpu"]] += payload["seq"] - last[payload["cpu"]] - 1
            last[payload["cpu"]] = payload["seq"]
    assert running.counts["lost_ring"] == sum(lost.values()) > 0
    # what is lost after the last event of a CPU is in block:lost only
    assert all(gaps[cpu] <= lost[cpu] for cpu in gaps) and sum(gaps.values()) > 0


WHAT_PROGRAMS_RECORD_WHILE_THEY_ARE_DETACHED = """
import os, time
from opline.capture.bpf import bpf

reader, writer = os.pipe()
collector = bpf.Collector(records=writer)
collector.start()
while not collector.enabled():
    time.sleep(0.001)
programs = collector._bridge.bpf
detach = programs.detach

def slowly():
    time.sleep(0.1)  # rounds of the bridge's thread
    programs.detach = detach
    print(collector.enabled())
    detach()

programs.detach = slowly
collector.finish()
"""


def test_programs_fall_silent_at_once_and_are_detached_one_by_one() -> None:
    """Else a request of the last moments has a completion, and not the steps before it."""
    code = WHAT_PROGRAMS_RECORD_WHILE_THEY_ARE_DETACHED
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr


def test_only_enabled_events_are_sent(tmp_path: Path) -> None:
    wanted = ("block:block_rq_issue", "block:block_rq_complete")
    with loop_device() as device, capture(tmp_path, enable=wanted) as running:
        write_directly(device, [0, BLOCK])
    names = {name for name, _, _ in running.events()}
    assert names == {"block_rq_issue", "block_rq_complete"}
    assert running.counts["not_enabled"] == 0


NUMBERS_IN_A_PID_NAMESPACE = """
import sys
from pathlib import Path
from tests.lib.block_capture import capture, loop_device
from tests.capture.test_bpf_collector import BLOCK, write_directly

with loop_device() as device, capture(Path(sys.argv[1]), enable=("block:*", "sched:process_thread")) as running:
    tid, _ = write_directly(device, [0, BLOCK])
told = [one for name, _, one in running.events() if name == "sched:process_thread" and one["vtid"] == tid]
queued = {one["tid"] for name, _, one in running.events() if name == "block_bio_queue"}
here = Path("/proc/self/ns/pid").stat().st_ino
print(len(queued), *({one["tid"] for one in told if one["pid_ns"] == here} & queued), tid)
"""


def test_in_a_pid_namespace_events_have_the_root_s_numbers_and_say_what_they_are_there(tmp_path: Path) -> None:
    """As in a container: the application's own idea of its thread is the namespace's."""
    argv = [*PID_NAMESPACE, sys.executable, "-c", NUMBERS_IN_A_PID_NAMESPACE, str(tmp_path)]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=Path(__file__).parents[2], timeout=120)
    assert done.returncode == 0, done.stderr
    _, root, own = map(int, done.stdout.split())
    assert root != own


def program_ids() -> set[int]:
    """IDs of all BPF programs of this machine."""
    done = subprocess.run(["/usr/bin/python3", "-c", _LIST_PROGRAMS], check=True, capture_output=True, text=True)
    return {int(number) for number in done.stdout.split()}


_LIST_PROGRAMS = """
import ctypes, platform
number = {"x86_64": 321, "aarch64": 280}[platform.machine()]  # bpf(2)
libc = ctypes.CDLL(None, use_errno=True)
here = ctypes.c_uint32(0)
attributes = (ctypes.c_uint32 * 32)()
while True:
    attributes[0] = here.value
    if libc.syscall(number, 11, attributes, 12):  # BPF_PROG_GET_NEXT_ID
        break
    here.value = attributes[1]
    print(here.value)
"""


@pytest.mark.parametrize("how", ["killed", "parent gone"])
def test_it_leaves_no_program_behind(tmp_path: Path, how: str) -> None:
    before = program_ids()
    shell = ["sh", "-c", 'exec 3>"$0"; "$@" --ready-fd=3 --wait-enabled=0 & wait', f"{tmp_path}/ready", *MODULE]
    parent = subprocess.Popen([*MODULE, "--wait-enabled=0"] if how == "killed" else shell, stdout=subprocess.PIPE)
    assert parent.stdout is not None
    if how == "killed":
        parent.stdout.readline()
    else:
        until = time.monotonic() + 15
        while not (tmp_path / "ready").exists() or not (tmp_path / "ready").read_text():
            assert time.monotonic() < until
            time.sleep(0.02)
    loaded = program_ids() - before
    assert len(loaded) >= 10
    parent.kill()
    if how == "parent gone":
        assert b'"sent"' in parent.stdout.read(), "it ends as after SIGTERM, with its counts"
    parent.wait()
    parent.stdout.close()
    until = time.monotonic() + 5
    while program_ids() & loaded and time.monotonic() < until:
        time.sleep(0.05)
    assert not program_ids() & loaded


def test_errors_are_one_line(tmp_path: Path) -> None:
    done = subprocess.run([*MODULE, "--ring-bytes=1000"], capture_output=True, text=True, timeout=20)
    assert done.returncode == 1 and done.stdout.count("\n") == 1 and "power of two" in done.stdout
    assert done.stderr == ""
    done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *MODULE, "--check"],
                          capture_output=True, text=True, timeout=20, cwd="/")  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "block events through BPF need root\n")
    done = subprocess.run(["setpriv", "--bounding-set=-sys_admin,-bpf,-perfmon", *MODULE, "--check"],
                          capture_output=True, text=True, timeout=20)  # fmt: skip
    assert (done.returncode, done.stderr.count("\n")) == (1, 1) and "BPF is not permitted" in done.stderr, done.stderr
