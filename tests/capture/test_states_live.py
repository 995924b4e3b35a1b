# SPDX-License-Identifier: MIT
"""What threads did, through BPF, on this machine: a thread that has to share its CPU says that it waited for it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import bt2
import pytest
from tests.lib.block_capture import loop_device
from tests.lib.recorded import Correlated, Row
from tests.lib.recorder import record_well

from opline.correlation import correlate
from opline.model import load_model
from opline_analyses.cli import main
from opline_analyses.runs.run import open_run

pytestmark = pytest.mark.live
STATES = ("on_cpu_ns", "runnable_ns", "blocked_io_ns", "blocked_ns")
WRITES = 211
# Direct writes, and a child that runs on the same CPU for 1 ms at a time, before any other thread of the machine.
WORK = """
import mmap, os, sys, time
os.sched_setaffinity(0, {0})
parent = os.getpid()
busy = os.fork()
if not busy: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
while not busy:
    if os.getppid() != parent: os._exit(0)
    end_ns = time.monotonic_ns() + 1_000_000
    while time.monotonic_ns() < end_ns: pass
    time.sleep(0.0002)
page = mmap.mmap(-1, 4096)
fd = os.open(sys.argv[1], os.O_RDWR | os.O_DIRECT)
for i in range(211):
    os.pwrite(fd, page, 4096 * i)
print(os.getpid(), busy)
os.kill(busy, 9)
os.wait()
"""


def record(folder: Path, *options: str) -> list[int]:
    """The command's processes: who writes, who runs."""
    script = folder / "work.py"
    script.write_text(WORK)
    with loop_device() as device:
        command = [sys.executable, str(script), device]
        opline = str(Path(sys.executable).with_name("opline"))
        argv = [opline, "record", "-o", str(folder / "run"), "--model", "syscalls", *options]
        record_well([*argv, "--", *command], stdout=subprocess.DEVNULL, timeout=60)
    return [int(word) for word in (folder / "run" / "stdout.txt").read_text().split()]


def events(folder: Path) -> list[tuple[str, dict[str, int]]]:
    """The events about threads of the provider ``sched``: name, and the numbers among its fields."""
    return [
        (m.event.name, {k: int(v) for k, v in m.event.payload_field.items() if isinstance(v, bt2._IntegerFieldConst)})
        for m in bt2.TraceCollectionMessageIterator(str(folder / "run" / "trace"))
        if isinstance(m, bt2._EventMessageConst) and m.event.name in ("sched:off_cpu", "sched:lost")
    ]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[int], Correlated]:
    folder = tmp_path_factory.mktemp("states")
    pids = record(folder)
    manifest = correlate(folder / "run" / "trace", load_model("syscalls"), folder / "run", progress=False)
    return folder, pids, Correlated(folder / "run", manifest)


def test_a_thread_that_shares_its_cpu_waits_for_it(recorded: tuple[Path, list[int], Correlated]) -> None:
    _, (pid, _), run = recorded
    ops = {op["op_id"] for op in run.rows("ops") if op["class"] == "pwrite64" and op["begin_tid"] == pid}
    assert len(ops) == WRITES
    stages: list[Row] = [s for s in run.rows("stages") if s["op_id"] in ops]
    known = [s for s in stages if s["on_cpu_ns"] is not None]
    assert len(known) >= 0.99 * len(stages)
    assert all(sum(s[state] for state in STATES) == s["duration_ns"] for s in known)
    assert all(s["states_tid"] == pid for s in known)
    reap = [s for s in known if s["stage"] == "reap"]
    # The other process has the CPU when the completion comes, and doesn't give it up by itself.
    waited = sum(s["runnable_ns"] for s in reap)
    assert waited > 0.25 * sum(s["duration_ns"] for s in reap) > 0
    d2c = [s for s in known if s["stage"] == "D2C"]
    assert sum(s["blocked_io_ns"] for s in d2c) > 0
    assert any(s["woken_by_tid"] is not None for s in (*d2c, *reap))


def hogged(folder: Path) -> list[int | None]:
    """Who ran instead, of each wait for a CPU of which it is recorded: 20 us or more."""
    sql = "SELECT instead_tid FROM waits WHERE kind = 'cpu' AND depth = 0 AND duration_ns >= 20000"
    with open_run(folder / "run") as run:
        return [tid for (tid,) in run.rows(sql)]


def test_it_says_who_ran_instead(recorded: tuple[Path, list[int], Correlated], tmp_path: Path) -> None:
    """On a machine that does much else, others run there, too."""
    folder, (pid, busy), _ = recorded
    assert busy in hogged(folder)
    assert pid not in hogged(folder)
    pid, busy = record(tmp_path, "--no-chains")
    assert busy in hogged(tmp_path)
    assert pid not in hogged(tmp_path)


def test_the_recorded_processes_alone_are_in_it(recorded: tuple[Path, list[int], Correlated]) -> None:
    folder, pids, _ = recorded
    seen = {fields["tid"] for _, fields in events(folder) if fields.get("level") == 0}
    assert set(pids) <= seen
    # Those of Python and whom it forks: no thread of a machine that does much else.
    assert len(seen) <= len(pids) + 4


def test_it_can_be_left_out(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    record(tmp_path, "--no-states")
    assert events(tmp_path) == []
    assert main(["stages", str(tmp_path / "run"), "--states"]) == 1
    assert "--no-states" in capfd.readouterr().err
