# SPDX-License-Identifier: MIT
"""Flushes of four processes at once, an fdatasync after every write: recorded on disks with 2 and 4 hardware queues.

The truth is what the scheduler says: right after the completion of a flush, on the same CPU, the thread that waited for
it is woken. The block model does not see those events.
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
    wanted = ("block_getrq", "block_rq_complete", "sched_waking")
    events = []
    for message in bt2.TraceCollectionMessageIterator(str(trace)):
        if isinstance(message, bt2._EventMessageConst) and message.event.name in wanted:
            events.append((message.default_clock_snapshot.value, message.event))
    allocated: dict[int, int] = {}  # by thread
    ended: dict[int, int] = {}  # by CPU, until somebody is woken there
    found: dict[int, int] = {}
    for ts, event in sorted(events, key=lambda e: e[0]):
        cpu, fields = int(event.packet.context_field["cpu_id"]), event.payload_field
        if event.name == "sched_waking":
            begun, end = allocated.pop(int(fields["tid"]), None) if cpu in ended else None, ended.pop(cpu, None)
            if begun is not None and end is not None:
                found[begun] = end
        elif int(fields["nr_sector"]) == 0:
            if event.name == "block_getrq":
                allocated[int(fields["tid"])] = ts
            elif not int(fields["rwbs"]) & FLUSH:
                ended[cpu] = ts
    return found


@pytest.mark.parametrize(("name", "most_wrong"), [("fdatasync-2-queues", 6), ("fdatasync-4-queues", 0)])
def test_a_flush_completes_when_its_thread_is_woken(
    run_of: RunOf, trace: Callable[[str], Path], name: str, most_wrong: int
) -> None:
    """With two queues a thread is held up between its getrq and the queue's line a few times: no event says so."""
    truth = completions(trace(name))
    assert len(truth) > 380
    run = run_of(name)
    judged = [r for r in run.rows("requests") if r["getrq_ns"] in truth and r["nr_sectors"] == 0]
    assert len(judged) == len(truth)
    wrong = [r for r in judged if r["complete_ns"] != truth[r["getrq_ns"]]]
    assert len(wrong) <= most_wrong
    losses = run.core["losses"]
    lost = ("requests_given_up", "requests_incomplete", "unmatched_issue", "unmatched_complete", "interval_violations")
    assert {name: losses[name] for name in lost if losses[name]} == {}
