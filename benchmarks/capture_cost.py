# SPDX-License-Identifier: MIT
"""What recording block requests costs: the share of the untraced IOPS that is left, beside `perf record`.

    capture_cost.py [--rounds N] [--before OPLINE]

fio, 4 KiB direct random reads of a loop device whose file is in memory: with io_uring (32 in flight, which fills all
cores) and with psync (one at a time). An untraced run comes before and after each traced one; their mean is the base.
The recorders take turns in each round. ``--before``: the `opline` of another tree, in the same rounds. Results are
appended to capture_cost.csv; docs/performance.md has the newest ones. Needs root, fio, perf.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.results import append  # noqa: E402
from benchmarks.timing import machine  # noqa: E402
from tests.lib.block_capture import loop_device  # noqa: E402

RESULTS = Path(__file__).with_suffix(".csv")
JOBS = {
    "io_uring": ["--ioengine=io_uring", "--iodepth=32", "--iodepth_batch_submit=8", "--iodepth_batch_complete_min=4"],
    "psync": ["--ioengine=psync"],
}
OPLINE = str(Path(sys.executable).with_name("opline"))
BLOCK_ALONE = ["--no-calls", "--no-states"]
RECORDERS = {
    "opline record": ["record", *BLOCK_ALONE],
    "opline record, calls and states": ["record", "--model", "syscalls"],
    "opline record, single events": ["record", *BLOCK_ALONE, "--events", "block:*"],
}
PERF = "perf record, issue and complete"
BEFORE = "opline record, before"
SECONDS = 1.5
ABOUT = ("date", "commit", "cpu", "cpus", "kernel")


def fio(device: str, job: str, output: Path) -> list[str]:
    """The command."""
    what = ["--rw=randread", "--bs=4k", "--direct=1", "--norandommap", "--time_based", f"--runtime={SECONDS}"]
    said = ["--output-format=json", f"--output={output}"]
    return ["fio", "--name=x", f"--filename={device}", *what, *JOBS[job], *said]


def run(command: list[str], output: Path) -> dict[str, Any]:
    """What fio says of its reads."""
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    text = output.read_text()
    (job,) = json.loads(text[text.index("{") :])["jobs"]
    found: dict[str, Any] = job["read"]
    return found


def traced(command: list[str], device: str, job: str, folder: Path) -> dict[str, Any]:
    """IOPS under a recorder, what it wrote for each I/O, and the CPU time of its threads for each."""
    out, output = folder / "run", folder / "fio.json"
    shutil.rmtree(out, ignore_errors=True)
    perf = command[0] == "perf"
    read = run([*command, "-o", str(out), "--", *fio(device, job, output)], output)
    ios = read["total_ios"]
    if perf:
        written, cpu_ns = out.stat().st_size, None
        out.unlink()
    else:
        note = json.loads((out / "recording.json").read_text())
        written = sum(path.stat().st_size for path in (out / "trace").rglob("*") if path.is_file())
        cpu_ns = note["collector"]["cpu_ns"]
    return {"iops": read["iops"], "bytes_per_io": written / ios, "collector_ns_per_io": cpu_ns and cpu_ns / ios}


def measure(rounds: int, jobs: list[str], recorders: dict[str, list[str]], folder: Path) -> list[dict[str, Any]]:
    """A row for each run of a recorder."""
    rows = []
    with ExitStack() as stack:
        device = stack.enter_context(loop_device(512 << 20))
        subprocess.run(["dd", "if=/dev/zero", f"of={device}", "bs=1M", "oflag=direct"], stderr=subprocess.DEVNULL)
        for number in range(rounds):
            for job in jobs:
                output = folder / "fio.json"
                before = run(fio(device, job, output), output)["iops"]
                for name in list(recorders) if number % 2 == 0 else list(recorders)[::-1]:
                    row = traced(recorders[name], device, job, folder)
                    after = run(fio(device, job, output), output)["iops"]
                    base = (before + after) / 2
                    told = {"untraced_iops": base, "share": row["iops"] / base}
                    rows.append({"job": job, "recorder": name, "load": os.getloadavg()[0], **told, **row})
                    before = after
    return rows


def main() -> None:
    """Measure, and append the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--job", nargs="*", choices=list(JOBS), default=list(JOBS))
    parser.add_argument("--only", nargs="*", help="recorders")
    parser.add_argument("--before", metavar="OPLINE", help="of another tree")
    options = parser.parse_args()
    recorders = {name: [OPLINE, *arguments, "--quiet"] for name, arguments in RECORDERS.items()}
    if options.before:
        recorders[BEFORE] = [options.before, *RECORDERS["opline record"], "--quiet"]
    recorders[PERF] = ["perf", "record", "-q", "-a", "-e", "block:block_rq_issue", "-e", "block:block_rq_complete"]
    if options.only:
        recorders = {name: recorders[name] for name in options.only}
    about = {name: value for name, value in machine().items() if name in ABOUT}
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        rows = [{**about, **row} for row in measure(options.rounds, options.job, recorders, Path(folder))]
    written = [{k: round(v, 3) if isinstance(v, float) else v for k, v in row.items()} for row in rows]
    append(RESULTS, list(rows[0]), written)


if __name__ == "__main__":
    main()
