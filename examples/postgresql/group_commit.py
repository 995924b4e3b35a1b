# SPDX-License-Identifier: MIT
"""Who flushed whose commit: what opline says, against a rule of its own over the raw events.

    group_commit.py RECORDING

The rule, over the hits of the model's probes as babeltrace2 reads them: a backend asks for its record to be flushed
(`pg:wal_flush`, `record`), flushes end (`pg:wal_synced`) having written up to a place (`reached` of `pg:wal_sync`), and
the first that ends after the asking and reaches the record is the one that covered it. The backend's own copy of how
far the WAL is flushed (`seen` of `pg:wal_flushed`) is the witness: when it goes on it must have seen a flush that
reaches its record, and none but what has ended by then. Prints how many agree; exit status 1 if one does not.
"""

from __future__ import annotations

import json
import subprocess
import sys
from bisect import bisect_left
from pathlib import Path

import bt2

OPLINE = Path(__file__).resolve().parents[2] / ".venv" / "bin" / "opline"
#: ops whose interval is whole, the flush that each is a member of, and whose thread that flush is
QUERY = """SELECT op_id, object AS backend, begin_ns, end_ns,
    (SELECT first(t.tid ORDER BY t.ts_ns) FROM transitions t
        WHERE t.op_id = o.op_id AND t.batch_id IS NOT NULL AND t.point LIKE 'wal.fsync%') AS leader,
    (SELECT first(t.ts_ns ORDER BY t.ts_ns) FROM transitions t
        WHERE t.op_id = o.op_id AND t.batch_id IS NOT NULL AND t.point LIKE 'wal.fsync%') AS sync_ns
    FROM ops o WHERE class = 'transaction' AND complete AND NOT tainted"""


def hits(recording: Path) -> list[tuple[int, int, str, dict[str, int]]]:
    """(time in ns, thread, event, fields) of the probes around a flush, in their order."""
    found = []
    for message in bt2.TraceCollectionMessageIterator(str(recording / "trace" / "probes")):
        if type(message) is bt2._EventMessageConst and message.event.name.startswith("pg:wal_"):
            event = message.event
            fields = {str(name): int(value) for name, value in event.payload_field.items()}
            ns = message.default_clock_snapshot.value
            found.append((ns, int(event.common_context_field["vtid"]), event.name, fields))
    return sorted(found, key=lambda hit: hit[0])


def by_the_rule(recording: Path) -> tuple[dict[int, list[tuple[int, int, int, int]]], int]:
    """Per backend (asked, went on, the flush's end, its thread) of what was flushed for it; the witness' objections."""
    reaching: dict[int, tuple[int, int]] = {}
    flushes: dict[int, list[tuple[int, int, int]]] = {}  # per cluster: end, reached, thread, in the order of their ends
    asked: dict[int, tuple[int, int, int]] = {}
    waits: list[tuple[int, int, int, int, int, int]] = []  # thread, cluster, asked, went on, record, seen
    for ns, tid, event, fields in hits(recording):
        if event == "pg:wal_sync":
            reaching[tid] = fields["cluster"], fields["reached"]
        elif event == "pg:wal_synced" and tid in reaching:
            cluster, reached = reaching.pop(tid)
            flushes.setdefault(cluster, []).append((ns, reached, tid))
        elif event == "pg:wal_flush":
            asked[tid] = ns, fields["cluster"], fields["record"]
        elif event == "pg:wal_flushed" and tid in asked:
            asked_ns, cluster, record = asked.pop(tid)
            waits.append((tid, cluster, asked_ns, ns, record, fields["seen"]))
    told: dict[int, list[tuple[int, int, int, int]]] = {}
    objections = 0
    for tid, cluster, asked_ns, on_ns, record, seen in waits:
        mine = flushes.get(cluster, [])
        first, past = bisect_left(mine, (asked_ns,)), bisect_left(mine, (on_ns + 1,))
        before = mine[max(0, first - 64) : first]
        if not before or any(reached >= record for _, reached, _ in before):
            continue  # done before, or nobody knows
        covering = next((flush for flush in mine[first:past] if flush[1] >= record), None)
        known = {reached for _, reached, _ in mine[max(0, first - 64) : past]}
        if covering is None or seen < record or seen not in known:
            objections += 1
            continue
        told.setdefault(tid, []).append((asked_ns, on_ns, covering[0], covering[2]))
    return told, objections


def compare(recording: Path) -> tuple[int, int, int, int]:
    """Transactions that both know; of them led and covered by another; those of which opline says something else."""
    argv = [str(OPLINE), "sql", str(recording), QUERY, "--json"]
    if not (recording / "recording.json").exists():
        argv = [str(OPLINE), "sql", str(recording / "trace"), QUERY, "--json", "--model", "postgresql"]
    ops = json.loads(subprocess.run(argv, check=True, capture_output=True, text=True).stdout)
    told, objections = by_the_rule(recording)
    led = covered = 0
    wrong = objections
    for op in ops:
        backend = int(op["backend"])
        of_backend = told.get(backend, [])
        first, past = (bisect_left(of_backend, (op[ns],)) for ns in ("begin_ns", "end_ns"))
        inside = [w for w in of_backend[first:past] if w[1] <= op["end_ns"]]
        if not inside:
            continue
        leaders = {leader for _, _, _, leader in inside}
        ends = [end for _, _, end, _ in inside]
        same = op["leader"] in leaders and any(0 <= end - op["sync_ns"] < 1_000_000_000 for end in ends)
        wrong += not same
        led += op["leader"] == backend
        covered += op["leader"] != backend
    return led + covered, led, covered, wrong


def main(arguments: list[str]) -> int:
    """Print the comparison; the exit status."""
    known, led, covered, wrong = compare(Path(arguments[0]))
    print(f"group commit: {known} transactions: {led} flushed by themselves, {covered} by another; "
          f"{known - wrong} of {known} as an independent rule has it")  # fmt: skip
    return 1 if wrong or not known else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
