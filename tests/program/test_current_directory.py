# SPDX-License-Identifier: MIT
"""What lies in the current directory is nobody's code: files called like modules and settings there do nothing."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.house.test_imports import PACKAGES, sources
from tests.lib.build_run import P, RunBuilder
from tests.lib.recorder import status

from opline.capture.machine import machine
from opline.capture.sources import blocksource

Program = Callable[..., subprocess.CompletedProcess[str]]
MODULES = (
    "bcc",
    "bt2",
    "json",
    "socket",
    "opline/__init__",
    "opline/capture/__init__",
    "matplotlib",
    "numpy",
    "duckdb",
)


@pytest.fixture
def trap(tmp_path: Path) -> Path:
    """A folder of modules that leave a mark beside them when they are imported."""
    folder = tmp_path / "trap"
    for name in MODULES:
        file = folder / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"open({str(tmp_path / 'mark')!r}, 'a').write({name!r} + ' ')\n")
    return folder


def marks(trap: Path) -> str:
    mark = trap.parent / "mark"
    return mark.read_text() if mark.exists() else ""


def test_helpers_do_not_import_from_it(trap: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(trap)
    machine.bcc_version()
    machine.bt2_version()
    blocksource.check()
    assert marks(trap) == ""


def test_programs_do_not_import_from_it(trap: Path, opline: Program) -> None:
    opline("doctor", cwd=trap)
    opline("--version", cwd=trap)
    assert marks(trap) == ""


@pytest.mark.live
def test_a_recording_does_not_import_from_it(trap: Path, runtime: Path, opline: Program) -> None:
    """Only the application's events are asked for where there is no BPF; the watcher of files starts all the same."""
    done = opline("record", "-o", "run", "--sessiond", "private", "--", "true", cwd=trap)
    assert status(done) == 0, done.stderr
    assert "No module" not in done.stderr and marks(trap) == ""


def test_one_function_starts_python() -> None:
    """So that none is started without -P."""
    users = set()
    for path in sources():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and node.attr == "executable":
                users.add(str(path.relative_to(PACKAGES["opline"])))
    assert users == {"interpreter.py"}


def test_pictures_are_drawn_by_our_settings(tmp_path: Path, opline: Program) -> None:
    """matplotlib takes its settings from a file in the current directory; TeX would read files for whoever wrote it."""
    run = RunBuilder()
    run.op([P("a", 0), P("b", 5000)])
    run.write(tmp_path / "run")
    here = tmp_path / "here"
    here.mkdir()
    (here / "matplotlibrc").write_text("text.usetex: True\naxes.facecolor: red\n")
    drawn = []
    for folder in (here, tmp_path):
        done = opline("plot", tmp_path / "run", "-o", tmp_path / "out.svg", cwd=folder)
        assert done.returncode == 0, done.stderr
        drawn.append((tmp_path / "out.svg").read_text())
    assert drawn[0] == drawn[1]


def test_a_current_directory_that_is_gone_is_named(
    opline: Program, trace: Callable[[str], Path], tmp_path: Path
) -> None:
    """Of a path from the root nothing else is needed."""
    recorded = trace("app-sync-qd4-nvme")
    gone = [f"mkdir {tmp_path}/gone && cd {tmp_path}/gone && rmdir {tmp_path}/gone && exec", sys.executable]
    said = {}
    for words in (f"stages {recorded} --model syscalls", f"csv {recorded} --model syscalls -o x.csv", "record -- true"):
        argv = f"{' '.join(gone)} -P -m opline_analyses {words}"
        said[words.split()[0]] = subprocess.run(["sh", "-c", argv], capture_output=True, text=True, timeout=120)
    assert said["stages"].returncode == 0, said["stages"].stderr
    for name in ("csv", "record"):
        assert said[name].returncode == 1
        assert "The current directory does not exist any more" in said[name].stderr.splitlines()[-1]
