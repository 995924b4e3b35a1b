# SPDX-License-Identifier: MIT
"""A trace file that another program shortens while opline reads it: one line, exit status 1, nothing half-written."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.lib.recorded import unpack

# Every file of the folder gets shorter when opline has mapped it and reads the first event.
SHORTENED = """
import os, sys
from opline.readers import native
from opline.readers.formats import blktrace
from opline_analyses import cli
folder, keep = sys.argv[1], int(sys.argv[2])
def shorten():
    for at, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(at, name)
            os.truncate(path, min(keep, os.stat(path).st_size))
def native_read(self, consumer, read=native.NativeReader.read):
    shorten()
    return read(self, consumer)
def blktrace_bytes(path, mapped=blktrace._bytes_of):
    found = mapped(path)
    shorten()
    return found
native.NativeReader.read, blktrace._bytes_of = native_read, blktrace_bytes
sys.argv[1:] = sys.argv[3:]
cli.program()
"""


def shortened(folder: Path, keep: int, tmp: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs a command whose input is cut off behind ``keep`` bytes while it is read."""
    (tmp / "tmp").mkdir(exist_ok=True)
    argv = [sys.executable, "-P", "-c", SHORTENED, str(folder), str(keep), *words]
    return subprocess.run(
        argv, capture_output=True, text=True, timeout=60, env={**os.environ, "TMPDIR": str(tmp / "tmp")}
    )


@pytest.mark.parametrize("keep", [0, 5000])
@pytest.mark.parametrize(
    ("name", "inside"), [("demo-qd4", ""), ("demo-ctf2", ""), ("blktrace-loop-6.18", "loop0.blktrace.0")]
)
def test_one_line_and_no_output(name: str, inside: str, keep: int, tmp_path: Path) -> None:
    """The table is not there, the temporary files are gone, and the line names the file."""
    folder = unpack(name, tmp_path)  # of the one that tests share a command can have kept a run
    out = tmp_path / "ops.csv"
    source = folder / inside if inside and (folder / inside).exists() else folder
    done = shortened(folder, keep, tmp_path, "csv", str(source), "-o", str(out))
    assert done.returncode == 1, (done.returncode, done.stderr)
    (line,) = (line for line in done.stderr.splitlines() if "changed while it was read" in line)
    assert line.startswith(f"opline: {folder}/")
    assert "Traceback" not in done.stderr
    assert "internal error" not in done.stderr
    assert not out.exists()
    assert not list(tmp_path.glob("*ops.csv*"))
    assert not list((tmp_path / "tmp").glob("opline-*"))


def test_events_end_with_the_line(tmp_path: Path) -> None:
    """A command that prints as it reads has printed some by then; the status says that there was more."""
    folder = unpack("demo-qd4", tmp_path)
    done = shortened(folder, 0, tmp_path, "events", str(folder))
    assert done.returncode == 1
    assert "changed while it was read" in done.stderr


FOREIGN = """
import mmap, os, sys
from opline import mapped
mapped.outlive()
mapped.outlive()
with open(sys.argv[1], "r+b") as file:
    file.truncate(8192)
    shared = mmap.mmap(file.fileno(), 8192)
    file.truncate(0)
    print(shared[5000])
"""


def test_what_is_mapped_for_writing_is_left_to_the_system(tmp_path: Path) -> None:
    """A process would go on with data that no file has."""
    (tmp_path / "file").touch()
    done = subprocess.run(
        [sys.executable, "-P", "-c", FOREIGN, str(tmp_path / "file")], capture_output=True, timeout=60
    )
    assert done.returncode < 0, done
