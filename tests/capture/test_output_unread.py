# SPDX-License-Identifier: MIT
"""The output of a recorded command that nothing reads any more, or that has no room."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest
from tests.lib.recorder import APP_ONLY, PROGRAM, manifest, start

pytestmark = pytest.mark.live


def first_line(run: Path, *command: str) -> tuple[subprocess.Popen[str], str]:
    """Record the command, read a line of its output, and go."""
    process = start("-o", run, *APP_ONLY, "--", *command)
    assert process.stdout is not None
    line = process.stdout.readline()
    process.stdout.close()
    return process, line


def complaints(process: subprocess.Popen[str]) -> str:
    assert process.stderr is not None
    with process.stderr:
        return process.stderr.read()


def test_a_reader_that_goes_ends_the_command(runtime: Path, tmp_path: Path) -> None:
    process, line = first_line(tmp_path / "run", "yes")
    said = complaints(process)
    assert (process.wait(timeout=60), line) == (128 + signal.SIGPIPE, "y\n")
    assert "note: " not in said and "not whole" not in said and "cannot write" not in said
    document = manifest(tmp_path / "run")
    assert (document["state"], document["command"]["signal"]) == ("complete", signal.SIGPIPE)


def test_who_did_not_write_goes_on(runtime: Path, tmp_path: Path) -> None:
    """As with a pipe: the shell has the same output, and does not write."""
    process, _ = first_line(tmp_path / "run", "sh", "-c", "yes; exit 7")
    complaints(process)
    assert process.wait(timeout=60) == 7


def test_a_command_that_ignores_sigpipe_goes_on_and_the_user_is_told(runtime: Path, tmp_path: Path) -> None:
    go = tmp_path / "go"
    script = f"trap '' PIPE; until test -e {go}; do echo a; sleep 0.01; done; echo z; exit 7"
    process, _ = first_line(tmp_path / "run", "sh", "-c", script)
    assert process.stderr is not None
    told = process.stderr.readline()
    assert told.startswith("opline: note: nothing reads the command's output any more")
    assert f"{tmp_path / 'run/stdout.txt'}; Ctrl-C ends it" in told
    go.touch()
    assert "note: " not in complaints(process)
    assert process.wait(timeout=60) == 7
    assert (tmp_path / "run/stdout.txt").read_text().endswith("a\nz\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_output_without_room_is_said_and_kept(runtime: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    argv = [*PROGRAM, "-o", str(run), *APP_ONLY, "--quiet", "--", "echo", "all"]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(argv, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    line = f"cannot write the command's output: No space left on device. {run / 'stdout.txt'} has all of it"
    assert done.returncode == 1 and done.stderr.splitlines()[0] == f"opline: warning: {line}"
    assert (run / "stdout.txt").read_text() == "all\n" and manifest(run)["notes"] == [line]
    assert manifest(run)["state"] == "complete"
