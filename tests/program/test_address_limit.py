# SPDX-License-Identifier: MIT
"""Commands under a limit of addresses (`ulimit -v`), as docs/security.md advises: they work, or say so in one line."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest
from tests.lib.recorded import RunOf

from opline import memory
from opline.errors import OplineError

COMMANDS = (
    "stages {run}", "ops {run}", "csv {run}", "why {run}", "hist {run}", "requests {run}", "compare {run} {run}",
    "report {run} -o {out}/x.html", "plot {run} -o {out}/x.png", "graph {run} -o {out}/x.svg",
    "export {run} --to perfetto -o {out}/x", "stages {trace} --model demo", "hist {trace}", "events {trace} --limit 3",
)  # fmt: skip


def limited(limit: int, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "opline_analyses", *words],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_works_with_as_little_as_is_allowed(command: str, run_of: RunOf, tmp_path: Path) -> None:
    demo = run_of("demo-qd4")
    words = command.format(run=demo.path, trace=demo.manifest["trace"], out=tmp_path).split()
    done = limited(memory.LEAST_BYTES, *words)
    assert done.returncode == 0, done.stderr


def test_less_is_refused_in_one_line(run_of: RunOf) -> None:
    done = limited(memory.LEAST_BYTES - (1 << 20), "stages", str(run_of("demo-qd4").path))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "opline: `ulimit -v 1047552` allows too little: allow at least 1 GiB (`ulimit -v 1048576`).\n"


def test_memory_that_runs_out_in_a_library_is_one_line(run_of: RunOf) -> None:
    query = "SELECT count(*) FROM (SELECT DISTINCT range FROM range(200000000))"
    done = limited(memory.LEAST_BYTES, "sql", str(run_of("demo-qd4").path), query)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("opline: out of memory.") and done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "about_memory"),
    [
        (MemoryError(), True),
        (OSError(12, "Cannot allocate memory"), True),
        (ImportError("libx.so: failed to map segment from shared object"), True),
        (RuntimeError("can't start new thread"), True),
        (OSError(28, "No space left on device"), False),
        (OplineError("bad_alloc is there already"), False),
        (ValueError("7"), False),
    ],
)
def test_what_is_about_memory(error: Exception, about_memory: bool) -> None:
    made = OplineError("Cannot read it.")
    made.__cause__ = error
    assert memory.ran_out(error) == memory.ran_out(made) == about_memory
