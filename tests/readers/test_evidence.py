# SPDX-License-Identifier: MIT
"""Events that are gone though no tracer counted them: what others show is counted, taints, and makes no sure link.

What was in flight when the trace began is no evidence; nor is anything in a complete trace (the golden ledgers).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.drop_events import correlated

TRACES = ("app-sync-qd4-nvme-6.12", "app-sync-2m-nvme-split", "app-libaio-qd32-hdd-bfq-seq", "ptr-sync-qd4-nvme")
STEPS = ("block_rq_issue", "block_rq_complete", "block_getrq", "block_bio_queue")


@pytest.mark.parametrize("event", STEPS)
@pytest.mark.parametrize("name", TRACES)
def test_steps_that_are_gone_are_missed(name: str, event: str, trace: Callable[[str], Path]) -> None:
    whole = correlated(trace(name), name)
    assert "events_missing" not in whole.losses
    for per_million in (50_000, 10_000):
        mutant = correlated(trace(name), name, event, per_million)
        if mutant.dropped < 6:
            continue
        assert 0 < mutant.losses["events_missing"] <= 5 * mutant.dropped  # of a bio that is split all parts show it
        assert sum(count for *_, count in mutant.missing) == mutant.losses["events_missing"]
        assert all(re.fullmatch(r"events missing of \d+:\d+", of) and a <= b for of, a, b, _ in mutant.missing)
        # That a completion is gone shows late, where no pointer comes back: the ops have settled by then.
        assert event == "block_rq_complete" or mutant.losses["unsplit_ops"] > 0
        without = [link for _, _, link in mutant.links if None in (link.issue_ns, link.getrq_ns, link.complete_ns)]
        assert without or event == "block_bio_queue"
        sure = [link for link in without if link.confidence == "high"]
        # A device's first request may have been allocated before the trace, and one of its last may still complete.
        assert len(sure) <= (len(without) / 2 if event == "block_rq_complete" else 1)
