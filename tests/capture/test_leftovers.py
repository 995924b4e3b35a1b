# SPDX-License-Identifier: MIT
"""What is believed of a runtime directory: only our own state, and of it only processes that are still what they were.

The directory decides who gets a signal, from root too: whoever can write it could end anything. No test here sends a
signal to a number that it does not own: ``os.kill`` and its like are replaced where a state is made up.
"""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from opline.capture.directory import leftovers
from opline.capture.machine.processes import boot_id, identify
from opline.errors import OplineError

NOBODY = 65534
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="gives files away")


@pytest.fixture
def victim() -> Iterator[subprocess.Popen[bytes]]:
    """A process of ours that nothing shall end."""
    child = subprocess.Popen(["sleep", "60"])
    yield child
    child.kill()
    child.wait()


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Whom a signal would have been sent."""
    found: list[int] = []
    monkeypatch.setattr(os, "kill", lambda pid, _: found.append(pid))
    monkeypatch.setattr(signal, "pidfd_send_signal", lambda handle, _: found.append(handle))
    return found


def plant(runtime: Path, processes: dict[str, Any], **changes: Any) -> Path:
    """The state of a recorder that is gone, with these processes."""
    folder = runtime / f"{os.getpid()}-1"
    folder.mkdir(mode=0o755)
    document = {
        "recorder": [os.getpid(), 1], "boot": boot_id(), "output": "/somewhere/run1", "session": "",
        "shared_sessiond": False, "processes": processes, **changes,
    }  # fmt: skip
    (folder / "state.json").write_text(json.dumps(document))
    return folder


def as_stated(child: subprocess.Popen[bytes]) -> list[Any]:
    """A process as a recorder writes it down."""
    process = identify(child.pid)
    assert process is not None
    return [process.pid, process.start_ticks, sorted(process.executables)]


def somebody_elses(runtime: Path) -> None:
    os.chown(runtime, NOBODY, NOBODY)


def writable_by_all(runtime: Path) -> None:
    runtime.chmod(0o777)


def a_link(runtime: Path) -> None:
    runtime.rename(runtime.with_name(f"{runtime.name}-real"))
    runtime.symlink_to(runtime.with_name(f"{runtime.name}-real"))


@root_only
@pytest.mark.parametrize("spoil", [somebody_elses, writable_by_all, a_link])
def test_a_directory_that_others_can_write_is_not_believed(
    spoil: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, victim: subprocess.Popen[bytes]
) -> None:
    runtime = tmp_path / "rt"
    runtime.mkdir()
    monkeypatch.setenv("OPLINE_RUNTIME_DIR", str(runtime))
    folder = plant(runtime, {"collector": as_stated(victim)})
    spoil(runtime)
    for step in (leftovers.sweep, lambda: leftovers.State.create(Path("/somewhere/run2"))):
        with pytest.raises(OplineError, match="set OPLINE_RUNTIME_DIR"):
            step()
    assert victim.poll() is None and folder.exists()
    argv = [sys.executable, "-m", "opline_analyses"]
    doctor = subprocess.run([*argv, "doctor"], capture_output=True, text=True, timeout=120)
    assert "set OPLINE_RUNTIME_DIR" in " ".join(doctor.stdout.split()) and doctor.stderr == ""
    run = tmp_path / "run"
    recording = subprocess.run([*argv, "record", "-o", run, "--", "true"], capture_output=True, text=True, timeout=120)
    assert recording.returncode == 1 and recording.stderr.count("\n") == 1 and not run.exists()
    assert victim.poll() is None


@root_only
@pytest.mark.parametrize("what", ["folder", "file", "link", "folder link", "fifo"])
def test_a_state_of_somebody_else_is_not_believed(
    what: str, runtime: Path, tmp_path: Path, victim: subprocess.Popen[bytes]
) -> None:
    folder = plant(runtime, {"collector": as_stated(victim)})
    state = folder / "state.json"
    if what == "folder":
        os.chown(folder, NOBODY, NOBODY)
    elif what == "file":
        os.chown(state, NOBODY, NOBODY)
    elif what == "link":
        state.rename(tmp_path / "state.json")
        state.symlink_to(tmp_path / "state.json")
    elif what == "folder link":
        folder.rename(tmp_path / "folder")
        folder.symlink_to(tmp_path / "folder")
    else:
        state.unlink()
        os.mkfifo(state)
    leftovers.sweep()
    assert victim.poll() is None


@pytest.mark.parametrize(
    "process",
    [
        [-1, None], [0, None], [-1, None, []], [-1, 0, [[0, 0]]], [0, 0, []], [0, None, []], [1, None, []],
        ["1", 1, []], [True, 1, []], [], [1], 1, None, [1 << 70, 1, []], [1.5, 1, []],
    ],
)  # fmt: skip
def test_a_number_that_is_no_pid_gets_no_signal(process: Any, runtime: Path, sent: list[int]) -> None:
    """kill(-1) would be everything."""
    plant(runtime, {"collector": process})
    leftovers.sweep()
    assert sent == []


def test_a_process_that_runs_something_else_is_left_alone(runtime: Path, victim: subprocess.Popen[bytes]) -> None:
    """PID and start time can be read by anybody; what it runs must agree, too."""
    pid, ticks, *_ = as_stated(victim)
    another = Path(sys.executable).stat()
    plant(runtime, {"collector": [pid, ticks, [[another.st_dev, another.st_ino]]]})
    (line,) = leftovers.sweep()
    assert victim.poll() is None and line.endswith("could not be cleaned up")


@pytest.mark.parametrize("session", ["--all", "somebodys", 7, None])
def test_a_session_that_is_not_the_recorders_is_left_alone(
    session: Any, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands: list[Any] = []

    def run(argv: Any, **_: Any) -> subprocess.CompletedProcess[bytes]:
        commands.append(argv)
        return subprocess.CompletedProcess(argv, 0)

    monkeypatch.setattr(subprocess, "run", run)
    plant(runtime, {}, session=session, shared_sessiond=True)
    leftovers.sweep()
    assert commands == []


def test_what_a_process_is_going_to_run_is_known_before(runtime: Path) -> None:
    """As of the session daemon, which unshare(1) and sh(1) become."""
    state = leftovers.State.create(Path("/somewhere/run2"))
    child = subprocess.Popen(["sh", "-c", "read line; exec sleep 60"], stdin=subprocess.PIPE)
    state.add("sessiond", child.pid, ["sleep"])
    (written,) = json.loads((state.folder / "state.json").read_text())["processes"].values()
    state.remove()
    assert child.stdin is not None
    child.stdin.write(b"\n")
    child.stdin.close()
    plant(runtime, {"sessiond": written})
    leftovers.sweep()
    assert child.wait(20) in (-signal.SIGTERM, -signal.SIGKILL)


def test_folders_are_ours_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root's may be entered: a command's processes of other users look for their socket there."""
    monkeypatch.setenv("OPLINE_RUNTIME_DIR", str(tmp_path / "rt"))
    mode = 0o711 if os.geteuid() == 0 else 0o700
    for umask in (0o000, 0o077):
        before = os.umask(umask)
        try:
            state = leftovers.State.create(Path("/somewhere/run2"))
        finally:
            os.umask(before)
        for folder in (state.folder, state.folder.parent):
            assert stat.S_IMODE(folder.stat().st_mode) == mode
        assert stat.S_IMODE((state.folder / "state.json").stat().st_mode) == 0o600
        state.remove()
        (tmp_path / "rt").rmdir()


@root_only
def test_a_folder_below_tmp_of_an_older_opline_becomes_ours_alone(tmp_path: Path) -> None:
    """As a user who is not root, in a /tmp of the test's own."""
    code = (
        "import os, pathlib, sys; os.setgid(65534); os.setuid(65534)\n"
        "from opline.capture.directory import leftovers\n"
        "folder = pathlib.Path('/tmp/opline-65534'); folder.mkdir(); folder.chmod(0o755)\n"
        "print(leftovers.sweep(), oct(folder.stat().st_mode & 0o7777))\n"
    )
    script = 'mount -t tmpfs -o mode=1777 tmpfs /tmp && exec "$@"'
    argv = ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh", sys.executable, "-c", code]
    env = {"PATH": os.environ["PATH"]}
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60)
    if "unshare" in done.stderr or "mount" in done.stderr:
        pytest.skip("no mount namespaces here")
    assert done.stdout == "[] 0o700\n", done.stderr
