#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How long a trace takes: opline with both front ends against babeltrace2, on what people record.

The traces are recordings for every model that opline ships (benchmarks/recordings.py). `--generated` adds a trace that
only this benchmark makes (benchmarks/generated.py), and with it text and awk, and a loop in Python. All readers have to
give the same results before anything is timed; then they are timed in interleaved rounds. Prints medians of CPU time
(user + system, children included) and wall time, and appends a row per method to results.csv, of which
docs/performance.md and docs/internals/performance.md are made.

    make bench          or      .venv/bin/python benchmarks/readers_bench.py --recorded demo --rounds 3
"""

from __future__ import annotations

import argparse
import csv
import sys
import tempfile
from collections.abc import Callable, Collection
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TypeVar

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from benchmarks import generated, recordings, replicated, timing  # noqa: E402
from benchmarks.timing import DUMMY, shell, text_of  # noqa: E402

OPLINE = [sys.executable, "-m", "opline_analyses"]
T = TypeVar("T")
SLOW = ("text | awk", "bt2 Python")
TWO_THREADS = "stages native, 2 threads"
START = "demo-kernel"  # the recorded trace of the fewest events: what it takes is start-up


def methods(trace: Path, model: str | Path) -> dict[str, str]:
    """Name and command line of everything that is timed; all write to standard output. `losses` of a trace makes a
    whole run first: all tables as Parquet. The last two read the generated traces alone.
    """
    with_model = ("--model", model)
    native = (*with_model, "--reader", "native", "--threads")
    return {
        "stages native": shell(*OPLINE, "stages", trace, *native, "1", "--csv"),
        TWO_THREADS: shell(*OPLINE, "stages", trace, *native, "2", "--csv"),
        "csv native": shell(*OPLINE, "csv", trace, *native, "1"),
        "full native": shell(*OPLINE, "losses", trace, *native, "1"),
        DUMMY: shell("babeltrace2", trace, "-o", "dummy"),
        "stages bt2": shell(*OPLINE, "stages", trace, *with_model, "--reader", "bt2", "--csv"),
        "csv bt2": shell(*OPLINE, "csv", trace, *with_model, "--reader", "bt2"),
        "text | awk": shell("babeltrace2", trace) + " | " + shell("awk", "-f", HERE / "by_oid.awk"),
        "bt2 Python": shell(sys.executable, HERE / "bt2_loop.py", trace),
    }


def apart(work: Callable[..., T], *given: object) -> T:
    """The work's result, done in a process of its own: memory that this process holds counts as its children's."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(work, *given).result()


def prove_readers_equal(trace: Path, commands: dict[str, str], timed: Collection[str]) -> None:
    """Ends the program unless both readers' outputs, and those of two threads, are the same."""
    for one, other in (("stages native", "stages bt2"), ("csv native", "csv bt2"), (TWO_THREADS, "stages native")):
        if {one, other} & set(timed) and timing.digest_of(commands[one]) != timing.digest_of(commands[other]):
            raise SystemExit(f"{trace}: '{one}' and '{other}' differ: nothing is timed")


def prove_generated(trace: Path, events: int, timed: Collection[str]) -> None:
    """Ends the program unless all methods that are timed found the same ops and the same intervals."""
    commands = methods(trace, generated.MODEL)
    prove_readers_equal(trace, commands, timed)
    stages = text_of(commands["stages native"])
    ours = {r["stage"]: (int(r["count"]), float(r["mean_ns"] or 0)) for r in csv.DictReader(stages.splitlines())}
    ops = events // generated.EVENTS_PER_OP
    if ours["latency"][0] != ops:
        raise SystemExit(f"{trace}: {ours['latency'][0]} ops, not {ops}: nothing is timed")
    for name in (n for n in SLOW if n in timed):
        theirs = 0
        for line in text_of(commands[name]).splitlines():
            head, _, rest = line.rpartition(" ")
            if head == "ops":
                theirs = int(rest)
                continue
            begin, _, end, count = head.replace("bench:", "").replace(":", "").split()
            # an interval from one thread to another is ours under another name where no key joins them
            found = ours.get(f"{begin} → {end}") or ours.get(f"unknown: {begin} → {end}")
            if not found or found[0] != int(count) or abs(found[1] - float(rest)) > 1:
                raise SystemExit(f"{trace}: {begin} → {end}: '{name}' has {count}, {rest}, opline {found}")
        if theirs != ops:
            raise SystemExit(f"{trace}: '{name}' has {theirs} ops, not {ops}: nothing is timed")


def count_recorded(folder: Path, recording: recordings.Recording, trace: Path) -> int:
    """The number of events of a recording's trace. Ends the program unless copies are whole: times never go back, and
    every copy has as many ops.
    """
    events, ops, back = apart(replicated.count, trace, recording.model)
    if not recording.of:
        return events
    one = apart(replicated.trace_of, folder, recording.of, 1)
    of_one, ops_of_one, back_in_one = apart(replicated.count, one, recording.model)
    copies = recording.copies
    if back != copies * back_in_one:
        raise SystemExit(f"{trace}: its times go back {back} times, not {copies} x {back_in_one}: nothing is timed")
    if events != copies * of_one or abs(ops - copies * ops_of_one) > copies:
        raise SystemExit(f"{trace}: {events} events, {ops} ops: it is not {copies} copies; nothing is timed")
    return events


def orders(names: Collection[str], rounds: int, slow_rounds: int) -> list[list[str]]:
    """What is run in each round. The native reader's commands are run before each of the others: a round takes
    minutes, within which a machine's speed changes, and they take seconds of it.
    """
    native = [n for n in names if "native" in n]
    found = []
    for number in range(rounds):
        others = [n for n in names if n not in native and (n not in SLOW or number < slow_rounds)]
        found.append([one for name in others for one in (*native, name)] or native)
    return found


def measure(
    name: str, trace: Path, model: str | Path, events: int, only: Collection[str], asked: argparse.Namespace
) -> None:
    """Times the methods, and the start-up of each on a trace of next to no events; prints and appends the rows."""
    commands = {n: c for n, c in methods(trace, model).items() if n in only}
    tiny = replicated.unpacked(asked.traces, START)
    starts = {n: c for n, c in methods(tiny, "demo").items() if n in only and n not in SLOW}
    streams = sum(1 for f in trace.rglob("*_[0-9]*") if f.suffix != ".idx")
    samples = timing.interleaved(
        orders(commands, asked.rounds, asked.slow_rounds), lambda n: timing.execute(commands[n])
    )
    at_start = timing.interleaved(orders(starts, asked.rounds, 0), lambda n: timing.execute(starts[n]))
    rows = timing.rows_of(samples, at_start, events, streams, trace)
    timing.report(rows, f"{name} as recorded" if asked.as_recorded else name, not asked.no_save)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    known = list(recordings.RECORDINGS)
    parser.add_argument("--recorded", nargs="*", choices=known, metavar="NAME", help=f"of {', '.join(known)}")
    parser.add_argument("--generated", type=int, nargs="*", default=[], metavar="EVENTS", help="450000, 4500000, ...")
    parser.add_argument("--streams", type=int, nargs="+", default=[2], help="of the generated traces")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--slow-rounds", type=int, default=5, help="of text | awk and bt2 Python")
    parser.add_argument("--only", nargs="+", metavar="METHOD", help="time these alone ('stages native', ...)")
    parser.add_argument("--traces", type=Path, help="where traces are kept (default: a temporary folder)")
    parser.add_argument("--as-recorded", action="store_true", help="leave the traces' pages in the cache as they are")
    parser.add_argument("--no-save", action="store_true", help="print only, don't append to results.csv")
    asked = parser.parse_args()
    asked.recorded = known if asked.recorded is None and not asked.generated else asked.recorded or []
    if unknown := set(asked.only or ()) - methods(Path(), "demo").keys():
        parser.error(f"no such method: {', '.join(sorted(unknown))}; there are: {', '.join(methods(Path(), 'demo'))}")
    return asked


def main() -> None:
    """Makes the traces, proves, times, prints, appends."""
    asked = arguments()
    only = [n for n in asked.only or methods(Path(), "demo") if asked.slow_rounds > 0 or n not in SLOW]
    with tempfile.TemporaryDirectory(prefix="opline-bench-", dir="/var/tmp") as scratch:
        asked.traces = asked.traces or Path(scratch)
        asked.traces.mkdir(parents=True, exist_ok=True)
        for name in asked.recorded:
            recording = recordings.RECORDINGS[name]
            trace = apart(recordings.trace_of, asked.traces, recording)
            timed = [n for n in only if n not in SLOW]
            events = count_recorded(asked.traces, recording, trace)
            prove_readers_equal(trace, methods(trace, recording.model), timed)
            if not asked.as_recorded:
                timing.forget_pages(trace)
            measure(name, trace, recording.model, events, timed, asked)
        for events in asked.generated:
            for streams in asked.streams:
                trace = generated.trace_of(asked.traces, events, streams)
                prove_generated(trace, events, only)
                if not asked.as_recorded:
                    timing.forget_pages(trace)
                measure("ust", trace, generated.MODEL, events, only, asked)


if __name__ == "__main__":
    main()
