# SPDX-License-Identifier: MIT
"""Recordings that a tool itself prints (perf.data, trace.dat), and the lines of cephtrace's tools."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from opline_analyses.cli import main

Captured = pytest.CaptureFixture[str]
TEXT = (
    "fio  10 [001]  100.000001: block:block_bio_queue: 8,0 R 8 + 8 [fio]\n"
    "fio  10 [001]  100.000002: block:block_rq_issue: 8,0 R 4096 () 8 + 8 [fio]\n"
    "fio  10 [001]  100.000102: block:block_rq_complete: 8,0 R () 8 + 8 [0]\n"
)
TOOLS = {"perf": b"PERFILE2", "trace-cmd": b"\x17\x08Dtracing6\0"}


@pytest.fixture(params=TOOLS)
def recording(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A recording, and a program of the tool's name that prints what lies beside it."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / request.param
    program.write_text('#!/bin/sh\nfor last; do :; done\n. "$last.sh"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    path = tmp_path / "a recording"
    path.write_bytes(TOOLS[request.param])
    return path


def test_the_tool_prints_it(recording: Path, capfd: Captured) -> None:
    Path(f"{recording}.sh").write_text(f"echo '{TEXT}'\n")
    assert main(["sql", str(recording), "SELECT d2c_ns, class FROM requests JOIN ops USING (op_id)", "--json"]) == 0
    assert json.loads(capfd.readouterr().out) == [{"d2c_ns": 100_000, "class": "request read"}]


@pytest.mark.parametrize("printed", ["", TEXT])
def test_a_tool_that_fails(printed: str, recording: Path, capfd: Captured) -> None:
    Path(f"{recording}.sh").write_text(f"echo '{printed}'\necho 'it is damaged' >&2\nexit 3\n")
    assert main(["hist", str(recording)]) == 1
    (line,) = [line for line in capfd.readouterr().err.splitlines() if not line.startswith("opline: model:")]
    assert line.endswith(f"cannot read {recording}: it is damaged")


def test_without_the_tool(recording: Path, monkeypatch: pytest.MonkeyPatch, capfd: Captured) -> None:
    monkeypatch.setenv("PATH", str(recording.parent))
    assert main(["hist", str(recording)]) == 1
    assert "make text of it" in capfd.readouterr().err
    assert main(["what", str(recording)]) == 1


@pytest.mark.skipif(shutil.which("perf") is None or os.geteuid() != 0, reason="needs perf and root")
def test_perf_itself(tmp_path: Path, capfd: Captured) -> None:
    data = tmp_path / "perf.data"
    written = ["dd", "if=/dev/zero", f"of={tmp_path / 'file'}", "bs=64k", "count=4", "conv=fsync", "status=none"]
    done = subprocess.run(
        ["perf", "record", "-q", "-a", "-e", "block:*", "-o", data, "--", *written],
        capture_output=True, check=False,
    )  # fmt: skip
    if done.returncode != 0 or not data.exists():
        pytest.skip("perf records no block events here")
    assert main(["hist", str(data), "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["intervals"]


OSD = (
    "osd 1 pg 20.138 op_r size 8192 client 16 tid 15 throttle_lat 2 recv_lat 11 dispatch_lat 12 queue_lat 41 "
    "osd_lat 35 bluestore_lat 231 op_lat 332\n"
    "osd 38 pg 20.16b op_w size 12288 client 17 tid 24 throttle_lat 2 recv_lat 26 dispatch_lat 15 queue_lat 57 "
    "osd_lat 187 peers [(34, 8079), (40, 5065)] bluestore_lat 10639 (prepare 107 aio_wait 0 (aio_size 0) seq_wait 6 "
    "kv_commit 10525) op_lat 10966\n"
    "osd 38 pg 20.0 subop_w size 17067 client 17 tid 24 throttle_lat 0 recv_lat 56 dispatch_lat 12 queue_lat 42 "
    "osd_lat 50 bluestore_lat 11737 (prepare 68 aio_wait 0 (aio_size 0) seq_wait 8 kv_commit 11660) subop_lat 11943\n"
    "delayed1 waiting for scrub \n"
)
CLIENT = """\
     pid  client     tid  pool  pg     acting       w/r    size  latency{more}     object[ops][offset,length]
   19015   34206  419357     2  1e     [1,11,121]     W        0     887{one}     rbd_header.374[watch ]
   19015   34206  419359     2  39     [0,121,11]     R     4096    1240{one}     rbd_data.374[read ][512, 4096]
   19015   34206  419362     2  2b     [77,11,1]      R     4096    2180{open}     rbd_data.375[read ][4128768, 4096]
"""


def answer(path: Path, capfd: Captured, sql: str) -> list[dict[str, Any]]:
    capfd.readouterr()
    assert main(["sql", str(path), sql, "--json"]) == 0
    said = capfd.readouterr()
    assert "has no times" in said.err and "not understood" not in said.err
    found: list[dict[str, Any]] = json.loads(said.out)
    return found


def test_osdtrace(tmp_path: Path, capfd: Captured) -> None:
    """Stages follow one another; what bluestore did is split where -x says it."""
    path = tmp_path / "a.log"
    path.write_text(OSD)
    ops = answer(path, capfd, "SELECT class, length_bytes, latency_ns FROM ops ORDER BY op_id")
    assert [tuple(op.values()) for op in ops] == [
        ("op_r", 8192, 332_000), ("op_w", 12288, 10_966_000), ("subop_w", 17067, 11_943_000),
    ]  # fmt: skip
    found = answer(path, capfd, "SELECT op_id, duration_ns AS ns FROM stages ORDER BY op_id, seq")
    stages = [[row["ns"] // 1000 for row in found if row["op_id"] == n] for n in range(3)]
    assert stages[0] == [2, 11, 12, 41, 35, 231, 0]
    assert stages[1] == [2, 26, 15, 57, 187, 107, 0, 6, 10525, 1, 40]


@pytest.mark.parametrize("completes", [True, False])
def test_radostrace(completes: bool, tmp_path: Path, capfd: Captured) -> None:
    """Without the column Complete all have ended."""
    path = tmp_path / "a.log"
    words = {"more": "   Complete", "one": "          1", "open": "          0"} if completes else {}
    path.write_text(CLIENT.format(**{"more": "", "one": "", "open": ""} | words))
    columns = "class, object, length_bytes, offset_bytes, latency_ns, complete"
    ops = answer(path, capfd, f"SELECT {columns} FROM ops ORDER BY op_id")
    assert [tuple(op.values()) for op in ops][:2] == [
        ("watch", "rbd_header.374", 0, None, 887_000, True), ("read", "rbd_data.374", 4096, 512, 1_240_000, True),
    ]  # fmt: skip
    assert ops[2]["complete"] is not completes
