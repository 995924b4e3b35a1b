# SPDX-License-Identifier: MIT
"""What the records of waits cost in BPF time per I/O: fio, 4 KiB direct random reads of a loop device in memory.

    wait_cost.py [--rounds N] [--ios N] [--jobs N]

The options of `opline record` below take turns in each round. The kernel itself counts the time of the programs
(kernel.bpf_stats_enabled, which this sets for its time). Printed are medians of the rounds, in ns per I/O: all programs
at scheduler and interrupt tracepoints, and those at sched_switch and sched_waking per run. Needs root and fio.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.lib.block_capture import loop_device  # noqa: E402

OPLINE = str(Path(sys.executable).with_name("opline"))
WAYS = {"--no-chains": ["--no-chains"], "(chains)": [], "--user-stacks": ["--user-stacks"]}
STATS = Path("/proc/sys/kernel/bpf_stats_enabled")
OF_WAITS = ("sched_switch", "sched_waking", "irq_", "softirq_", "hrtimer_", "local_timer_")


def run(options: list[str], device: str, ios: int, jobs: int) -> dict[str, float]:
    """BPF time of one recording."""
    what = ["--rw=randread", "--bs=4k", "--direct=1", "--norandommap", "--ioengine=psync", f"--io_size={ios * 4}k"]
    fio = ["fio", "--name=x", f"--filename={device}", "--size=64m", f"--numjobs={jobs}", "--thread", *what]
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        out = Path(folder) / "run"
        argv = [OPLINE, "record", "--no-calls", *options, "-o", str(out), "--", *fio]
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        report: dict[str, Any] = json.loads((out / "recording.json").read_text())["collector"]
    programs = report["programs"]
    whole = sum(one["ns"] for name, one in programs.items() if name.startswith(OF_WAITS))
    found = {"ns per I/O": whole / (ios * jobs), "records per I/O": report["sent"]["off_cpu"] / (ios * jobs)}
    for name in ("sched_switch", "sched_waking", "softirq_entry"):
        if name in programs:
            found[f"{name}, ns"] = programs[name]["ns"] / programs[name]["runs"]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ios", type=int, default=20_000, help="of each job")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    before = STATS.read_text()
    rows: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    try:
        STATS.write_text("1\n")
        with loop_device() as device:
            for _ in range(options.rounds):
                for way, arguments in WAYS.items():
                    rows[way].append(run(arguments, device, options.ios, options.jobs))
    finally:
        STATS.write_text(before)
    for way, found in rows.items():
        medians = (f"{name} {statistics.median(one[name] for one in found):,.2f}" for name in found[0])
        print(f"{way:20} {'; '.join(medians)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
