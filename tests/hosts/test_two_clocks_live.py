# SPDX-License-Identifier: MIT
"""Two hosts on this machine: client and server of the demo store over TCP, the server in a time namespace, whose clock
is ahead by a constant that is known exactly (time_namespaces(7)).
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from tests.lib.recorder import finish, start

from opline_analyses.cli import main

pytestmark = pytest.mark.live
ROOT = Path(__file__).resolve().parents[2]
DEMO = ROOT / "examples" / "demo-store" / "build"
OPS = 3000
# Runs a command with CLOCK_MONOTONIC moved: a child of a process that has unshared (CLONE_NEWTIME) is in the namespace.
MOVED = """
import ctypes, os, sys
if ctypes.CDLL(None, use_errno=True).unshare(0x80) != 0: sys.exit(77)
whole, rest = divmod(int(sys.argv[1]), 10**9)
open("/proc/self/timens_offsets", "w").write(f"monotonic {whole} {rest}\\nboottime 0 0\\n")
child = os.fork()
if child == 0: os.execv(sys.argv[2], sys.argv[2:])
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) % 256)
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


def server_in(folder: Path, port: int) -> int | None:
    """The server's process, once it listens."""
    address = f"0100007F:{port:04X}"
    if not any(address in line and " 0A " in line for line in Path("/proc/net/tcp").read_text().splitlines()):
        return None
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if words[0] == os.fsencode(DEMO / "demo-server") and str(folder).encode() in b" ".join(words):
            return int(path.parent.name)
    return None


@pytest.mark.parametrize(("ahead_ns", "exact"), [(1_000_000_020_000, False), (20_000, True)])
def test_the_offset_of_a_time_namespace_lies_within_every_bound(
    ahead_ns: int, exact: bool, tmp_path: Path, runtime: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    port, device = free_port(), tmp_path / "device"
    with device.open("wb") as file:
        file.truncate(64 << 20)
    common = ["--no-block", "--sessiond", "private", "--model", "demo"]
    where = f"tcp:127.0.0.1:{port}"
    recorder = [sys.executable, "-m", "opline_analyses", "record", *common, "-o", str(tmp_path / "server"), "--"]
    store = [str(DEMO / "demo-server"), "--socket", where, "--device", str(device), "--backend", "buffered"]
    server = subprocess.Popen(
        [sys.executable, "-c", MOVED, str(ahead_ns), *recorder, *store],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        pid = None
        while pid is None and server.poll() is None:
            pid = server_in(tmp_path, port)
        if server.poll() == 77:
            pytest.skip("this kernel has no time namespaces")
        assert pid is not None, server.stderr.read() if server.stderr else ""
        bench = [DEMO / "demo-bench", "--socket", where, "--ops", OPS, "--qd", 2, "--objects", 4]
        client = finish(start(*common, "-o", tmp_path / "client", "--", *bench))
        assert client.returncode == 0, client.stderr
        os.kill(pid, signal.SIGTERM)
        server.wait(60)
    finally:
        if server.poll() is None:
            os.killpg(server.pid, signal.SIGTERM)
        server.communicate(timeout=60)

    if not exact:  # as if it were another machine: the messages alone say it
        for name in ("client", "server"):
            about = tmp_path / name / "recording.json"
            note = json.loads(about.read_text())
            del note["host"]["clock_offset_ns"]
            about.write_text(json.dumps(note))
    out = tmp_path / "cluster"
    assert main(["join", "-o", str(out), f"client={tmp_path}/client", f"server={tmp_path}/server"]) == 0, capfd
    clock = pq.read_table(out / "clock.parquet")
    low, high = (clock.column(name).to_numpy() for name in ("low_ns", "high_ns"))
    assert len(clock) > 1
    assert (low == high).all() == exact
    assert ((low <= ahead_ns) & (ahead_ns <= high)).all()
    own = np.sort(pq.read_table(out / "runs/host=server/messages.parquet").column("ts_ns").to_numpy())
    joined = pq.read_table(out / "messages.parquet")
    at_server = np.array(joined.column("host").to_pylist()) == "server"
    mapped = np.sort(joined.column("ts_ns").to_numpy()[at_server])
    knot = np.clip(np.searchsorted(clock.column("reference_ns").to_numpy(), mapped, "right") - 1, 0, None)
    assert (np.abs(own - ahead_ns - mapped) <= clock.column("bound_ns").to_numpy()[knot] + 1).all()
    ops = pq.read_table(out / "ops.parquet", columns=["complete"])
    assert (len(ops), sum(ops.column("complete").to_pylist())) == (OPS, OPS)
    hops = pq.read_table(out / "hops.parquet")
    assert len(hops) == OPS
    assert all(min(hops.column(name).to_pylist()) >= 0 for name in ("request_ns", "reply_ns", "both_ns"))
    described = json.loads((out / "cluster.json").read_text())
    assert described["hosts"][1]["limit_ppm"] < 500  # both recorders read their clocks
    assert described["pairs"][0]["arrived_early"] == 0
