#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What it costs to look on: `opline live VIEW` while fio makes so many block events a second on a loop device.

Prints the processor time of `opline live` alone and of its collector (the capture: BPF's programs run in fio's own time
and are not in it) in per cent of one CPU; how far behind it is: single reads of ours, from the moment in which they
are done to the moment in which `opline live log`, beside it, has printed them; and its resident memory in the first and
in the last minute. Ends with an error if events were lost, or if it has not counted as many I/Os as fio, nor said why.
Needs root.

    .venv/bin/python benchmarks/live_cost.py --seconds 60 --iops 12500 --view iostat
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import re
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from tests.lib.block_capture import loop_device  # noqa: E402

OPLINE = Path(sys.executable).with_name("opline")
TICKS = os.sysconf("SC_CLK_TCK")
DEVICE_BYTES = 1 << 30
SETTLE_S = 3.0
PATIENCE_S = 5.0


def cpu_s(pid: int) -> float:
    """User and system time of a process so far, without its children's."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def resident_kib(pid: int) -> int:
    """Its resident memory."""
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) if found else 0


def child_of(pid: int) -> int:
    """Its only child."""
    (found,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(found)


class Behind:
    """Reads of our own and when `opline live log` has printed them."""

    def __init__(self, device: str) -> None:
        argv = [str(OPLINE), "live", "log", "-d", Path(device).name, "-p", str(os.getpid())]
        self._log = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self._log.stdout is not None
        self._log.stdout.readline()
        self._device = os.open(device, os.O_RDONLY | os.O_DIRECT)
        self._page = mmap.mmap(-1, 4096)
        self.seconds: list[float] = []
        self.reads = 0

    def look(self) -> None:
        """One more. Where no BPF program has seen its end there is no line: it is counted, and not waited for."""
        os.preadv(self._device, [self._page], 0)
        done = time.monotonic()
        self.reads += 1
        assert self._log.stdout is not None
        if select.select([self._log.stdout], [], [], PATIENCE_S)[0]:
            self._log.stdout.readline()
            self.seconds.append(time.monotonic() - done)

    def end(self) -> None:
        os.close(self._device)
        self._log.send_signal(signal.SIGINT)
        self._log.communicate(timeout=60)


def fio(device: str, seconds: float, iops: int, report: Path) -> subprocess.Popen[bytes]:
    """Single reads, so many a second; none has a neighbour that it could be merged with."""
    argv = ["fio", "--name=a", f"--filename={device}", "--direct=1", "--rw=randread", "--bs=4k", "--ioengine=libaio"]
    argv += ["--iodepth=8", "--blockalign=8k", "--time_based", f"--runtime={seconds}", f"--rate_iops={iops}"]
    argv += ["--output-format=json", f"--output={report}"]
    return subprocess.Popen(argv, stdout=subprocess.DEVNULL)


def counted_and_made(rows: Path, report: Path, own: int) -> tuple[int, int]:
    """How many I/Os the rows have, and how many fio and we have made."""
    text = report.read_text()  # fio's notes come before its JSON
    made = own + json.loads(text[text.index("{\n") :])["jobs"][0]["read"]["total_ios"]
    counted = 0
    for row in map(json.loads, rows.read_text().splitlines()):
        groups = [i["groups"] for i in row["intervals"]] if "intervals" in row else [[{"count": row["read_count"]}]]
        counted += sum(group["count"] for groups_of_one in groups for group in groups_of_one)
    return counted, made


def measure(asked: argparse.Namespace, device: str, folder: Path) -> dict[str, float]:
    """Runs all of it; see above."""
    argv = [str(OPLINE), "live", asked.view, "1", "-d", Path(device).name, "--json"]
    rows = folder / "rows.jsonl"
    with rows.open("wb") as out:
        ours = subprocess.Popen(argv, stdout=out, stderr=subprocess.PIPE, text=True)
        while not rows.stat().st_size and ours.poll() is None:
            time.sleep(0.1)
        work = fio(device, asked.seconds + 2 * SETTLE_S, asked.iops, folder / "fio.json")
        behind = None if asked.alone else Behind(device)
        time.sleep(SETTLE_S)
        collector = child_of(ours.pid)
        began, before, capture = time.monotonic(), cpu_s(ours.pid), cpu_s(collector)
        memory: list[int] = []
        while time.monotonic() - began < asked.seconds:
            memory.append(resident_kib(ours.pid))
            if behind is not None:
                behind.look()
            time.sleep(1)
        took = time.monotonic() - began
        found = {"opline_cpu_percent": (cpu_s(ours.pid) - before) / took * 100}
        found["capture_cpu_percent"] = (cpu_s(collector) - capture) / took * 100
        work.wait()
        if behind is not None:
            behind.end()
            found["behind_median_s"] = statistics.median(behind.seconds)
            found["behind_max_s"] = max(behind.seconds)
        ours.send_signal(signal.SIGINT)
        said = ours.communicate(timeout=60)[1]
    if ours.returncode != 0:
        raise SystemExit(said)
    events = re.search(r" in ([\d.]+) s, (\d+) events, (\d+|none)", said)
    assert events is not None, said
    found["events_lost"] = 0 if events[3] == "none" else int(events[3])
    print(said, end="", file=sys.stderr)
    own = 0 if behind is None else behind.reads
    counted, made = counted_and_made(rows, folder / "fio.json", own)
    told = re.search(r"not counted of \d+ I/Os: (.*)\.", said)
    found["ios_told"] = sum(map(int, re.findall(r"\d+", told[1]))) if told else 0  # why they can't be counted
    found["ios_counted"], found["ios_made"] = counted, made
    found["events_per_s"] = int(events[2]) / float(events[1])
    minute = min(60, max(1, len(memory) // 4))
    found["first_mib"] = statistics.median(memory[:minute]) / 1024
    found["last_mib"] = statistics.median(memory[-minute:]) / 1024
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60, help="default: %(default)s")
    parser.add_argument("--iops", type=int, default=12500, help="four events each (default: %(default)s)")
    parser.add_argument("--view", default="iostat", choices=("hist", "iostat"), help="default: %(default)s")
    parser.add_argument("--alone", action="store_true", help="no `live log` beside it, so no delay is measured")
    asked = parser.parse_args()
    with loop_device(DEVICE_BYTES) as device, tempfile.TemporaryDirectory() as folder:
        found = measure(asked, device, Path(folder))
    for name, value in found.items():
        print(f"{name:20} {value:12.2f}")
    if found["ios_counted"] + found["ios_told"] != found["ios_made"] or found["events_lost"]:
        raise SystemExit("not every I/O was counted")


if __name__ == "__main__":
    main()
