#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the shim for Ceph adds to a call: in processor time, while nobody records and in a recording.

Runs ceph_shim_calls.c, which calls by turns what a program gets and the library's own function, in interleaved rounds;
proves that the recording has the events of every call; prints medians per call. A row per figure goes to ceph_shim.csv:

    plain      the library's own, in nanoseconds
    none       how the two ways differ where there is no shim: what is not more than that says nothing (not in the rows)
    off        what the shim adds while nobody records
    on         what it adds in a recording with the model `ceph`: its thread writes a record into its ring
    bare       what LTTng's own would cost: the same events with the same contexts, around the shortest system call
    events     how many events the call is

and, besides, what the collector takes of another processor per event.

    make bench          or      .venv/bin/python benchmarks/ceph/ceph_shim_bench.py --count 40000 --rounds 7
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from opline.applications.ceph import installed

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

from benchmarks import results  # noqa: E402

RESULTS = HERE / "ceph_shim.csv"
LIMIT_NS = 300
COLUMNS = ("date", "commit", "cpu", "call", "plain_ns", "off_ns", "on_ns", "events", "rounds", "bare_ns")
SHIM = installed.SHIM
#: Events of one call of each kind that the model asks for.
EVENTS = {
    "sendmsg_osd_op": 1,  # msgr_tx_msg
    "send_reply": 1,
    "recv_osd_op": 1,  # msgr_rx_msg
    "recv_reply": 1,
    "recv_osd_op_begin": 1,  # whole 0: it takes Ceph two calls
    "recv_osd_op_rest": 1,
    "send_not_ceph": 0,
    "write_not_ceph": 0,
    "read_not_ceph": 0,
    "pwrite": 2,
    "pread": 2,
    "fdatasync": 2,
    "epoll_wait": 0,
    "dup_close": 0,
    "io_submit": 1,
    "io_getevents": 1,
    "getppid": 0,
    "bare_message": 1,
    "bare_pair": 2,
    "bare_short": 1,
}
#: By which bare events a call's are measured.
BARE = {
    "sendmsg_osd_op": "bare_message",
    "send_reply": "bare_message",
    "recv_osd_op": "bare_message",
    "recv_reply": "bare_message",
    "recv_osd_op_begin": "bare_message",
    "recv_osd_op_rest": "bare_message",
    "pwrite": "bare_pair",
    "pread": "bare_pair",
    "fdatasync": "bare_pair",
    "io_submit": "bare_short",
    "io_getevents": "bare_short",
}

#: By call: nanoseconds of the library's own and what is more in what a program gets; or of the only way.
Figures = dict[str, list[tuple[float, float]]]


def figures_of(text: str) -> dict[str, tuple[float, float]]:
    """What the program has printed."""
    found: dict[str, tuple[float, float]] = {}
    for line in text.splitlines():
        name, *values = line.split()
        direct, called = float(values[0]), float(values[-1])
        found[name] = (direct, called - direct)
    return found


def calls(program: Path, count: int, env: dict[str, str]) -> dict[str, tuple[float, float]]:
    """One execution."""
    argv = [str(program), str(count)]
    return figures_of(
        subprocess.run(argv, env={**os.environ, **env}, capture_output=True, text=True, check=True).stdout
    )


def recorded(program: Path, count: int, folder: Path) -> dict[str, tuple[float, float]]:
    """The same in a recording, and "collector", its time per event; the trace must have every event."""
    argv = [sys.executable, "-m", "opline_analyses", "record", "-o", str(folder), "--no-block", "--sessiond", "private"]
    argv += ["--model", "ceph", "--", str(program), str(count)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"the recording failed: {done.stderr}")
    recording = json.loads((folder / "recording.json").read_text())
    events, rings = recording["event_count"], recording["rings"]
    batch = count // 20 * 20
    wanted = sum(n * (count if call.startswith(("recv", "io_")) else batch) for call, n in EVENTS.items())
    wanted += 2 * batch + 3 * count  # besides what is timed: what is sent is received, and the other way round
    if not wanted <= events <= wanted + 100:
        raise SystemExit(f"{events} events recorded, {wanted} expected: {done.stderr}")
    return {**figures_of(done.stdout), "collector": (rings["cpu_ns"] / rings["sent"], 0.0)}


def median(figures: Figures, call: str, which: int) -> float:
    """Of the rounds."""
    return statistics.median(values[which] for values in figures[call])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=40000, help="calls of each kind and round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--no-save", action="store_true", help="no row in ceph_shim.csv")
    args = parser.parse_args()
    none: Figures = defaultdict(list)
    off: Figures = defaultdict(list)
    on: Figures = defaultdict(list)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = folder / "calls"
        argv = ["gcc", "-O2", "-o", str(program), str(HERE / "ceph_shim_calls.c"), "-laio", "-pthread", "-ldl"]
        subprocess.run(argv, check=True)
        for number in range(args.rounds):
            for figures, run in (
                (none, calls(program, args.count, {})),
                (off, calls(program, args.count, {"LD_PRELOAD": str(SHIM)})),
                (on, recorded(program, args.count, folder / str(number))),
            ):
                for call, value in run.items():
                    figures[call].append(value)
    rows: list[tuple[object, ...]] = []
    worst = [0, 0, 0]
    print(
        f"{'call':18} {'plain':>8} {'none':>8} {'off':>8} {'on':>8} {'bare':>8} {'on/bare':>8} {'events':>7}"
        f"   ns, medians of {args.rounds} interleaved rounds"
    )
    empty = median(on, "getppid", 0)
    for call in EVENTS:
        if call.startswith("bare_") or call == "getppid":
            continue
        base = median(off, call, 0)
        added = [median(figures, call, 1) for figures in (none, off, on)]
        bare = median(on, BARE[call], 0) - empty if call in BARE else None
        against = f"{bare:8.0f} {added[2] / bare:8.2f}" if bare else " " * 17
        print(f"{call:18} {base:8.0f} {added[0]:+8.0f} {added[1]:+8.0f} {added[2]:+8.0f} {against} {EVENTS[call]:7}")
        worst = [max(before, round(value)) for before, value in zip(worst, map(abs, added), strict=True)]
        rows.append((call, *map(round, (base, *added[1:])), EVENTS[call], args.rounds, round(bare) if bare else ""))
    print(
        f"A call costs at most {worst[1]} ns more while nobody records, {worst[2]} in a recording (limit: {LIMIT_NS}); "
        f"without the shim the two ways differ by {worst[0]} at most."
    )
    print(f"The collector takes {median(on, 'collector', 0):.0f} ns per event.")
    if not args.no_save:
        save(rows)


def save(rows: list[tuple[object, ...]]) -> None:
    """Append the rows to ceph_shim.csv."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=HERE, capture_output=True, text=True).stdout
    model = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if "model name" in line
    ]
    head = (datetime.datetime.now(datetime.UTC).date().isoformat(), commit.strip(), model[0] if model else "")
    results.append(RESULTS, COLUMNS, [dict(zip(COLUMNS, (*head, *row), strict=True)) for row in rows])


if __name__ == "__main__":
    main()
