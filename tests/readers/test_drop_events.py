# SPDX-License-Identifier: MIT
"""Events that are gone in silence make no wrong link: a quick part of ``python -m tests.drop_events``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.drop_events import Sums, compare, correlated, mutants

# (trace, events): direct I/O, merges, split bios, device mapper, syncs with a journal, write-back, system calls
QUICK = [
    ("ptr-libaio-qd32-hdd-bfq-seq", "block_*"),
    ("app-sync-2m-nvme-split", "*"),
    ("app-libaio-qd8-dmlinear", "block_bio_*"),
    ("app-buf-fsync1-ext4", "block_rq_complete"),
    ("fie-direct", "lab:*"),
    ("fie-buf-writeback", "lab:*"),
    ("fio-libaio-qd16-hdd-bfq", "block_getrq"),
    ("fdatasync-2-queues", "*"),
    ("fdatasync-4-queues", "block_*"),
    ("ctf-merged", "block:block_rq_issue"),
]


@pytest.mark.parametrize(("name", "events"), QUICK)
def test_dropped_events_make_no_wrong_link(name: str, events: str, trace: Callable[[str], Path]) -> None:
    whole = correlated(trace(name), name)
    sums = Sums()
    for event, rate, compared in mutants(trace(name), name, whole, (5.0,), 1, "native", events):
        sums.add(f"{event} {rate} %", compared)
        assert not compared.wrong["high"], compared.examples
    assert sums.mutants
    assert sums.wrong["medium"] * 200 <= sums.links["medium"]


def test_nothing_dropped_is_the_whole_trace(trace: Callable[[str], Path]) -> None:
    name = "app-sync-2m-nvme-split"
    whole = correlated(trace(name), name)
    compared = compare(whole, correlated(trace(name), name))
    assert compared.dropped == 0
    assert not compared.wrong
    assert sum(compared.links.values()) == 400
    assert not compared.told


def test_both_readers_lose_the_same(trace: Callable[[str], Path]) -> None:
    name = "app-sync-2m-nvme-split"
    mine, theirs = (correlated(trace(name), name, "block_rq_issue", 50_000, 1, reader) for reader in ("native", "bt2"))
    assert mine.dropped == theirs.dropped > 5
    assert mine.links == theirs.links
    assert mine.losses == theirs.losses
    assert correlated(trace(name), name, "block_rq_issue", 50_000, 2).links != mine.links
