# SPDX-License-Identifier: MIT
"""``opline record`` while its parts are killed, its disk fills up or vanishes: what was flushed is readable, what is
missing is said, nothing is left. ``tests/faults/run`` does the same at random, for minutes.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.capture.test_record import ticker
from tests.lib.recorder import APP_ONLY, daemons, finish, manifest, record, start, wait_for, wait_for_ticks

from opline.capture.directory import leftovers
from opline.capture.directory.buffers import Buffers
from opline.capture.directory.place import Place
from opline.correlation import gaps_in
from opline.errors import UsageError
from opline.scratch import start_ticks

pytestmark = pytest.mark.live
__all__ = ["ticker"]

TICK = re.compile(r"^\[(\d+)\] .* opltest:tick: .*\bn = (\d+)", re.MULTILINE)


def tracers(runtime: Path) -> dict[str, int]:
    """PIDs of the recording's session daemon and consumer daemon."""
    (state,) = runtime.glob("*/state.json")
    sessiond = json.loads(state.read_text())["processes"]["sessiond"][0]
    found = {"sessiond": sessiond}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            name, _, rest = path.read_text().partition("(")[2].rpartition(")")
            if name == "lttng-consumerd" and int(rest.split()[1]) == sessiond:
                found["consumerd"] = int(path.parent.name)
    return found


def numbers(directory: Path) -> list[int]:
    """What the ticker counted, in the order of the trace."""
    return [number for _at_ns, number in ticks(directory)]


def ticks(directory: Path) -> list[tuple[int, int]]:
    """When the ticker ticked, in ns of the monotonic clock, and what it counted, in the order of the trace."""
    argv = ["babeltrace2", "--clock-cycles", str(directory / "trace")]
    said = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=120).stdout
    return [(int(found[1]), int(found[2])) for found in TICK.finditer(said)]


BEGAN_TICKS = start_ticks(os.getpid()) or 0


def buffers_left() -> list[Path]:
    """Of recorders that these tests began, and that are gone: tests beside may record."""
    found = []
    for folder in Path("/dev/shm").glob(f"opline-{os.geteuid()}-*"):
        pid, began = map(int, folder.name.split("-")[2:4])
        if began >= BEGAN_TICKS and not Path(f"/proc/{pid}").exists():
            found.append(folder)
    return found


@pytest.mark.parametrize(
    ("victims", "ended"),
    [(["consumerd"], "consumerd_died"), (["sessiond"], "sessiond_died"), (["consumerd", "sessiond"], "sessiond_died")],
)
def test_a_daemon_that_is_killed_costs_nothing_of_what_came_before(
    ticker: Path, runtime: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, victims: list[str], ended: str
) -> None:
    """Each event up to the kill is in the trace, once; what the recorder says covers all that is not."""
    run, log = tmp_path / "run", tmp_path / "ticks"
    monkeypatch.setenv("TICKER_LOG", str(log))
    process = start("-o", run, *APP_ONLY, "--", ticker, 3001, 1_000)
    wait_for_ticks(run)
    time.sleep(0.3)
    before_ns = time.monotonic_ns()
    pids = tracers(runtime)
    for victim in victims:
        os.kill(pids[victim], signal.SIGKILL)
    wait_for(lambda: not any(Path(f"/proc/{pid}/exe").exists() for pid in pids.values()), 10)
    assert process.poll() is None  # noticed at once, not at the command's end
    done = finish(process)
    assert done.returncode == 3 and done.stdout == "ticks 3001\n"
    assert f"the {'session' if 'sessiond' in victims else 'consumer'} daemon has died" in done.stderr
    assert "discarded unknown" in done.stderr and "the recording is not whole" in done.stderr
    document = manifest(run)
    assert (document["state"], document["tracing_ended"], document["discarded_count"]) == ("incomplete", ended, None)
    (gap,) = gaps_in(run / "trace", document)
    assert gap.loss == "tracer_died" and gap.to_ns is None
    assert gap.from_ns is not None and before_ns - 2_000_000_000 < gap.from_ns
    # The buffers are saved one CPU after the other, while the program still writes into them: of what came after the
    # kill some may be there.
    emitted = [int(line) for line in log.read_text().split()]
    seen = [number for _at_ns, number in ticks(run)]
    assert len(emitted) == 3001 and seen == sorted(set(seen)) and 20 < len(seen) < 3001
    assert {number for number, at_ns in enumerate(emitted) if at_ns < max(before_ns, gap.from_ns)} <= set(seen)
    assert not list(runtime.iterdir()) and not daemons(runtime) and not buffers_left()


def test_what_everybody_left_is_saved_by_the_next(ticker: Path, runtime: Path, tmp_path: Path) -> None:
    """Recorder, daemons and the traced program are killed at once: what the next one finds in the buffers is kept."""
    for attempt in range(5):
        if saved_by_the_next(ticker, runtime, tmp_path / f"run{attempt}"):
            return
    pytest.fail("five times nothing lay in the buffers")


def saved_by_the_next(ticker: Path, runtime: Path, run: Path) -> bool:
    """False: the consumer had taken everything right before it was killed, so nothing lay in the buffers."""
    process = start("-o", run, *APP_ONLY, "--", ticker, 100_000, 1_000)
    wait_for_ticks(run)
    time.sleep(0.3)
    pids = tracers(runtime)
    os.kill(process.pid, signal.SIGSTOP)
    for pid in pids.values():
        os.kill(pid, signal.SIGKILL)
    process.kill()
    finish(process)
    wait_for(lambda: not any(Path(f"/proc/{pid}/exe").exists() for pid in pids.values()), 10)
    assert buffers_left()
    before = numbers(run)
    (line,) = leftovers.sweep()
    after = numbers(run)
    assert after == list(range(len(after))) and len(after) >= len(before)
    assert not list(runtime.iterdir()) and not buffers_left() and not (run / ".room").exists()
    if not re.search(r"; \d+ packets saved from its buffers; cleaned up", line):
        assert line.endswith("; cleaned up") and after == before
        return False
    assert len(after) > max(len(before), 200)
    return True


def test_somebody_elses_folder_is_no_buffer_of_ours(tmp_path: Path) -> None:
    buffers = Buffers(f"{os.getpid()}-1-0123abcd")
    target = tmp_path / "precious"
    target.mkdir()
    (target / "file").touch()
    place = buffers.path.parent
    place.symlink_to(target)
    try:
        assert not buffers.make() and buffers.rescue(tmp_path) == 0
        buffers.remove()
        assert (target / "file").exists()
    finally:
        place.unlink()


def test_an_output_directory_that_vanishes_does_not_take_the_command_along(
    ticker: Path, runtime: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    process = start("-o", run, *APP_ONLY, "--", ticker, 2003, 1_000)
    wait_for_ticks(run)
    shutil.rmtree(run)
    done = finish(process)
    assert done.returncode == 3 and "is gone, and with it the trace; the command goes on" in done.stderr
    assert "recording.json could not be written" in done.stderr and "Traceback" not in done.stderr
    assert not run.exists() and not list(runtime.iterdir()) and not daemons(runtime)


def test_the_command_of_a_vanished_directory_keeps_its_own_status(ticker: Path, runtime: Path, tmp_path: Path) -> None:
    process = start("-o", tmp_path / "run", *APP_ONLY, "--", ticker, 1503, 1_000, 7)
    wait_for_ticks(tmp_path / "run")
    shutil.rmtree(tmp_path / "run")
    assert finish(process).returncode == 7


def test_of_two_recordings_with_one_directory_one_is_refused(runtime: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    both = [start("-o", run, *APP_ONLY, "--", "sh", "-c", f"echo {i}; sleep 0.5") for i in range(2)]
    done = [finish(process) for process in both]
    assert sorted(d.returncode for d in done) == [0, 2]
    refused = next(d for d in done if d.returncode == 2)
    assert "exists and is not empty" in refused.stderr and refused.stdout == ""
    assert (run / "stdout.txt").read_text() == next(d for d in done if d.returncode == 0).stdout


def test_a_name_that_nobody_asked_for_gets_a_number(tmp_path: Path) -> None:
    places = [Place.claim(tmp_path / "opline-20260101-120000", any_name=True) for _ in range(3)]
    assert [p.path.name[22:] for p in places] == ["", "-2", "-3"] and all(p.made for p in places)
    with pytest.raises(UsageError, match="not empty"):
        Place.claim(tmp_path / "opline-20260101-120000", any_name=False)
    places[1].forget()
    assert not places[1].path.exists() and places[0].path.exists()


def test_a_directory_that_was_there_and_empty_stays_and_is_empty(tmp_path: Path) -> None:
    place = Place.claim(tmp_path, any_name=False)
    (tmp_path / "extents.json").touch()
    (tmp_path / "trace" / "ust").mkdir()
    place.forget()
    assert not place.made and tmp_path.is_dir() and not list(tmp_path.iterdir())


@pytest.mark.parametrize(("number", "delay_s"), [(signal.SIGINT, 0.7), (signal.SIGTERM, 1.1), (signal.SIGHUP, 0.0)])
def test_a_signal_before_the_command_starts_leaves_nothing_in_the_way(
    runtime: Path, tmp_path: Path, number: signal.Signals, delay_s: float
) -> None:
    """Whatever had been started by then: also the watcher of files, which writes what it knows when it ends."""
    run, started = tmp_path / "run", tmp_path / "started"
    process = start("-o", run, "--events", "opltest:*", "--sessiond", "private", "--", "touch", started)
    wait_for(lambda: list(runtime.glob("*/state.json")))
    time.sleep(delay_s)
    os.kill(process.pid, number)
    done = finish(process)
    if not started.exists():  # a machine that is quicker than this
        assert done.returncode == 128 + number and "Traceback" not in done.stderr
        assert not run.exists()
    assert not list(runtime.iterdir()) and not daemons(runtime) and not buffers_left()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_temporary_files_of_a_collector_go_with_its_recording(
    runtime: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    """While its programs are compiled: the recorder is told to end, or is killed and cleaned up after."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setenv("OPLINE_CACHE_DIR", str(tmp_path / "kept"))  # nothing is there: they are compiled
    process = start("-o", tmp_path / "run", "--events", "opltest:*", "--sessiond", "private", "--", "true")
    wait_for(lambda: process.poll() is not None or [*runtime.rglob("opline-bpf-*"), *temporary.iterdir()])
    if process.poll() is not None:
        finish(process)
        pytest.skip("no block events through BPF here")
    os.kill(process.pid, number)
    finish(process)
    if number == signal.SIGKILL:
        leftovers.sweep()
    assert not list(temporary.iterdir()) and not list(runtime.iterdir())


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Callable[[], None]]:
    """A file system of 40 MiB at ``disk``; to call: fill it."""
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=40m", "opline-test", disk], check=True)

    def fill() -> None:
        with (disk / "ballast").open("wb") as ballast:
            while (free := os.statvfs(disk)).f_bavail:  # the recorder writes meanwhile
                with contextlib.suppress(OSError):
                    os.posix_fallocate(ballast.fileno(), ballast.tell(), free.f_bavail * free.f_frsize)
                    ballast.seek(0, os.SEEK_END)

    yield fill
    subprocess.run(["umount", "-l", disk], check=True)


@pytest.mark.parametrize("after_s", [0.0, 1.5])
def test_a_full_disk_costs_what_came_after(
    ticker: Path, runtime: Path, tmp_path: Path, full_disk: Callable[[], None], after_s: float
) -> None:
    """All that was on the disk before is readable; the manifest says the loss though there is no room for a new one."""
    run = tmp_path / "disk" / "run"
    buffers = ["--subbuf-size", "64K", "--subbufs", "4"]
    process = start("-o", run, *APP_ONLY, *buffers, "--", ticker, 5003, 500)
    wait_for_ticks(run)
    time.sleep(after_s)
    os.kill(process.pid, signal.SIGSTOP)  # else it may see a disk that is nearly full, and stop tracing without a loss
    full_disk()
    os.kill(process.pid, signal.SIGCONT)
    filled = time.monotonic()
    done = finish(process)
    assert time.monotonic() - filled < 60  # LTTng alone would not come to an end if it can't write the metadata
    assert done.returncode == 3 and "the recording is not whole" in done.stderr, done.stderr
    document = manifest(run)
    assert document["write_failed"], done.stderr
    assert document["state"] == "incomplete" and document["discarded_count"] is None
    assert {"writes_failed", "recording_cut_short"} <= {gap["loss"] for gap in document["gaps"]}
    assert not list(runtime.iterdir()) and not daemons(runtime) and not buffers_left()


def test_a_program_killed_in_the_midst_of_an_event_does_not_hold_up_the_end(
    ticker: Path, runtime: Path, tmp_path: Path
) -> None:
    """It may jam its stream: LTTng would wait for ever then. Nothing but an end in time is asked for here."""
    script = f"for i in 1 2 3 4 5 6; do {ticker} 100000000 & sleep 0.15; kill -9 $!; wait $! 2>/dev/null; done; true"
    began = time.monotonic()
    done = record("-o", tmp_path / "run", *APP_ONLY, "--", "sh", "-c", script)
    assert time.monotonic() - began < 60
    assert done.returncode in (0, 3)
    stuck = any(gap["loss"] == "streams_stuck" for gap in manifest(tmp_path / "run")["gaps"])
    assert done.returncode == (3 if stuck else 0)
    assert not list(runtime.iterdir()) and not daemons(runtime) and not buffers_left()
