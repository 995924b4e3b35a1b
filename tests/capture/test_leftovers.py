# SPDX-License-Identifier: MIT
"""What is believed of a runtime directory: only our own state, and of it only processes that are still what they were.

The directory decides who gets a signal, from root too: whoever can write it could end anything. No test here sends a
signal to a number that it does not own: ``os.kill`` and its like are replaced where a state is made up.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.faults import neighbours
from tests.lib.namespaces import PID_NAMESPACE
from tests.lib.recorder import wait_for

from opline import locks
from opline.capture.directory import leftovers
from opline.capture.directory.state import State
from opline.capture.machine.processes import boot_id, identify, namespace
from opline.errors import OplineError
from opline.scratch import start_ticks

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
    folder = runtime / f"{os.getpid()}-1-0123abcd"
    folder.mkdir(mode=0o755)
    document = {
        "recorder": [os.getpid(), 1], "boot": boot_id(), "output": "/somewhere/run1", "session": "",
        "namespace": namespace(), "shared_sessiond": False, "processes": processes, **changes,
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
    for step in (leftovers.sweep, lambda: State.create(Path("/somewhere/run2"))):
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
    state = State.create(Path("/somewhere/run2"))
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


def test_helpers_of_a_process_that_was_killed_end_too(runtime: Path) -> None:
    """As LTTng's ``lttng-runas``. Another program in its session is left alone: the state does not name it."""
    code = (
        "import subprocess\n"
        "for name in ('sleep', ANOTHER):\n"
        "    print(subprocess.Popen([name, '60'], stdout=subprocess.DEVNULL).pid, flush=True)\n"
        "input()\n"
    )
    another = runtime.parent / f"{runtime.name}-sleep"
    shutil.copy2(shutil.which("sleep") or "", another)
    leader = subprocess.Popen(
        [sys.executable, "-c", code.replace("ANOTHER", repr(str(another)))],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        assert leader.stdout is not None
        helper, stranger = (int(leader.stdout.readline()) for _ in range(2))
        wait_for(lambda: all(Path(f"/proc/{pid}/comm").read_text() != "python\n" for pid in (helper, stranger)))
        found = identify(leader.pid, ["sleep"])
        assert found is not None
        leader.kill()
        leader.communicate()
        plant(runtime, {"sessiond": [found.pid, found.start_ticks, sorted(found.executables)]})
        (line,) = leftovers.sweep()
        assert line.endswith("cleaned up")
        assert start_ticks(helper) is None and start_ticks(stranger) is not None
        os.kill(stranger, signal.SIGKILL)
    finally:
        leader.kill()
        leader.communicate()
        another.unlink()


def test_folders_are_ours_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root's may be entered: a command's processes of other users look for their socket there."""
    monkeypatch.setenv("OPLINE_RUNTIME_DIR", str(tmp_path / "rt"))
    mode = 0o711 if os.geteuid() == 0 else 0o700
    for umask in (0o000, 0o077):
        before = os.umask(umask)
        try:
            state = State.create(Path("/somewhere/run2"))
        finally:
            os.umask(before)
        for folder in (state.folder, state.folder.parent):
            assert stat.S_IMODE(folder.stat().st_mode) == mode
        assert stat.S_IMODE((state.folder / "state.json").stat().st_mode) == 0o600
        state.remove()
        (tmp_path / "rt").rmdir()


def test_doctor_only_looks_and_cleans_up_when_it_is_told(runtime: Path, victim: subprocess.Popen[bytes]) -> None:
    """A dead recorder's processes run on until somebody asks for their end."""
    folder = plant(runtime, {"collector": as_stated(victim)})
    argv = [sys.executable, "-m", "opline_analyses", "doctor"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120)
    said = " ".join(done.stdout.split())
    assert "was killed" in said and "opline doctor --clean-up" in said
    assert victim.poll() is None and folder.exists()
    done = subprocess.run([*argv, "--clean-up"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stdout.count("\n") == 1 and done.stdout.endswith("cleaned up\n")
    assert victim.wait(20) in (-signal.SIGTERM, -signal.SIGKILL) and not folder.exists()
    done = subprocess.run([*argv, "--clean-up"], capture_output=True, text=True, timeout=120)
    assert done.stdout == "no killed recording has left anything\n"


def test_a_lock_and_not_a_number_says_who_is_alive(runtime: Path) -> None:
    """A recorder of another PID namespace has a number that here is nobody's, or a stranger's."""
    held = State.create(Path("/somewhere/run2"))
    renamed = held.folder.with_name("4194303-7-0123abcd")
    held.folder.rename(renamed)
    assert leftovers.found() == leftovers.sweep() == [] and renamed.exists()
    held.release()
    assert len(leftovers.found()) == 1 and renamed.exists()
    assert len(leftovers.sweep()) == 1 and not renamed.exists()


def test_a_recorder_that_begins_or_ends_is_no_leftover(runtime: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others look and clean up between any two of its steps: it gets its folder, and nobody says that it was killed."""
    said: list[str] = []
    steps: list[str] = []

    def others(name: str) -> None:
        """They take the first three folders away, which have no lock yet; then they clean up where there is one."""
        said.extend(leftovers.found())
        if steps.count("mkdir") <= 3 or name in ("link", "replace", "unlink", "rmdir"):
            said.extend(leftovers.sweep())

    def disturbed(name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def step(*arguments: Any, **options: Any) -> Any:
            if "others" in steps:  # their own
                return work(*arguments, **options)
            steps.append("others")
            others(name)
            try:
                return work(*arguments, **options)
            finally:
                others(name)
                steps[-1] = name

        return step

    for name in ("mkdir", "fchmod", "open", "link", "replace", "unlink", "rmdir"):
        monkeypatch.setattr(os, name, disturbed(name, getattr(os, name)))
    state = State.create(Path("/somewhere/run2"))
    assert steps.count("mkdir") > 3 and {"link", "replace"} & set(steps) and state.folder.is_dir()
    state.remove()
    assert "unlink" in steps and "rmdir" in steps
    monkeypatch.undo()
    assert said == [] and list(runtime.iterdir()) == []


def test_a_looker_takes_no_lock_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that looks at the file when it is there and not locked yet."""
    real = os.open
    lookers: list[int] = []

    def opened(name: Any, *arguments: Any, **options: Any) -> int:
        descriptor = real(name, *arguments, **options)
        if name == "lock" and not lookers:
            lookers.append(real(tmp_path / "lock", os.O_RDONLY))
            fcntl.flock(lookers[0], fcntl.LOCK_SH)
            threading.Timer(0.05, os.close, lookers).start()
        return descriptor

    monkeypatch.setattr(os, "open", opened)
    folder = real(tmp_path, os.O_RDONLY)
    lock = locks.make("lock", folder)
    assert lookers and lock is not None and locks.is_held("lock", folder)
    os.close(lock)
    os.close(folder)


@root_only
def test_processes_of_another_pid_namespace_are_ended_by_their_numbers_here(runtime: Path) -> None:
    """Its state names them by the numbers that they have there: 1, which is somebody else here."""
    script = (
        "import os, pathlib, sys, time\n"
        "from opline.capture.directory.state import State\n"
        "state = State.create(pathlib.Path('/somewhere/run2')); state.add('collector', os.getpid())\n"
        "state.release(); print(state.processes['collector'].pid, flush=True); time.sleep(60)\n"
    )
    inside = subprocess.Popen([*PID_NAMESPACE, sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    try:
        assert inside.stdout is not None
        if not (number := inside.stdout.readline()):
            pytest.skip("no PID namespaces here")
        assert int(number) == 1
        (line,) = leftovers.sweep()
        assert line.endswith("cleaned up") and "collector" in line
        inside.communicate(timeout=20)
    finally:
        inside.kill()
        inside.communicate()


@root_only
def test_recorders_that_share_a_runtime_directory_across_pid_namespaces_do_not_meet(
    tmp_path: Path, runtime: Path
) -> None:
    """The short version of tests/faults/neighbours.py."""
    if subprocess.run([*PID_NAMESPACE, "true"], capture_output=True).returncode != 0:
        pytest.skip("no PID namespaces here")
    assert neighbours.rounds(tmp_path, runtime, 2, ("--no-block",)) == []


@root_only
def test_a_folder_below_tmp_of_an_older_opline_becomes_ours_alone(tmp_path: Path) -> None:
    """As a user who is not root, in a /tmp of the test's own."""
    if Path("/tmp") in Path(sys.executable).parents:
        pytest.skip("this checkout is below /tmp")
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
