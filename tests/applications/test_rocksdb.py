# SPDX-License-Identifier: MIT
"""The model of RocksDB, a program that nobody has changed, against RocksDB's own counts: a recording of Debian's
db_bench, and the example itself where db_bench is installed.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parents[1]
EXAMPLE = HERE.parent / "examples" / "rocksdb"
MODEL = EXAMPLE / "rocksdb.toml"

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rocksdb")
    subprocess.run(["tar", "-xJf", HERE / "rocksdb" / "writes-240.tar.xz", "-C", folder], check=True)
    return folder / "writes-240"


def _rows(opline: Run, trace: Path, query: str) -> list[dict[str, Any]]:
    done = opline("sql", trace, query, "--model", MODEL, "--json")
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout))


def _counted(printed: str) -> dict[str, int]:
    """RocksDB's statistics."""
    return {name: int(n) for name, n in re.findall(r"^(rocksdb\.\S+) COUNT : (\d+)", printed, re.MULTILINE)}


def _groups(opline: Run, trace: Path) -> tuple[int, int, int]:
    """Writes that led, writes that followed, groups."""
    query = """SELECT count(*) FILTER (point = 'gather') AS led, count(*) FILTER (point = 'taken') AS followed,
        count(DISTINCT batch_id) AS groups FROM transitions"""
    (row,) = _rows(opline, trace, query)
    return row["led"], row["followed"], row["groups"]


def test_the_model_is_at_most_a_page_and_lint_has_nothing_to_say(opline: Run, recorded: Path) -> None:
    assert len(MODEL.read_text().splitlines()) <= 60
    for trace in ([], [recorded / "trace"]):
        done = opline("model", "lint", MODEL, *trace)
        assert done.returncode == 0 and "nothing to complain about" in done.stderr, done.stdout


def test_who_led_whose_write_is_what_rocksdb_counts(opline: Run, recorded: Path) -> None:
    counted = _counted((recorded / "stdout.txt").read_text())
    wanted = tuple(counted[f"rocksdb.{name}"] for name in ("write.self", "write.other", "wal.synced"))
    assert _groups(opline, recorded / "trace") == wanted and wanted[0] < wanted[1]


def test_every_write_is_of_one_group_and_waited_for_its_sync(opline: Run, recorded: Path) -> None:
    trace = recorded / "trace"
    ops = _rows(opline, trace, "SELECT batch_count, count(*) AS n, min(unattributed_ns) AS u FROM ops GROUP BY ALL")
    assert ops == [{"batch_count": 1, "n": 240, "u": 0}]
    synced = """SELECT count(DISTINCT op_id) AS n FROM stages WHERE stage IN ('wal sync', 'D2C', 'reap')"""
    assert _rows(opline, trace, synced) == [{"n": 240}]
    linked = "SELECT count(DISTINCT op_id) AS n, count(DISTINCT request_id) AS requests FROM links"
    (row,) = _rows(opline, trace, linked)
    assert row["n"] == 240 and row["requests"] >= 105, "the leader's requests are shown with every member"


@pytest.mark.live
@pytest.mark.skipif(shutil.which("db_bench") is None, reason="apt-get install rocksdb-tools")
def test_the_example_runs_and_leaves_the_recording_alone(tmp_path: Path, opline: Run) -> None:
    out = tmp_path / "run"
    argv = [str(EXAMPLE / "run"), "-o", str(out), "--writes", "60", "--threads", "3"]
    env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "OPLINE": str(Path(sys.executable).with_name("opline"))}
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    counted = _counted((out / "stdout.txt").read_text())
    wanted = tuple(counted[f"rocksdb.{name}"] for name in ("write.self", "write.other", "wal.synced"))
    assert _groups(opline, out) == wanted and sum(wanted[:2]) == 180
    assert "wait for the leader" in done.stdout and list(tmp_path.iterdir()) == [out]
    assert "/opline-rocksdb." not in subprocess.run(["losetup", "-l"], capture_output=True, text=True).stdout
