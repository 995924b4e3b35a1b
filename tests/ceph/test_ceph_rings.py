# SPDX-License-Identifier: MIT
"""Threads' rings between the shim for Ceph and its collector: nothing of them is lost, whatever becomes of the thread
or its process, or it is counted. The program is ``tests/ceph/shim/rings.c``.
"""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from tests.ceph.lib.truth import Event, events_of
from tests.lib.block_capture import standing_still

from opline.applications.ceph import ringsource

ROOT = Path(__file__).resolve().parents[2]
SHIM = ROOT / "correlator" / "opline" / "applications" / "ceph" / "libopline-ceph.so"
RECORD = [sys.executable, "-m", "opline_analyses", "record", "--no-block", "--sessiond", "private"]
pytestmark = pytest.mark.live


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program that is recorded."""
    path = tmp_path_factory.mktemp("rings") / "rings"
    source = ROOT / "tests" / "ceph" / "shim" / "rings.c"
    argv = ["gcc", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-pthread", "-o", str(path), str(source)]
    subprocess.run(argv, check=True, timeout=300)
    return path


def command(folder: Path, *argv: object, how: str = "now") -> list[str]:
    """What records the program with the shim."""
    options = ["-o", folder, "--events", "cephshim:*", "--", "env", f"LD_PRELOAD={SHIM}", f"OPLINE_CEPH_SHIM={how}"]
    return [*RECORD, *map(str, options), *map(str, argv)]


def recorded(folder: Path, *argv: object, how: str = "now", status: int = 0) -> tuple[list[Event], dict[str, Any]]:
    """Record the program: its events, and what the collector says of itself."""
    done = subprocess.run(command(folder, *argv, how=how), capture_output=True, text=True, timeout=120)
    assert done.returncode == status, done.stderr
    return events_of(folder / "trace"), json.loads((folder / "recording.json").read_text())["rings"]


def offsets(events: list[Event]) -> dict[int, list[int]]:
    """Per thread the offsets of its calls in their order; each call must have its two events, one behind the other."""
    threads: dict[int, list[Event]] = defaultdict(list)
    for event in events:
        threads[event.vtid].append(event)
    for of_thread in threads.values():
        names = [event.name for event in of_thread]
        assert names == ["sysio_pwrite_enter", "sysio_pwrite_exit"] * (len(names) // 2) + names[len(names) // 2 * 2 :]
    return {tid: [e.fields["off"] for e in of if "off" in e.fields] for tid, of in threads.items()}


def test_sixty_four_threads_that_end_at_once(program: Path, runtime: Path, tmp_path: Path) -> None:
    events, report = recorded(tmp_path / "run", program, "threads", 64, 701)
    assert list(offsets(events).values()) == [list(range(701))] * 64
    assert not any(event.direct for event in events)
    assert report["rings"] == 64 and report["sent"] == len(events) == 2 * 64 * 701
    assert not any(report[name] for name in ("lost_ring", "lost_killed", "broken", "late", "not_enabled"))


def test_a_child_writes_into_no_ring_and_what_was_written_before_an_exec_is_there(
    program: Path, runtime: Path, tmp_path: Path
) -> None:
    events, report = recorded(tmp_path / "run", program, "forks", 307, "again")
    assert list(offsets(events).values()) == [list(range(2 * 307))] * 2
    assert len({event.vpid for event in events}) == 1 and report["rings"] == 2
    assert report["lost_ring"] == report["lost_killed"] == report["broken"] == 0


def test_a_child_exits_though_another_thread_held_lttngs_locks(program: Path, runtime: Path, tmp_path: Path) -> None:
    events, report = recorded(tmp_path / "run", program, "locked", 11)
    assert list(offsets(events).values()) == [list(range(2 * 11))]
    assert report["lost_ring"] == report["lost_killed"] == report["broken"] == 0


def test_sigkill_loses_nothing(program: Path, runtime: Path, tmp_path: Path) -> None:
    """Each call that had returned has both events. A record that was being written is counted."""
    events, report = recorded(tmp_path / "run", program, "killed", tmp_path / "log", status=128 + signal.SIGKILL)
    progress = dict(struct.iter_unpack("qq", (tmp_path / "log").read_bytes()[:64]))
    seen = offsets(events)
    assert seen.keys() == progress.keys() and len(seen) == 4
    for thread, returned in progress.items():
        assert seen[thread] == list(range(len(seen[thread])))
        assert returned <= len(seen[thread]) + report["lost_killed"] and len(seen[thread]) <= returned + 1
    assert report["broken"] == report["lost_ring"] == 0 and report["lost_killed"] <= 4


def test_a_full_ring_counts_what_it_loses(program: Path, runtime: Path, tmp_path: Path) -> None:
    """The collector is stopped while a thread writes more than its ring holds."""
    calls = 150_001
    for name in ("in", "out"):
        os.mkfifo(tmp_path / name)
    run = tmp_path / "run"
    argv = command(run, program, "flood", calls, tmp_path / "in", tmp_path / "out")
    with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True) as recorder:
        with (tmp_path / "in").open("wb", buffering=0) as to, (tmp_path / "out").open("rb", buffering=0) as out:
            assert out.read(1) == b"r"
            with standing_still(_collector_of(recorder.pid)):
                to.write(b"g")
                assert out.read(1) == b"f"
            to.write(b"e")
        assert recorder.stderr is not None
        said = recorder.stderr.read()
    assert recorder.returncode == 3, said  # more than one event in a thousand was lost
    report = json.loads((run / "recording.json").read_text())["rings"]
    events = events_of(run / "trace")
    told = sum(event.fields["count"] for event in events if event.name == "lost")
    assert report["lost_ring"] == told > 0
    assert report["sent"] + report["lost_ring"] == 2 * calls
    assert report["sent"] == sum(event.name != "lost" for event in events)
    assert f"{told:,} events of the shim lost" in said
    model = tmp_path / "model.toml"
    model.write_text(
        'title = "t"\n[keys]\ncall = "off"\n'
        '[points]\ncall = { event = "cephshim:sysio_pwrite_enter", role = "begin", key = "call" }\n'
    )
    argv = [sys.executable, "-m", "opline_analyses", "losses", "--json", "--model", str(model), str(run / "trace")]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120)
    losses = {row["loss"]: row["count"] for row in json.loads(done.stdout)["losses"]}
    assert losses["collector_lost"] == told


def _collector_of(recorder: int) -> int:
    """The recording's collector."""
    until = time.monotonic() + 10
    while time.monotonic() < until:
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
                if parent == recorder and (folder / "exe").samefile(ringsource.PROGRAM):
                    return int(folder.name)
            except OSError:
                continue
    raise AssertionError("no collector")


def test_a_thread_that_is_told_to_writes_its_events_itself(program: Path, runtime: Path, tmp_path: Path) -> None:
    events, report = recorded(tmp_path / "run", program, "threads", 3, 101, how="now,direct")
    assert list(offsets(events).values()) == [list(range(101))] * 3
    assert all(event.direct for event in events) and report["rings"] == report["sent"] == 0
