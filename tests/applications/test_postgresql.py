# SPDX-License-Identifier: MIT
"""The shipped model `postgresql` on a recording of Debian's PostgreSQL and pgbench, against pgbench's own log of each
transaction.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.lib.examples import loaded

HERE = Path(__file__).parents[1]
EXAMPLE = HERE.parent / "examples" / "postgresql"
CLIENTS, EACH = 4, 12

Run = Callable[..., subprocess.CompletedProcess[str]]
Row = dict[str, Any]


@pytest.fixture(scope="module")
def logs() -> ModuleType:
    return loaded(EXAMPLE / "pgbench_log.py")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("postgresql")
    subprocess.run(["tar", "-xJf", HERE / "postgresql" / "pgbench-4.tar.xz", "-C", str(folder)], check=True)
    return folder / "pgbench-4"


def rows(opline: Run, recorded: Path, query: str, reader: str = "native") -> list[Row]:
    done = opline("sql", recorded / "trace", query, "--model", "postgresql", "--reader", reader, "--json")
    assert done.returncode == 0, done.stderr
    found: list[Row] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("reader", ["native", "bt2"])
def test_every_transaction_of_the_log_is_an_op_of_that_length(
    recorded: Path, logs: ModuleType, opline: Run, reader: str
) -> None:
    offset = json.loads((recorded / "clocks.json").read_text())["clocks_before"]["realtime_minus_monotonic_ns"]
    clients = logs.clients_of(sorted(recorded.glob("pgbench_log.*")), offset)
    query = "SELECT class, object, begin_ns, end_ns, complete FROM ops ORDER BY begin_ns"
    ops = rows(opline, recorded, query, reader)
    assert all(op["complete"] for op in ops)
    assert sum(op["class"] == "transaction" for op in ops) == CLIENTS * EACH == sum(map(len, clients.values()))
    backends: dict[str, list[Any]] = {}
    for op in ops:
        if op["class"] == "transaction":
            backends.setdefault(op["object"], []).append(logs.Op(op["begin_ns"], op["end_ns"], 0))
    assert [len(found) for found in backends.values()] == CLIENTS * [EACH]
    taken = {}
    for client, times in clients.items():
        backend = min(backends, key=lambda name: logs.apart_ns(times, backends[name]))
        taken[client] = backend
        for (begin_ns, end_ns), (op_begin_ns, op_end_ns, _) in zip(times, backends[backend], strict=True):
            # pgbench's clock has microseconds; the op lies inside of what the client measured
            assert begin_ns - 2000 <= op_begin_ns and op_end_ns <= end_ns + 2000
            assert (end_ns - begin_ns) - (op_end_ns - op_begin_ns) < 1_000_000
    assert len(set(taken.values())) == CLIENTS


def test_how_long_a_thread_was_off_its_cpu_between_two_times(recorded: Path, logs: ModuleType) -> None:
    times = [(10, 20), (30, 50), (70, 80)]
    for begin_ns, end_ns, off_ns in (
        (0, 10, 0),
        (0, 15, 5),
        (12, 18, 6),
        (15, 40, 15),
        (20, 30, 0),
        (0, 99, 40),
        (80, 90, 0),
    ):
        assert logs.within(times, begin_ns, end_ns) == off_ns
    assert logs.within([], 0, 99) == 0
    found = logs.off_cpu(recorded, str(Path(sys.executable).with_name("opline")))
    assert len(found) > CLIENTS, "backends and their client"
    assert all(begin < end for times in found.values() for begin, end in times)


def test_all_of_a_transactions_time_has_a_name(recorded: Path, opline: Run) -> None:
    (found,) = rows(
        opline, recorded,
        """SELECT sum(latency_ns) AS latency, sum(unknown_ns) AS unknown, sum(unattributed_ns) AS unattributed,
            (SELECT sum(duration_ns) FROM stages) AS stages,
            (SELECT sum(duration_ns) FROM stages WHERE contains(stage, '→')) AS unnamed FROM ops""",
    )  # fmt: skip
    assert found["unknown"] == found["unattributed"] == 0 and found["stages"] == found["latency"]
    assert (found["unnamed"] or 0) < found["latency"] / 1000


def test_whose_flush_covered_whose_commit_is_right(recorded: Path) -> None:
    """By a rule of the example's own over the raw events, and by what the backend itself saw when it went on."""
    known, led, covered, wrong = loaded(EXAMPLE / "group_commit.py").compare(recorded)
    assert wrong == 0 and known >= CLIENTS * EACH - 2 and led > 0 and covered > 0


def test_each_commit_has_its_flush_and_the_flushs_block_requests(recorded: Path, opline: Run) -> None:
    """A follower has the write and the sync of its leader, a thread of another process, down to the disk."""
    found = rows(
        opline, recorded,
        """SELECT op_id, count(*) FILTER (point = 'wal.synced' AND CAST(tid AS VARCHAR) = object) AS own,
            count(*) FILTER (point = 'wal.synced' AND CAST(tid AS VARCHAR) <> object) AS anothers,
            count(*) FILTER (point LIKE 'wal.flushed%') AS flushed,
            any_value(device) AS device, any_value(woken) AS woken
            FROM transitions JOIN ops USING (op_id) JOIN (SELECT op_id, count(*) FILTER (stage = 'D2C') AS device,
                count(*) FILTER (stage = 'woken after the wal flush') AS woken FROM stages GROUP BY op_id) USING (op_id)
            WHERE class = 'transaction' GROUP BY op_id""",
    )  # fmt: skip
    assert len(found) == CLIENTS * EACH and all(row["flushed"] for row in found)
    assert all(row["own"] + row["anothers"] == 1 for row in found)
    assert any(row["own"] for row in found) and any(row["anothers"] for row in found)
    assert all(row["device"] for row in found)
    assert all(row["woken"] for row in found if row["anothers"])


def test_what_a_backend_writes_and_syncs_is_linked_to_its_block_requests(recorded: Path, opline: Run) -> None:
    found = rows(
        opline, recorded,
        """SELECT count(*) FILTER (request_count > 0) AS linked, count(*) AS own FROM ops WHERE op_id IN
            (SELECT op_id FROM transitions WHERE point LIKE 'wal.synced%')""",
    )  # fmt: skip
    assert found == [{"linked": found[0]["own"], "own": found[0]["own"]}] and found[0]["own"] > 0


def test_a_flush_in_another_process_is_not_on_the_network(recorded: Path, opline: Run) -> None:
    done = opline("coverage", recorded / "trace", "--model", "postgresql", "--json")
    parts = {row["part"]: row for row in json.loads(done.stdout)["parts"]}
    assert "network out" in parts and "network between servers" not in parts
