#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How long a trace takes: opline with both front ends, babeltrace2, text and awk, a bt2 Python loop.

Generates its traces (generated.py), checks that all readers give the same results, and only then times them, in
interleaved rounds. Prints medians of CPU time (user + system, children included) and wall time, and appends a row per
method to results.csv. docs/performance.md is made of that file.

    make bench          or      .venv/bin/python benchmarks/readers_bench.py --events 450000 --streams 1 2 16
"""

from __future__ import annotations

import argparse
import csv
import datetime
import hashlib
import os
import platform
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from benchmarks import generated, replicated, results  # noqa: E402

RESULTS = HERE / "results.csv"
OPLINE = [sys.executable, "-m", "opline_analyses"]
COLUMNS = [
    *("date", "commit", "cpu", "cpus", "kernel", "python", "babeltrace2", "lttng_ust"),
    *(
        "events",
        "streams",
        "bytes",
        "method",
        "rounds",
        "cpu_s",
        "wall_s",
        "ns_per_event",
        "x_dummy",
        "x_dummy_wall",
        "peak_rss_mib",
        "trace",
    ),
]


SLOW = ("text | awk", "bt2 Python")
TWO_THREADS = "stages native, 2 threads"
TWICE = "stages native, twice at once"  # the most that two threads could do
DUMMY = "babeltrace2 -o dummy"


@dataclass(slots=True)
class Sample:
    """One execution: seconds of CPU and wall time, peak resident memory of its largest process in KiB."""

    cpu_s: float
    wall_s: float
    rss_kib: int


def shell(*parts: str | Path) -> str:
    """A command line for sh."""
    return " ".join(shlex.quote(str(p)) for p in parts)


def methods(trace: Path, model_of: str | Path = generated.MODEL) -> dict[str, str]:
    """Name and command line of everything that is timed; all write to standard output. `losses` of a trace makes a
    whole run first: all tables as Parquet. The last two read the generated traces alone.
    """
    model = ("--model", model_of)
    native = (*model, "--reader", "native", "--threads")
    stages = shell(*OPLINE, "stages", trace, *native, "1", "--csv")
    return {
        "stages native": stages,
        TWICE: f"{stages} & {stages} && wait $!",
        TWO_THREADS: shell(*OPLINE, "stages", trace, *native, "2", "--csv"),
        "csv native": shell(*OPLINE, "csv", trace, *native, "1"),
        "full native": shell(*OPLINE, "losses", trace, *native, "1"),
        DUMMY: shell("babeltrace2", trace, "-o", "dummy"),
        "stages bt2": shell(*OPLINE, "stages", trace, *model, "--reader", "bt2", "--csv"),
        "csv bt2": shell(*OPLINE, "csv", trace, *model, "--reader", "bt2"),
        "text | awk": shell("babeltrace2", trace) + " | " + shell("awk", "-f", HERE / "by_oid.awk"),
        "bt2 Python": shell(sys.executable, HERE / "bt2_loop.py", trace),
    }


def forget_pages(trace: Path) -> None:
    """What the page cache has of the trace's files leaves it; whoever reads them next reads them from the disk, as he
    would a trace of yesterday's or of another machine's. What LTTng's consumer has just written lies there in single
    pages, which take four times as long to map as those that came from the disk side by side.
    """
    for path in (p for p in trace.rglob("*") if p.is_file()):
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def execute(command: str) -> Sample:
    """Run a command line to its end with its output thrown away."""
    began = time.monotonic()
    with Path(os.devnull).open("wb") as sink:
        child = subprocess.Popen(["sh", "-c", command], stdout=sink, stderr=subprocess.DEVNULL)
        _pid, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise SystemExit(f"failed ({child.returncode}): {command}")
    return Sample(usage.ru_utime + usage.ru_stime, time.monotonic() - began, usage.ru_maxrss)


def text_of(command: str) -> str:
    """Standard output of a command line."""
    return subprocess.run(["sh", "-c", command], stdout=subprocess.PIPE, check=True, text=True).stdout


def digest_of(command: str) -> str:
    """SHA-256 of a command line's standard output. Read in pieces: what this process held at once counts as its
    children's memory.
    """
    digest = hashlib.sha256()
    with subprocess.Popen(["sh", "-c", command], stdout=subprocess.PIPE) as child:
        assert child.stdout
        while piece := child.stdout.read(1 << 20):
            digest.update(piece)
    if child.returncode != 0:
        raise SystemExit(f"failed ({child.returncode}): {command}")
    return digest.hexdigest()


def prove_readers_equal(trace: Path, commands: dict[str, str], timed: Collection[str]) -> None:
    """Ends the program unless both readers' outputs, and those of two threads, are the same."""
    for one, other in (("stages native", "stages bt2"), ("csv native", "csv bt2"), (TWO_THREADS, "stages native")):
        if {one, other} & set(timed) and digest_of(commands[one]) != digest_of(commands[other]):
            raise SystemExit(f"{trace}: '{one}' and '{other}' differ: nothing is timed")


def prove_copies(trace: Path, copies: int) -> int:
    """The number of events of copies of a recorded trace. Ends the program unless they are whole: times never go back,
    and every copy has as many ops.
    """
    one = replicated.trace_of(trace.parent.parent, 1)
    # in a process of its own, as what this one held at once counts as its children's memory
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        (events, ops, _), (all_events, all_ops, back) = pool.map(replicated.count, (one, trace))
    if back:
        raise SystemExit(f"{trace}: its times go back: nothing is timed")
    if all_events != copies * events or abs(all_ops - copies * ops) > copies:
        raise SystemExit(f"{trace}: {all_events} events, {all_ops} ops: it is not {copies} copies; nothing is timed")
    return all_events


def prove_equal(trace: Path, events: int, timed: Collection[str]) -> None:
    """Ends the program unless all methods that are timed found the same ops and the same intervals."""
    commands = methods(trace)
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


def machine() -> dict[str, str]:
    """What the figures were measured on."""
    cpu = next(
        (s.split(":", 1)[1].strip() for s in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in s), "?"
    )
    git = ["git", "-C", str(HERE)]
    commit = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    changed = ["status", "--porcelain", "-uno", "--", "../correlator", "../analyses"]
    dirty = subprocess.run([*git, *changed], capture_output=True, text=True).stdout.strip()
    lttng = subprocess.run(["pkg-config", "--modversion", "lttng-ust"], capture_output=True, text=True).stdout.strip()
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="minutes"),
        "commit": commit + ("+" if dirty else ""),
        "cpu": cpu,
        "cpus": str(os.cpu_count()),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "babeltrace2": text_of("babeltrace2 --version").split()[1],
        "lttng_ust": lttng,
    }


def measure(
    trace: Path, commands: dict[str, str], events: int, streams: int, rounds: int, slow_rounds: int
) -> list[dict[str, object]]:
    """Times every command, interleaved; a row for each. The native reader's are timed before each of the others: a
    round takes minutes, within which a machine's speed changes, and they take seconds of it.
    """
    samples: dict[str, list[Sample]] = {name: [] for name in commands}
    native = [name for name in commands if "native" in name]
    for number in range(rounds):
        others = [name for name in commands if name not in native and (name not in SLOW or number < slow_rounds)]
        for one in [one for name in others for one in (*native, name)] or native:
            samples[one].append(execute(commands[one]))
    size = sum(f.stat().st_size for f in trace.rglob("*") if f.is_file() and f.suffix != ".idx")
    dummy = samples.get(DUMMY)
    dummy_cpu = statistics.median(s.cpu_s for s in dummy) if dummy else None
    dummy_wall = statistics.median(s.wall_s for s in dummy) if dummy else None
    rows: list[dict[str, object]] = []
    for name, got in samples.items():
        if not got:
            continue
        cpu, wall = statistics.median(s.cpu_s for s in got), statistics.median(s.wall_s for s in got)
        rows.append(
            {
                "events": events, "streams": streams, "bytes": size, "method": name, "rounds": min(len(got), rounds),
                "cpu_s": f"{cpu:.3f}", "wall_s": f"{wall:.3f}", "ns_per_event": f"{cpu / events * 1e9:.0f}",
                "x_dummy": f"{dummy_cpu / cpu:.2f}" if dummy_cpu else "",
                "x_dummy_wall": f"{dummy_wall / wall:.2f}" if dummy_wall else "",
                "peak_rss_mib": f"{statistics.median(s.rss_kib for s in got) / 1024:.0f}",
            }
        )  # fmt: skip
    return rows


def show(rows: list[dict[str, object]]) -> None:
    """A table for people."""
    print(f"{'method':26}{'CPU s':>9}{'wall s':>9}{'ns/event':>10}{'x dummy':>9}{'x wall':>8}{'RSS MiB':>9}")
    for r in rows:
        cells = (r["cpu_s"], r["wall_s"], r["ns_per_event"], r["x_dummy"], r["x_dummy_wall"], r["peak_rss_mib"])
        print(f"{r['method']:26}" + "".join(f"{c!s:>{w}}" for c, w in zip(cells, (9, 9, 10, 9, 8, 9), strict=True)))


def report(measured: list[dict[str, object]], trace: str, save: bool) -> None:
    """Prints the rows, and appends them to the results."""
    rows = [{**machine(), **r, "trace": trace} for r in measured]
    print(f"{trace}: {rows[0]['events']} events, {rows[0]['streams']} streams; outputs are equal")
    show(rows)
    if save:
        results.append(RESULTS, COLUMNS, rows)


def main() -> None:
    """Generates, proves, times, prints, appends."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, nargs="*", default=[450_000], help="450000, 4500000, 45000000")
    parser.add_argument("--streams", type=int, nargs="+", default=[2, 16, 128])
    parser.add_argument("--kernel", type=int, metavar="COPIES", help="also so many copies of a recorded kernel trace")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--slow-rounds", type=int, default=5, help="of text | awk and bt2 Python")
    parser.add_argument("--only", nargs="+", metavar="METHOD", help="time these alone ('stages native', ...)")
    parser.add_argument("--traces", type=Path, help="where generated traces are kept (default: a temporary folder)")
    parser.add_argument("--as-recorded", action="store_true", help="leave the traces' pages in the cache as they are")
    parser.add_argument("--no-save", action="store_true", help="print only, don't append to results.csv")
    arguments = parser.parse_args()
    known = methods(Path())
    if unknown := set(arguments.only or ()) - known.keys():
        parser.error(f"no such method: {', '.join(sorted(unknown))}; there are: {', '.join(known)}")

    def at_hand(trace: Path) -> Path:
        if not arguments.as_recorded:
            forget_pages(trace)
        return trace

    only = [n for n in arguments.only or known if arguments.slow_rounds > 0 or n not in SLOW]
    with tempfile.TemporaryDirectory(prefix="opline-bench-", dir="/var/tmp") as scratch:
        folder = arguments.traces or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        for events in arguments.events:
            for streams in arguments.streams:
                trace = at_hand(generated.trace_of(folder, events, streams))
                prove_equal(trace, events, only)
                timed = {n: c for n, c in methods(trace).items() if n in only}
                rows = measure(trace, timed, events, streams, arguments.rounds, arguments.slow_rounds)
                report(rows, "ust as recorded" if arguments.as_recorded else "ust", not arguments.no_save)
        if arguments.kernel:
            trace = at_hand(replicated.trace_of(folder, arguments.kernel))
            events = prove_copies(trace, arguments.kernel)
            commands = methods(trace, replicated.MODEL)
            timed = {n: c for n, c in commands.items() if n in only and ("native" in n or n == DUMMY)}
            prove_readers_equal(trace, commands, timed)
            rows = measure(trace, timed, events, len(list((trace / "kernel").glob("*_[0-9]*"))), arguments.rounds, 0)
            report(rows, "kernel as recorded" if arguments.as_recorded else "kernel", not arguments.no_save)


if __name__ == "__main__":
    main()
