# SPDX-License-Identifier: MIT
"""How often `opline compare` is right about recordings of this machine: equal things, and planted changes.

    benchmarks/compare_recordings.py [--runs N] [--keep DIR] [--save]

Records the demo store's benchmark and fio (where there is one) N times each (24), and as often with a change, in random
order; keeps of each recording its figures, as `opline compare --save` does (DIR/*.json; those that are there count, so
that recordings may be made a few at a time). Then draws pairs of 2, 3 and 5 runs per side at random, without a run on
both sides, and counts:

    called     pairs of equal things in which any figure is called changed; wanted: at most 5 %
    found      pairs with the change in which its figure is called
    held       of those the share whose 95 % interval has the ratio over all runs in it; wanted: at least 90 %
    enough     pairs with the change in which it is called with as many runs as an earlier pair of 3 (5) of each says
               are needed; these are drawn with replacement, as they may be more than there are; wanted: at least 80 %

Draws share runs, so that their number says less than it seems. The table goes to docs/internals/compare.md (--save).
"""

from __future__ import annotations

import argparse
import datetime
import math
import platform
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from opline_analyses.compare import gate
from opline_analyses.compare.compare import Comparison, Row, compare
from opline_analyses.compare.figures import Figures, baseline_text, read_baseline

ROOT = Path(__file__).resolve().parent.parent
OPLINE = Path(sys.executable).with_name("opline")
PAGE = ROOT / "docs" / "internals" / "compare.md"
MARKS = "<!-- measured: benchmarks/compare_recordings.py -->", "<!-- end of what was measured -->"
STORE = [str(ROOT / "examples" / "demo-store" / "run"), "--ops", "2000", "--qd", "4", "--read", "25"]
FIO = ["fio", "--name=x", "--rw=randrw", "--bs=4k", "--ioengine=psync", "--direct=1", "--size=64M", "--number_ios=3000"]
DRAWS = 200
LEAST = 4  # recordings of a condition
MOST = 100  # runs of each side that are drawn
CONDITIONS = ("p50(worker) > +50 %", "p50 > +100 %")  # of examples/ci/run
NARROW = ("p50 > +5 %", "p99(D2C) > +5 %", "mean > +5 %", "iops < -5 %")


@dataclass(frozen=True)
class Condition:
    """What is recorded under a name; ``figure``: where the change is to be found, a stage and its figure."""

    name: str
    what: str
    model: str
    command: list[str]
    figure: tuple[str, str] = ("", "")
    equal: str = ""  # the condition that this one has a change of


def conditions(folder: Path) -> list[Condition]:
    """Those that this machine can record."""
    store = "demo store, 2000 ops, depth 4, a quarter reads"
    found = [
        Condition("store", store, "demo", [*STORE]),
        Condition(
            "worker", "+50 us in every op's worker stage", "demo", [*STORE, "--inject", "worker:50:1"],
            ("worker", "mean"), "store",
        ),
        Condition(
            "dispatch", "+10 us before every op's I/O is submitted, for which it is in `submit`", "demo",
            [*STORE, "--inject", "device:10:1"], ("submit", "mean"), "store",
        ),
        Condition("depth", "depth 8 instead of 4", "demo", [*STORE, "--qd", "8"], ("latency", "p50"), "store"),
    ]  # fmt: skip
    if shutil.which("fio"):
        fio = [*FIO, f"--filename={folder}/fio.data"]
        found += [
            Condition("fio", "fio, 3000 direct 4k reads and writes", "syscalls", [*fio]),
            Condition("block", "blocks of 16k instead of 4k", "syscalls", [*fio, "--bs=16k"], ("D2C", "p50"), "fio"),
        ]
    return found


def record(condition: Condition, folder: Path, number: int) -> list[Figures]:
    """Records once; gives the run's figures, and leaves nothing else."""
    run, kept = folder / "run", folder / "run.json"
    command = [str(OPLINE), "record", "-o", str(run), "--model", condition.model, "--", *condition.command]
    subprocess.run(command, check=True, capture_output=True)
    own = ["--class", "pread64", "--class", "pwrite64"] if condition.model == "syscalls" else []
    subprocess.run([OPLINE, "compare", run, "--save", kept, *own], check=True, capture_output=True)
    shutil.rmtree(run)
    (figures,) = read_baseline(kept)
    return [Figures(**{**vars(figures), "name": f"{condition.name}-{number}"})]


def pools(folder: Path, runs: int) -> dict[str, list[Figures]]:
    """The figures of all recordings, by condition; what is recorded is kept at once."""
    found = {f.stem: read_baseline(f) for f in folder.glob("*.json") if f.stem != "run"}
    plan = [c for c in conditions(folder) for _ in range(runs - len(found.get(c.name, [])))]
    random.shuffle(plan)
    if plan and shutil.which("fio") and not (folder / "fio.data").exists():
        (folder / "fio.data").write_bytes(bytes(64 << 20))  # there before the first recording, so that none lays it out
    for n, condition in enumerate(plan):
        print(f"\r{n + 1} of {len(plan)}: {condition.name:10}", end="", file=sys.stderr, flush=True)
        mine = found.setdefault(condition.name, [])
        mine += record(condition, folder, len(mine))
        (folder / f"{condition.name}.json").write_text(baseline_text(mine))
    return found


def called(c: Comparison) -> list[Row]:
    """The figures that are said to have changed."""
    return [r for r in (*c.headline, *c.stages, *c.devices) if r.verdict.kind in ("more", "less")]


def pairs(a: list[Figures], b: list[Figures] | None, k: int) -> list[Comparison]:
    """Comparisons of k runs drawn of each; without ``b`` both sides of ``a``."""
    drawn = []
    for _ in range(DRAWS):
        if b is None:
            both = random.sample(a, 2 * k)
            drawn.append(compare(both[:k], both[k:]))
        else:
            drawn.append(compare(random.sample(a, k), random.sample(b, k)))
    return drawn


def share(pairs: Sequence[Comparison], holds: Callable[[Comparison], bool]) -> float:
    """Of the pairs of which it holds."""
    return sum(map(holds, pairs)) / len(pairs)


def row_of(c: Comparison, figure: tuple[str, str]) -> Row:
    """A figure's row."""
    return next(r for r in (*c.headline, *c.stages) if (r.name, r.figure) == figure)


def equal_lines(condition: Condition, runs: list[Figures]) -> list[str]:
    """A row of the table of equal things."""
    cells = []
    for k in (2, 3, 5):
        if 2 * k <= len(runs):
            drawn = pairs(runs, None, k)
            shapes = share(drawn, lambda c: any(r.verdict.kind in ("more", "less") for r in c.shape))
            cells.append(f"{share(drawn, lambda c: bool(called(c))):.1%} / {shapes:.1%}")
        else:
            cells.append("–")
    whole = compare(runs[::2], runs[1::2])
    scatter = [row_of(whole, ("latency", name)).difference for name in ("mean", "p50", "p99")]
    spread = " / ".join(f"{d.scatter:.0%}" for d in scatter if d and d.scatter is not None)
    return [f"| {condition.what} | {len(runs)} | {spread} | {' | '.join(cells)} |"]


def changed_lines(condition: Condition, a: list[Figures], b: list[Figures]) -> list[str]:
    """The rows of the table of planted changes: the figure named, and the p50 of the latency."""
    lines = []
    for figure in dict.fromkeys((condition.figure, ("latency", "p50"))):
        whole = row_of(compare(a, b), figure).difference
        if whole is None or whole.scatter is None:
            continue
        truth, cells = whole.log_ratio, []
        for k in (2, 3, 5):
            if k > min(len(a), len(b)):
                cells.append("–")
                continue
            rows = [row_of(c, figure) for c in pairs(a, b, k)]
            found = sum(r.verdict.kind in ("more", "less") for r in rows) / len(rows)
            spans = [r.difference.interval() for r in rows if r.difference]
            held = sum(s is not None and s[0] <= truth <= s[1] for s in spans) / len(spans)
            cells.append(f"{found:.0%} / {held:.0%}")
        cells += [enough(a, b, figure, truth, k) for k in (3, 5)]
        name = f"{figure[1]} of {figure[0]}"
        lines.append(f"| {condition.what} | {name} | ×{math.exp(truth):.3g} | {' | '.join(cells)} |")
    return lines


def enough(a: list[Figures], b: list[Figures], figure: tuple[str, str], truth: float, k: int) -> str:
    """How many runs k of each side say are needed (the median), and in how many pairs so many call the change."""
    asked, found = [], 0
    for c in pairs(a, b, k):
        needed = Comparison(**{**vars(c), "limit": math.expm1(abs(truth))}).needed(row_of(c, figure))
        asked.append(min(needed or MOST, MOST))
        drawn = compare(random.choices(a, k=asked[-1]), random.choices(b, k=asked[-1]))
        found += row_of(drawn, figure).verdict.kind in ("more", "less")
    many = round(statistics.median(asked))
    return f"{many}: {found / len(asked):.0%}" if many < MOST else f"{MOST} and more"


def shape_lines(condition: Condition, a: list[Figures], b: list[Figures]) -> list[str]:
    """The planted stage by its own mean, and by its shape, from the same draws."""
    stage, cells = condition.figure[0], []
    for k in (2, 3, 5):
        drawn = pairs(a, b, k) if k <= min(len(a), len(b)) else []
        if not any(r.name == stage for c in drawn for r in c.shape):
            cells.append("–")
            continue
        means = [[r for r in c.stages if r.figure == "mean"] for c in drawn]
        time, shape = (
            sum(any(r.name == stage and r.verdict.kind == "more" for r in rows) for rows in of) / len(drawn)
            for of in (means, [c.shape for c in drawn])
        )
        cells.append(f"{time:.0%} / {shape:.0%}")
    return [f"| {condition.what} | {stage} | {' | '.join(cells)} |"]


def gate_lines(name: str, a: list[Figures], b: list[Figures] | None, texts: Sequence[str]) -> list[str]:
    """A row of the table of conditions: of 5 runs of each side, without ``b`` both of ``a``."""
    conditions = [gate.parse(text) for text in texts]
    if min(len(a) // 2 if b is None else len(a), len(a if b is None else b)) < gate.ENOUGH:
        return []
    failed = 0
    for c in pairs(a, b, gate.ENOUGH):
        failed += gate.status(gate.judge(conditions, c.a, c.b), "warn") == gate.STATUS_FAILED
    return [f"| {name} | {', '.join(f'`{text}`' for text in texts)} | {failed / DRAWS:.1%} |"]


def where() -> str:
    """When and on which machine."""
    cpu = next((s for s in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in s), ":?").split(":")[1]
    machine = f"{cpu.strip()}, kernel {platform.release()}, a machine that others use at the same time"
    return f"{datetime.date.today()}, {machine};\n{DRAWS} draws in each cell."


def saved(marks: tuple[str, str], text: str) -> None:
    """Puts what was measured between its marks in the page."""
    before, rest = PAGE.read_text().split(marks[0])
    after = rest.split(marks[1])[1]
    PAGE.write_text(f"{before}{marks[0]}\n\n{text}\n\n{marks[1]}{after}")


def tables(found: dict[str, list[Figures]], folder: Path) -> list[str]:
    """The two tables, in Markdown."""
    known = {c.name: c for c in conditions(folder) if len(found.get(c.name, ())) >= LEAST}
    lines = [
        where(),
        "",
        "Equal things, k runs of each side. In a cell: pairs with any figure called changed / with any shape called.",
        "",
        "| recorded | runs | SD of logs: mean / p50 / p99 | k = 2 | 3 | 5 |",
        "|---|---|---|---|---|---|",
    ]
    for c in known.values():
        lines += equal_lines(c, found[c.name])
    lines += [
        "",
        "Planted changes. In a cell: pairs with the figure called / with the ratio over all runs in the interval.",
        "",
        "| change | figure | over all runs | k = 2 | 3 | 5 | with as many as 3 say | as 5 say |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for c in known.values():
        if c.equal in known:
            lines += changed_lines(c, found[c.equal], found[c.name])
    lines += [
        "",
        "Time and shape. In a cell: pairs with the stage's mean called longer / with its shape called so.",
        "",
        "| change | stage | k = 2 | 3 | 5 |",
        "|---|---|---|---|---|",
    ]
    for c in known.values():
        if c.equal in known and c.figure[0] != "latency":
            lines += shape_lines(c, found[c.equal], found[c.name])
    lines += [
        "",
        "`--fail-if`, 5 runs of each side: pairs in which any condition fails.",
        "",
        "| recorded | conditions | fails |",
        "|---|---|---|",
    ]
    if "store" in found:
        store = found["store"]
        lines += gate_lines("demo store, both sides", store, None, CONDITIONS)
        lines += gate_lines("demo store, both sides", store, None, NARROW)
        lines += gate_lines("+50 us in every op's worker stage", store, found.get("worker", []), CONDITIONS)
    return lines


def main() -> None:
    """Records, draws, prints; --save writes the tables into the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=24, help="recordings of each condition")
    parser.add_argument("--keep", type=Path, help="where the figures are kept")
    parser.add_argument("--save", action="store_true", help="write the tables into docs/internals/compare.md")
    args = parser.parse_args()
    random.seed(1)
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.keep or Path(temporary)
        folder.mkdir(exist_ok=True)
        found = pools(folder, args.runs)
        text = "\n".join(tables(found, folder))
    print(text)
    if args.save:
        saved(MARKS, text)


if __name__ == "__main__":
    main()
