# SPDX-License-Identifier: MIT
"""pgbench's own log of each transaction as the log that `opline coverage` compares with: RECORDING/pgbench.csv.

    pgbench_log.py RECORDING LOG...

A line of pgbench's log (-l) is: client, transaction, time in us, script, end in seconds and us of the wall clock. The
recording's manifest says how far that clock is from the trace's. pgbench numbers its clients, PostgreSQL its backends:
of each client the backend is the one whose transactions end when the client's do. Prints what was compared, and how
far pgbench's latencies are from the ops'.
"""

from __future__ import annotations

import csv
import json
import statistics
import subprocess
import sys
from pathlib import Path

CLASSES = ("transaction", "statement")


def clients_of(logs: list[Path], realtime_minus_monotonic_ns: int) -> dict[int, list[tuple[int, int]]]:
    """Per client (begin_ns, end_ns) of its transactions on the trace's clock, in their order."""
    found: dict[int, list[tuple[int, int]]] = {}
    for log in logs:
        for line in log.read_text().splitlines():
            client, _, took_us, _, seconds, us = (int(word) for word in line.split()[:6])
            end_ns = seconds * 1_000_000_000 + us * 1000 - realtime_minus_monotonic_ns
            found.setdefault(client, []).append((end_ns - took_us * 1000, end_ns))
    return {client: sorted(times) for client, times in found.items()}


def backends_of(recording: Path, opline: str) -> dict[str, list[tuple[int, int]]]:
    """Per backend (begin_ns, end_ns) of its ops, in their order; ops of one class, that of most."""
    query = "SELECT class, object, begin_ns, end_ns FROM ops WHERE complete ORDER BY begin_ns"
    argv = [opline, "sql", str(recording), query, "--json"]
    rows = json.loads(subprocess.run(argv, check=True, capture_output=True, text=True).stdout)
    most = max(CLASSES, key=lambda name: sum(row["class"] == name for row in rows))
    found: dict[str, list[tuple[int, int]]] = {}
    for row in rows:
        if row["class"] == most:
            found.setdefault(str(row["object"]), []).append((row["begin_ns"], row["end_ns"]))
    return found


def apart_ns(client: list[tuple[int, int]], backend: list[tuple[int, int]]) -> float:
    """How far the ends of their transactions are apart, one by one: the median."""
    ends = zip(client, backend, strict=False)
    return statistics.median(abs(mine[1] - theirs[1]) for mine, theirs in ends)


def main(arguments: list[str]) -> int:
    """Write the CSV; the exit status."""
    recording, logs = Path(arguments[0]), [Path(name) for name in arguments[1:]]
    root = Path(__file__).resolve().parents[2]
    manifest = json.loads((recording / "recording.json").read_text())
    clients = clients_of(logs, manifest["clocks_before"]["realtime_minus_monotonic_ns"])
    backends = backends_of(recording, str(root / ".venv" / "bin" / "opline"))
    differences: list[int] = []
    with (recording / "pgbench.csv").open("w", newline="") as out:
        rows = csv.writer(out)
        rows.writerow(["begin_ns", "end_ns", "object"])
        for times in clients.values():
            backend = min(backends, key=lambda name: apart_ns(times, backends[name]))
            rows.writerows([begin, end, backend] for begin, end in times)
            for mine, theirs in zip(times, backends[backend], strict=False):
                differences.append((mine[1] - mine[0]) - (theirs[1] - theirs[0]))
    logged, ops = sum(map(len, clients.values())), sum(map(len, backends.values()))
    ordered = sorted(differences)
    near = sum(abs(difference) <= 20_000 for difference in ordered)
    p50, p99 = (ordered[int(len(ordered) * share)] / 1000 for share in (0.5, 0.99))
    print(f"pgbench's log: {logged} transactions; ops: {ops}")
    print(
        f"pgbench's latency less the op's: p50 {p50:.1f} us, p99 {p99:.1f} us, max {ordered[-1] / 1000:.1f} us; within "
        f"20 us: {100 * near / len(ordered):.1f} %"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
