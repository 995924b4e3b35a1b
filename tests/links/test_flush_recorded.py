# SPDX-License-Identifier: MIT
"""Flushes of four processes at once, an fdatasync after every write: recorded on disks with 2 and 4 hardware queues.

The truth is what the scheduler says: the event behind the completion of a flush, on the same CPU, wakes the thread that
waited for it. The block model does not see those events. A thread that was not asleep yet when its flush completed is
not woken: of its flush there is no truth.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import bt2
import pytest
from tests.lib.recorded import RunOf

FLUSH = 256


def completions(trace: Path) -> dict[int, int]:
    """When a flush's request was allocated → when it completed, by whom its completion woke."""
    events = []
    for message in bt2.TraceCollectionMessageIterator(str(trace)):
        if isinstance(message, bt2._EventMessageConst):
            events.append((message.default_clock_snapshot.value, message.event))
    allocated: dict[int, int] = {}  # by thread
    ended: dict[int, int] = {}  # by CPU, until its next event
    found: dict[int, int] = {}
    for ts, event in sorted(events, key=lambda e: e[0]):
        cpu, fields = int(event.packet.context_field["cpu_id"]), event.payload_field
        end = ended.pop(cpu, None)
        if event.name == "sched_waking":
            begun = allocated.get(int(fields["tid"]))
            if begun is not None and end is not None:
                found[begun] = end
        elif event.name == "block_getrq" and int(fields["nr_sector"]) == 0:
            allocated[int(fields["tid"])] = ts
        elif event.name == "block_rq_complete" and int(fields["nr_sector"]) == 0 and not int(fields["rwbs"]) & FLUSH:
            ended[cpu] = ts
    return found


@pytest.mark.parametrize(
    ("name", "least", "most_wrong"),
    [("fdatasync-2-queues", 380, 2), ("fdatasync-4-queues", 380, 0), ("fdatasync-2-queues-busy", 270, 0)],
)
def test_a_flush_completes_when_its_thread_is_woken(
    run_of: RunOf, trace: Callable[[str], Path], name: str, least: int, most_wrong: int
) -> None:
    """Of a busy machine too, where one queue's flush is issued between another's and what that was for.

    With two queues a thread is held up between its getrq and the queue's line a few times: no event says so.
    """
    truth = completions(trace(name))
    assert len(truth) > least
    run = run_of(name)
    judged = [r for r in run.rows("requests") if r["getrq_ns"] in truth and r["nr_sectors"] == 0]
    assert len(judged) == len(truth)
    wrong = [r for r in judged if r["complete_ns"] != truth[r["getrq_ns"]]]
    assert len(wrong) <= most_wrong
    losses = run.core["losses"]
    lost = ("requests_given_up", "requests_incomplete", "unmatched_issue", "unmatched_complete", "interval_violations")
    assert {name: losses[name] for name in lost if losses[name]} == {}
