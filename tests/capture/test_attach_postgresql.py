# SPDX-License-Identifier: MIT
"""Attaching to a PostgreSQL that is at work, again and again: no query fails, no probe is lost, nothing is left.

``OPLINE_ATTACH_ROUNDS=100`` for more rounds than the suite has time for.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import struct
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.lib.examples import loaded
from tests.lib.postgresql import Server, needs_postgresql, running
from tests.lib.recorder import status

from opline.capture.machine.elf import Elf
from opline.model import load_model

EXAMPLE = Path(__file__).parents[2] / "examples" / "postgresql"
ROUNDS = int(os.environ.get("OPLINE_ATTACH_ROUNDS", "3"))
CLIENTS = 4

Run = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = [
    pytest.mark.live,
    needs_postgresql,
    pytest.mark.skipif(os.geteuid() != 0, reason="probes need root"),
]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running() as found:
        yield found


def counters(pid: int) -> set[int]:
    """What the semaphores of all USDT probes in that process are: how many probes each knows of."""
    maps = Path(f"/proc/{pid}/maps").read_text().splitlines()
    program = Path(f"/proc/{pid}/exe").resolve()
    file = Elf(program)
    base = next(int(line.split("-")[0], 16) for line in maps if line.endswith(str(program)))
    found = set()
    with Path(f"/proc/{pid}/mem").open("rb") as memory:
        for place in file.places():
            memory.seek(base + (file.address(place.semaphore) or 0))
            found.add(struct.unpack("<H", memory.read(2))[0])
    return found


def attach_once(server: Server, opline: Run, run: Path) -> None:
    options = ["--model", "postgresql", "--no-block", "--no-states", "--pid", str(server.pid), "--duration", "0.3"]
    done = opline("record", "-o", run, *options)
    assert status(done) == 0, done.stderr
    probes = json.loads((run / "recording.json").read_text())["probes"]
    model = load_model("postgresql")
    assert set(probes["placed"]) == {probe.event for probe in model.probes}
    assert probes["lost_ring"] == probes["lost_nested"] == probes["unwritten"] == 0
    assert probes["sent"]["pg:committed"] > 0 and probes["sent"]["pq:send"] > 0
    assert counters(server.pid) == {0}, "no semaphore is up any more"
    shutil.rmtree(run)


def test_attaching_again_and_again_disturbs_nobody_and_leaves_nothing(
    server: Server, opline: Run, tmp_path: Path
) -> None:
    load = server.client("pgbench", "-n", "-c", str(CLIENTS), "-j", "2", "-T", "100000", "postgres")
    with subprocess.Popen(load, stdout=-1, stderr=-1, text=True) as pgbench:
        try:
            for number in range(ROUNDS):
                attach_once(server, opline, tmp_path / f"run{number}")
            assert pgbench.poll() is None, "pgbench goes on"
            asked = server.client("psql", "-Atc", "SELECT sum(xact_rollback) FROM pg_stat_database", "postgres")
            assert subprocess.run(asked, check=True, capture_output=True, text=True).stdout == "0\n", "all is committed"
        finally:
            pgbench.terminate()
            _, said = pgbench.communicate(timeout=30)
    assert not re.search(r"error|abort|fail", said), said


def test_the_servers_own_model_takes_any_protocol(server: Server, opline: Run, tmp_path: Path) -> None:
    """Each transaction that pgbench counts is an op, by the extended protocol; and its flush is right."""
    each = 50
    load = server.client("pgbench", "-n", "-M", "prepared", "-c", str(CLIENTS), "-j", "2", "-t", str(each), "postgres")
    run = tmp_path / "run"
    options = ["--model", "postgresql-server", "--no-states", "--pid", str(server.pid)]
    done = opline("record", "-o", run, *options, "--", *load)
    assert done.returncode == 0 and f"{CLIENTS * each}/{CLIENTS * each}" in done.stdout, done.stderr
    query = "SELECT count(*) AS n FROM ops WHERE class = 'transaction' AND complete"
    (row,) = json.loads(opline("sql", run, query, "--json").stdout)
    assert row["n"] >= CLIENTS * each, "and those of other servers here: probes are on the file"
    known, led, covered, wrong = loaded(EXAMPLE / "group_commit.py").compare(run)
    assert wrong == 0 and known >= CLIENTS * each - 2 * CLIENTS and led + covered == known
