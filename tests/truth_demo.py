#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks a run of the demo store against what really happened.

Takes a run directory (Parquet tables) and the logs that ``demo-bench --log FILE --log-points FILE`` wrote beside the
trace; prints what it found, and returns 0 if all of it holds, else 1.

``--log`` has a line per op: its hidden number, object, offset, begin, end, latency. Begin and end are the client's
clock right before the op's first and its last tracepoint, ``begun_ns`` and ``ended_ns`` right after them. So the
trace's begin and end lie between the two: exact, without tolerance. How near they are to the first reading says little
of an op whose thread was interrupted there (more than 20 us from one reading to the other): those are counted, 5 % at
most, and left out of the comparison with a tolerance.

``--log-points`` has a line per op and tracepoint: the hidden number, the event, the thread, and the clock read right
before the tracepoint read it. No event carries the number. Because each thread reads the clock, hits the tracepoint,
and only then comes to its next point, a transition at time *t* on a thread is the point of that thread's last log line
at or before *t*: exact, without tolerance.
"""

from __future__ import annotations

import argparse
import bisect
import csv
import sys
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

TOLERANCE_NS = 20_000
INTERRUPTED = 0.05  # of the ops, at most
WITHIN = 0.999  # of the others
MEAN_TOLERANCE = 0.005


@dataclass(frozen=True, slots=True)
class LogLine:
    """One op as the benchmark itself saw it."""

    truth_id: int
    op_class: str
    object: str
    offset_bytes: int
    begin_ns: int
    begun_ns: int | None  # None: not in the log
    end_ns: int
    ended_ns: int | None

    @property
    def interrupted(self) -> bool:
        """The thread did not come from its clock to its tracepoint and on at once."""
        pairs = ((self.begin_ns, self.begun_ns), (self.end_ns, self.ended_ns))
        return any(after is not None and after - before > TOLERANCE_NS for before, after in pairs)

    def holds(self, begin_ns: int, end_ns: int) -> bool:
        """Whether an op's begin and end lie between the readings before and after."""
        if self.begun_ns is None or self.ended_ns is None:
            return False
        return self.begin_ns <= begin_ns <= self.begun_ns and self.end_ns <= end_ns <= self.ended_ns


@dataclass(slots=True)
class Finding:
    """One check: what it measured, and whether it holds."""

    name: str
    holds: bool
    text: str


@dataclass(slots=True)
class Verdict:
    """All checks of a run."""

    findings: list[Finding] = field(default_factory=list)

    def add(self, name: str, holds: bool, text: str) -> None:
        self.findings.append(Finding(name, holds, text))

    @property
    def holds(self) -> bool:
        return all(f.holds for f in self.findings)

    def __str__(self) -> str:
        return "\n".join(f"{'ok  ' if f.holds else 'FAIL'} {f.name}: {f.text}" for f in self.findings)


def read_log(path: Path) -> dict[int, LogLine]:
    """The ops by their hidden number."""
    with path.open(newline="") as f:
        return {
            int(r["truth_id"]): LogLine(
                int(r["truth_id"]),
                r["class"],
                r["object"],
                int(r["offset_bytes"]),
                int(r["begin_ns"]),
                int(r["begun_ns"]) if "begun_ns" in r else None,
                int(r["end_ns"]),
                int(r["ended_ns"]) if "ended_ns" in r else None,
            )
            for r in csv.DictReader(f)
        }


class Points:
    """The log of points, by thread: which op and event a thread was at, at a time."""

    def __init__(self, path: Path) -> None:
        by_tid: dict[int, list[tuple[int, int, str]]] = defaultdict(list)
        self.per_op = 0
        with path.open(newline="") as f:
            for r in csv.DictReader(f):
                truth_id = int(r["truth_id"]) if r["truth_id"] else -1
                self.per_op += truth_id >= 0
                by_tid[int(r["tid"])].append((int(r["time_ns"]), truth_id, r["event"]))
        self._marks = {tid: sorted(marks, key=lambda m: m[0]) for tid, marks in by_tid.items()}
        self._times = {tid: [m[0] for m in marks] for tid, marks in self._marks.items()}

    def at(self, tid: int, ts_ns: int) -> tuple[tuple[int, int], int, str] | None:
        """(place in the log, hidden number or -1, event), or None before the thread's first point."""
        i = bisect.bisect_right(self._times.get(tid, []), ts_ns) - 1
        if i < 0:
            return None
        _, truth_id, event = self._marks[tid][i]
        return (tid, i), truth_id, event


def rows(run: Path, table: str, columns: Iterable[str]) -> list[dict[str, Any]]:
    """Rows of one table of the run, as dicts."""
    result: list[dict[str, Any]] = pq.read_table(run / f"{table}.parquet", columns=list(columns)).to_pylist()
    return result


def check_points(run: Path, points: Points, verdict: Verdict) -> dict[int, int]:
    """Every transition against the log of points. Returns {op_id: hidden number} of the ops that are all right."""
    claimed: set[tuple[int, int]] = set()
    numbers: dict[int, set[int]] = defaultdict(set)
    count = wrong_event = twice = 0
    for t in rows(run, "transitions", ("op_id", "ts_ns", "event", "tid", "evidence")):
        if t["evidence"] == "batch":
            continue  # shared work: the log has no op for it
        count += 1
        found = points.at(t["tid"], t["ts_ns"])
        if found is None or found[1] < 0 or found[2] != t["event"]:
            wrong_event += 1
            numbers[t["op_id"]].add(-1)
            continue
        twice += found[0] in claimed
        claimed.add(found[0])
        numbers[t["op_id"]].add(found[1])
    right = {op_id: next(iter(ids)) for op_id, ids in numbers.items() if len(ids) == 1 and -1 not in ids}
    mixed = len(numbers) - len(right)
    doubled = len(right) - len(set(right.values()))
    verdict.add(
        "transitions",
        wrong_event == twice == 0 and count == points.per_op,
        f"{count} of {points.per_op} logged points found, {wrong_event} at no such point, {twice} claimed twice",
    )
    verdict.add(
        "stitching",
        mixed == doubled == 0,
        f"{len(right)} of {len(numbers)} ops have points of one hidden op only; {doubled} hidden ops in several",
    )
    return right


def join_by_time(ops: list[dict[str, Any]], log: dict[int, LogLine], object_size: int) -> dict[int, int]:
    """{op_id: hidden number} from class, object, offset in the object, and the nearest begin: without the points.

    With ``object_size`` 0 the offset does not count.
    """
    lines: dict[tuple[str, str, int], list[tuple[int, int]]] = defaultdict(list)
    for line in log.values():
        offset = line.offset_bytes if object_size else 0
        lines[line.op_class, line.object, offset].append((line.begin_ns, line.truth_id))
    for candidates in lines.values():
        candidates.sort()
    joined = {}
    for op in ops:
        if object_size and op["offset_bytes"] is None:
            continue
        offset = op["offset_bytes"] % object_size if object_size else 0
        candidates = lines.get((op["class"], op["object"], offset), [])
        i = bisect.bisect_left(candidates, (op["begin_ns"], 0))
        near = candidates[max(0, i - 1) : i + 1]
        if near:
            joined[op["op_id"]] = min(near, key=lambda c: abs(c[0] - op["begin_ns"]))[1]
    return joined


def check(run: Path, log_path: Path, points_path: Path | None, object_size: int = 4 << 20) -> Verdict:
    """All checks. Raises OSError for files that can't be read."""
    verdict = Verdict()
    log = read_log(log_path)
    columns = ("op_id", "class", "object", "offset_bytes", "begin_ns", "end_ns", "latency_ns", "complete")
    ops = rows(run, "ops", columns)
    complete = [op for op in ops if op["complete"]]
    verdict.add(
        "ops", len(complete) == len(ops) == len(log), f"{len(complete)} complete of {len(ops)}; the log has {len(log)}"
    )

    joined = join_by_time(complete, log, object_size)
    unique = len(set(joined.values()))
    verdict.add("join", unique == len(log), f"{unique} of {len(log)} log lines by class, object, offset and begin")
    if points_path is not None:
        by_points = check_points(run, Points(points_path), verdict)
        agree = sum(joined.get(op_id) == number for op_id, number in by_points.items())
        verdict.add("agreement", agree == len(log), f"{agree} ops have the same hidden number by points and by join")

    check_times(complete, joined, log, verdict)
    return verdict


def check_times(
    complete: list[dict[str, Any]], joined: dict[int, int], log: dict[int, LogLine], verdict: Verdict
) -> None:
    """Begin, end and latency of each op against its line."""
    names = ("begin", "end", "latency")
    within = dict.fromkeys(names, 0)
    worst = dict.fromkeys(names, 0)
    stitched_ns = logged_ns = interrupted = held = 0
    for op in complete:
        number = joined.get(op["op_id"])
        if number is None:
            continue
        line = log[number]
        held += line.holds(op["begin_ns"], op["end_ns"])
        if line.interrupted:
            interrupted += 1
            continue
        latency_ns = line.end_ns - line.begin_ns
        stitched_ns += op["latency_ns"]
        logged_ns += latency_ns
        off = (op["begin_ns"] - line.begin_ns, op["end_ns"] - line.end_ns, op["latency_ns"] - latency_ns)
        for name, ns in zip(names, off, strict=True):
            within[name] += abs(ns) <= TOLERANCE_NS
            worst[name] = max(worst[name], abs(ns))
    if any(line.begun_ns is not None for line in log.values()):
        verdict.add(
            "between",
            held == len(log),
            f"{held} of {len(log)} begin and end between the clock's readings around the points",
        )
        verdict.add(
            "interrupted",
            interrupted <= INTERRUPTED * len(log),
            f"{interrupted} of {len(log)} with more than {TOLERANCE_NS // 1000} us between these, left out below",
        )
    compared = len(log) - interrupted
    for name in names:
        verdict.add(
            name,
            within[name] >= WITHIN * compared > 0,
            f"{within[name]} of {compared} within {TOLERANCE_NS // 1000} us, worst {worst[name] / 1000:.1f} us",
        )
    difference = stitched_ns / logged_ns - 1 if logged_ns else 1.0
    verdict.add("mean", abs(difference) <= MEAN_TOLERANCE, f"latency {100 * difference:+.3f} % of the log's")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("run", type=Path, help="run directory")
    parser.add_argument("log", type=Path, help="what demo-bench --log wrote")
    parser.add_argument("--points", type=Path, help="what demo-bench --log-points wrote")
    parser.add_argument(
        "--object-size", type=int, default=4 << 20, metavar="BYTES", help="demo-bench's (default 4194304); 0: on a file"
    )
    args = parser.parse_args()
    try:
        verdict = check(args.run, args.log, args.points, args.object_size)
    except OSError as e:
        print(f"truth_demo: {e}", file=sys.stderr)
        return 1
    print(verdict)
    return 0 if verdict.holds else 1


if __name__ == "__main__":
    sys.exit(main())
