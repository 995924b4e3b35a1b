# SPDX-License-Identifier: MIT
"""Which processes a recording is about, through BPF, on this machine: their forks, execs and exits are events."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import bt2
import pytest
from tests.lib.recorder import record_well

pytestmark = pytest.mark.live
STEPS = ("sched:process_fork", "sched:process_exec", "sched:process_exit")
OPLINE = str(Path(sys.executable).with_name("opline"))


def steps(folder: Path) -> list[tuple[str, int, int | None, str]]:
    """What happened to which process, in order: the event, the process, a fork's parent, the thread's name."""
    return [
        (
            m.event.name.removeprefix("sched:process_"),
            int(m.event.payload_field["pid"]),
            int(m.event.payload_field["parent_pid"]) if "parent_pid" in m.event.payload_field else None,
            str(m.event.payload_field["comm"]),
        )
        for m in bt2.TraceCollectionMessageIterator(str(folder / "trace"))
        if isinstance(m, bt2._EventMessageConst) and m.event.name in STEPS
    ]


def record(folder: Path, *options: str) -> None:
    """Runs opline record."""
    record_well([OPLINE, "record", "-o", folder, *options], timeout=60)


@pytest.mark.parametrize("options", [("--no-states",), ("--model", "syscalls")])
def test_forks_execs_and_exits_of_the_command(tmp_path: Path, options: tuple[str, ...]) -> None:
    folder = tmp_path / "run"
    with subprocess.Popen(["sh", "-c", "while :; do /bin/true; done"]) as stranger:
        try:
            record(folder, *options, "--", "sh", "-c", "/bin/true; exec sleep 0.1")
        finally:
            stranger.kill()
    root = json.loads((folder / "recording.json").read_text())["command"]["pid"]
    found = steps(folder)
    (child,) = [pid for step, pid, parent, _ in found if step == "fork" and parent == root]
    assert found == [
        ("exec", root, None, "sh"),
        ("fork", child, root, "sh"),
        ("exec", child, None, "true"),
        ("exit", child, None, "true"),
        ("exec", root, None, "sleep"),
        ("exit", root, None, "sleep"),
    ]


def test_threads_are_no_processes(tmp_path: Path) -> None:
    script = "import threading; t = threading.Thread(target=print); t.start(); t.join()"
    record(tmp_path / "run", "--", sys.executable, "-c", script)
    found = steps(tmp_path / "run")
    assert {pid for _, pid, _, _ in found} == {found[0][1]}
    assert [step for step, *_ in found] == ["exec", "exit"]


def test_processes_that_are_attached_to(tmp_path: Path) -> None:
    script = "read line; /bin/true; read line"
    with subprocess.Popen(["sh", "-c", script], stdin=subprocess.PIPE) as watched:
        assert watched.stdin is not None
        with subprocess.Popen(
            [OPLINE, "record", "-o", str(tmp_path / "run"), "--pid", str(watched.pid), "--duration", "30"],
            stderr=subprocess.PIPE,
        ) as recorder:
            recording = tmp_path / "run" / "recording.json"
            while recorder.poll() is None and not recording.exists():
                pass
            watched.stdin.write(b"go\n")
            watched.stdin.flush()
            watched.stdin.close()  # the second read ends the process, and that the recording
            recorder.communicate(timeout=60)
    assert json.loads(recording.read_text())["attached"] == [watched.pid]
    found = steps(tmp_path / "run")
    assert [(step, comm) for step, _, _, comm in found] == [
        ("fork", "sh"), ("exec", "true"), ("exit", "true"), ("exit", "sh"),
    ]  # fmt: skip
