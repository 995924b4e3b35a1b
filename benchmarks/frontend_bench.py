# SPDX-License-Identifier: MIT
"""The babeltrace2 front end against `babeltrace2 -o dummy` on the same traces: at most 1.3 times its processor time.

Proves first that both readers make the same tables, then times in interleaved rounds, user + system time of whole
processes less that of one that only starts. Prints a table, and appends a row per figure to frontend.csv:

    dummy      babeltrace2 -o dummy: decoding and its own muxer, nothing else
    frontend   our graph, merge and the fields that the model wants, into a core whose ops never begin
    correlate  the same with everything that the core does, tables included, but no files
    native     the native reader with the same core
"""

from __future__ import annotations

import argparse
import datetime
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow.parquet as pq

from opline.correlation import correlate
from opline.model import load_model
from opline.store.schema import TABLES

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks import results  # noqa: E402

RESULTS = Path(__file__).with_name("frontend.csv")
LIMIT = 1.3
TRACES = {"ctf-mem-qd1": "ceph", "app-sync-qd4-nvme": str(ROOT / "tests" / "models" / "lab.toml")}
COLUMNS = ("date", "commit", "cpu", "trace", "events", "what", "cpu_ns_per_event", "times_dummy")

# What is timed, each in a process of its own: TRACE MODEL.
START = """
import json, sys
from pathlib import Path
from opline import _core
from opline.model import load_model
from opline.readers.babeltrace import Bt2Reader
from opline.readers.native import NativeReader
from opline.readers.trace import find_traces
plan = json.loads(load_model(sys.argv[2]).plan_json())
"""
READ = """
core = _core.Core(json.dumps(plan))
for _ in {reader}(find_traces(Path(sys.argv[1]))).read(core):
    if core.take_ready():
        core.take()
        core.take_new_strings()
assert core.events_seen() > 0
"""
NO_OPS = """
for point in plan["points"]:
    point.update(role=None, thread=None, bind=[], batch=None)
"""
PROGRAMS = {
    "frontend": START + NO_OPS + READ.format(reader="Bt2Reader"),
    "correlate": START + READ.format(reader="Bt2Reader"),
    "native": START + READ.format(reader="NativeReader"),
}


def processor_seconds(argv: list[str]) -> float:
    """User + system time of a process and its children; raises if it fails."""
    with Path(os.devnull).open("w") as nowhere:
        process = subprocess.Popen(argv, stdout=nowhere)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"failed: {argv[0]} ({process.returncode})")
    return usage.ru_utime + usage.ru_stime


def same_tables(trace: Path, model: str, folder: Path) -> int:
    """Both readers make the same tables of it; gives the number of events."""
    events = 0
    for reader in ("native", "bt2"):
        manifest = correlate(trace, load_model(model), folder / reader, reader=reader, progress=False)
        events = int(manifest["core"]["events"])
    for table in TABLES:
        native, bt2 = (pq.read_table(folder / r / f"{table.name}.parquet") for r in ("native", "bt2"))
        if native.num_rows != bt2.num_rows or native.to_pydict() != bt2.to_pydict():
            raise SystemExit(f"{trace.name}: the readers differ in {table.name}; nothing is timed")
    return events


def measure(trace: Path, model: str, rounds: int) -> dict[str, float]:
    """Medians of the rounds: seconds per figure, less what a process needs to start."""
    commands = {"dummy": ["babeltrace2", "-o", "dummy", str(trace)], "babeltrace2": ["babeltrace2", "--version"]}
    commands |= {name: [sys.executable, "-c", code, str(trace), model] for name, code in PROGRAMS.items()}
    commands["python"] = [sys.executable, "-c", START, str(trace), model]
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            seconds[name].append(processor_seconds(command))
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    return {
        name: medians[name] - medians["babeltrace2" if name == "dummy" else "python"] for name in ("dummy", *PROGRAMS)
    }


def cpu_model() -> str:
    """As the kernel names it."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return "unknown"


def commit() -> str:
    """Of the checkout; with a plus if something is changed."""
    said = subprocess.run(
        ["git", "describe", "--always", "--dirty=+"], cwd=ROOT, text=True, capture_output=True, check=False
    )
    return said.stdout.strip() or "unknown"


def main() -> int:
    """Measures; the exit status says whether the limit holds."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--no-results", action="store_true", help="append nothing to frontend.csv")
    args = parser.parse_args()
    rows: list[dict[str, object]] = []
    fine = True
    print(f"{'trace':20} {'events':>8} {'what':10} {'ns/event':>8} {'x dummy':>8}")
    with tempfile.TemporaryDirectory(prefix="opline-bench-") as folder:
        for name, model in TRACES.items():
            packed = ROOT / "tests" / "traces" / f"{name}.tar.xz"
            subprocess.run(["tar", "-xJf", packed, "-C", folder], check=True)
            trace = Path(folder) / name
            events = same_tables(trace, model, Path(folder) / "runs")
            shutil.rmtree(Path(folder) / "runs")
            figures = measure(trace, model, args.rounds)
            for what, seconds in figures.items():
                times = seconds / figures["dummy"]
                print(f"{name:20} {events:8} {what:10} {seconds * 1e9 / events:8.0f} {times:8.2f}")
                row = (
                    datetime.date.today().isoformat(), commit(), cpu_model(), name, events, what,
                    round(seconds * 1e9 / events), round(times, 2),
                )  # fmt: skip
                rows.append(dict(zip(COLUMNS, row, strict=True)))
            fine = fine and figures["frontend"] <= LIMIT * figures["dummy"]
    if not args.no_results:
        results.append(RESULTS, COLUMNS, rows)
    print(f"frontend at most {LIMIT} x dummy: {'yes' if fine else 'NO'}")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
