# SPDX-License-Identifier: MIT
"""What the example says besides opline's own reports.

report.py fetch SOCKET FILE       what the OSD says of its last ops (dump_historic_ops), from its admin socket
report.py stitched RECORDING      ops that are complete, against what rados bench has counted
report.py historic RECORDING      the times of an op's states by the OSD's own account, and by ours
report.py overhead DIR            latency and rate without and with recording, by rados bench's figures
"""

from __future__ import annotations

import argparse
import datetime
import json
import re
import socket
import statistics
import struct
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from opline_analyses.runs.run import open_run

# In the order in which a write passes them (src/osd/OpRequest.h); those before are stamped by the messenger.
STATES = ("queued_for_pg", "reached_pg", "started", "op_commit", "commit_sent", "done")
DEPTHS = (1, 16)


def fetch(path: Path) -> bytes:
    """The answer of an admin socket: a length of 4 bytes, big-endian, and the text (src/common/admin_socket.cc)."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(str(path))
        connection.sendall(b'{"prefix": "dump_historic_ops", "format": "json"}\0')
        with connection.makefile("rb") as answer:
            (length,) = struct.unpack(">I", answer.read(4))
            return answer.read(length)


def figure(text: str, name: str) -> float:
    """One of the figures that rados bench prints at its end. Raises ValueError."""
    found = re.search(rf"^{re.escape(name)}:\s+([0-9.e+-]+)\s*$", text, re.MULTILINE)
    if found is None:
        raise ValueError(f"no line {name!r} in what rados bench has printed")
    return float(found.group(1))


def stitched(recording: Path) -> None:
    """How many of the writes that rados bench counts are complete ops, from its call to its taking of the result."""
    writes = int(figure((recording / "stdout.txt").read_text(), "Total writes made"))
    with open_run(recording) as run:
        (complete,) = run.row("SELECT count(*) FROM ops WHERE class = 'aio_operate' AND complete")
    print(f"stitched: {complete:,} of {writes:,} writes end to end ({100 * complete / writes:.2f} %)")


def states_of(document: dict[str, object]) -> dict[str, dict[str, int]]:
    """By object: when each state was reached, in us."""
    found: dict[str, dict[str, int]] = {}
    ops = document["ops"]
    assert isinstance(ops, list)
    for op in ops:
        name = re.search(r":::([^:\s]+):head", op["description"])
        if name is not None and "write" in op["description"]:
            found[name.group(1)] = {e["event"]: micros(e["time"]) for e in op["type_data"]["events"]}
    return found


def micros(text: str) -> int:
    """``2026-11-21T19:19:22.510636+0000`` as us since the epoch."""
    moment = datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%f%z")
    return int(moment.timestamp()) * 1_000_000 + moment.microsecond


def historic(recording: Path) -> None:
    """Each state's duration in both accounts, of the ops that are in both."""
    theirs = states_of(json.loads((recording / "historic_ops.json").read_text()))
    query = (
        "SELECT object, substr(point, 10), ts_ns FROM transitions JOIN ops USING (op_id) WHERE point LIKE 'osd.mark:%'"
    )
    ours: dict[str, dict[str, int]] = {}
    with open_run(recording) as run:
        for name, state, ts_ns in run.rows(query):
            ours.setdefault(str(name), {})[str(state)] = int(ts_ns)
    both = sorted(ours.keys() & theirs.keys())
    print(f"{len(both):,} ops in both accounts; us per op")
    print(f"{'state':28} {'count':>7} {'its mean':>9} {'our mean':>9} {'difference: p50':>16} {'p99':>6}")
    for begin, end in pairwise(STATES):
        rows = [
            (theirs[name][end] - theirs[name][begin], (ours[name][end] - ours[name][begin]) / 1000)
            for name in both
            if all(state in account[name] for account in (theirs, ours) for state in (begin, end))
        ]
        if not rows:
            print(f"{begin + ' → ' + end:28} {0:>7}")
            continue
        off = sorted(abs(its - our) for its, our in rows)
        print(
            f"{begin + ' → ' + end:28} {len(rows):>7,} {statistics.fmean(r[0] for r in rows):>9.1f} "
            f"{statistics.fmean(r[1] for r in rows):>9.1f} "
            f"{off[len(off) // 2]:>16.1f} {off[len(off) * 99 // 100]:>6.1f}"
        )


@dataclass(frozen=True, slots=True)
class Round:
    """One run of rados bench, and what the OSD's threads have run meanwhile, per write (None: not known)."""

    mean_us: float
    iops: float
    osd_cpu_us: float | None


def round_of(path: Path, cpu: Path) -> Round:
    """From what rados bench has printed, and the file with the OSD's CPU time in ns. Raises ValueError."""
    text = path.read_text()
    writes = figure(text, "Total writes made")
    osd_cpu_us = int(cpu.read_text()) / 1000 / writes if cpu.exists() else None
    return Round(figure(text, "Average Latency(s)") * 1e6, figure(text, "Average IOPS"), osd_cpu_us)


def overhead(folder: Path) -> None:
    """Medians of the rounds, their least and largest mean; the recordings with probes are one run each."""
    head = "rados bench, 4 KiB writes"
    titles = (
        f"{'rounds':>6} {'mean us':>9} {'from':>9} {'to':>9} {'ratio':>6} {'IOPS':>6} {'OSD CPU us':>10} {'ratio':>6}"
    )
    print(f"{head:40} {titles}")
    for depth in DEPTHS:
        base: tuple[float, float | None] | None = None
        for what, files in (
            ("untraced", sorted(folder.glob(f"untraced-qd{depth}-*.txt"))),
            ("recorded (shim, block events)", sorted(folder.glob(f"traced-qd{depth}-*.txt"))),
            ("with probes besides", sorted(folder.glob(f"probes-qd{depth}/stdout.txt"))),
        ):
            rounds = [
                round_of(f, f.with_suffix(".cpu_ns") if f.parent == folder else f.parent.with_suffix(".cpu_ns"))
                for f in files
            ]
            if not rounds:
                continue
            means = [r.mean_us for r in rounds]
            mean_us = statistics.median(means)
            costs = [r.osd_cpu_us for r in rounds if r.osd_cpu_us is not None]
            cost_us = statistics.median(costs) if costs else None
            base = base or (mean_us, cost_us)
            line = (
                f"{f'depth {depth}, {what}':40} {len(rounds):>6} {mean_us:>9.1f} {min(means):>9.1f} {max(means):>9.1f} "
                f"{mean_us / base[0]:>6.2f} {statistics.median(r.iops for r in rounds):>6.0f}"
            )
            if cost_us is not None and base[1]:
                line += f" {cost_us:>10.1f} {cost_us / base[1]:>6.2f}"
            print(line)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("fetch", "stitched", "historic", "overhead"))
    parser.add_argument("path", type=Path)
    parser.add_argument("output", type=Path, nargs="?")
    options = parser.parse_args(arguments)
    try:
        if options.what == "fetch":
            options.output.write_bytes(fetch(options.path))
        else:
            {"stitched": stitched, "historic": historic, "overhead": overhead}[options.what](options.path)
    except (OSError, ValueError) as error:
        sys.stderr.write(f"ceph: {options.path}: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
