# SPDX-License-Identifier: MIT
"""Ctrl-C, SIGTERM and SIGHUP at any time: 128 + n, soon, nothing half-written, no temporary file left."""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from opline import locks, scratch
from opline.store.segments import Segments

PROGRAM = [sys.executable, "-P", "-m", "opline_analyses"]
MODEL = str(Path(__file__).parents[1] / "models" / "lab.toml")
NAME = "app-sync-qd4-nvme"
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def catches(pid: int, number: signal.Signals) -> bool:
    """Has a process a handler for the signal? proc(5), SigCgt."""
    caught = next(
        (line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("SigCgt")), "0"
    )
    return bool(int(caught.split()[-1], 16) >> (number - 1) & 1)


def interrupted(argv: list[str], number: signal.Signals, delay_s: float, tmp: Path) -> tuple[int, str]:
    """Exit status and standard error of a command that gets a signal some time after it was ready for one (before that
    it is Python's own start that is interrupted); the status must come soon.
    """
    process = subprocess.Popen(
        argv, env=dict(os.environ, TMPDIR=str(tmp)), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: [signal.signal(n, signal.SIG_DFL) for n in ENDING],
    )  # fmt: skip
    while process.poll() is None and not catches(process.pid, signal.SIGTERM):  # Python itself catches SIGINT
        time.sleep(0.005)
    time.sleep(delay_s)
    process.send_signal(number)
    sent = time.monotonic()
    _, said = process.communicate(timeout=60)
    assert time.monotonic() - sent < 10
    return process.returncode, said


HELD = """
import os, signal
from opline_analyses.base import interrupts
interrupts.WITHIN_S = 50  # three times take 0.3 s, and the thread that ends what does not end waits 0.4 s
interrupts.install()
try:
    with interrupts.held():
        os.kill(os.getpid(), signal.SIGTERM)
        for _ in range(3):
            signal.pause()
        print("held", flush=True)
    while True:
        signal.pause()
except KeyboardInterrupt:
    print("raised")
"""


def test_a_signal_is_raised_behind_what_must_not_be_interrupted() -> None:
    """Three times it could have been raised again meanwhile."""
    done = subprocess.run([sys.executable, "-P", "-c", HELD], capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["held", "raised"], done.stderr


@pytest.mark.parametrize("command", ["stages", "plot", "csv", "requests", "ops"])
def test_a_signal_at_any_time_ends_a_command(command: str, trace: Callable[[str], Path], tmp_path: Path) -> None:
    """The command says 128 + n, or it had been done by then."""
    folder, out = trace(NAME), tmp_path / "out"
    tmp = tmp_path / "tmp"
    tmp.mkdir()
    options = {"plot": ["-o", str(out / "plot.svg")], "csv": ["-o", str(out / "ops.csv"), "--limit", "5"]}
    argv = [*PROGRAM, command, str(folder), "--model", MODEL, *options.get(command, [])]
    for i, delay_s in enumerate((0.0, 0.03, 0.1, 0.2, 0.4)):
        out.mkdir(exist_ok=True)
        number = ENDING[i % 3]
        status, said = interrupted(argv, number, delay_s, tmp)
        assert status in (0, 128 + number), said
        assert "internal error" not in said
        assert "Traceback" not in said
        assert not list(tmp.glob("opline-*"))
        assert not list(out.glob("*.part"))


EARLY = """
import os, runpy, signal, sys
signal.signal(signal.SIGINT, {before})
def interrupt(event, arguments):
    if event == "import" and arguments[0] == "opline_analyses.cli":
        os.kill(os.getpid(), signal.SIGINT)
sys.addaudithook(interrupt)
sys.argv[1:] = ["--version"]
runpy.run_path("{script}", run_name="__main__")
"""


def test_an_early_ctrl_c_has_no_traceback() -> None:
    """Before the program has imported what takes signals. One that is ignored stays so."""
    script = Path(__file__).parents[2] / "analyses" / "opline"
    for before, status in (("signal.default_int_handler", -signal.SIGINT), ("signal.SIG_IGN", 0)):
        program = EARLY.format(before=before, script=script)
        done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr) == (status, "")


SWALLOWS = """
import os, signal, sys, time
from opline_analyses import cli
from opline_analyses.base import interrupts
class Swallows:
    NAME, HELP, EXAMPLES = "stages", "x", ""
    def prepare_parser(self, parser): pass
    def run(self, args):
        class Gone:
            def __del__(self):
                signal.raise_signal(signal.{number})  # what is raised here is printed and forgotten by Python
                time.sleep(0)
        Gone()
        try:
            {then}
        except BaseException:
            time.sleep(0.4)  # tidying up is not interrupted
            print("tidy", flush=True)
            raise
        return 0
cli.load = lambda name: Swallows()
interrupts.WITHIN_S = 20
sys.argv = ["opline", "stages"]
cli.program()
"""


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM", "SIGHUP"])
@pytest.mark.parametrize("then", ["time.sleep(30)", "raise ValueError('Query interrupted')", "pass"])
def test_a_signal_that_somebody_swallows_ends_the_command_all_the_same(number: str, then: str) -> None:
    code = SWALLOWS.format(number=number, then=then)
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60,
        preexec_fn=lambda: [signal.signal(n, signal.SIG_DFL) for n in ENDING],
    )  # fmt: skip
    assert done.returncode == 128 + getattr(signal, number), done.stderr
    assert done.stdout == ("" if then == "pass" else "tidy\n") and "internal error" not in done.stderr
    assert time.monotonic() - began < 20


DEAF = """
import os, signal, sys, threading
import duckdb
from opline import locks, scratch
from opline_analyses import cli
class Deaf:
    NAME, HELP, EXAMPLES = "stages", "x", ""
    def prepare_parser(self, parser): pass
    def run(self, args):
        with scratch.scratch("run"):
            threading.Timer(0.3, os.kill, (os.getpid(), signal.{number})).start()
            duckdb.connect().execute("SELECT sum(hash(range)) FROM range(10000000000000)").fetchall()
        return 0
cli.load = lambda name: Deaf()
sys.argv = ["opline", "stages"]
cli.program()
"""


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_library_that_does_not_hear_of_a_signal_is_ended_and_nothing_stays(number: str, tmp_path: Path) -> None:
    """The query would take hours."""
    done = subprocess.run(
        [sys.executable, "-c", DEAF.format(number=number)], capture_output=True, text=True, timeout=60,
        env=dict(os.environ, TMPDIR=str(tmp_path)),
        preexec_fn=lambda: [signal.signal(n, signal.SIG_DFL) for n in ENDING],
    )  # fmt: skip
    assert done.returncode == 128 + getattr(signal, number), done.stderr
    assert "Traceback" not in done.stderr and "internal error" not in done.stderr
    assert not list(tmp_path.iterdir())


def test_what_a_killed_process_left_is_swept_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    code = "import os\nfrom opline.scratch import scratch\nwith scratch('run') as p: os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", code], env=dict(os.environ, TMPDIR=str(tmp_path)), timeout=60)
    (left,) = tmp_path.iterdir()
    (left / "file").touch()
    somebodys = tmp_path / left.name.replace("opline-", "other-")
    somebodys.mkdir()
    with scratch.scratch("count") as mine:
        assert not left.exists() and Path(mine).is_dir()
        assert scratch.sweep() == [] and Path(mine).is_dir()
    assert [p.name for p in tmp_path.iterdir()] == [somebodys.name]


def test_a_folder_that_somebody_holds_and_a_link_are_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process of another PID namespace looks as if it were gone."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    target = tmp_path / "precious"
    target.mkdir()
    (tmp_path / "opline-run-4194304999-1-abc").symlink_to(target)
    with scratch.scratch("run") as mine:
        held = tmp_path / "opline-run-4194304998-1-abcdef"
        Path(mine).rename(held)
        assert scratch.sweep() == [] and held.is_dir() and target.is_dir()
    assert scratch.sweep() == [str(held)]


@pytest.mark.parametrize("where", ["in the folder", "while it is made", "while it is removed"])
def test_a_signal_leaves_no_folder_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    """Also one that comes when the folder is there and nobody knows yet, or when half of its files are gone."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    remove = shutil.rmtree
    calls: list[object] = []

    def interrupted_rmtree(path: Path, **options: Any) -> None:
        calls.append(path)
        if where == "while it is removed" and len(calls) == 1:
            raise KeyboardInterrupt
        remove(path, **options)

    def interrupted_take(_descriptor: int) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(shutil, "rmtree", interrupted_rmtree)
    if where == "while it is made":
        monkeypatch.setattr(locks, "take", interrupted_take)
    with pytest.raises(KeyboardInterrupt), scratch.scratch("run") as mine:
        Path(mine, "file").touch()
        if where == "in the folder":
            raise KeyboardInterrupt
    assert not list(tmp_path.iterdir())


def test_the_tables_of_a_recording_that_goes_on_keep_the_lock_of_their_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They begin anew more than once; another program that sweeps must not take them for a dead one's."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with scratch.scratch("follow") as mine:
        old = Path(mine, "ops-1.parquet")
        old.touch()
        Segments(Path(mine)).clear()
        assert not old.exists()
        assert scratch.sweep() == [] and Path(mine).is_dir()


def test_an_interrupt_that_a_callback_swallows_is_raised_again_without_a_word() -> None:
    """Python says "Exception ignored in" and a traceback otherwise."""
    program = """
import os, signal, time, weakref
from opline_analyses.base import interrupts
class Thing: pass
def callback(_):
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(0.01)
interrupts.install()
thing = Thing()
kept = weakref.ref(thing, callback)
try:
    del thing
    time.sleep(30)
except KeyboardInterrupt:
    print("raised again")
"""
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("raised again\n", "")


def _children(pid: int) -> list[int]:
    return [int(n) for n in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.parametrize("number", ENDING)
def test_babeltrace2_that_does_not_answer_holds_no_signal_up(
    number: signal.Signals, trace: Callable[[str], Path], tmp_path: Path
) -> None:
    """Its process is stopped, and what it has sent is not read to the end: the command ends, and it with it."""
    argv = [*PROGRAM, "events", str(trace("fio-libaio-qd16-hdd-bfq")), "--reader", "bt2"]
    process = subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        preexec_fn=lambda: [signal.signal(n, signal.SIG_DFL) for n in ENDING],
    )  # fmt: skip
    assert process.stdout is not None
    process.stdout.read(1)  # its output is a pipe that nobody empties from here on
    (child,) = _children(process.pid)
    alive = os.pidfd_open(child)
    os.kill(child, signal.SIGSTOP)
    process.send_signal(number)
    assert process.wait(timeout=30) == 128 + number
    process.stdout.close()
    assert process.stderr is not None
    with process.stderr:
        assert process.stderr.read() == b""
    assert select.select([alive], [], [], 30)[0], "the child has ended"
    os.close(alive)
