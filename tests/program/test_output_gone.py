# SPDX-License-Identifier: MIT
"""Output that finds no reader, or no room."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.lib.build_run import P, RunBuilder


def program(*args: str | Path) -> list[str]:
    return [sys.executable, "-m", "opline_analyses", *map(str, args)]


@pytest.fixture
def long_run(tmp_path: Path) -> Path:
    run = RunBuilder()
    for n in range(3000):
        run.op([P("begin", 1000 * n), P("end", 1000 * n + 500)])
    return run.write(tmp_path / "long")


@pytest.mark.parametrize("words", [["ops", "--limit", "3000"], ["csv"]])
def test_a_pipe_that_closes_amid_the_output_is_quiet(words: list[str], long_run: Path) -> None:
    """More than a pipe takes."""
    with subprocess.Popen(program(*words, long_run), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        err = process.stderr.read()
        assert process.wait(timeout=30) == 0
    assert err == b""


@pytest.mark.parametrize("name", ["ops", "csv"])
def test_a_pipe_that_nobody_reads_is_quiet(name: str, long_run: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(program(name, long_run), stdout=write, stderr=subprocess.PIPE, timeout=60, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_reader_that_goes_when_the_pipe_has_all_is_gone() -> None:
    """Of few bytes: the pipe takes them, and the command would go on to say something."""
    code = (
        "import os; read, write = os.pipe(); os.dup2(write, 1); os.close(write)\n"
        "from opline_analyses.base.files import standard_output\n"
        "try:\n"
        "    with standard_output() as out:\n"
        "        out.write(b'an op'); out.flush(); os.close(read)\n"
        "except BrokenPipeError:\n"
        "    os._exit(7)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 7


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_is_one_line(long_run: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(program("ops", long_run), stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 1
    assert done.stderr == b"opline: Cannot write the output: No space left on device\n"
