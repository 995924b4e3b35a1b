# SPDX-License-Identifier: MIT
"""What share of a bulk transfer's CPU time positions in TCP streams take (`opline record --tcp`), by the kernel's own
account of BPF programs (kernel.bpf_stats_enabled, which this sets for its time).

    tcp_bulk_cost.py [--rounds N] [--calls N]

A process sends blocks of one size to its child over the loopback, as fast as both can. Printed per size are the time of
BPF programs and of the collector as shares of the CPU time of both processes: medians of the rounds, with the interval
that has the median with 95 % by order statistics. Other work of the machine changes the throughput, and these shares
less. Needs root.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.tcp_cost import OPLINE, PROGRAMS, STATS, interval

SIZES = (1024, 16384, 65536)
TRANSFER = """
import os, resource, socket, sys
size, calls = map(int, sys.argv[1:])
listener = socket.create_server(("127.0.0.1", 0))
if os.fork() == 0:
    peer, buffer = listener.accept()[0], bytearray(65536)
    while peer.recv_into(buffer): pass
    os._exit(0)
sender = socket.create_connection(listener.getsockname())
sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
for _ in range(calls): sender.sendall(bytes(size))
sender.close()
os.wait()
used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
print(sum(one.ru_utime + one.ru_stime for one in used))
"""


def shares(size: int, calls: int) -> tuple[float, float, float, int]:
    """Of one transfer: the programs' time and the collector's as shares of its CPU time, events per call, lost ones."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        out = Path(folder) / "run"
        argv = [OPLINE, "record", "--tcp", "--quiet", "--no-calls", "--no-states", "-o", str(out), "--"]
        transfer = [sys.executable, "-c", TRANSFER, str(size), str(calls)]
        done = subprocess.run([*argv, *transfer], check=True, capture_output=True, text=True)
        report = json.loads((out / "recording.json").read_text())["collector"]
    cpu_ns = float(done.stdout) * 1e9
    ours_ns = sum(report["programs"][name]["ns"] for name in PROGRAMS)
    return ours_ns / cpu_ns, report["cpu_ns"] / cpu_ns, report["sent"]["tcp"] / calls, int(report["lost_ring"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--calls", type=int, default=40_000)
    options = parser.parse_args()
    before = STATS.read_text()
    try:
        STATS.write_text("1\n")
        found = {size: [shares(size, options.calls) for _ in range(options.rounds)] for size in SIZES}
    finally:
        STATS.write_text(before)
    for size, rounds in found.items():
        words = []
        for which, what in ((0, "programs"), (1, "collector")):
            values = [100 * one[which] for one in rounds]
            low, high = interval(values)
            words.append(f"{what} {statistics.median(values):.1f} % ({low:.1f} to {high:.1f})")
        events = statistics.median(one[2] for one in rounds)
        print(f"{size} bytes: {', '.join(words)}; {events:.1f} events per call, {sum(one[3] for one in rounds)} lost")
    return 0


if __name__ == "__main__":
    sys.exit(main())
