# SPDX-License-Identifier: MIT
"""Intervals of requests and bios on recorded traces: none is negative, parts of a whole are at most the whole, and what
a call submits in several requests is named.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.lib.recorded import LAB, NAMES, RunOf

STEPS = ("queue_ns", "getrq_ns", "first_issue_ns", "issue_ns", "complete_ns")


@pytest.mark.parametrize("name", NAMES)
def test_no_interval_is_negative(run_of: RunOf, name: str) -> None:
    run = run_of(name)
    for r in run.rows("requests"):
        known = [r[step] for step in STEPS if r[step] is not None]
        assert known == sorted(known), r
    for b in run.rows("bios"):
        assert b["queue_ns"] is None or b["queue_ns"] <= (b["getrq_ns"] or b["merge_ns"] or b["queue_ns"]), b
    assert run.core["losses"]["interval_violations"] == 0


def test_a_split_write_is_submitted_until_its_last_request(run_of: RunOf) -> None:
    """Every op has its Q, and nothing is reaped before the call has submitted all."""
    stages = run_of("app-sync-2m-nvme-split").rows("stages")
    assert not {s["stage"] for s in stages if s["stage"].endswith("→ G")}
    assert {s["to_point"] for s in stages if s["stage"] == "reap"} == {"io_end"}
    assert len({s["op_id"] for s in stages if s["stage"] == "Q2G"}) == 100


@pytest.mark.parametrize("name", ["app-sync-2m-nvme-split", "ptr-libaio-qd32-hdd-bfq-seq"])
def test_shares_are_of_a_whole(trace: Callable[[str], Path], opline: Callable[..., Any], name: str) -> None:
    devices = json.loads(opline("btt", trace(name), "--model", str(LAB), "--json").stdout)["devices"]
    assert any(d["share"] for d in devices)
    for d in devices:
        assert sum(d["share"].values()) <= 1 + 1e-9
        assert all(i["min_ns"] >= 0 for i in d["intervals"].values())


def test_the_depth_of_a_device_whose_completions_are_missing_is_not_said(run_of: RunOf) -> None:
    """perf recorded a completion where it interrupted a recorded process: of one device half of them are missing."""
    run = run_of("ctf-merged")
    assert run.core["losses"]["devices_incomplete"] == 1
    assert run.core["losses"]["requests_incomplete"] < 1000
    depths = [r["in_flight"] for r in run.rows("requests") if r["in_flight"] is not None]
    assert max(depths) < 300
