# SPDX-License-Identifier: MIT
"""A real recording with 16 operations in flight: with probes as it is, and in the words of Ceph 19's tracepoints."""

from __future__ import annotations

import re
import subprocess
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.ceph.lib.as19 import Teller
from tests.ceph.test_ceph import STATES, client_ops, clients_mean_ns, points_of, shares
from tests.lib.core_driver import Driver, check_laws
from tests.lib.recorded import RunOf

from opline.model import load_model

NAME = "ctf-deb12-uprobes-qd16"
OPS = 400
WAITS = {"network out", "op queue (probed)", "commit queue", "reply (probed)", "network back"}
Row = dict[str, Any]
Opline = Callable[..., subprocess.CompletedProcess[str]]


def test_as_recorded(run_of: RunOf) -> None:
    """Every op is the client's from end to end, its write is on the disk, its time is known."""
    run = run_of(NAME)
    mine = [op for op in client_ops(run) if op["class"] == "aio_operate"]
    assert len(mine) == OPS and all(op["complete"] for op in mine)
    assert sum(op["latency_ns"] for op in mine) / OPS == pytest.approx(clients_mean_ns(NAME), rel=0.005)
    assert sum(op["unknown_ns"] for op in mine) == 0
    points = points_of(run.rows("transitions"))
    assert not points[mine[0]["op_id"]]["client.reap"]["late"]
    ends = [points[op["op_id"]]["client.reap"]["ts_ns"] for op in mine]
    assert ends == [op["end_ns"] for op in mine]
    assert all(op["request_count"] > 0 for op in mine)
    # the device's own time aside, no stage is a tenth of the mean, but one: while the device flushes for others
    wide = [stage for stage, part in shares(run).items() if part > 0.10]
    assert sorted(wide) == ["D2C", "kv queue (probed) behind kv flush"]


def test_waits_are_cut_at_other_ops_points(run_of: RunOf) -> None:
    """A piece is at one other op, or between two: its thread passed their points where it ends, and where it begins,
    but for the first, which begins with the wait. There its thread's last point before was the other op's.
    """
    run = run_of(NAME)
    passed: dict[tuple[int, int], set[int]] = defaultdict(set)
    begins: set[tuple[int, int]] = set()
    for row in run.rows("transitions"):
        begins.add((row["op_id"], row["ts_ns"]))
        if row["batch_id"] is None and not row["aside"]:
            passed[row["tid"], row["ts_ns"]].add(row["op_id"])
    times: dict[int, list[int]] = defaultdict(list)
    for tid, at in sorted(passed):
        times[tid].append(at)
    pieces: Counter[str] = Counter()
    for row in run.rows("stages"):
        wait, _, _ = re.sub(" (behind|between) others$", "/", row["stage"]).partition("/")
        if wait == row["stage"] or wait not in WAITS:
            continue
        begin_ns, end_ns = row["begin_ns"], row["begin_ns"] + row["duration_ns"]
        ends = [passed.get((row["tid"], at), set()) for at in (begin_ns, end_ns)]
        assert ends[1] and (ends[0] or (row["op_id"], begin_ns) in begins), row
        if not ends[0]:
            ends[0] = passed[row["tid"], times[row["tid"]][bisect_left(times[row["tid"]], begin_ns) - 1]]
        assert any(end - {row["op_id"]} for end in ends), row
        pieces[wait] += 1
    assert pieces.keys() == WAITS


def test_as_ceph_19_would_tell_it(trace: Callable[[str], Path], opline: Opline) -> None:
    told = Teller().tell(opline("events", trace(NAME)).stdout.splitlines())
    driver = Driver(load_model("ceph").plan_json())
    for line in told.lines:
        driver.push(line)
    driver.finish()
    check_laws(driver, len(told.lines))
    tables = driver.tables()
    points = points_of(tables["transitions"])
    ops = {op["object"]: op for op in tables["ops"]}
    clients: dict[str, list[int]] = defaultdict(list)
    begun: dict[int, str] = {}
    for line in told.lines:
        if line.name == "cephshim:radoscxx_aio_operate_enter":
            begun[line.payload["completion"]] = line.payload["oid"]
            clients[line.payload["oid"]].append(line.ts_ns)
        elif line.name == "cephshim:radoscxx_get_return_value":
            clients[begun.pop(line.payload["completion"])].append(line.ts_ns)
    assert len(clients) == OPS
    by_reqid: dict[tuple[int, int], Row] = {}
    stages: dict[int, list[Row]] = defaultdict(list)
    for row in tables["stages"]:
        stages[row["op_id"]].append(row)
    for oid, (begin_ns, end_ns) in clients.items():
        op = ops[oid]
        assert (op["begin_ns"], op["end_ns"], op["unknown_ns"]) == (begin_ns, end_ns, 0)
        reqid = told.objects[oid]
        assert re.search(rf" reqid={reqid[0]},{reqid[1]}$", op["key"])
        by_reqid[reqid] = op
        passed = points[op["op_id"]]
        for state in range(20, 25):
            ends = [passed[f"bluestore:{STATES[s]}_end"]["ts_ns"] for s in (state - 1, state)]
            assert abs(ends[1] - ends[0] - told.states[reqid][state]) <= 5000
        waits_ns = passed["bluestore:io_done_end"]["ts_ns"], passed["bluestore:kv_sync"]["ts_ns"]
        charged = sum(s["duration_ns"] for s in stages[op["op_id"]] if waits_ns[0] <= s["begin_ns"] < waits_ns[1])
        assert charged == waits_ns[1] - waits_ns[0]
    sizes = {b["batch_id"]: (b["member_count"], b["declared_count"]) for b in tables["batches"]}
    assert max(map(len, told.batches)) >= 8
    for members in told.batches:
        shared = [
            {r["batch_id"] for r in points[by_reqid[m]["op_id"]].values()} - {None} for m in members if m in by_reqid
        ]
        if len(shared) == len(members) > 0:  # without rados bench's own record of the run
            (number,) = set.union(*shared)
            assert sizes[number] == (len(members), len(members))
    total = sum(op["latency_ns"] for op in tables["ops"])
    part: Counter[str] = Counter()
    for row in tables["stages"]:
        part[row["stage"]] += row["duration_ns"]
    assert max(part.values()) <= 0.15 * total
