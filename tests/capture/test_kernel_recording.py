# SPDX-License-Identifier: MIT
"""A recording of `opline record` with the kernel domain, made in the virtual machine of tests/vm: both domains joined.

The trace is of one LTTng session: the demo store's events and the kernel's own, without pointers. Against it stand what
the benchmark wrote down beside it. Covers C1.1, C1.2, C1.4, C1.14 with lttng-modules.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.lib.recorded import Correlated, RunOf
from tests.truth_demo import check

NAME = "demo-kernel"
OPS = 211


@pytest.fixture(params=["native", "bt2"])
def correlated(request: pytest.FixtureRequest, run_of: RunOf) -> Correlated:
    return run_of(NAME, reader=request.param)


@pytest.fixture
def recording(trace: Callable[[str], Path]) -> Path:
    return trace(NAME)


def test_the_block_events_are_the_kernel_domains(correlated: Correlated, recording: Path) -> None:
    note = json.loads((recording / "recording.json").read_text())
    assert note["block_source"] == "kernel"
    assert [channel["domain"] for channel in note["channels"]] == ["ust", "kernel"]
    assert correlated.core["events"] == note["event_count"]


def test_every_op_is_complete_and_partitioned(correlated: Correlated) -> None:
    ops = correlated.rows("ops")
    assert len(ops) == OPS and all(op["complete"] for op in ops)
    stages: Counter[int] = Counter()
    for stage in correlated.rows("stages"):
        stages[stage["op_id"]] += stage["duration_ns"]
    for op in ops:
        assert stages[op["op_id"]] + op["unattributed_ns"] == op["end_ns"] - op["begin_ns"]
    # Stages end at the device's own steps, in the order of a real kernel.
    cut = Counter(stage["stage"] for stage in correlated.rows("stages"))
    assert cut["Q2G"] == cut["D2C"] == OPS


def test_every_op_has_one_request_by_thread_and_by_sector(correlated: Correlated) -> None:
    ops = {op["op_id"]: op for op in correlated.rows("ops")}
    owned = [bio for bio in correlated.rows("bios") if bio["op_id"] is not None]
    assert len(owned) == OPS
    for bio in owned:
        assert bio["op_by_thread"] == bio["op_by_sector"] == bio["op_id"]
        assert ops[bio["op_id"]]["offset_bytes"] % (4 << 20) == bio["sector"] * 512 % (4 << 20)
    requests = [request for request in correlated.rows("requests") if request["op_id"] is not None]
    assert {request["op_id"] for request in requests} == set(ops) and len(requests) == OPS
    for request in requests:
        assert request["outcome"] == "completed" and not request["ambiguous"]
        op = ops[request["op_id"]]
        steps = [op["begin_ns"], *(request[f"{step}_ns"] for step in ("queue", "getrq", "issue", "complete"))]
        assert steps == sorted(steps) and steps[-1] < op["end_ns"]


def test_each_op_begins_and_ends_in_the_client(correlated: Correlated) -> None:
    """C1.14: from the call of aio_write to the callback; what the server does lies between, in its own process."""
    passed: dict[int, list[dict[str, object]]] = {}
    for t in sorted(correlated.rows("transitions"), key=lambda t: t["seq"]):
        passed.setdefault(t["op_id"], []).append(t)
    for op in correlated.rows("ops"):
        points = [t for t in passed[op["op_id"]] if not t["late"]]
        first, last = points[0], points[-1]
        assert str(first["point"]).startswith("client.aio_") and last["point"] == "client.complete"
        assert (first["ts_ns"], last["ts_ns"]) == (op["begin_ns"], op["end_ns"])
        assert op["latency_ns"] == op["end_ns"] - op["begin_ns"]
        client = {t["pid"] for t in points if str(t["point"]).startswith(("client.", "finisher."))}
        server = {t["pid"] for t in points if str(t["point"]).startswith(("server.", "shard.", "worker.", "io."))}
        assert client == {op["pid"]} and len(server) == 1 and not client & server


def test_every_transition_is_the_hidden_ops(correlated: Correlated, recording: Path) -> None:
    verdict = check(correlated.path, recording / "client-log.csv", recording / "client-points.csv")
    exact = {"ops", "join", "transitions", "stitching", "agreement"}  # times are the emulator's
    assert exact <= {finding.name for finding in verdict.findings if finding.holds}, str(verdict)


def test_the_state_dump_names_the_disk(correlated: Correlated) -> None:
    assert "vdb" in correlated.core["devices"].values()
