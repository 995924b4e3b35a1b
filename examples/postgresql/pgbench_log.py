# SPDX-License-Identifier: MIT
"""pgbench's own log of each transaction as the log that `opline coverage` compares with: RECORDING/pgbench.csv.

    pgbench_log.py RECORDING LOG...

A line of pgbench's log (-l) is: client, transaction, time in us, script, end in seconds and us of the wall clock. The
recording's manifest says how far that clock is from the trace's. pgbench numbers its clients, PostgreSQL its backends:
of each client the backend is the one whose transactions end when the client's do. Prints what was compared, and how
far pgbench's latencies are from the ops'.

Between pgbench's clock and the op's first and last point its thread may lose its CPU: that is pgbench's latency and not
the op's. The scheduler's events in the trace tell for how long: begun_ns and ended_ns of the CSV are so much later than
begin_ns and end_ns, as a second look at the clock right at the point would be.
"""

from __future__ import annotations

import csv
import json
import statistics
import subprocess
import sys
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

CLASSES = ("transaction", "statement")
NEAR_NS = 20_000

Times = tuple[int, int]  # begin, end


class Op(NamedTuple):
    """An op, and the thread of pgbench that began it."""

    begin_ns: int
    end_ns: int
    tid: int


def clients_of(logs: list[Path], realtime_minus_monotonic_ns: int) -> dict[int, list[Times]]:
    """Per client (begin_ns, end_ns) of its transactions on the trace's clock, in their order."""
    found: dict[int, list[Times]] = {}
    for log in logs:
        for line in log.read_text().splitlines():
            client, _, took_us, _, seconds, us = (int(word) for word in line.split()[:6])
            end_ns = seconds * 1_000_000_000 + us * 1000 - realtime_minus_monotonic_ns
            found.setdefault(client, []).append((end_ns - took_us * 1000, end_ns))
    return {client: sorted(times) for client, times in found.items()}


def asked(opline: str, *arguments: object) -> list[str]:
    """Lines of a command's output."""
    argv = [opline, *map(str, arguments)]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.splitlines()


def backends_of(recording: Path, opline: str) -> dict[str, list[Op]]:
    """Per backend its ops, in their order; ops of one class, that of most."""
    query = """SELECT class, object, begin_ns, end_ns, tid FROM ops JOIN
        (SELECT op_id, arg_min(tid, seq) AS tid FROM transitions GROUP BY op_id) USING (op_id)
        WHERE complete ORDER BY begin_ns"""
    rows = json.loads("\n".join(asked(opline, "sql", recording, query, "--json")))
    most = max(CLASSES, key=lambda name: sum(row["class"] == name for row in rows))
    found: dict[str, list[Op]] = {}
    for row in rows:
        if row["class"] == most:
            found.setdefault(str(row["object"]), []).append(Op(row["begin_ns"], row["end_ns"], row["tid"]))
    return found


def off_cpu(recording: Path, opline: str) -> dict[int, list[Times]]:
    """Of each thread when it was off its CPU, in order; empty where the recording has no such events."""
    found: dict[int, list[Times]] = {}
    for line in asked(opline, "events", recording / "trace", "--names", "sched:off_cpu", "--json"):
        fields = json.loads(line)["fields"] or {}
        if "off_at" in fields:
            found.setdefault(fields["tid"], []).append((fields["off_at"], fields["ktime"]))
    return {tid: sorted(times) for tid, times in found.items()}


def within(times: Sequence[Times], begin_ns: int, end_ns: int) -> int:
    """How much of the interval these take."""
    total, at = 0, max(0, bisect_right(times, (begin_ns, 0)) - 1)
    while at < len(times) and times[at][0] < end_ns:
        total += max(0, min(times[at][1], end_ns) - max(times[at][0], begin_ns))
        at += 1
    return total


def near(differences_ns: Sequence[int]) -> float:
    """The share of these that are small."""
    return sum(abs(ns) <= NEAR_NS for ns in differences_ns) / len(differences_ns)


def apart_ns(client: list[Times], backend: list[Op]) -> float:
    """How far the ends of their transactions are apart, one by one: the median."""
    ends = zip(client, backend, strict=False)
    return statistics.median(abs(mine[1] - theirs.end_ns) for mine, theirs in ends)


def main(arguments: list[str]) -> int:
    """Write the CSV; the exit status."""
    recording, logs = Path(arguments[0]), [Path(name) for name in arguments[1:]]
    root = Path(__file__).resolve().parents[2]
    manifest = json.loads((recording / "recording.json").read_text())
    clients = clients_of(logs, manifest["clocks_before"]["realtime_minus_monotonic_ns"])
    opline = str(root / ".venv" / "bin" / "opline")
    backends, away = backends_of(recording, opline), off_cpu(recording, opline)
    differences: list[tuple[int, int]] = []  # of pgbench's latency and the op's, and the time off the CPU in that
    with (recording / "pgbench.csv").open("w", newline="") as out:
        rows = csv.writer(out)
        rows.writerow(["begin_ns", "end_ns", "object", "begun_ns", "ended_ns"])
        for times in clients.values():
            backend = min(backends, key=lambda name: apart_ns(times, backends[name]))
            for mine, op in zip(times, backends[backend], strict=False):
                off = away.get(op.tid, [])
                before, after = within(off, mine[0], op.begin_ns), within(off, op.end_ns, mine[1])
                rows.writerow([*mine, backend, mine[0] + before, mine[1] + after])
                differences.append(((mine[1] - mine[0]) - (op.end_ns - op.begin_ns), before + after))
            rows.writerows([*mine, backend, *mine] for mine in times[len(backends[backend]) :])
    logged, ops = sum(map(len, clients.values())), sum(map(len, backends.values()))
    ordered = sorted(ns for ns, _ in differences)
    p50, p99 = (ordered[int(len(ordered) * share)] / 1000 for share in (0.5, 0.99))
    print(f"pgbench's log: {logged} transactions; ops: {ops}")
    print(
        f"pgbench's latency less the op's: p50 {p50:.1f} us, p99 {p99:.1f} us, max {ordered[-1] / 1000:.1f} us; within "
        f"20 us: {near(ordered):.1%}"
    )
    on_cpu = [ns for ns, off_ns in differences if off_ns == 0]
    if away and on_cpu:
        print(
            f"pgbench's thread was off its CPU between its clock and the op in {1 - len(on_cpu) / len(ordered):.1%} of "
            f"them; of the others within 20 us: {near(on_cpu):.1%}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
