# SPDX-License-Identifier: MIT
"""What positions in TCP streams cost (`opline record --tcp`): the demo store over TCP on this machine, 4 ops in flight,
without any event of the store itself.

    tcp_cost.py [--rounds N] [--ops N]

Recordings with and without --tcp take turns, in an order that changes from round to round. Printed are, with --tcp as a
share of without in the same round, the throughput, and the CPU time of client, server and collector per op (medians,
with the interval that has the median with 95 % by order statistics); the events of --tcp per op, and what is lost. The
last lines are of as many recordings more, with the kernel's own account of BPF programs (kernel.bpf_stats_enabled,
which this sets for its time): their time per run. Needs root and examples/demo-store/build.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
OPLINE = str(Path(sys.executable).with_name("opline"))
DEMO = ROOT / "examples" / "demo-store" / "build"
PORT = 7103
STATS = Path("/proc/sys/kernel/bpf_stats_enabled")
PROGRAMS = ("tcp_sendmsg_locked", "sock_recv_length")
WAYS: dict[str, list[str]] = {"without": [], "with": ["--tcp"]}


class Found(NamedTuple):
    """Of one recording: ops per second, CPU time per op in us, events of --tcp per op, events that were lost."""

    throughput: float
    cpu_us: float
    events: float
    lost: int
    programs: dict[str, float]  # ns per run, where the kernel counts it


def run(options: list[str], ops: int) -> Found:
    """One recording."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        out, device = Path(folder) / "run", Path(folder) / "device"
        with device.open("wb") as file:
            file.truncate(64 << 20)
        where = f"--socket tcp:127.0.0.1:{PORT}"
        store = f"{DEMO}/demo-server {where} --device {device} --backend buffered & server=$!"
        bench = f"{DEMO}/demo-bench {where} --ops {ops} --qd 4 --objects 4; kill $server; wait $server"
        argv = [OPLINE, "record", "--quiet", "--no-calls", *options, "-o", str(out), "--", "bash", "-c"]
        script = f"TIMEFORMAT='CPU %U %S'; time {{ {store}; {bench}; }}"
        done = subprocess.run([*argv, script], check=True, capture_output=True, text=True)
        report = json.loads((out / "recording.json").read_text())["collector"]
    found = re.search(r"Average IOPS: +([\d.]+)", done.stdout)
    cpu = re.search(r"CPU ([\d.]+) ([\d.]+)", done.stderr)
    assert found is not None and cpu is not None, done.stdout + done.stderr
    cpu_us = (float(cpu[1]) + float(cpu[2])) * 1e6 + report["cpu_ns"] / 1000
    of_tcp = {name: one for name, one in report["programs"].items() if name in PROGRAMS and one.get("runs")}
    programs = {name: one["ns"] / one["runs"] for name, one in of_tcp.items()}
    events = report["sent"].get("tcp", 0) / ops
    return Found(float(found[1]), cpu_us / ops, events, int(report["lost_ring"]), programs)


def interval(values: list[float]) -> tuple[float, float]:
    """Of the median, with 95 % at least: the k-th smallest and the k-th largest value (binomial, p = 1/2)."""
    n, ordered = len(values), sorted(values)
    outside, k = 0.0, 0
    while k < n // 2 and (outside := outside + math.comb(n, k) / 2**n) <= 0.025:
        k += 1
    return ordered[max(k - 1, 0)], ordered[n - 1 - max(k - 1, 0)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--ops", type=int, default=60_000)
    options = parser.parse_args()
    rounds: list[tuple[Found, Found]] = []
    for number in range(options.rounds):
        order = list(WAYS) if number % 2 == 0 else list(reversed(WAYS))
        found = {way: run(WAYS[way], options.ops) for way in order}
        rounds.append((found["without"], found["with"]))
        one, other = rounds[-1]
        print(f"without {one.throughput:,.0f} ops/s, {one.cpu_us:.1f} us per op; with", end=" ")
        print(f"{other.throughput:,.0f} ops/s, {other.cpu_us:.1f} us per op", flush=True)
    for what, name in (("throughput", "throughput"), ("CPU time per op", "cpu_us")):
        shares = [getattr(b, name) / getattr(a, name) for a, b in rounds]
        low, high = interval(shares)
        print(f"{what}: {statistics.median(shares):.3f} ({low:.3f} to {high:.3f}) in {len(rounds)} rounds")
    with_us, without_us = (statistics.median(pair[i].cpu_us for pair in rounds) for i in (1, 0))
    print(f"CPU time per op: {with_us:.1f} us with, {without_us:.1f} us without")
    print(f"{statistics.median(b.events for _, b in rounds):.2f} events per op, {sum(b.lost for _, b in rounds)} lost")
    before = STATS.read_text()
    try:
        STATS.write_text("1\n")
        counted = [run(WAYS["with"], options.ops).programs for _ in range(options.rounds)]
    finally:
        STATS.write_text(before)
    for name in PROGRAMS:
        times = [one[name] for one in counted]
        low, high = interval(times)
        print(f"{name}: {statistics.median(times):.0f} ns per run ({low:.0f} to {high:.0f})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
