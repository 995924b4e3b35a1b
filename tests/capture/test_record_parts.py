# SPDX-License-Identifier: MIT
"""The parts of a recording that need no tracer: globs, sizes, index files, counts, devices, leftovers."""

from __future__ import annotations

import fnmatch
import os
import signal
import struct
import subprocess
from pathlib import Path

import pytest

from opline.capture.bpf.bpf import KINDS
from opline.capture.directory import leftovers, recording
from opline.capture.directory.recording import ChannelNote, Command, Recording
from opline.capture.directory.state import State
from opline.capture.lttng import ctfindex, recipe
from opline.capture.lttng.session import parse_counts
from opline.capture.machine import devices, space
from opline.capture.machine.machine import Host, sample_clocks
from opline.capture.machine.processes import Process, boot_id, identify, namespace
from opline.capture.recorder.options import check_subbuf
from opline.capture.recorder.summary import summary_lines
from opline.errors import OplineError, UsageError
from opline.folder import Folder


def test_globs_go_where_they_are_recorded() -> None:
    globs = recipe.sort_globs(
        ["demo:*", "block:block_rq_*", "sched_process_*", "syscall_entry_pread64", "syscall_exit_pread64", "demo:*"]
    )
    assert globs.app == ("demo:*",)
    assert globs.kernel_events == ("sched_process_*",)
    assert globs.syscalls == ("pread64",)
    assert globs.calls == ("syscall_entry_pread64", "syscall_exit_pread64")


def test_a_glob_that_would_take_the_collectors_events_into_the_apps_channel_excludes_them() -> None:
    globs = recipe.sort_globs(["*", "b*:*", "osd:*"])
    all_of_them = ("block:*", "syscall:*", "sched:*", "cephring:*")
    assert dict(globs.exclude) == {"*": all_of_them, "b*:*": all_of_them}


def test_what_is_asked_of_the_shim_comes_through_its_collector_too() -> None:
    globs = recipe.sort_globs(["osd:*", "cephshim:msgr_*", "cephring:aio_submit"])
    app, shim = recipe.plan_channels(
        globs, kernel=False, bpf=False, rings=True, subbuf_bytes=4096, subbuf_count=2, contexts=recipe.APP_CONTEXTS
    )
    assert (app.events, app.contexts) == (("osd:*", "cephshim:msgr_*"), recipe.APP_CONTEXTS)
    assert (shim.name, shim.events, shim.contexts) == ("shim", ("cephring:msgr_*", "cephring:lost"), ())
    assert recipe.ring_events(["*"], "cephring") == ("cephring:*", "cephring:lost")
    assert recipe.ring_events(["osd:*", "opline:*"], "cephring") == ()


def test_single_block_events_are_recorded_only_if_they_are_asked_for() -> None:
    names = (*(kind for kind in KINDS if kind.startswith("block_")), "watermark", "lost")

    def recorded(*claims: str) -> set[str]:
        globs = recipe.sort_globs(claims)
        channel = recipe.plan_channels(globs, kernel=False, bpf=True, subbuf_bytes=4096, subbuf_count=2, contexts=())[
            -1
        ]
        assert not set(channel.events) & set(globs.exclude)  # of such a session lttng-sessiond dies
        return {name for name in names if any(fnmatch.fnmatchcase(f"block:{name}", glob) for glob in channel.events)}

    assert recorded("demo:*") == {"watermark", "lost"} and recorded("demo:*", "block:*") == set(names)


def test_channels() -> None:
    globs = recipe.sort_globs(["demo:*", "irq_handler_entry", "syscall_entry_openat"])
    app, block = recipe.plan_channels(
        globs, kernel=False, bpf=True, subbuf_bytes=4096, subbuf_count=2, contexts=recipe.APP_CONTEXTS
    )
    assert (app.name, app.contexts) == ("app", ("vpid", "vtid", "procname", "pid_ns"))
    assert (block.name, block.contexts) == ("control", ())
    assert block.events[-2:] == ("syscall:syscall_entry_openat", "sched:*")
    _, kernel = recipe.plan_channels(
        globs, kernel=True, bpf=False, subbuf_bytes=4096, subbuf_count=2, contexts=recipe.APP_CONTEXTS
    )
    assert kernel.kernel and kernel.contexts == ("pid", "tid", "procname")
    assert {"block_*", "sched_switch", "irq_handler_entry", "lttng_statedump_block_device"} <= set(kernel.events)
    assert {"pwrite64", "io_uring_enter", "openat"} <= set(kernel.syscalls)
    for modules in (True, False):
        *_, without = recipe.plan_channels(
            globs, kernel=modules, bpf=not modules, states=False, subbuf_bytes=4096, subbuf_count=2, contexts=()
        )
        about_threads = {event for event in without.events if "sched" in event and "process_" not in event}
        assert not about_threads and any("process_" in event for event in without.events)


@pytest.mark.parametrize(
    ("free", "cpus", "expected"),
    [(None, 2, 4 << 20), (24 << 30, 2, 4 << 20), (64 << 20, 2, 1 << 20), (4 << 30, 128, 1 << 20), (0, 2, 64 << 10)],
)
def test_buffers_fit_into_shared_memory(free: int | None, cpus: int, expected: int) -> None:
    assert recipe.fit_subbuf_bytes(4 << 20, 8, cpus, 2, free) == expected


@pytest.mark.parametrize(("text", "size"), [("4096", 4096), ("512K", 512 << 10), ("4MiB", 4 << 20), ("2g", 2 << 30)])
def test_sizes(text: str, size: int) -> None:
    assert space.parse_bytes(text) == size


@pytest.mark.parametrize("text", ["", "4X", "-1", "1.5G", "M"])
def test_sizes_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match="not a size"):
        space.parse_bytes(text)


@pytest.mark.parametrize(("size", "count"), [(3000, 8), (2048, 8), (4096, 3), (4096, 1)])
def test_lttng_wants_powers_of_two(size: int, count: int) -> None:
    with pytest.raises(UsageError, match="power of two"):
        check_subbuf(size, count)


def _list_xml(discarded: int) -> str:
    channel = (
        f"<channel><name>app</name><attributes><discarded_events>{discarded}</discarded_events>"
        "<lost_packets>2</lost_packets></attributes></channel>"
    )
    return (
        '<command xmlns="https://lttng.org/xml/ns/lttng-mi"><output><sessions><session><domains><domain>'
        f"<type>UST</type><channels>{channel}</channels></domain></domains></session></sessions></output></command>"
    )


@pytest.mark.parametrize(("shown", "meant"), [(0, 0), (17, 17), ((1 << 63) + 17, 17)])
def test_the_top_bit_of_lttngs_discarded_count_is_masked(shown: int, meant: int) -> None:
    (count,) = parse_counts(_list_xml(shown))
    assert (count.domain, count.channel, count.discarded_events, count.lost_packets) == ("ust", "app", meant, 2)


def _index(*packets: tuple[int, int], cut: int = 0) -> bytes:
    """An index file of packets (discarded so far, packet number), 100 bytes of content each."""
    data = struct.pack(">IIII", 0xC1F1DCC1, 1, 1, 72)
    for discarded, number in packets:
        data += struct.pack(">QQQQQQQQQ", 0, 4096 * 8, 800, 0, 0, discarded, 0, 0, number)
    return data[: len(data) - cut]


def test_index_files_are_summed_per_channel(tmp_path: Path) -> None:
    ust, kernel = tmp_path / "ust/uid/0/64-bit/index", tmp_path / "kernel/index"
    ust.mkdir(parents=True)
    kernel.mkdir(parents=True)
    (ust / "app_0.idx").write_bytes(_index((0, 0), (5, 1)))
    (ust / "app_1.idx").write_bytes(_index((0, 0), (7, 3)))  # packets 1 and 2 are lost
    (ust / "my_block_0.idx").write_bytes(_index((1 << 63, 0)))
    (kernel / "kernel_0.idx").write_bytes(_index((0, 0), (0, 1), cut=10))
    found = {(i.domain, i.channel): i for i in ctfindex.read(tmp_path)}
    app = found["ust", "app"]
    assert (app.streams, app.packets, app.content_bytes, app.discarded_events, app.lost_packets) == (2, 4, 400, 12, 2)
    assert found["ust", "my_block"].discarded_events == 0
    assert (found["kernel", "kernel"].packets, found["kernel", "kernel"].damaged) == (1, 1)


def test_index_of_a_recorded_trace_agrees_with_its_size(trace: object) -> None:
    folder = trace("app-sync-qd4-nvme")  # type: ignore[operator]
    for index in ctfindex.read(folder):
        assert index.damaged == 0 and index.discarded_events == 0 and index.lost_packets == 0
        size = sum(f.stat().st_size for f in (folder / index.domain).rglob(f"{index.channel}_*") if f.suffix != ".idx")
        assert 0 < index.content_bytes <= size


def _block_device(root: Path, name: str, number: str, **files: str) -> Path:
    folder = root / name
    folder.mkdir(parents=True)
    (folder / "dev").write_text(number + "\n")
    for path, text in files.items():
        file = folder / path.replace("__", "/")
        file.parent.mkdir(exist_ok=True)
        file.write_text(text + "\n")
    return folder


def test_block_devices_in_both_encodings(tmp_path: Path) -> None:
    disk = _block_device(tmp_path / "real", "sdq", "65:0", size="2048", queue__scheduler="none [mq-deadline] bfq")
    _block_device(disk, "sdq1", "259:300", size="1024", start="1024", partition="1")
    listing = tmp_path / "class"
    listing.mkdir()
    (listing / "sdq").symlink_to(disk)
    (listing / "sdq1").symlink_to(disk / "sdq1")
    _block_device(listing, "loop7", "7:7", size="0")
    assert [d.name for d in devices.list_devices(listing, idle=True)] == ["loop7", "sdq", "sdq1"]
    whole, part = devices.list_devices(listing)
    assert (whole.name, whole.dev, whole.size_bytes, whole.scheduler) == ("sdq", 65 << 20, 1 << 20, "mq-deadline")
    assert (part.dev, part.number, part.parent, part.start_sector) == (259 << 20 | 300, "259:300", "sdq", 1024)


@pytest.mark.parametrize(
    ("lists", "queues"),
    [
        (["0, 1, 4-5", "2, 3"], [[0, 1, 4, 5], [2, 3]]),
        ([""], [[]]),  # a queue whose CPUs are all offline
        (["0, x"], None),
        ([], None),
    ],
)
def test_which_cpus_share_a_hardware_queue(tmp_path: Path, lists: list[str], queues: list[list[int]] | None) -> None:
    files = {f"mq__{number}__cpu_list": text for number, text in enumerate(lists)}
    folder = _block_device(
        tmp_path, "vdq", "254:0", queue__fua="1", queue__write_cache="write back", queue__zoned="none"
    )
    for path, text in files.items():
        (file := folder / path.replace("__", "/")).parent.mkdir(parents=True)
        file.write_text(text + "\n")
    (device,) = devices.list_devices(tmp_path)
    assert device.queues == queues
    assert (device.fua, device.write_cache, device.zoned) == (True, "write back", "none")


def test_a_device_without_hardware_queues(tmp_path: Path) -> None:
    _block_device(tmp_path, "dm-0", "253:0")
    (device,) = devices.list_devices(tmp_path)
    assert (device.queues, device.fua, device.write_cache, device.zoned) == (None, None, None, None)


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OPLINE_RUNTIME_DIR", str(tmp_path / "rt"))
    return tmp_path / "rt"


def _leave(runtime: Path, victim: Process, recorder: Process, boot: str | None = None) -> Path:
    folder = runtime / f"{recorder.pid}-{recorder.start_ticks}-0123abcd"
    folder.mkdir(parents=True)
    state = State(folder, recorder, boot or boot_id(), "/somewhere/run1", namespace=namespace())
    state.processes["collector"] = victim
    state.write()
    return folder


def test_what_a_killed_recorder_left_running_is_ended(runtime: Path) -> None:
    child = subprocess.Popen(["sleep", "60"])
    victim = identify(child.pid)
    assert victim is not None
    folder = _leave(runtime, victim, Process(os.getpid(), 1))  # our PID, but another process's start time
    (line,) = leftovers.sweep()
    assert child.wait(5) == -signal.SIGTERM
    assert "/somewhere/run1" in line and "collector" in line and line.endswith("cleaned up")
    assert not folder.exists() and leftovers.sweep() == []


def test_a_reused_pid_is_left_alone(runtime: Path) -> None:
    child = subprocess.Popen(["sleep", "60"])
    try:
        folder = _leave(runtime, Process(child.pid, 1), Process(os.getpid(), 1))
        leftovers.sweep()
        assert child.poll() is None and not folder.exists()
        victim = identify(child.pid)
        assert victim is not None
        _leave(runtime, victim, Process(os.getpid(), 1), boot="another-boot")
        leftovers.sweep()
        assert child.poll() is None
    finally:
        child.kill()
        child.wait()


def test_a_running_recording_is_not_swept(runtime: Path) -> None:
    state = State.create(Path("/somewhere/run2"))
    assert leftovers.sweep() == [] and state.folder.exists()
    state.remove()


def _recording(**changes: object) -> Recording:
    note = Recording(
        command=Command(["true"], "/", exit_code=0, begin_monotonic_ns=0, end_monotonic_ns=1_500_000_000),
        host=Host("h", "6.1", "Linux", "x86_64", 2, "b", 0, True),
        versions={},
        clocks_before=sample_clocks(),
        session="s",
        sessiond="private",
        block_source="bpf",
        channels=[
            ChannelNote("app", "ust", ["demo:*"], [], [], 4 << 20, 8, 900, 100),
            ChannelNote("block", "ust", ["block:*"], [], [], 4 << 20, 8, 50, 0),
        ],
        trace_bytes=2 << 20,
    )
    for name, value in changes.items():
        setattr(note, name, value)
    return note


def test_summary_says_counts_and_what_to_do_about_discarded_events() -> None:
    warning, cost, counts, where = summary_lines(_recording(), Path("run1"))
    assert warning.startswith("warning: 100 events discarded in channel app (10 %)") and "--subbuf-size 8M" in warning
    assert counts == "950 events (app 900, block 50), 100 discarded, 2.0 MiB, 1.50 s"
    assert cost == "cost: 633 events/s, 2208 bytes each", "of collectors nobody said"
    assert where == "trace: run1/trace"


def test_unknown_counts_stay_unknown(tmp_path: Path) -> None:
    note = _recording()
    note.channels[1].event_count = note.channels[1].discarded_count = None
    assert note.event_count() is None and note.discarded_count() is None
    with Folder(tmp_path) as folder:
        note.write(folder)
    document = recording.load(tmp_path)
    assert document["event_count"] is None and document["channels"][0]["event_count"] == 900
    assert document["begin"]["wall"].endswith("Z")
    assert "block not counted" in "\n".join(summary_lines(note, Path("run1")))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "not JSON"),
        ("[]", "not the manifest"),
        ('{"schema": "opline-recording", "schema_version": 99}', "version 99"),
    ],
)
def test_a_damaged_manifest_is_one_clear_line(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "recording.json").write_text(text)
    with pytest.raises(OplineError, match=complaint):
        recording.load(tmp_path)
    with pytest.raises(OplineError, match="No such file"):
        recording.load(tmp_path / "nowhere")
