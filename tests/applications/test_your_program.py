# SPDX-License-Identifier: MIT
"""docs/your-program.md does what it says: its commands run in a copy of examples/jobs as they stand there."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "your-program.md"
EXAMPLE = ROOT / "examples" / "jobs"
BLOCK = re.compile(r"<!-- (file|run): (\S+) -->\n```\w+\n(.*?)```", re.DOTALL)
COUNT = 100
WAYS = ("macros", "lttng", "usdt", "plain", "rust", "go")
COMPILERS = {"rust": "rustc", "go": "go"}

Run = Callable[..., subprocess.CompletedProcess[str]]


def blocks(kind: str) -> dict[str, str]:
    """The page's files, or its commands, by their names."""
    return {name: text for found, name, text in BLOCK.findall(PAGE.read_text()) if found == kind}


def _sdt(folder: Path) -> None:
    """sys/sdt.h as systemtap-sdt-dev has it, as far as the page needs it, where that package is not installed."""
    text = (ROOT / "tests" / "probed_app" / "sdt.h").read_text()
    text = text.replace('" #provider "_" #name "_semaphore\\n"', '0\\n"', 1)
    more = '#define DTRACE_PROBE1(provider, name, one) USDT(provider, name, "-8@%0", "nor"((long)(one)))\n'
    (folder / "sys").mkdir()
    (folder / "sys" / "sdt.h").write_text(text + more)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    shutil.copytree(EXAMPLE, folder, dirs_exist_ok=True)
    _sdt(folder)
    return folder


def _run(name: str, place: Path) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).parent
    env = {**os.environ, "PATH": f"{program}:{os.environ['PATH']}", "TRACEPOINTS": str(ROOT / "tracepoints")}
    env["C_INCLUDE_PATH"] = str(place)
    argv = ["sh", "-e", "-c", blocks("run")[name]]
    return subprocess.run(argv, cwd=place, env=env, capture_output=True, text=True, timeout=120, check=False)


def _ops(opline: Run, run: Path) -> None:
    """Each job is one op, which two threads worked for, and no time between them is unknown, but for the time after
    a request whose completion the kernel showed to no program. Goroutines may have met on one thread.
    """
    query = """SELECT count(*) AS n, max(t.threads) AS threads,
            coalesce(sum(o.unknown_ns) FILTER (op_id NOT IN (SELECT l.op_id FROM links l JOIN requests r
                USING (request_id) WHERE r.complete_ns IS NULL)), 0) AS unknown FROM ops o JOIN
        (SELECT op_id, count(DISTINCT tid) AS threads FROM transitions GROUP BY op_id) t USING (op_id)"""
    (row,) = json.loads(opline("sql", run, query, "--json").stdout)
    threads = row.pop("threads")
    assert row == {"n": COUNT, "unknown": 0} and (threads == 2 or run.name == "run-go")
    if os.major(run.stat().st_dev) == 0:  # a file system in memory, or over another one
        return
    (row,) = json.loads(opline("sql", run, "SELECT count(DISTINCT op_id) AS n FROM links", "--json").stdout)
    assert run.name == "run-go" or row["n"] >= 0.9 * COUNT, "each waits for the disk"


@pytest.mark.live
@pytest.mark.parametrize("name", WAYS)
def test_the_page_s_commands_give_an_op_for_each_job(name: str, place: Path, opline: Run) -> None:
    if name in COMPILERS and shutil.which(COMPILERS[name]) is None:
        pytest.skip(f"no {COMPILERS[name]}")
    done = _run(name, place)
    assert done.returncode == 0, done.stderr
    assert "queue" in done.stdout or name == "macros", done.stdout
    _ops(opline, place / f"run-{name}")
    if name == "usdt":
        assert "jobs:queued" in done.stdout
    if name == "plain":
        assert "job_write" in done.stdout


def test_the_page_has_no_other_ways_than_these() -> None:
    assert tuple(blocks("run")) == WAYS


@pytest.mark.parametrize("name", blocks("file"))
def test_what_the_page_shows_is_the_file(name: str) -> None:
    text = (EXAMPLE / name).read_text()
    assert text.endswith(blocks("file")[name])
    if name.endswith(".toml"):
        assert text.startswith((EXAMPLE / "jobs.toml").read_text())
