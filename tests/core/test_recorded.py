# SPDX-License-Identifier: MIT
"""What is known of the recorded traces: how many ops there are, what serves them, and the fate of every event class."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.lib.recorded import LAB, NAMES, RunOf, check_golden, fates_text

from opline_analyses.runs import ledger
from opline_analyses.runs.run import open_tables

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


@pytest.mark.parametrize("name", NAMES)
def test_the_manifest_has_the_ledger_of_the_tables(name: str, run_of: RunOf) -> None:
    """It is read from the manifest; of a run by an older opline, whose manifest has less, from the tables."""
    run, older = (open_tables(run_of(name).path) for _ in range(2))
    core = {key: value for key, value in run.manifest["core"].items() if key not in ("fates", "losses")}
    older.manifest = run.manifest | {"core": core}
    del older.manifest["losses"], older.manifest["gaps"]
    assert ledger.fates(run) == ledger.fates(older)
    assert ledger.entries(run) == ledger.entries(older)
    assert "con" not in vars(run) and "con" in vars(older)
    assert ledger.discarded(run) == ledger.discarded(older)
    said = {e.loss: e.count for e in ledger.entries(run)}
    counted = older.row("SELECT count(*) FILTER (tainted), count(*) FILTER (unsplit) FROM ops")
    assert counted == (said.get("tainted_ops", 0), said.get("unsplit_ops", 0))
