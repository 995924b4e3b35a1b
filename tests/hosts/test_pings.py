# SPDX-License-Identifier: MIT
"""Pings between hosts: the file that `opline ping` writes, and what `opline join` makes of it."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from tests.hosts.test_record_hosts import PROGRAM, Recording
from tests.lib.ssh_hosts import SSHD, SshHosts

from opline.capture.machine.pings import BURST, Answerer, Peer, Pinger
from opline.capture.machine.processes import boot_id
from opline.cluster import pings
from opline.cluster.hosts import Part
from opline.cluster.network import Link, Network
from opline.cluster.pair_clock import PairClock
from opline.readers.pings import COLUMNS, FILE_NAME
from opline_analyses.cli import main

SECOND = 1_000_000_000
KEY = "00112233445566778899aabbccddeeff"
AHEAD_S = 1000


def part(folder: Path, name: str, boot: str, namespace_ns: int | None = 0) -> Part:
    """A host whose recording is empty but for its pings."""

    class Place:
        path = str(folder / name / "trace")

    (folder / name).mkdir()
    return Part(name, str(folder / name), Place(), None, (boot, 0), None, namespace_ns)  # type: ignore[arg-type]


def write(folder: Path, rows: Sequence[tuple[object, ...]], torn: str = "") -> None:
    lines = [",".join(map(str, row)) for row in (COLUMNS, *rows)]
    (folder / FILE_NAME).write_text("".join(f"{line}\n" for line in lines) + torn)


def test_each_ping_is_a_message_there_and_one_back(tmp_path: Path) -> None:
    """A clock 37 s ahead and 20 ppm fast: the bounds of pings alone have the truth inside, all the time."""
    rng = np.random.default_rng(3)
    true_ns = np.arange(0, 20 * SECOND, SECOND // 10)
    ahead = np.rint(37 * SECOND + true_ns * 20e-6).astype(np.int64)
    there, back = (rng.integers(3_000, 60_000, len(true_ns)) for _ in range(2))
    a, b = part(tmp_path, "a", "boot-a"), part(tmp_path, "b", "boot-b")
    rows = [
        ("a", "boot-a", 0, "b", "boot-b", 0, t, t + x + d, t + x + d + 500, t + x + 500 + y)
        for t, d, x, y in zip(true_ns.tolist(), ahead.tolist(), there.tolist(), back.tolist(), strict=True)
    ]
    write(tmp_path / "a", rows, torn="a,boot-a,0,b,boot-b,0,999,1")
    found = pings.PingExchange([a, b])
    assert not found.without
    assert found.count("a", "b") == found.count("b", "a") == len(rows)
    assert found.span("a") == (rows[0][6], rows[-1][9])
    forward, backward = found.times("a", "b"), found.times("b", "a")
    link = Link("a", "b", forward, backward, PairClock(forward, backward, 10))
    own = 37 * SECOND
    network = Network(["a", "b"], [link], "a", {"a": (0, 20 * SECOND), "b": (own, own + 20 * SECOND)})
    mapped = network.maps["b"].at(true_ns + ahead)
    assert (np.abs(mapped - true_ns) <= network.maps["b"].bound_at(mapped) + 2).all()
    assert np.median(network.maps["b"].bound_ns) < 40_000


def test_a_clock_of_another_time_namespace_is_moved(tmp_path: Path) -> None:
    parts = [part(tmp_path, "a", "boot", 0), part(tmp_path, "b", "boot", 7)]
    write(tmp_path / "a", [("x", "boot", 2, "y", "boot", 7, 100, 200, 300, 400)])
    (sent,), (received,) = pings.PingExchange(parts).times("a", "b")
    assert (sent, received) == (98, 200)


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (("a", "boot-a", 0, "c", "boot-c", 0, 1, 2, 3, 4), "no recording has the clock of c"),
        (("c", "boot-c", 0, "b", "boot-b", 0, 1, 2, 3, 4), "no recording has the clock of c"),
        (("a", "boot-a", 0, "a", "boot-a", 0, 1, 2, 3, 4), "both are of one recording"),
    ],
)
def test_pings_of_other_clocks_are_named_and_not_used(row: tuple[object, ...], why: str, tmp_path: Path) -> None:
    parts = [part(tmp_path, "a", "boot-a"), part(tmp_path, "b", "boot-b")]
    write(tmp_path / "a", [row])
    found = pings.PingExchange(parts)
    assert [line.partition(": ")[2] for line in found.without] == [why]
    assert found.count("a", "b") == 0 and found.span("a") is None


@pytest.mark.parametrize(
    "damage", ["1,2,3", "a,boot-a,0,b,boot-b,0,9,2,3,4", "a,boot-a,x,b,boot-b,0,1,2,3,4", "\0\xff"]
)
def test_rows_that_are_no_pings_are_left_out(damage: str, tmp_path: Path) -> None:
    parts = [part(tmp_path, "a", "boot-a"), part(tmp_path, "b", "boot-b")]
    write(tmp_path / "a", [("a", "boot-a", 0, "b", "boot-b", 0, 1, 2, 3, 4)], torn=f"{damage}\n")
    assert pings.PingExchange(parts).count("a", "b") == 1


@pytest.fixture
def answers() -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A host that answers, and where."""
    serving = subprocess.Popen(
        [PROGRAM, "ping", "--serve", "--address", "127.0.0.1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert serving.stdout is not None
    yield serving, serving.stdout.readline().strip()
    serving.kill()
    serving.communicate()


def test_the_file_has_the_tightest_ping_of_each_burst(
    answers: tuple[subprocess.Popen[str], str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    serving, where = answers
    out = tmp_path / FILE_NAME
    assert main(["ping", "-o", str(out), "--duration", "0.5", where]) == 0
    head, *rows = (line.split(",") for line in out.read_text().splitlines())
    assert tuple(head) == COLUMNS and 1 <= len(rows) <= 2 * 6
    for row in rows:
        assert (row[0], row[1], row[4]) == (socket.gethostname(), boot_id(), boot_id())
        sent, received, replied, returned = map(int, row[6:])
        assert sent < received <= replied < returned
    assert main(["ping", "-o", str(out), where]) == 2
    assert "exists" in capfd.readouterr().err
    serving.terminate()
    assert serving.wait(30) == 0


def test_nothing_but_pings_with_the_key_is_answered() -> None:
    answerer = Answerer("127.0.0.1")
    port, key = answerer.place()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.settimeout(0.05)
        for data in (b"", b"x" * 136, b"x" * 2000):
            other.sendto(data, ("127.0.0.1", port))
            answerer.answer(1)
            with pytest.raises(TimeoutError):
                other.recv(4096)
    wrong = Pinger(Peer.of(f"127.0.0.1:{port}/{KEY}"))
    assert wrong.burst() == [] and wrong.answered == 0
    answerer.answer(1)
    wrong.close()
    answerer.close()
    assert key != KEY and BURST > 1


def test_a_host_that_does_not_answer_is_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        where = f"127.0.0.1:{silent.getsockname()[1]}/{KEY}"
        assert main(["ping", "-o", str(tmp_path / FILE_NAME), "--duration", "0.2", where]) == 3
    assert "127.0.0.1 has not answered pings" in capfd.readouterr().err


def test_what_cannot_be_asked_is_said_in_a_line(opline: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    for words, line in {
        (): "ping needs a file and a host",
        ("--serve", "-o", "x"): "--serve answers pings",
        ("-o", "x", "host:7"): "HOST:PORT/KEY is wanted",
        ("-o", "x", f"host:99999/{KEY}"): "HOST:PORT/KEY is wanted",
        ("-o", "x", "--port", "7", f"host:7/{KEY}"): "--port and --address are for --serve",
        ("--serve", "--port", "x"): "--port x",
    }.items():
        done = opline("ping", *words)
        assert (done.returncode, done.stdout) == (2, ""), done.stderr
        assert line in done.stderr and done.stderr.count("\n") == 1
    done = opline("ping", "-o", "x", f"nohost.invalid:7/{KEY}")
    assert done.returncode == 1 and "No pings to nohost.invalid" in done.stderr


@pytest.mark.live
def test_hosts_that_are_recorded_together_send_pings(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The server's CLOCK_MONOTONIC is 1000 s ahead. A program with few messages leaves the bounds to the pings."""
    if not SSHD.exists():
        pytest.skip("no sshd: setup-env could not fetch it")
    (tmp_path / "ssh").mkdir()
    hosts = SshHosts(tmp_path / "ssh", ["client", "server"], {}, ahead_s={"server": AHEAD_S})
    try:
        status, _, err = Recording(hosts, tmp_path, 300, names="client,server").end()
    finally:
        hosts.close()
    assert status == 0, err
    runs = {name: tmp_path / "all.hosts" / name for name in ("client", "server")}
    assert (runs["client"] / FILE_NAME).exists() and not (runs["server"] / FILE_NAME).exists()
    for run in runs.values():  # as if they were two machines, and with nothing else between them
        note = json.loads((run / "recording.json").read_text())
        assert note["host"].pop("clock_offset_ns") == (AHEAD_S * SECOND if run.name == "server" else 0)
        (run / "recording.json").write_text(json.dumps(note))
    out = tmp_path / "again"
    capfd.readouterr()
    assert main(["join", "-o", str(out), *(f"{name}={run}" for name, run in runs.items())]) == 0
    assert "pings" in capfd.readouterr().out
    (pair,) = json.loads((out / "cluster.json").read_text())["pairs"]
    assert pair["pings"] > 0 and pair["contradicting"] == 0
    clock = pq.read_table(out / "clock.parquet")
    low, high = (clock.column(name).to_numpy() for name in ("low_ns", "high_ns"))
    assert ((low <= AHEAD_S * SECOND) & (high >= AHEAD_S * SECOND)).all()
