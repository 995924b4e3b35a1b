# SPDX-License-Identifier: MIT
"""The block model on recorded traces: against real request and bio pointers, and against what the recordings contain.

In the ``ptr-*`` traces a patched probe wrote the pointers of requests and bios: the truth that the sector rules are
held against, with the pointers hidden from them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from tests.lib.recorded import Row, RunOf

TRUTH = ("ptr-sync-qd4-nvme", "ptr-libaio-qd32-hdd-bfq-seq", "ptr-buf-fsync1-ext4")


@dataclass
class Blocks:
    """The block layer's part of a run."""

    core: Row
    requests: list[Row]
    bios: dict[int, Row]
    ops: list[Row]


@pytest.fixture
def blocks_of(run_of: RunOf) -> Callable[[str, str], Blocks]:
    def get(name: str, match: str) -> Blocks:
        run = run_of(name, match=match)
        return Blocks(run.core, run.rows("requests"), {b["bio_id"]: b for b in run.rows("bios")}, run.rows("ops"))

    return get


@pytest.mark.parametrize("name", TRUTH)
def test_sectors_agree_with_the_pointers_of_the_kernel(blocks_of: Callable[[str, str], Blocks], name: str) -> None:
    run = blocks_of(name, "sector")
    for hop in ("bio_to_request", "request_to_issue", "request_to_complete"):
        h = run.core["hops"][hop]
        marked = h["ambiguous"]
        judged = h["agree"] + h["differ"] + h["pointer_only"]
        assert judged > 2500
        assert h["agree"] >= 0.9995 * judged
        assert marked <= 0.002 * (judged + marked)
        assert h["pointer_only"] == h["neither"] == 0
    assert sum(r["ambiguous"] for r in run.requests) <= 0.002 * len(run.requests)


@pytest.mark.parametrize("name", TRUTH)
def test_both_ways_of_matching_give_the_same_requests(blocks_of: Callable[[str, str], Blocks], name: str) -> None:
    by_pointer, by_sector = blocks_of(name, "pointer"), blocks_of(name, "sector")
    assert by_pointer.requests == by_sector.requests
    assert by_pointer.bios == by_sector.bios


@pytest.mark.parametrize(
    ("name", "merged", "absorbed"), [("ptr-libaio-qd32-hdd-bfq-seq", 22, 9), ("ptr-sync-qd4-nvme", 0, 0)]
)
def test_merges_are_counted_as_recorded(
    blocks_of: Callable[[str, str], Blocks], name: str, merged: int, absorbed: int
) -> None:
    """20 back merges, 2 front merges and 9 absorbed requests are in the trace as events."""
    run = blocks_of(name, "sector")
    outcomes = Counter(r["outcome"] for r in run.requests)
    assert outcomes["absorbed"] == absorbed
    alive = [r for r in run.requests if r["outcome"] != "absorbed"]
    assert sum(r["merge_count"] for r in alive) == merged + absorbed
    assert sum(r["bio_count"] for r in alive) == len(run.bios)
    for r in alive:
        own = [b for b in run.bios.values() if b["request_id"] == r["request_id"]]
        assert sum(b["nr_sectors"] for b in own) == r["nr_sectors"]
        assert min(b["sector"] for b in own) == r["sector"]


def test_flushes_and_writes_that_complete_twice(blocks_of: Callable[[str, str], Blocks]) -> None:
    """5271 completions are of 4442 requests: 829 writes with PREFLUSH or FUA complete a second time."""
    run = blocks_of("ptr-buf-fsync1-ext4", "sector")
    assert run.core["losses"]["second_completions"] == 829
    assert len(run.requests) == 5271 - 829
    assert all(r["outcome"] == "completed" for r in run.requests)
    flushes = [r for r in run.requests if r["kind"] == "flush"]
    assert all(r["sector"] is None for r in flushes)
    assert len([r for r in flushes if r["issue_ns"] is not None and r["flushed_by"] is None]) == 1711
    assert run.core["orphans"] == {}


def test_requeues_and_splits(blocks_of: Callable[[str, str], Blocks]) -> None:
    """2873 issues are of 1861 requests; 360 of those carry split remainders, which nobody queued."""
    run = blocks_of("app-libaio-requeue-vdc", "pointer")
    assert len(run.requests) == 1861
    assert sum(r["requeue_count"] for r in run.requests) == 2873 - 1861
    for r in run.requests:
        assert r["outcome"] == "completed"
        assert (r["first_issue_ns"] < r["issue_ns"]) == (r["requeue_count"] > 0)
        assert r["issue_ns"] < r["complete_ns"]
    remainders = [b for b in run.bios.values() if b["split_from_id"] is not None]
    assert len(remainders) == 360
    for b in remainders:
        origin = run.bios[b["split_from_id"]]
        assert b["queue_ns"] is None
        assert b["sector"] == origin["sector"] + origin["nr_sectors"]
        assert b["op_id"] == origin["op_id"]
    assert run.core["orphans"] == {}


def test_two_mebibytes_are_four_requests_of_one_op(blocks_of: Callable[[str, str], Blocks]) -> None:
    run = blocks_of("app-sync-2m-nvme-split", "pointer")
    per_op = Counter(r["op_id"] for r in run.requests if r["op_id"] is not None)
    assert len(run.ops) == 100
    assert set(per_op.values()) == {4}
    assert len(per_op) == 100
    assert {r["nr_sectors"] for r in run.requests if r["op_id"] is not None} == {1024}


@pytest.mark.parametrize(("name", "ops"), [("app-libaio-qd8-dmlinear", 1000), ("app-libaio-qd8-dmcrypt", 500)])
def test_device_mapper_hands_the_owner_down(blocks_of: Callable[[str, str], Blocks], name: str, ops: int) -> None:
    """dm-crypt queues the lower bio in a thread of its own, and its remap moves no sector; dm-linear's does."""
    run = blocks_of(name, "pointer")
    assert len(run.ops) == ops
    lower = [b for b in run.bios.values() if b["parent_id"] is not None]
    assert len(lower) == ops == len(run.requests)
    for b in lower:
        upper = run.bios[b["parent_id"]]
        assert upper["parent_id"] is None
        assert upper["request_id"] is None
        assert upper["dev"] != b["dev"]
        assert b["op_id"] == upper["op_id"] is not None
    assert len({b["op_id"] for b in lower}) == ops
    assert run.core["orphans"] == {}
