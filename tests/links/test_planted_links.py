# SPDX-License-Identifier: MIT
"""Files that opline makes in a directory: no link that lies there is followed, and who may not read the trace may not
read what is made of it.

A run or a recording may come from somebody (an unpacked archive), and others may write where it lies.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.lib.recorder import manifest, status

from opline.capture.directory.output import Follower
from opline.errors import OplineError
from opline.folder import Folder
from opline.readers.trace import find_traces, readers_of_traces
from opline.store.run import open_or_correlate
from opline.store.schema import TABLES

NAME = "app-sync-qd4-nvme"
LAB = str(Path(__file__).parents[1] / "models" / "lab.toml")
MADE = [f"{t.name}.parquet" for t in TABLES] + ["manifest.json"]
Program = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def recording(trace: Callable[[str], Path], tmp_path: Path) -> Path:
    """A folder as `opline record` leaves it."""
    shutil.copytree(trace(NAME), tmp_path / "rec" / "trace")
    for path in (tmp_path / "rec" / "trace", *(tmp_path / "rec" / "trace").rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    note = {"schema": "opline-recording", "model": {"name": "lab", "argument": LAB}, "command": {"argv": ["true"]}}
    (tmp_path / "rec" / "recording.json").write_text(json.dumps(note))
    return tmp_path / "rec"


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    path = tmp_path / "precious"
    path.write_text("mine")
    return path


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_run_is_written_over_no_link(recording: Path, precious: Path) -> None:
    for name in MADE:
        (recording / f"{name}.part").symlink_to(precious)
        if name != "manifest.json":
            (recording / name).symlink_to(precious)
    with open_or_correlate(recording) as opened:
        assert opened.path == recording
    assert precious.read_text() == "mine"
    for name in MADE:
        assert (recording / name).is_file() and not (recording / name).is_symlink()
    assert not list(recording.glob("*.part"))


def test_a_link_that_leads_nowhere_makes_no_file_there(recording: Path, tmp_path: Path) -> None:
    (recording / "manifest.json.part").symlink_to(tmp_path / "made")
    with open_or_correlate(recording):
        pass
    assert not (tmp_path / "made").exists()


def test_a_folder_in_the_way_is_one_line(recording: Path) -> None:
    (recording / "ops.parquet.part" / "x").mkdir(parents=True)
    with pytest.raises(OplineError, match=r"^Cannot write the run .*/rec: \w+( \w+)+\.$"), open_or_correlate(recording):
        pass
    assert {p.name for p in recording.glob("*.part")} == {"ops.parquet.part"}


def test_output_is_kept_in_no_link(precious: Path, tmp_path: Path) -> None:
    (tmp_path / "stdout.txt").symlink_to(precious)
    with Folder(tmp_path) as folder:
        follower = Follower(folder, "stdout.txt", 1)
    follower.sink.write(b"theirs")
    follower.close()
    assert precious.read_text() == "mine" and (tmp_path / "stdout.txt").read_text() == "theirs"


@pytest.mark.live
def test_what_the_command_plants_is_not_followed(
    precious: Path, runtime: Path, tmp_path: Path, opline: Program
) -> None:
    """It runs as somebody else, perhaps, and knows where it is recorded."""
    run = tmp_path / "run"
    names = [f"{name}{part}" for name in ("recording.json", "extents.json") for part in ("", ".part")]
    script = "".join(f"ln -sf {precious} {run}/{name};" for name in names)
    done = opline("record", "-o", run, "--sessiond", "private", "--", "sh", "-c", script)
    assert status(done) == 0, done.stderr
    assert precious.read_text() == "mine"
    assert manifest(run)["state"] == "complete"
    assert not (run / "recording.json").is_symlink()


@pytest.mark.live
def test_a_recording_is_as_closed_as_its_trace(runtime: Path, tmp_path: Path, opline: Program) -> None:
    """LTTng makes a trace's files 0660."""
    run = tmp_path / "run"
    before = os.umask(0o022)
    try:
        done = opline("record", "-o", run, "--model", "syscalls", "--sessiond", "private", "--", "sh", "-c", "sync; ls")
        assert status(done) == 0, done.stderr
        assert opline("stages", run, "--model", "syscalls").returncode == 0
        with open_or_correlate(run):
            pass
    finally:
        os.umask(before)
    files = {path.name: mode(path) for path in run.iterdir()}
    assert {"recording.json", "stdout.txt", "stderr.txt", "manifest.json", "ops.parquet", "trace"} <= set(files)
    assert not [name for name, bits in {**files, ".": mode(run)}.items() if bits & 0o007], files


@pytest.mark.parametrize("trace_mode", [0o660, 0o600, 0o640, 0o644])
def test_tables_are_as_closed_as_the_trace(trace_mode: int, recording: Path) -> None:
    for path in (recording / "trace").rglob("*"):
        if path.is_file():
            path.chmod(trace_mode)
    before = os.umask(0o002)
    try:
        with open_or_correlate(recording):
            pass
    finally:
        os.umask(before)
    assert {mode(recording / name) for name in MADE} == {trace_mode & 0o644 | 0o600}


def test_one_file_of_a_trace_that_is_closed_closes_the_run(recording: Path) -> None:
    """Or a folder that nobody else may enter."""
    trace = recording / "trace"
    open_to_all = readers_of_traces(trace, find_traces(trace))
    assert open_to_all[0] == 0o644
    for path, closed in ((trace / "kernel" / "metadata", 0o600), (trace / "ust", 0o750), (trace, 0o700)):
        was = mode(path)
        path.chmod(closed)
        found = readers_of_traces(trace, find_traces(trace))[0]
        assert found == (0o640 if closed == 0o750 else 0o600)
        path.chmod(was)
    assert readers_of_traces(trace, find_traces(trace)) == open_to_all


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files away")
def test_the_traces_group_is_not_another_group(recording: Path) -> None:
    """A trace that its group may read, of a run whose files get another group: not theirs to read."""
    for path in (recording / "trace", *(recording / "trace").rglob("*")):
        os.chown(path, -1, 65534)
        path.chmod(0o770 if path.is_dir() else 0o660)
    with open_or_correlate(recording):
        pass
    assert {mode(recording / name) for name in MADE} == {0o600}
