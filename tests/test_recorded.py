# SPDX-License-Identifier: MIT
"""What is known of the recorded traces: how many ops there are, what serves them, and the fate of every event class."""

from __future__ import annotations

import math
import re
import subprocess
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.recorded import HERE, LAB, NAMES, RunOf, check_golden, fates_text

DIRECT = {"app-sync-qd4-nvme": 3000, "app-libaio-qd16-nvme": 4000, "app-uring-qd16-nvme": 4000}


def test_the_lab_model_is_short() -> None:
    assert len(LAB.read_text().splitlines()) <= 40


@pytest.mark.parametrize("name", DIRECT)
def test_every_direct_op_has_exactly_one_request_down_to_d2c(name: str, run_of: RunOf) -> None:
    run = run_of(name)
    ops = run.rows("ops")
    assert len(ops) == DIRECT[name]
    assert all(op["complete"] and op["request_count"] == 1 for op in ops)
    requests = {r["op_id"]: r for r in run.rows("requests") if r["op_id"] is not None}
    links = run.rows("links")
    assert len(links) == len(ops)
    for op in ops:
        request = requests[op["op_id"]]
        # the truth, from the application's own fields, which the thread rule does not look at
        assert request["sector"] * 512 == op["offset_bytes"]
        assert request["nr_sectors"] * 512 == op["length_bytes"]
        assert request["outcome"] == "completed"
    cut = {s["op_id"] for s in run.rows("stages") if s["stage"] == "D2C"}
    assert cut == {op["op_id"] for op in ops}


@pytest.mark.parametrize("name", DIRECT)
def test_thread_and_sector_agree_where_both_have_an_answer(name: str, run_of: RunOf) -> None:
    hop = run_of(name).manifest["core"]["hops"]["op_to_bio"]
    assert hop["differ"] == 0
    assert hop["agree"] + hop["ambiguous"] == DIRECT[name]
    assert hop["ambiguous"] <= 2  # two ops on one sector at once


def test_the_merge_goes_by_the_raw_clock(trace: Callable[[str], Path], opline: Callable[..., Any]) -> None:
    """The muxer's order, by offset-adjusted time, has inversions of the raw clock; ours has none."""
    path = trace("app-sync-qd4-nvme")
    muxer = subprocess.run(["babeltrace2", "--clock-cycles", path], capture_output=True, text=True, check=True).stdout
    raw = [int(x) for x in re.findall(r"^\[(\d+)\]", muxer, re.M)]
    assert sum(a > b for a, b in pairwise(raw)) == 149
    ours = [int(line.split(" ", 1)[0]) for line in opline("events", path).stdout.splitlines()]
    assert ours == sorted(raw)


def test_ceph_memstore(run_of: RunOf) -> None:
    """20 730 ops of 16 OSD points each; the two points of librados carry no oid and join nothing."""
    run = run_of("ctf-mem-qd1")
    ops = run.rows("ops")
    classes = [op["class"] for op in ops]
    assert (len(ops), classes.count("write"), classes.count("writefull")) == (20730, 20729, 1)
    assert all(op["complete"] for op in ops)
    counts = {op["transition_count"] for op in ops if op["class"] == "write"}
    assert counts == {16}


@pytest.mark.parametrize("name", NAMES)
def test_every_event_has_one_fate(name: str, run_of: RunOf) -> None:
    """The golden tables of fates, and the whole ledger, so that an unexpected zero-to-one fails."""
    run = run_of(name)
    assert sum(row["count"] for row in run.rows("fates")) == run.core["events"]
    check_golden(f"fates-{name}.txt", fates_text(run))


def test_fio_without_a_tracepoint_of_its_own(run_of: RunOf) -> None:
    """System calls as ops: as many as fio issued, its IOPS, and fio's own latency contains ours, which contains Q2C."""
    run = run_of("fio-psync-qd1-nvme")
    said = (HERE / "traces" / "fio-psync-qd1-nvme.out").read_text()
    issued = int(re.search(r"issued rwts: total=0,(\d+),", said)[1])  # type: ignore[index]
    runtime_ms = int(re.search(r"run=(\d+)-", said)[1])  # type: ignore[index]
    clat = {float(p): int(us) for p, us in re.findall(r"(\d+\.\d+)th=\[ *(\d+)\]", said)}
    mean_us = float(re.search(r"clat \(usec\).*avg=([\d.]+)", said)[1])  # type: ignore[index]
    ops = [op for op in run.rows("ops") if op["class"] == "pwrite64"]
    assert len(ops) == issued
    assert all(op["request_count"] == 1 and op["no_request_reason"] is None for op in ops)
    span_s = (max(op["end_ns"] for op in ops) - min(op["begin_ns"] for op in ops)) / 1e9
    assert abs(len(ops) / span_s / (issued / (runtime_ms / 1000)) - 1) < 0.01
    q2c = {r["op_id"]: r["q2c_ns"] for r in run.rows("requests") if r["op_id"] is not None}
    assert all(q2c[op["op_id"]] <= op["latency_ns"] for op in ops)
    for values in (sorted(op["latency_ns"] for op in ops), sorted(q2c[op["op_id"]] for op in ops)):
        assert sum(values) / len(values) <= mean_us * 1000
        for percent, us in clat.items():
            ours = values[math.ceil(len(values) * percent / 100) - 1]
            assert ours <= us * 1000 * 1.01, percent  # fio's buckets are 0.8 % wide
