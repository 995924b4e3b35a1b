# SPDX-License-Identifier: MIT
"""What the shape of runs finds that time does not: the demo store beside another load, more of it in some runs.

    benchmarks/compare_shape.py [--runs N] [--keep DIR] [--save]

Records the demo store one op at a time, and as often with 10 us more before every op leaves the shard queue: N pairs
(10) in turn, either first by lot. How much load is beside a run is drawn by lot, too, so that the runs of both sides
differ in speed as a whole. There are two kinds of load: `taken`, real-time programs on every CPU that take a part of it
in slices of a millisecond, as the neighbours of a virtual machine do; `shared`, ordinary programs that compute all the
time. Then draws pairs of 3, 5 and 8 runs per side, as compare_recordings.py does, and counts in how many the stage's
mean or p50 is called longer, in how many its shape is, and in how many the shape of any other stage is called changed;
and of pairs of equal things, without the 10 us, in how many the shape of any stage is.

The figures of the runs are kept in DIR; those that are there count. The table goes to docs/internals/compare.md
(--save). Needs root.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.compare_recordings import STORE, Condition, pairs, record, saved, share, where

from opline_analyses.compare.compare import Comparison, Row, compare
from opline_analyses.compare.figures import Figures, baseline_text, read_baseline
from opline_analyses.compare.verdicts import change

STAGE = "shard queue"
MARKS = "<!-- measured: benchmarks/compare_shape.py -->", "<!-- end of what was measured of shape -->"
PROGRAM = [*STORE, "--qd", "1"]
SIDES = {"a": [], "b": ["--inject", "shard-queue:10:1"]}
TAKEN, SHARED = (0.0, 0.3, 0.6, 0.75), (0, 1, 2, 4)
KINDS = {
    "taken": "real-time programs take 0, 30, 60 or 75 % of each CPU",
    "shared": "0, 1, 2 or 4 ordinary programs compute all the time",
}
HEADER = (
    "beside it", "runs", "SD of logs: mean / p50 / shape", "over all runs", "3: time / shape / others", "5", "8",
    "equal: 3 / 5",
)  # fmt: skip
TAKES = """
import random, sys, time
while True:
    slice_s = random.uniform(0.0005, 0.0015)
    until = time.monotonic() + float(sys.argv[1]) * slice_s
    while time.monotonic() < until:
        pass
    time.sleep((1 - float(sys.argv[1])) * slice_s)
"""


@contextmanager
def load(kind: str) -> Iterator[None]:
    """Some of it, while the block runs."""
    commands: list[list[str]] = []
    if kind == "shared":
        commands = [[sys.executable, "-c", "while True: pass"]] * random.choice(SHARED)
    elif part := random.choice(TAKEN):
        taking = ["chrt", "-f", "10", sys.executable, "-c", TAKES, str(part)]
        commands = [["taskset", "-c", str(cpu), *taking] for cpu in os.sched_getaffinity(0)]
    started = [subprocess.Popen(command) for command in commands]
    try:
        time.sleep(0.2)
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


def pools(folder: Path, kind: str, runs: int) -> dict[str, list[Figures]]:
    """The figures of the runs of each side."""
    files = {side: folder / f"{kind}-{side}.json" for side in SIDES}
    found = {side: read_baseline(file) if file.exists() else [] for side, file in files.items()}
    for n in range(min(map(len, found.values())), runs):
        for side in random.sample(list(SIDES), len(SIDES)):
            if len(found[side]) > n:
                continue
            print(f"\r{kind}: {n + 1} of {runs} pairs, {side}", end="", file=sys.stderr, flush=True)
            with load(kind):
                found[side] += record(Condition(side, "", "demo", [*PROGRAM, *SIDES[side]]), folder, n)
            files[side].write_text(baseline_text(found[side]))
    return found


def of_stage(rows: list[Row], figure: str) -> Row:
    """The planted stage's."""
    return next(row for row in rows if (row.name, row.figure) == (STAGE, figure))


def line(kind: str, a: list[Figures], b: list[Figures]) -> str:
    """A row of the table."""

    def longer(c: Comparison, shape: bool) -> bool:
        return any(r.name == STAGE and r.verdict.kind == "more" for r in (c.shape if shape else c.stages))

    def others(c: Comparison) -> bool:
        return any(r.name != STAGE and r.verdict.kind in ("more", "less") for r in c.shape)

    whole = compare(a, b)
    three = [of_stage(whole.stages, "mean"), of_stage(whole.stages, "p50"), of_stage(whole.shape, "shape")]
    known = [row.difference for row in three if row.difference]
    cells = [" / ".join(f"{d.scatter:.0%}" for d in known if d.scatter is not None)]
    cells.append(" / ".join(change(d.log_ratio) for d in known))
    for k in (3, 5, 8):
        drawn = pairs(a, b, k)
        found = [share(drawn, lambda c, s=s: longer(c, s)) for s in (False, True)]  # type: ignore[misc]
        cells.append(f"{found[0]:.0%} / {found[1]:.0%} / {share(drawn, others):.0%}")
    equal = (
        share(pairs(a, None, k), lambda c: any(r.verdict.kind in ("more", "less") for r in c.shape)) for k in (3, 5)
    )
    cells.append(" / ".join(f"{found:.1%}" for found in equal))
    return f"| {KINDS[kind]} | {len(a)} | {' | '.join(cells)} |"


def main() -> None:
    """Records, draws, prints; --save writes the table into the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10, help="recordings of each side, beside each kind of load")
    parser.add_argument("--keep", type=Path, help="where the figures are kept")
    parser.add_argument("--save", action="store_true", help="write the table into docs/internals/compare.md")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.keep or Path(temporary)
        folder.mkdir(exist_ok=True)
        found = {kind: pools(folder, kind, args.runs) for kind in KINDS}
    random.seed(1)
    text = "\n".join(
        [
            f"{where()}",
            "",
            f"| {' | '.join(HEADER)} |",
            f"|{'---|' * len(HEADER)}",
            *(line(kind, sides["a"], sides["b"]) for kind, sides in found.items()),
        ]
    )
    print(text)
    if args.save:
        saved(MARKS, text)


if __name__ == "__main__":
    main()
