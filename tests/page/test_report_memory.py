# SPDX-License-Identifier: MIT
"""The memory of `opline report` and `why` with very many ops: DuckDB's is bounded, and each op has few bytes."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from tests.lib.many_ops import repeated
from tests.lib.recorded import RunOf

# In a small process of its own: the kernel counts the memory of the process that forks as its child's.
MEASURE = """
import os, resource, subprocess, sys
child = subprocess.Popen(sys.argv[1:])
status = child.wait()
print(child.pid, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(status)
"""
COPIES, MOST_MIB = 20, 420  # of 17,365 ops; 331 MiB were measured


@pytest.mark.parametrize("command", ["report", "why"])
def test_very_many_ops_take_little_memory(command: str, run_of: RunOf, tmp_path: Path) -> None:
    run = repeated(run_of("fio-psync-qd1-nvme").path, tmp_path / "many", COPIES)
    more = ["-o", str(tmp_path / "page.html")] if command == "report" else []
    with tempfile.TemporaryFile("w+") as said:
        argv = [sys.executable, "-m", "opline_analyses", command, str(run), *more]
        done = subprocess.run([sys.executable, "-c", MEASURE, *argv], stdout=subprocess.PIPE, stderr=said, text=True)
        said.seek(0)
        lines = said.read() + done.stdout
    assert done.returncode == 0, lines
    assert ("347300 ops, 12000 of them in detail" if command == "report" else "of 347300 ops") in lines
    pid, most_kib = map(int, done.stdout.splitlines()[-1].split())
    assert most_kib >> 10 < MOST_MIB
    assert not list(Path(tempfile.gettempdir()).glob(f"opline-spill-{pid}-*"))
