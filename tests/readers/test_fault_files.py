# SPDX-License-Identifier: MIT
"""Damaged files of every kind that commands read, a few of each (``tests/faults/files.py`` makes more by hand), and
damage that was once an internal error.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.lib.client_logs import bench_run, fio_logs

from opline.correlation import correlate
from opline.errors import OplineError
from opline.model import load_model
from opline.shapes import fault_in
from opline_analyses.cli import main
from opline_analyses.client.client_log import join_client_log
from opline_analyses.runs.run import open_tables

LAB = str(Path(__file__).parents[1] / "models" / "lab.toml")
Capture = pytest.CaptureFixture[str]


def test_a_few_mutants_of_every_kind() -> None:
    # In a small process: the memory of the one that runs the tests would count as its children's.
    command = [sys.executable, "-m", "tests.faults.files", "--seed", "7", "--mutants", "2", "--seconds", "60"]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def sound(trace: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nobody has damaged."""
    folder = tmp_path_factory.mktemp("files") / "run"
    correlate(trace("app-sync-2m-nvme-split"), load_model(LAB), folder, progress=False)
    return folder


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        (("core",), [], "core is [], not an object"),
        (("core", "devices"), "x", 'core.devices is "x", not an object'),
        (("core", "first_ns"), "1", 'core.first_ns is "1", not'),
        (("recording",), [1], "recording is [1], not"),
        (("recording",), {"devices": [{"dev": "8"}]}, 'recording.devices[0].dev is "8", not an integer'),
        (("gaps",), None, "gaps is null, not a list"),
        (("trace",), 7, "trace is 7, not a text"),
    ],
)
def test_a_manifest_of_wrong_types_is_refused_with_the_place(
    place: tuple[str, ...], value: object, said: str, sound: Path, tmp_path: Path, capsys: Capture
) -> None:
    run = Path(shutil.copytree(sound, tmp_path / "run"))
    manifest = json.loads((run / "manifest.json").read_text())
    at = manifest
    for key in place[:-1]:
        at = at[key]
    at[place[-1]] = value
    (run / "manifest.json").write_text(json.dumps(manifest))
    for command in (["requests", str(run)], ["stages", str(run)]):
        assert main(command) == 1
        out, err = capsys.readouterr()
        assert out == "" and err.startswith(f"opline: Cannot read {run}/manifest.json: it is damaged: {said}")
        assert err.count("\n") == 1 and "Remove it to correlate the trace again." in err


def test_a_table_without_a_column_is_refused(sound: Path, tmp_path: Path, capsys: Capture) -> None:
    """Of a run that has no checksums: a damaged byte of a column's name."""
    run = Path(shutil.copytree(sound, tmp_path / "run"))
    manifest = json.loads((run / "manifest.json").read_text())
    del manifest["checksums"]
    (run / "manifest.json").write_text(json.dumps(manifest))
    stages = run / "stages.parquet"
    stages.write_bytes(stages.read_bytes().replace(b"begin_ns", b"begin_n3"))
    assert main(["csv", str(run)]) == 1
    _, err = capsys.readouterr()
    said = "it has a column begin_n3, and no begin_ns. Correlate its trace again."
    assert err == f"opline: Cannot read {stages}: {said}\n"


def test_shapes() -> None:
    shape = {"a": int, "b?": [str], "*": (None, bool)}
    assert fault_in({"a": 1, "b": ["x"], "c": None, "d": True}, shape) is None
    assert fault_in({"a": True}, shape) == "a is true, not an integer"
    assert fault_in({}, shape) == "a is missing"
    assert fault_in({"a": 1, "b": ["x", 2]}, shape) == "b[1] is 2, not a text"
    assert fault_in({"a": 1, "c": 3}, shape) in ("c is 3, not null", "c is 3, not true or false")
    assert fault_in([], shape) == "it is [], not an object"


def test_a_clients_log_with_text_where_a_time_belongs(tmp_path: Path) -> None:
    run = open_tables(bench_run().write(tmp_path / "run"))
    log = tmp_path / "log.csv"
    log.write_text("begin_ns,end_ns,class,object\n1,2,write,7\n3,soon,write,8\n")
    with pytest.raises(OplineError, match=r"log\.csv: row 2: end_ns is no number of nanoseconds: 'soon'\."):
        join_client_log(run, log)


def test_a_clients_log_whose_objects_look_like_numbers(tmp_path: Path) -> None:
    """Compared with the trace's as texts."""
    run = open_tables(bench_run().write(tmp_path / "run"))
    log = tmp_path / "log.csv"
    log.write_text("begin_ns,end_ns,class,object\n1,2,write,7\n")
    assert join_client_log(run, log).lines == 1


@pytest.mark.parametrize("junk", [b"\xff\xfe\x80, 1\n", b"7\n", b"1, -5, 1, 4096, 0, 0\n", b"1, 2, 1, 9" + b"9" * 30])
def test_a_fio_log_that_is_damaged(junk: bytes, tmp_path: Path) -> None:
    run = open_tables(bench_run().write(tmp_path / "run"))
    log = fio_logs(tmp_path, [(0, 10, 20, 30)])
    log.write_bytes(log.read_bytes() + junk)
    with pytest.raises(OplineError, match=r"log:\d+: not a line of a fio log|not of one run"):
        join_client_log(run, log)


CLOSED = 'exec "$@" >&-'


@pytest.mark.parametrize("command", [["stages"], ["losses"], ["csv"], ["sql", "SELECT 1"]])
def test_a_closed_standard_output_is_said(command: list[str], sound: Path, tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "opline_analyses", command[0], str(sound), *command[1:]]
    done = subprocess.run(["sh", "-c", CLOSED, "sh", *argv], capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 1
    assert done.stderr == "opline: Cannot write the output: Bad file descriptor\n"
    out = tmp_path / "out"
    if command != ["losses"]:
        argv += ["-o", str(out)]
        done = subprocess.run(
            ["sh", "-c", CLOSED, "sh", *argv], capture_output=True, text=True, timeout=100, check=False
        )
        assert done.returncode == 0 and out.stat().st_size > 0
