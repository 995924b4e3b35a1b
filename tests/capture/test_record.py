# SPDX-License-Identifier: MIT
"""``opline record`` against a real session daemon, a real traced program, real signals and a real full disk (C1.1)."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.lib.recorder import (
    APP_ONLY,
    APP_SOURCES,
    OWN_RUN_LTTNG,
    PROGRAM,
    ROOT,
    SMALL,
    daemons,
    events,
    finish,
    manifest,
    record,
    start,
    wait_for,
    wait_for_ticks,
)

pytestmark = pytest.mark.live


@pytest.fixture(scope="module")
def ticker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program with one tracepoint: ``ticker COUNT [PAUSE_US [STATUS]]``."""
    binary = tmp_path_factory.mktemp("ust") / "ticker"
    argv = ["gcc", "-O1", f"-I{APP_SOURCES}", "-o", str(binary), f"{APP_SOURCES}/ticker.c", "-llttng-ust", "-ldl"]
    subprocess.run(argv, check=True, timeout=120)
    return binary


def test_records_the_command_its_output_and_a_manifest(ticker: Path, runtime: Path, tmp_path: Path) -> None:
    run = tmp_path / "a run"
    done = record("-o", run, *APP_ONLY, "--", ticker, 1009, 0, 7)
    assert done.returncode == 7
    assert done.stdout == "ticks 1009\n" and done.stderr.startswith("begin\ndone\n")
    assert (run / "stdout.txt").read_text() == "ticks 1009\n" and (run / "stderr.txt").read_text() == "begin\ndone\n"
    assert "1,009 events, none discarded" in done.stderr
    lines = events(run)
    numbers = {number[1] for line in lines if (number := re.search(r"n = (\d+)", line))}
    assert len(lines) == len(numbers) == 1009
    assert re.search(r'opltest:tick: .*vpid = (\d+), vtid = \1, procname = "ticker"', lines[0])
    document = manifest(run)
    assert document["schema"] == "opline-recording" and document["state"] == "complete"
    command = document["command"]
    assert (
        command["argv"] == [str(ticker), "1009", "0", "7"] and command["exit_code"] == 7 and command["signal"] is None
    )
    assert command["begin_monotonic_ns"] < command["end_monotonic_ns"]
    assert document["host"]["boot_id"] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert document["host"]["kernel"] == os.uname().release and document["host"]["root"] is True
    for tool in ("python", "lttng-tools", "lttng-ust", "babeltrace2"):
        assert re.match(r"\d+\.\d+", document["versions"][tool]), tool
    (channel,) = document["channels"]
    assert (channel["event_count"], channel["discarded_count"], channel["lost_packet_count"]) == (1009, 0, 0)
    assert document["event_count"] == 1009 and document["discarded_count"] == 0
    offsets = [document[f"clocks_{when}"]["realtime_minus_monotonic_ns"] for when in ("before", "after")]
    assert abs(offsets[0] - offsets[1]) < 100_000_000
    for device in document["devices"]:
        major, minor = map(int, device["number"].split(":"))
        assert device["dev"] == major << 20 | minor
    assert not list(run.glob("*.part")) and not list(runtime.iterdir()) and not daemons(runtime)


@pytest.mark.parametrize(
    ("command", "status", "complaint"),
    [
        (["./no-such-program"], 127, "./no-such-program: command not found"),
        (["/etc/passwd"], 126, "/etc/passwd: cannot be executed"),
        ([], 2, "No command to record"),
    ],
)
def test_what_cannot_be_started_leaves_nothing(
    runtime: Path, tmp_path: Path, command: list[str], status: int, complaint: str
) -> None:
    done = record("-o", tmp_path / "run", *APP_ONLY, "--", *command)
    assert done.returncode == status
    assert done.stderr.startswith(f"opline: {complaint}") and done.stderr.count("\n") == 1
    assert not (tmp_path / "run").exists() and not list(runtime.iterdir())


def test_a_directory_that_is_not_empty_is_refused(runtime: Path, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("mine")
    done = record("-o", tmp_path, *APP_ONLY, "--", "true")
    assert done.returncode == 2 and "exists and is not empty" in done.stderr and done.stderr.count("\n") == 1
    assert [p.name for p in tmp_path.iterdir()] == ["precious"]


def test_a_server_that_outlives_the_command_does_not_hold_it_up(ticker: Path, runtime: Path, tmp_path: Path) -> None:
    """It keeps its standard output, too: no SIGPIPE when it writes later."""
    go = tmp_path / "go"
    script = f"(until test -e {go}; do sleep 0.05; done; echo late) & {ticker} 23"
    done = record("-o", tmp_path / "run", *APP_ONLY, "--", "sh", "-c", script)
    assert done.returncode == 0 and done.stdout == "ticks 23\n"
    go.touch()
    wait_for(lambda: (tmp_path / "run/stdout.txt").read_text() == "ticks 23\nlate\n")


def test_ctrl_c_before_the_command_starts_leaves_nothing(runtime: Path, tmp_path: Path) -> None:
    process = start("-o", tmp_path / "run", *APP_ONLY, "--", "touch", tmp_path / "started")
    wait_for(lambda: list(runtime.glob("*/state.json")))
    os.killpg(process.pid, signal.SIGINT)
    done = finish(process)
    assert done.returncode == 130 and done.stderr == ""
    assert not (tmp_path / "started").exists() and not (tmp_path / "run").exists()
    assert not list(runtime.iterdir()) and not daemons(runtime)


def test_signals_end_the_command_and_keep_the_trace(ticker: Path, runtime: Path, tmp_path: Path) -> None:
    """Ctrl-C, which the command gets too; SIGINT and SIGTERM to the recorder alone, which it passes on."""
    cases = {"ctrl-c": signal.SIGINT, "int": signal.SIGINT, "term": signal.SIGTERM}
    processes = {n: start("-o", tmp_path / n, *APP_ONLY, "--", ticker, 100_000, 10_000) for n in cases}
    for name, number in cases.items():
        wait_for_ticks(tmp_path / name)
        send = os.killpg if name == "ctrl-c" else os.kill
        send(processes[name].pid, number)
    for name, number in cases.items():
        done = finish(processes[name])
        assert done.returncode == 128 + number, done.stderr
        document = manifest(tmp_path / name)
        assert document["state"] == "complete" and document["command"]["signal"] == number
        assert 0 < document["event_count"] == len(events(tmp_path / name)) < 100_000
    assert not list(runtime.iterdir()) and not daemons(runtime)


def test_recordings_at_once_do_not_see_each_other(ticker: Path, runtime: Path, tmp_path: Path) -> None:
    """One of them ends well, the other one's command by a signal."""
    well = start("-o", tmp_path / "well", *APP_ONLY, "--", ticker, 1001, 100)
    ill = start("-o", tmp_path / "ill", *APP_ONLY, "--", "sh", "-c", f"{ticker} 1002 100; kill -SEGV $$")
    assert finish(well).returncode == 0 and finish(ill).returncode == 128 + signal.SIGSEGV
    assert [manifest(tmp_path / name)["event_count"] for name in ("well", "ill")] == [1001, 1002]
    command = manifest(tmp_path / "ill")["command"]
    assert command["signal"] == signal.SIGSEGV and command["exit_code"] is None


def test_nothing_is_left_of_a_killed_recorder(ticker: Path, runtime: Path, tmp_path: Path) -> None:
    options = ["--events", "opltest:*", "--sessiond", "private"]
    process = start("-o", tmp_path / "run", *options, "--", ticker, 100_000, 1_000)
    wait_for_ticks(tmp_path / "run")
    (state,) = runtime.glob("*/state.json")
    children = json.loads(state.read_text())["processes"]
    assert "sessiond" in children  # and the collector, whose BPF programs are its descriptors, where it is used
    assert ("collector" in children) == (manifest(tmp_path / "run")["block_source"] == "bpf")
    process.kill()
    finish(process)
    # The kernel tells them and the command at once (PR_SET_PDEATHSIG); nobody has to start anything again.
    executables = [Path(f"/proc/{pid}/exe") for pid, *_ in children.values()]
    wait_for(lambda: not daemons(runtime) and not any(path.exists() for path in executables))
    assert manifest(tmp_path / "run")["state"] == "recording"
    assert any("opltest:tick" in line for line in events(tmp_path / "run"))
    done = record("-o", tmp_path / "next", *APP_ONLY, "--", ticker, 23)
    assert done.returncode == 0 and manifest(tmp_path / "next")["event_count"] == 23
    assert re.search(rf"opline: note: recorder {process.pid} of {tmp_path}/run was killed; .*cleaned up", done.stderr)
    assert not list(runtime.iterdir())


def test_a_device_of_the_commands_own_is_noted_and_so_is_that_it_has_no_tracepoints(
    runtime: Path, tmp_path: Path
) -> None:
    image = tmp_path / "image"
    image.write_bytes(bytes(1 << 20))
    script = f"d=$(losetup --find --show {image}) && sleep 1.2 && losetup -d $d"
    done = record("-o", tmp_path / "run", *APP_ONLY, "--", "sh", "-c", script)
    assert done.returncode == 0 and "no events in channel app" in done.stderr
    document = manifest(tmp_path / "run")
    assert document["event_count"] == 0
    (loop,) = [device for device in document["devices"] if device["backing"] == str(image)]
    assert loop["name"].startswith("loop") and loop["dev"] >> 20 == 7 and loop["size_bytes"] == 1 << 20


def test_a_session_daemon_that_dies_does_not_take_the_command_along(
    ticker: Path, runtime: Path, tmp_path: Path
) -> None:
    process = start("-o", tmp_path / "run", *APP_ONLY, "--", ticker, 2003, 1_000, 7)
    wait_for_ticks(tmp_path / "run")
    (state,) = runtime.glob("*/state.json")
    os.kill(json.loads(state.read_text())["processes"]["sessiond"][0], signal.SIGKILL)
    done = finish(process)
    assert done.returncode == 7 and done.stdout == "ticks 2003\n"
    assert "the session daemon has died" in done.stderr
    document = manifest(tmp_path / "run")
    assert document["tracing_ended"] == "sessiond_died" and document["discarded_count"] is None
    assert not list(runtime.iterdir()) and not daemons(runtime)


def test_discarded_events_are_counted_as_babeltrace2_counts_them(ticker: Path, runtime: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    done = record("-o", run, *APP_ONLY, "--subbuf-size", "4096", "--subbufs", "2", "--", ticker, 200_003)
    document = manifest(run)
    seen, lost = document["event_count"], document["discarded_count"]
    assert done.returncode == 3 and lost > 0 and seen + lost == 200_003  # more than a thousandth
    assert re.search(rf"warning: {lost:,} events discarded in channel app .*--subbuf-size 8K", done.stderr)
    said = subprocess.run(["babeltrace2", run / "trace"], capture_output=True, text=True, timeout=120).stderr
    by_babeltrace = sum(int(n) for n in re.findall(r"Tracer discarded (\d+) event", said))
    at_end = sum(gap["count"] for gap in document["gaps"] if gap["loss"] == "discarded_at_end")
    # what is discarded after a stream's last packet only LTTng itself knows
    assert by_babeltrace > 0 and by_babeltrace + at_end == lost


def test_size_limit_stops_tracing_and_not_the_command(ticker: Path, runtime: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    script = f"for i in $(seq 25); do {ticker} 50021; sleep 0.1; done"
    done = record("-o", run, *APP_ONLY, *SMALL, "--size-limit", "2M", "--", "sh", "-c", script)
    document = manifest(run)
    lost_much = document["discarded_count"] * 1000 > document["event_count"] + document["discarded_count"]
    assert done.returncode == (3 if lost_much else 0) and done.stdout.count("ticks 50021") == 25
    assert document["tracing_ended"] == "size_limit" and "tracing stopped: the trace has reached" in done.stderr
    (gap,) = [gap for gap in document["gaps"] if gap["loss"] != "discarded_at_end"]
    assert gap["loss"] == "recording_cut_short"  # it was asked for: no failure
    assert document["state"] == ("incomplete" if lost_much else "complete")
    assert document["command"]["begin_monotonic_ns"] < gap["from_ns"] < document["command"]["end_monotonic_ns"]
    assert 2 << 20 <= document["trace_bytes"] < 9 << 20
    assert 0 < document["event_count"] == len(events(run)) < 25 * 50021


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 40 MiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=40m", "opline-test", disk], check=True)
    yield disk
    subprocess.run(["umount", "-l", disk], check=True)


def test_a_disk_that_fills_up_stops_tracing_and_not_the_command(ticker: Path, runtime: Path, small_disk: Path) -> None:
    script = f"for i in 1 2 3 4; do {ticker} 100003; sleep 0.2; done"
    buffers = ["--subbuf-size", "256K", "--subbufs", "4"]
    done = record("-o", small_disk / "run", *APP_ONLY, *buffers, "--", "sh", "-c", script)
    document = manifest(small_disk / "run")
    assert done.returncode == 3 and done.stdout.count("ticks 100003") == 4
    assert document["tracing_ended"] == "disk_space" and document["state"] == "incomplete"
    assert "left on the disk" in done.stderr
    assert 0 < document["event_count"] == len(events(small_disk / "run")) < 4 * 100003


def test_a_disk_that_somebody_else_fills_costs_events_but_not_the_trace(
    ticker: Path, runtime: Path, small_disk: Path
) -> None:
    fill = f"fallocate -l $(($(stat -f -c '%a * %S' {small_disk}))) {small_disk}/ballast"  # at once
    script = f"{ticker} 10007; sleep 0.3; {fill}; {ticker} 100003; sleep 0.6; rm {small_disk}/ballast; echo end"
    done = record("-o", small_disk / "run", *APP_ONLY, *SMALL, "--", "sh", "-c", script)
    assert done.returncode == 3
    document = manifest(small_disk / "run")
    assert document["tracing_ended"] == "disk_space" and document["write_failed"]
    assert document["discarded_count"] is None and "discarded unknown" in done.stderr
    assert 0 < len(events(small_disk / "run")) == document["event_count"]


def test_a_disk_too_small_to_begin_with_is_refused(runtime: Path, small_disk: Path) -> None:
    done = record("-o", small_disk / "run", *APP_ONLY, "--", "true")
    assert done.returncode == 1 and re.search(r"40\.0 MiB free, \S+ MiB needed", done.stderr)
    assert not (small_disk / "run").exists()


def test_without_root_the_application_is_recorded_with_a_warning(ticker: Path, tmp_path: Path) -> None:
    """The program is copied to where nobody may read it, and run with the system's Python."""
    home = Path(tempfile.mkdtemp(prefix="oplu-", dir="/tmp"))
    try:
        for package in ("correlator/opline", "analyses/opline_analyses"):
            shutil.copytree(ROOT / package, home / Path(package).name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ticker, home / "ticker")
        subprocess.run(["chown", "-R", "nobody", home], check=True)
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "PYTHONPATH": str(home),
            "OPLINE_RUNTIME_DIR": f"{home}/rt",
        }
        user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        argv = [*user, "/usr/bin/python3", "-m", "opline_analyses", "record", "-o", "run", "--events", "opltest:*"]
        argv += ["--sessiond", "private", "--", "./ticker", "1009"]
        done = subprocess.run(argv, env=env, cwd=home, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        assert "warning: no block events: not root (sudo); the application's events only" in done.stderr
        document = manifest(home / "run")
        assert document["block_source"] == "none" and document["host"]["root"] is False
        assert document["event_count"] == 1009 and not daemons(home)
    finally:
        shutil.rmtree(home)


def test_a_running_session_daemon_is_used_and_left_running(ticker: Path, runtime: Path, tmp_path: Path) -> None:
    """In a mount namespace with a /run/lttng of its own, so that the system's daemon, if any, is not disturbed.

    There: record with it; kill a recorder and let the next one destroy its session; `--sessiond system`.
    """
    program = " ".join([*PROGRAM, "--no-block", "--events", "'opltest:*'"])
    script = f"""
    mkdir -p /run/lttng && mount -t tmpfs opline-test /run/lttng && lttng-sessiond -d --no-kernel || exit 99
    cd {tmp_path}
    {program} -o one -- {ticker} 1009; echo status $?
    {program} -o two -- {ticker} 100000 1000 & sleep 1.5; kill -9 $!; wait
    echo sessions $(lttng list | grep -c opline-)
    {program} --sessiond system -o three -- {ticker} 23; echo status $?
    echo sessions $(lttng list | grep -c opline-)
    kill $(cat /run/lttng/lttng-sessiond.pid) && echo alive until the end
    """
    done = subprocess.run([*OWN_RUN_LTTNG, script], capture_output=True, text=True, timeout=120)
    said = [line for line in done.stdout.splitlines() if line.split()[0] in ("status", "sessions", "alive")]
    assert said == ["status 0", "sessions 1", "status 0", "sessions 0", "alive until the end"], done.stderr
    assert manifest(tmp_path / "one")["sessiond"] == "system" and manifest(tmp_path / "one")["event_count"] == 1009
    assert manifest(tmp_path / "three")["event_count"] == 23
    assert "was killed" in done.stderr and not list(runtime.iterdir())


def test_no_session_daemon_to_use(runtime: Path, tmp_path: Path) -> None:
    script = 'mkdir -p /run/lttng && mount -t tmpfs opline-test /run/lttng && exec "$@"'
    argv = [*OWN_RUN_LTTNG, script, "sh", *PROGRAM, "-o", f"{tmp_path}/run", "--sessiond", "system", "--", "true"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and "no session daemon is running" in done.stderr.lower()
    assert not (tmp_path / "run").exists()


def test_root_without_mount_namespaces_gets_a_daemon_at_the_usual_place(
    ticker: Path, runtime: Path, tmp_path: Path
) -> None:
    """As in a container. The daemon is started for the recording and ends with it all the same."""
    script = 'mkdir -p /run/lttng && mount -t tmpfs opline-test /run/lttng && exec "$@"'
    confined = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"]
    command = ["sh", "-c", f"ls /run/lttng; {ticker} 101"]
    program = [*PROGRAM, "-o", f"{tmp_path}/run", "--no-block", "--events", "opltest:*", "--", *command]
    argv = [*OWN_RUN_LTTNG, script, "sh", *confined, *program]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and "client-lttng-sessiond" in done.stdout
    assert manifest(tmp_path / "run")["event_count"] == 101 and not daemons(runtime)


@pytest.fixture
def loop_device(tmp_path: Path) -> Iterator[str]:
    """A loop device of 16 MiB."""
    image = tmp_path / "image"
    image.write_bytes(bytes(16 << 20))
    name = subprocess.run(["losetup", "--find", "--show", image], capture_output=True, text=True, check=True).stdout
    yield name.strip()
    subprocess.run(["losetup", "--detach", name.strip()], check=True)


def device_number(name: str) -> int:
    number = Path(name).stat().st_rdev
    return os.major(number) << 20 | os.minor(number)


def test_block_events_are_in_the_same_session(ticker: Path, runtime: Path, tmp_path: Path, loop_device: str) -> None:
    run = tmp_path / "run"
    dd = f"dd if=/dev/zero of={loop_device} bs=4k count=23 oflag=direct"
    options = ["--events", "opltest:*", "--sessiond", "private"]
    done = record("-o", run, *options, "--", "sh", "-c", f"{ticker} 101; {dd}; {ticker} 102")
    assert done.returncode == 0, done.stderr
    document = manifest(run)
    if (source := document["block_source"]) == "none":
        pytest.skip(f"no block events here: {document['notes']}")
    lines = events(run)
    counts = {channel["name"]: channel["event_count"] for channel in document["channels"]}
    assert counts["app"] == 203 and sum(counts.values()) == len(lines)
    mine = [line for line in lines if f" dev = {device_number(loop_device)}," in line]
    for name in ("block:request",) if source == "bpf" else ("block_bio_queue", "block_rq_issue", "block_rq_complete"):
        assert sum(f"{name}:" in line for line in mine) == 23, name
    if source == "bpf":
        report = document["collector"]
        assert report["lost_ring"] == report["lost_nested"] == 0 and report["enabled"]
        assert sum(report["sent"].values()) <= counts["block"] + counts["requests"]
    assert not list(runtime.iterdir()) and not daemons(runtime)


def test_a_collector_that_dies_costs_block_events_only(ticker: Path, runtime: Path, tmp_path: Path) -> None:
    go = tmp_path / "go"
    script = f"until test -e {go}; do sleep 0.05; done; sleep 0.4; {ticker} 101"
    options = ["--events", "opltest:*", "--sessiond", "private"]
    process = start("-o", tmp_path / "run", *options, "--", "sh", "-c", script)
    wait_for(lambda: (tmp_path / "run/recording.json").exists())
    (state,) = runtime.glob("*/state.json")
    children = json.loads(state.read_text())["processes"]
    if "collector" in children:
        os.kill(children["collector"][0], signal.SIGKILL)
    go.touch()
    done = finish(process)
    assert manifest(tmp_path / "run")["channels"][0]["event_count"] == 101
    assert done.returncode == (3 if "collector" in children else 0)
    if "collector" not in children:
        pytest.skip("block events come from the kernel domain here, or not at all")
    assert "warning: block events are missing: the BPF collector ended without a report" in done.stderr
    (gap,) = manifest(tmp_path / "run")["gaps"]
    assert (
        gap["loss"] == "collector_died" and gap["from_ns"] < manifest(tmp_path / "run")["command"]["end_monotonic_ns"]
    )
