# SPDX-License-Identifier: MIT
"""Two hosts on this machine, each in a network namespace, the second one in a time namespace, too, whose clock is ahead
by a constant that is known exactly. Client and server are programs without any tracepoint: positions in TCP streams
alone align the clocks.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.hosts.test_two_clocks_live import DEMO, MOVED
from tests.lib.recorder import PROGRAM, finish, manifest

from opline.capture.bpf import tcp
from opline.capture.bpf.btf import Btf
from opline_analyses.cli import main

AHEAD_NS = 1_000_000_020_000
ROUNDS = 300
SENDS_AT_ONCE = 3
OPS = 1000
PORT = 7003
SERVER = f"""
import socket
listener = socket.create_server(("::", {PORT}), family=socket.AF_INET6, dualstack_ipv6=True)
for _ in range(2):
    connection, _ = listener.accept()
    while asked := connection.recv(4096):
        if asked.endswith(b"?"): connection.sendall(b"y" * 100)
"""
CLIENT = f"""
import socket, time
for address in ("10.77.0.2", "fd77::2"):
    while True:
        try: connection = socket.create_connection((address, {PORT}))
        except OSError: time.sleep(0.05)
        else: break
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for _ in range({ROUNDS}):
        for _ in range({SENDS_AT_ONCE - 1}): connection.sendall(b"x" * 64)
        connection.sendall(b"x" * 63 + b"?")
        left = 100
        while left: left -= len(connection.recv(left))
    connection.close()
"""


def in_host(pid: int, *command: str) -> list[str]:
    """The command in the network namespace of that process."""
    return ["nsenter", f"--net=/proc/{pid}/ns/net", *command]


@pytest.fixture
def hosts() -> Iterator[tuple[int, int]]:
    """Two processes, each in a network namespace of its own, with a cable between both."""
    if os.geteuid() != 0 or not tcp.definitions(Btf.of_kernel()):
        pytest.skip("no root, or a kernel without the tracepoints")
    holders = [subprocess.Popen(["unshare", "--net", "sleep", "600"]) for _ in range(2)]
    try:
        outside = Path("/proc/self/ns/net").readlink()
        while any(Path(f"/proc/{h.pid}/ns/net").readlink() == outside for h in holders):
            time.sleep(0.01)
        a, b = (h.pid for h in holders)
        cable = f"ip link add cable netns {a} type veth peer name cable netns {b}"
        subprocess.run(cable.split(), check=True)
        for pid, number in ((a, 1), (b, 2)):
            for line in (
                f"ip addr add 10.77.0.{number}/24 dev cable",
                f"ip addr add fd77::{number}/64 dev cable nodad",
                "ip link set cable up",
            ):
                subprocess.run(in_host(pid, *line.split()), check=True)
        yield a, b
    finally:
        for holder in holders:
            holder.kill()
            holder.wait()


def recorder(folder: Path, *command: str, model: str | None = None) -> list[str]:
    record = ["--tcp", "--quiet", "--sessiond", "private", "--no-states", "--no-calls", "-o", str(folder)]
    return [*PROGRAM, *record, *(["--model", model] if model else []), "--", *command]


def promise(folder: Path) -> dict[str, Any]:
    (found,) = (p for p in manifest(folder)["promises"] if p["what"] == "tcp_positions")
    assert isinstance(found, dict)
    return found


def server_of(folder: Path) -> int | None:
    """The demo store's server whose device is in that folder."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_bytes().split(b"\0")
            if words[0] == os.fsencode(DEMO / "demo-server") and os.fsencode(folder / "device") in words:
                return int(path.parent.name)
    return None


def recorded(
    hosts: tuple[int, int], folder: Path, server: list[str], client: list[str], model: str | None = None
) -> Path:
    """The cluster of both; the server's host has a clock of its own."""
    a, b = hosts
    moved = [sys.executable, "-c", MOVED, str(AHEAD_NS)]
    serving = subprocess.Popen(
        in_host(b, *moved, *recorder(folder / "server", *server, model=model)),
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    pid = None
    while model and pid is None and serving.poll() is None:
        pid = server_of(folder)
        time.sleep(0.05)
    asking = in_host(a, *recorder(folder / "client", *client, model=model))
    done = finish(subprocess.Popen(asking, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    if pid is not None:
        os.kill(pid, signal.SIGTERM)
    said = serving.communicate(timeout=120)[1]
    if serving.returncode == 77:
        pytest.skip("this kernel has no time namespaces")
    assert (done.returncode, serving.returncode) == (0, 0), done.stderr + said
    for name in ("client", "server"):
        kept = promise(folder / name)
        assert (kept["kept"], kept["lost"]) == (True, 0)
        about = folder / name / "recording.json"  # as if they were two machines: the streams alone say it
        note = json.loads(about.read_text())
        del note["host"]["clock_offset_ns"]
        about.write_text(json.dumps(note))
    out = folder / "cluster"
    assert main(["join", "-o", str(out), f"client={folder}/client", f"server={folder}/server"]) == 0
    return out


def check_bounds(cluster: Path) -> dict[str, Any]:
    """The truth is inside of all bounds. What the cluster says of the pair of hosts."""
    clock = pq.read_table(cluster / "clock.parquet")
    low, high = (clock.column(name).to_numpy() for name in ("low_ns", "high_ns"))
    assert len(clock) > 1
    assert ((low <= AHEAD_NS) & (high >= AHEAD_NS)).all()
    assert 0 < (high - low).max() < 10_000_000
    (pair,) = json.loads((cluster / "cluster.json").read_text())["pairs"]
    assert isinstance(pair, dict)
    assert (pair["contradicting"], pair["arrived_early"]) == (0, 0)
    return pair


@pytest.mark.live
def test_two_programs_without_a_tracepoint_align_their_hosts(
    hosts: tuple[int, int], tmp_path: Path, runtime: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    cluster = recorded(hosts, tmp_path, [sys.executable, "-c", SERVER], [sys.executable, "-c", CLIENT])
    pair = check_bounds(cluster)
    sent = 2 * ROUNDS * SENDS_AT_ONCE
    assert promise(tmp_path / "client")["recorded"] >= sent
    assert (pair["paired"], pair["tcp_unpaired"]) == (0, 0)
    assert pair["tcp_paired"] >= sent + 2 * ROUNDS  # a call that fills a segment and begins another has two events
    capfd.readouterr()
    assert main(["hosts", str(cluster)]) == 0
    assert f"client and server  TCP    {pair['tcp_paired']} " in capfd.readouterr().out
    joined = pq.read_table(cluster / "tcp.parquet")
    assert {"10.77.0.2:7003", "[fd77::2]:7003"} <= set(joined.column("peer").to_pylist())
    assert set(joined.column("host").to_pylist()) == {"client", "server"}


@pytest.mark.live
def test_streams_give_further_bounds_beside_the_messages_of_a_model(
    hosts: tuple[int, int], tmp_path: Path, runtime: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with (tmp_path / "device").open("wb") as file:
        file.truncate(64 << 20)
    where = f"tcp:10.77.0.2:{PORT}"
    store = [str(DEMO / "demo-server"), "--socket", where, "--device", f"{tmp_path}/device", "--backend", "buffered"]
    bench = [str(DEMO / "demo-bench"), "--socket", where, "--ops", str(OPS), "--qd", "2", "--objects", "4"]
    cluster = recorded(hosts, tmp_path, store, bench, "demo")
    pair = check_bounds(cluster)
    assert (pair["paired"], pair["unpaired"], pair["tcp_unpaired"]) == (2 * OPS, 0, 0)
    assert pair["tcp_paired"] >= 2 * OPS
    assert len(pq.read_table(cluster / "hops.parquet")) == OPS
    capfd.readouterr()
    assert main(["hosts", str(cluster)]) == 0
    out = capfd.readouterr().out
    assert "client and server  model " in out
    assert "client and server  TCP " in out
