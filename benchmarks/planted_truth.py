# SPDX-License-Identifier: MIT
"""Behind how many of the slow ops a planted fault truly is, from what the demo store logged of it.

A machine that others use has stalls of its own, and of 40 slow ops the fault may be behind 40 or behind none. The store
logs when each fault acted (`--log-faults`). It counts for an op

    lock, writes, flushes   while the op was there
    thread, object          while the worker was held up for this op, and while the op was in the queue of a shard
                            of which all workers were held up
    a delay (--inject)      whole, where the op took at least so long
    slow-device             while the op's requests were between D and C on it

An op has the fault behind it where that is at least half of what it took longer than a typical op.
"""

from __future__ import annotations

import csv
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

import opline

Numbers = np.ndarray[Any, np.dtype[np.int64]]
Intervals = list[tuple[int, int]]
LOG = "faults.csv"
SLOW = "slow-device.txt"  # its name and the kernel's number
WORKERS = 2  # of a shard
HALF = 0.5


def covered(intervals: Intervals, begin: Numbers, end: Numbers) -> Numbers:
    """How much of each time from ``begin`` to ``end`` lies in one of the intervals, ns."""
    if not intervals:
        return np.zeros(len(begin), np.int64)
    edges = np.array(sorted(intervals), np.int64)
    until = np.maximum.accumulate(edges[:, 1])
    new = np.concatenate(([True], edges[1:, 0] > until[:-1]))
    first, last = edges[new, 0], until[np.concatenate((new[1:], [True]))]
    done = np.concatenate(([0], np.cumsum(last - first)))

    def before(t: Numbers) -> Numbers:
        at = np.searchsorted(first, t, "right")
        inside = np.minimum(t, last[at - 1]) - first[at - 1]
        found: Numbers = np.where(at > 0, done[at - 1] + inside, 0)
        return found

    return before(end) - before(begin)


def both(one: Intervals, other: Intervals) -> Intervals:
    """The times in both; the intervals of each do not overlap."""
    found = [(max(a, c), min(b, d)) for a, b in one for c, d in other if c < b and a < d]
    return sorted(found)


def _of_workers(run: opline.Run, log: list[dict[str, str]], slow_from_ns: int, ops: Numbers) -> Numbers:
    """ns of the fault by op (op_id ``ops``, ascending), of a fault of workers."""
    held: dict[int, Intervals] = defaultdict(list)
    shards: dict[str, list[int]] = defaultdict(list)
    for row in log:
        tid = int(row["tid"])
        if tid not in held:
            shards[row["thread"].rpartition(".")[0]].append(tid)
        held[tid].append((int(row["begin_ns"]), int(row["end_ns"])))
    stages = run.sql(
        """SELECT op_id, stage, begin_ns, begin_ns + duration_ns AS end_ns, tid FROM stages SEMI JOIN
               (SELECT op_id FROM ops WHERE complete AND latency_ns >= ?) USING (op_id)
           WHERE stage IN ('worker', 'shard queue') AND tid IS NOT NULL""",
        slow_from_ns,
    ).df()
    total = np.zeros(len(ops), np.int64)
    for tids in shards.values():
        whole = both(held[tids[0]], held[tids[1]]) if len(tids) == WORKERS else []
        for tid in tids:
            for stage, intervals in (("worker", held[tid]), ("shard queue", whole)):
                mine = stages[(stages.stage == stage) & (stages.tid == tid)]
                begin, end = (mine[name].to_numpy(np.int64) for name in ("begin_ns", "end_ns"))
                places = np.searchsorted(ops, mine.op_id.to_numpy(np.int64))
                np.add.at(total, places, covered(intervals, begin, end))
    return total


def _of_device(run: opline.Run, dev: int, ops: Numbers) -> Numbers:
    """ns at this device, by op."""
    rows = run.sql(
        """SELECT l.op_id, sum(r.d2c_ns)::BIGINT AS ns FROM links l JOIN requests r USING (request_id)
           WHERE r.dev = ? AND r.d2c_ns IS NOT NULL GROUP BY l.op_id""",
        dev,
    ).df()
    total = dict(zip(rows.op_id.tolist(), rows.ns.tolist(), strict=True))
    return np.array([total.get(op, 0) for op in ops.tolist()], np.int64)


def behind(
    path: Path, slow_from_ns: int, typical_ns: float, delay_ns: int | None, op_class: str | None
) -> float | None:
    """The part of the slow ops, in %, that the fault is behind. None where nothing was logged. ``typical_ns``: what a
    typical op takes; ``delay_ns``: of a delay.
    """
    with warnings.catch_warnings(action="ignore"), opline.open(path) as run:
        slow = run.sql(
            """SELECT op_id, begin_ns, end_ns, latency_ns FROM ops
               WHERE complete AND latency_ns >= ? AND class = coalesce(?, class) ORDER BY op_id""",
            slow_from_ns,
            op_class,
        ).df()
        ops, begin, end, latency = (
            slow[name].to_numpy(np.int64) for name in ("op_id", "begin_ns", "end_ns", "latency_ns")
        )
        if delay_ns is not None:
            hit = np.where(latency >= delay_ns, delay_ns, 0)
        elif (path / SLOW).exists():
            hit = _of_device(run, int((path / SLOW).read_text().split()[1]), ops)
        elif not (path / LOG).exists():
            return None
        else:
            log = list(csv.DictReader((path / LOG).open(newline="")))
            if log and log[0]["fault"] in ("thread", "object"):
                hit = _of_workers(run, log, slow_from_ns, ops)
            else:
                hit = covered([(int(row["begin_ns"]), int(row["end_ns"])) for row in log], begin, end)
    return 100 * float((hit >= HALF * (latency - typical_ns)).mean())
