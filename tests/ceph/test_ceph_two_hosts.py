# SPDX-License-Identifier: MIT
"""A recorded Ceph, split by process into the recordings of two hosts, whose clocks differ by an invented function of
time: after `join` every op is as it was, and what lies between the hosts is right within the bound.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.lib.recorded import Correlated, RunOf, unpack
from tests.lib.split_hosts import split

from opline_analyses.cli import main

NAME = "ctf-deb12-shim-qd1"
CLIENT = 27_175  # its process
AHEAD_NS, PPM, WANDER_PPM, PERIOD_NS = 37_000_000_000, 23, 0.5, 4_000_000_000
Rows = list[dict[str, Any]]


def other_clock(ns: int) -> int:
    """The time of the OSD's clock: ahead, fast and unsteady."""
    wave = WANDER_PPM * 1e-6 * PERIOD_NS / 2 / math.pi
    return ns + AHEAD_NS + ns * PPM // 1_000_000 + round(wave * math.sin(2 * math.pi * (ns % PERIOD_NS) / PERIOD_NS))


@pytest.fixture(scope="module")
def whole(run_of: RunOf) -> Correlated:
    """As it was recorded: one host."""
    return run_of(NAME)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("two")
    client, osd = split(unpack(NAME, folder), folder, lambda pid: pid == CLIENT, other_clock)
    words = ["join", "-o", str(folder / "all"), f"client={client}", f"osd={osd}", "--model", "ceph"]
    assert main([*words, "--clock-rate-limit", "10"]) == 0
    return folder / "all"


def by_op(rows: Rows, begin_ns: dict[int, int]) -> dict[int, Rows]:
    """The rows of each op in their order; an op is known by when it begins."""
    found: dict[int, Rows] = {}
    for row in sorted(rows, key=lambda row: (row["op_id"], row.get("seq", 0))):
        found.setdefault(begin_ns[row["op_id"]], []).append(row)
    return found


def begins(ops: Rows) -> dict[int, int]:
    found = {row["op_id"]: row["begin_ns"] for row in ops}
    assert len(set(found.values())) == len(found)
    return found


def test_all_messages_are_paired_and_the_clock_is_found(cluster: Path) -> None:
    document = json.loads((cluster / "cluster.json").read_text())
    (pair,) = document["pairs"]
    assert (pair["unpaired"], pair["contradicting"], pair["arrived_early"]) == (0, 0, 0)
    assert pair["paired"] > 20_000
    assert not pair["steps"] and not pair["raised"]
    osd = next(host for host in document["hosts"] if host["name"] == "osd")
    assert abs(osd["rate_ppm"] - PPM) < 1


def test_every_op_is_as_it_was(cluster: Path, whole: Correlated) -> None:
    asked = ("begin_ns", "latency_ns", "complete", "tainted", "class", "program")
    mine, were = (
        sorted(tuple(row[name] for name in asked) for row in rows)
        for rows in (pq.read_table(cluster / "ops.parquet").to_pylist(), whole.rows("ops"))
    )
    assert mine == were
    core = json.loads((cluster / "manifest.json").read_text())["core"]
    assert core["losses"] == whole.core["losses"]


def test_stages_within_a_host_are_as_they_were_and_those_between_within_the_bound(
    cluster: Path, whole: Correlated
) -> None:
    ops = pq.read_table(cluster / "ops.parquet").to_pylist()
    mine = by_op(pq.read_table(cluster / "stages.parquet").to_pylist(), begins(ops))
    were = by_op(whole.rows("stages"), begins(whole.rows("ops")))
    hops = by_op(pq.read_table(cluster / "hops.parquet").to_pylist(), begins(ops))
    assert set(mine) == set(were)
    between = 0
    for begin_ns, rows in mine.items():
        assert [row["stage"] for row in rows] == [row["stage"] for row in were[begin_ns]]
        for row, was in zip(rows, were[begin_ns], strict=True):
            if row["stage"] in ("network out", "network back"):
                between += 1
                bound_ns = max(hop["bound_ns"] for hop in hops[begin_ns])
            else:
                bound_ns = was["duration_ns"] * 50 // 1_000_000 + 3  # what the map leaves of the rate
            assert abs(row["duration_ns"] - was["duration_ns"]) <= bound_ns, row
            assert row["duration_ns"] >= 0
    assert between > 20_000


def test_a_jump_of_the_clock_taints_the_ops_across_it_alone(
    whole: Correlated, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    size_ns = 250_000_000
    jump_ns = (whole.core["first_ns"] + whole.core["last_ns"]) // 2

    def jumping(ns: int) -> int:
        return ns + (size_ns if ns >= jump_ns else 0)

    client, osd = split(unpack(NAME, tmp_path), tmp_path, lambda pid: pid == CLIENT, jumping)
    words = ["join", "-o", str(tmp_path / "all"), f"client={client}", f"osd={osd}", "--model", "ceph"]
    assert main([*words, "--clock-rate-limit", "10"]) == 0
    assert "osd's clock steps by +250.0" in capfd.readouterr().err
    document = json.loads((tmp_path / "all" / "cluster.json").read_text())
    (pair,) = document["pairs"]
    assert (len(pair["steps"]), pair["contradicting"], pair["arrived_early"]) == (1, 0, 0)
    host = next(host for host in document["hosts"] if host["name"] == "osd")
    assert host["bound_max_ns"] < 1_000_000
    ops = pq.read_table(tmp_path / "all" / "ops.parquet").to_pylist()
    tainted = {row["begin_ns"] for row in ops if row["tainted"]}
    assert 1 <= len(tainted) <= 3
    mine, were = (
        {row["begin_ns"]: row["latency_ns"] for row in rows if row["complete"]} for rows in (ops, whole.rows("ops"))
    )
    assert {begin for begin in were.keys() - tainted if mine.get(begin) != were[begin]} == set()
