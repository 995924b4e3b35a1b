#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How often `opline why` finds what was planted: records the demo store with faults, and counts.

For each fault, load and seed the demo store runs once under `opline record`; a row per run goes to
planted_faults.csv. A load is a queue depth, in a closed loop (16 saturates the store), or `16 paced`: a schedule of
RATE ops a second, which does not.

    excess_ns  the mean latency of the slow ops less that of the typical ones
    spent      1: the stage with the largest difference between slow and typical ops is the planted one
    caused     1: so is the first cause, when waits are charged to what the ops ahead were doing
    p99        1: so is what contributes most to p99; empty: too few ops
    share      the planted stage's part of the difference, as a cause, in %
    behind     of how many of the slow ops, in %, the fault makes half of the excess or more (planted_truth.py)
    separator  right: what is named is what was planted; wrong: something else is; none: nothing is
    named      the condition that is named

    when       the period of the bursts in which the slow ops come, in ms; empty: none is named

The store's faults are logged; of the slow device (fio over eight, one of them throttled) the requests say it. A fault
that is no delay of single ops is also named rightly by its period. The machine's own disturbances are in the
runs: what else makes ops slow there competes with the fault. So recorder and store run at real-time priority (chrt -r
1), and of faults that touch fewer ops than 1 % only so many are called slow. Needs root.

    .venv/bin/python benchmarks/planted_faults.py --seeds 3 --fault none --fault lock --keep /var/tmp/planted
    .venv/bin/python benchmarks/planted_faults.py --seeds 3 --fault none --fault lock --keep /var/tmp/planted --again
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from benchmarks import planted_truth, results  # noqa: E402
from benchmarks.slow_device import devices  # noqa: E402

RESULTS = HERE / "planted_faults.csv"
OPLINE = Path(sys.executable).with_name("opline")
STORE = HERE.parent / "examples" / "demo-store" / "run"
COLUMNS = (
    "date",
    "commit",
    "fault",
    "at",
    "seed",
    "load",
    "ops",
    "excess_ns",
    "spent",
    "caused",
    "p99",
    "share",
    "behind",
    "separator",
    "named",
    "when",
)
OPS = 4000
RATE = 2000
DELAY_US = 50_000
DEVICES, SLOW_IOPS, SLOW_DEVICE = 8, 90, "slow-device"
LOADS = {"1": ("--qd", "1"), "16": ("--qd", "16"), "16 paced": ("--qd", "16", "--rate", str(RATE))}
FIO = {"1": (1, ()), "16": (16, ()), "16 paced": (16, ("--rate_iops=50",))}  # jobs; all of them: 800 reads a second


class Fault(NamedTuple):
    """``stages``: the planted one's names. ``separator``: what may be named of it; None: nothing should be.
    ``period_ms``: of a fault that comes and goes. ``slowest``: at depth 1, where it touches few ops.
    ``op_class``: of the ops looked at.
    """

    options: tuple[str, ...]
    stages: tuple[str, ...]
    separator: str | None = None
    period_ms: float | None = None
    slowest: str = "1%"
    op_class: str | None = None


def _delay(stage: str) -> tuple[str, ...]:
    return ("--ops", str(OPS), "--inject", f"{stage}:{DELAY_US}:0.01")


FAULTS = {
    "none": Fault(("--ops", str(OPS)), ()),
    "client-queue": Fault(_delay("client-queue"), ("client queue",)),
    "shard-queue": Fault(_delay("shard-queue"), ("shard queue",)),
    "worker": Fault(_delay("worker"), ("worker",)),
    "device": Fault(_delay("device"), ("submit", "device")),
    "commit": Fault((*_delay("commit"), "--backend", "buffered"), ("commit gather",)),
    "lock": Fault(
        ("--seconds", "4", "--fault", "lock:5000:100000"), ("object lookup",), period_ms=100, slowest="40"
    ),
    "thread": Fault(
        ("--ops", str(OPS), "--fault", "thread:5000:demo-work-0.0"), ("worker",), r"(thread|CPU).*|.*demo-work-0\.0.*"
    ),
    "object": Fault(("--ops", str(OPS), "--fault", "object:5000:bench_object_3"), ("worker",), r".*bench_object_3"),
    SLOW_DEVICE: Fault((), ("D2C",), r"are on device {slow}", op_class="pread64"),
    "writes": Fault(
        ("--seconds", "8", "--read", "50", "--fault", "writes:100000:1000000"), ("D2C",), r".*requests.* at the device",
        1000,
    ),
    "flushes": Fault(
        ("--image-dir", "/var/tmp", "--seconds", "8", "--fault", "flushes:100000:1000000"), ("D2C",),
        r".*(flushes|requests).* at the device", 1000,
    ),
}  # fmt: skip
NEAR = 0.02  # of a period: the one that was planted


def judged(fault: Fault, run: Path, document: dict[str, object]) -> dict[str, object]:
    """The columns of one run, from what `opline why --json` gives, and from what was logged of the fault."""
    stages, caused = document["stages"], document["caused"]
    assert isinstance(stages, list)
    assert isinstance(caused, dict)
    whole = caused["slow_ns"] / caused["slow"] - caused["typical_ns"] / caused["typical"]
    planted = sum(c["more_ns"] for c in caused["causes"] if c["stage"] in fault.stages)
    p99 = [q["parts"][0]["stage"] in fault.stages for q in caused["percentiles"] if q["name"] == "p99"]
    separation = document["separation"]
    assert isinstance(separation, dict)
    named = separation["found"]["text"] if separation["found"] else ""
    when = document["when"]
    period_ms = round(when["period_ns"] / 1e6, 3) if isinstance(when, dict) else None
    slow = run / planted_truth.SLOW
    expected = (fault.separator or "").format(slow=slow.read_text().split()[0] if slow.exists() else "")
    right = bool(named) and re.fullmatch(expected, named) is not None
    wrong = bool(named) and not right
    if fault.period_ms is not None and period_ms is not None:
        near = abs(period_ms / fault.period_ms - 1) <= NEAR
        right, wrong = right or near, wrong or not near
    sets = document["sets"]
    assert isinstance(sets, dict)
    delay = DELAY_US * 1000 if "--inject" in fault.options else None
    behind = planted_truth.behind(
        run, sets["slow_from_ns"], caused["typical_ns"] / caused["typical"], delay, fault.op_class
    )
    return {
        "excess_ns": round(whole),
        "spent": int(stages[0]["stage"] in fault.stages),
        "caused": int(caused["causes"][0]["stage"] in fault.stages),
        "p99": int(p99[0]) if p99 else "",
        "share": round(100 * planted / whole, 1) if whole > 0 else "",
        "behind": "" if behind is None else round(behind, 1),
        "separator": "wrong" if wrong else "right" if right else "none",
        "named": named,
        "when": "" if period_ms is None else period_ms,
    }


def record(run: Path, fault: str, load: str, seed: int) -> None:
    """One recording."""

    def recorded(model: str, *command: str) -> None:
        subprocess.run(
            ["chrt", "-r", "1", OPLINE, "record", "-o", run, "--model", model, "--", *command],
            check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    if fault != SLOW_DEVICE:
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / planted_truth.LOG
            recorded(
                "demo", str(STORE), *LOADS[load], "--seed", str(seed), *FAULTS[fault].options, "--log-faults", str(log)
            )
            shutil.copy(log, run)
        return
    jobs, rate = FIO[load]
    with tempfile.TemporaryDirectory(dir=run.parent) as folder, devices(Path(folder), DEVICES, SLOW_IOPS) as found:
        recorded(
            "syscalls", "fio", "--name=reads", f"--filename={':'.join(found)}", "--file_service_type=random",
            "--rw=randread", "--norandommap", "--direct=1", "--bs=4k", f"--io_size={OPS // jobs * 4}k", "--thread",
            f"--numjobs={jobs}", f"--randseed={seed}", *rate,
        )  # fmt: skip
        number = Path(found[0]).stat().st_rdev
        (run / planted_truth.SLOW).write_text(f"{Path(found[0]).name} {os.major(number) << 20 | os.minor(number)}")


def why(run: Path, slowest: str, op_class: str | None) -> dict[str, object]:
    """What `opline why` says of it."""
    command = [str(OPLINE), "why", str(run), "--slowest", slowest, "--tainted", "--json"]
    command += [] if op_class is None else ["--class", op_class]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, object] = json.loads(done.stdout)
    return found


def rows(names: list[str], loads: list[str], seeds: range, folder: Path, again: bool) -> Iterator[dict[str, object]]:
    """A row per run; the faults by turns, so that a slow moment of the machine meets all of them."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=HERE, capture_output=True, text=True).stdout
    for seed, name, load in itertools.product(seeds, names, loads):
        busy, run = os.getloadavg()[0], folder / f"{name}-{load.replace(' ', '-')}-{seed}"
        if not again:
            record(run, name, load, seed)
        elif not run.exists():
            continue
        found = why(run, FAULTS[name].slowest if load == "1" else "1%", FAULTS[name].op_class)
        sets = found["sets"]
        assert isinstance(sets, dict)
        yield {
            "date": datetime.datetime.now(datetime.UTC).date().isoformat(), "commit": commit.strip(), "fault": name,
            "at": load, "seed": seed, "load": round(busy, 1), "ops": sets["ops"], **judged(FAULTS[name], run, found),
        }  # fmt: skip


def main() -> None:
    """Records, judges, appends to the results."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--fault", action="append", choices=sorted(FAULTS), help="only this one; may be given again")
    parser.add_argument("--at", action="append", choices=LOADS, help="only this load; may be given again")
    parser.add_argument("--seeds", type=int, default=10, help="runs of each (default: %(default)s)")
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="where the recordings are kept")
    parser.add_argument("--again", action="store_true", help="record nothing: the recordings in --keep")
    parser.add_argument("-o", "--output", type=Path, default=RESULTS, help="rows are appended (default: %(default)s)")
    args = parser.parse_args()
    seeds = range(args.first_seed, args.first_seed + args.seeds)
    with tempfile.TemporaryDirectory(prefix="planted-") as temporary:
        folder = args.keep or Path(temporary)
        folder.mkdir(exist_ok=True)
        for row in rows(args.fault or list(FAULTS), args.at or list(LOADS), seeds, folder, args.again):
            results.append(args.output, COLUMNS, [row])
            print(" ".join(str(row[c]) for c in COLUMNS[2:]), flush=True)
            if not args.keep:
                shutil.rmtree(folder / f"{row['fault']}-{str(row['at']).replace(' ', '-')}-{row['seed']}")


if __name__ == "__main__":
    main()
