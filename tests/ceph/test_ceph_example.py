# SPDX-License-Identifier: MIT
"""examples/ceph: what its report makes of what rados bench and the OSD say. (The example itself needs Ceph: run it.)"""

from __future__ import annotations

import importlib.util
import json
import socket
import struct
import subprocess
import sys
import threading
from pathlib import Path
from types import ModuleType

import pytest

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "ceph"

BENCH = """\
Total writes made:      952
Average IOPS:           313
Average Latency(s):     {latency}
"""


@pytest.fixture(scope="module")
def report() -> ModuleType:
    spec = importlib.util.spec_from_file_location("ceph_report", EXAMPLE / "report.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module


def test_overhead_is_of_the_rounds_medians(
    report: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for what, latencies in (("untraced", ("0.001", "0.0012", "0.009")), ("traced", ("0.0018", "3.3e-05", "0.002"))):
        for number, latency in enumerate(latencies, 1):
            (tmp_path / f"{what}-qd1-{number}.txt").write_text(BENCH.format(latency=latency))
            (tmp_path / f"{what}-qd1-{number}.cpu_ns").write_text(f"{952_000 * number * len(what)}\n")
    report.overhead(tmp_path)
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert rows[1][-7:] == ["1200.0", "1000.0", "9000.0", "1.00", "313", "16.0", "1.00"]
    assert rows[2][-7:] == ["1800.0", "33.0", "2000.0", "1.50", "313", "12.0", "0.75"]
    assert len(rows) == 3


def test_text_that_is_not_rados_benchs_is_said(tmp_path: Path) -> None:
    (tmp_path / "untraced-qd1-1.txt").write_text("nothing\n")
    argv = [sys.executable, str(EXAMPLE / "report.py"), "overhead", str(tmp_path)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and done.stdout.count("\n") == 1
    assert done.stderr == f"ceph: {tmp_path}: no line 'Total writes made' in what rados bench has printed\n"


def test_states_of_an_op_by_object(report: ModuleType) -> None:
    def event(name: str, micros: int) -> dict[str, str]:
        return {"event": name, "time": f"2026-11-21T19:19:22.{micros:06d}+0000"}

    document = {
        "ops": [
            {
                "description": "osd_op(client.4112.0:1 1.7 1:eca41f55:::obj_1:head [writefull 0~868] snapc 0=[] e8)",
                "type_data": {"events": [event("queued_for_pg", 510662), event("reached_pg", 510698)]},
            },
            {"description": "osd_op(client.4112.0:2 1.7 1:eca41f55:::obj_2:head [read 0~868] e8)"},
        ]
    }
    states = report.states_of(document)
    assert set(states) == {"obj_1"}
    assert states["obj_1"]["reached_pg"] - states["obj_1"]["queued_for_pg"] == 36


def test_an_admin_sockets_answer_is_read_whole(report: ModuleType, tmp_path: Path) -> None:
    answer = json.dumps({"ops": ["x" * 1000] * 1000}).encode()
    path = tmp_path / "osd.asok"
    asked = b""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(str(path))
        server.listen()

        def serve() -> None:
            nonlocal asked
            connection, _ = server.accept()
            with connection:
                while not asked.endswith(b"\0"):
                    asked += connection.recv(4096)
                connection.sendall(struct.pack(">I", len(answer)) + answer)

        thread = threading.Thread(target=serve)
        thread.start()
        assert report.fetch(path) == answer
        thread.join()
    assert json.loads(asked[:-1])["prefix"] == "dump_historic_ops"


@pytest.mark.parametrize("arguments", [["--seconds", "0"], ["--rounds", "x"], ["--what"], ["-o"]])
def test_wrong_usage_is_said_before_anything_is_done(arguments: list[str]) -> None:
    done = subprocess.run([EXAMPLE / "run", *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and done.stdout == "" and done.stderr != ""
