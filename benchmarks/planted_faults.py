#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How often `opline why` finds what was planted: records the demo store with faults, and counts.

For each fault, queue depth and seed the demo store runs once under `opline record`; a row per run goes to
planted_faults.csv:

    spent      1: the stage with the largest difference between slow and typical ops is the planted one
    caused     1: so is the first cause, when waits are charged to what the ops ahead were doing
    p99        1: so is what contributes most to p99; empty: too few ops
    share      the planted stage's part of the difference, as a cause, in %
    separator  right: what is named is what was planted; wrong: something else is; none: nothing is
    named      the condition that is named

The machine's own disturbances are in the runs: what else makes ops slow there competes with the fault. Needs root.

    .venv/bin/python benchmarks/planted_faults.py --seeds 3 --fault none --fault lock
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from benchmarks import results  # noqa: E402

RESULTS = HERE / "planted_faults.csv"
OPLINE = Path(sys.executable).with_name("opline")
STORE = HERE.parent / "examples" / "demo-store" / "run"
COLUMNS = (
    "date",
    "commit",
    "fault",
    "depth",
    "seed",
    "load",
    "ops",
    "spent",
    "caused",
    "p99",
    "share",
    "separator",
    "named",
)
OPS = 4000


class Fault(NamedTuple):
    """``stages``: the planted one's names. ``separator``: what may be named of it; None: nothing should be."""

    options: tuple[str, ...]
    stages: tuple[str, ...]
    separator: str | None


def _delay(stage: str) -> tuple[str, ...]:
    return ("--ops", str(OPS), "--inject", f"{stage}:50000:0.01")


FAULTS = {
    "none": Fault(("--ops", str(OPS)), (), None),
    "client-queue": Fault(_delay("client-queue"), ("client queue",), None),
    "shard-queue": Fault(_delay("shard-queue"), ("shard queue",), None),
    "worker": Fault(_delay("worker"), ("worker",), None),
    "device": Fault(_delay("device"), ("submit", "device"), None),
    "commit": Fault((*_delay("commit"), "--backend", "buffered"), ("commit gather",), None),
    "lock": Fault(("--seconds", "4", "--fault", "lock:5000:100000"), ("object lookup",), None),
    "thread": Fault(
        ("--ops", str(OPS), "--fault", "thread:5000:demo-work-0.0"), ("worker",), r"(thread|CPU).*|.*demo-work-0\.0.*"
    ),
    "object": Fault(("--ops", str(OPS), "--fault", "object:5000:bench_object_3"), ("worker",), r".*bench_object_3"),
    "writes": Fault(
        ("--seconds", "6", "--read", "50", "--fault", "writes:100000:1000000"), ("D2C",), r".*requests.* at the device"
    ),
    "flushes": Fault(("--seconds", "6", "--fault", "flushes:100000:1000000"), ("D2C",), r".*(flushes|of no op).*"),
}  # fmt: skip


def judged(fault: Fault, found: dict[str, object]) -> dict[str, object]:
    """The columns of one run, from what `opline why --json` gives."""
    document: dict[str, object] = found
    stages, caused = document["stages"], document["caused"]
    assert isinstance(stages, list)
    assert isinstance(caused, dict)
    whole = caused["slow_ns"] / caused["slow"] - caused["typical_ns"] / caused["typical"]
    planted = sum(c["more_ns"] for c in caused["causes"] if c["stage"] in fault.stages)
    p99 = [q["parts"][0]["stage"] in fault.stages for q in caused["percentiles"] if q["name"] == "p99"]
    separation = document["separation"]
    assert isinstance(separation, dict)
    named = separation["found"]["text"] if separation["found"] else ""
    right = bool(named) and fault.separator is not None and re.fullmatch(fault.separator, named) is not None
    return {
        "spent": int(stages[0]["stage"] in fault.stages),
        "caused": int(caused["causes"][0]["stage"] in fault.stages),
        "p99": int(p99[0]) if p99 else "",
        "share": round(100 * planted / whole, 1) if whole > 0 else "",
        "separator": "right" if right else "wrong" if named else "none",
        "named": named,
    }


def recorded(options: tuple[str, ...], depth: int, seed: int) -> dict[str, object]:
    """One recording, and what `opline why` says of it."""
    with tempfile.TemporaryDirectory(prefix="planted-") as folder:
        run = Path(folder) / "run"
        store = [str(STORE), "--qd", str(depth), "--seed", str(seed), *options]
        subprocess.run(
            [OPLINE, "record", "-o", run, "--model", "demo", "--", *store],
            check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        done = subprocess.run([OPLINE, "why", run, "--json"], check=True, capture_output=True, text=True)
        found: dict[str, object] = json.loads(done.stdout)
        return found


def rows(names: list[str], depths: list[int], seeds: range) -> Iterator[dict[str, object]]:
    """A row per run; the faults by turns, so that a slow moment of the machine meets all of them."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=HERE, capture_output=True, text=True).stdout
    for seed in seeds:
        for name in names:
            for depth in depths:
                load = os.getloadavg()[0]
                found = recorded(FAULTS[name].options, depth, seed)
                sets = found["sets"]
                assert isinstance(sets, dict)
                yield {
                    "date": datetime.datetime.now(datetime.UTC).date().isoformat(), "commit": commit.strip(),
                    "fault": name, "depth": depth, "seed": seed, "load": round(load, 1), "ops": sets["ops"],
                    **judged(FAULTS[name], found),
                }  # fmt: skip


def main() -> None:
    """Records, judges, appends to the results."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--fault", action="append", choices=sorted(FAULTS), help="only this one; may be given again")
    parser.add_argument("--depth", action="append", type=int, help="queue depths (default: 1 and 16)")
    parser.add_argument("--seeds", type=int, default=10, help="runs of each (default: %(default)s)")
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("-o", "--output", type=Path, default=RESULTS, help="rows are appended (default: %(default)s)")
    args = parser.parse_args()
    seeds = range(args.first_seed, args.first_seed + args.seeds)
    for row in rows(args.fault or list(FAULTS), args.depth or [1, 16], seeds):
        results.append(args.output, COLUMNS, [row])
        print(" ".join(str(row[c]) for c in COLUMNS[2:]), flush=True)


if __name__ == "__main__":
    main()
