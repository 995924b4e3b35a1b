# SPDX-License-Identifier: MIT
"""By what benchmarks/planted_faults.py knows in how many slow ops a fault is: overlaps of intervals, by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from benchmarks import planted_truth as truth
from tests.lib.build_run import P, RunBuilder

MS = 1_000_000


def test_overlaps_by_hand() -> None:
    intervals = [(10, 20), (15, 30), (40, 50)]
    begin, end = np.array([0, 12, 25, 32, 45, 60]), np.array([60, 14, 45, 38, 90, 70])
    assert truth.covered(intervals, begin, end).tolist() == [30, 2, 10, 0, 5, 0]
    assert truth.covered([], begin, end).tolist() == [0] * 6
    assert truth.both([(0, 10), (20, 30)], [(5, 25)]) == [(5, 10), (20, 25)]


def test_a_fault_is_behind_those_that_it_holds_up(tmp_path: Path) -> None:
    """Four slow ops of 9 ms: one on the slow worker, one in the queue while both workers are held, one while one is,
    and one that is slow by itself.
    """
    run = RunBuilder()
    for n, (queue, work) in enumerate([(1, 8), (8, 1), (8, 1), (1, 8)]):
        t, tid = 100 * MS * n, 201 + (n == 3)
        run.op(
            [
                P("begin", t),
                P("taken", t + queue * MS, tid=tid, stage="shard queue", kind="wait"),
                P("end", t + (queue + work) * MS, tid=tid, stage="worker"),
            ]
        )
    path = run.write(tmp_path / "run")
    log = ["fault,tid,thread,begin_ns,end_ns"]
    for tid, begin, end in ((201, 1, 8), (201, 100, 108), (202, 101, 109), (201, 200, 208), (202, 500, 501)):
        log.append(f"object,{tid},demo-work-0.{tid - 201},{begin * MS},{end * MS}")
    (path / truth.LOG).write_text("\n".join(log) + "\n")
    assert truth.behind(path, 9 * MS, 0.1 * MS, None, None) == 50.0
    assert truth.behind(path, 9 * MS, 0.1 * MS, 5 * MS, None) == 100.0  # a delay of so much would be in all of them
    (path / truth.LOG).unlink()
    assert truth.behind(path, 9 * MS, 0.1 * MS, None, None) is None
