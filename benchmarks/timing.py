# SPDX-License-Identifier: MIT
"""Times command lines as whole processes, in interleaved rounds, and makes rows of results of them."""

from __future__ import annotations

import datetime
import hashlib
import os
import platform
import shlex
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import results

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results.csv"
COLUMNS = [
    *("date", "commit", "cpu", "cpus", "kernel", "python", "babeltrace2", "lttng_ust"),
    *("events", "streams", "bytes", "method", "rounds", "cpu_s", "wall_s", "ns_per_event"),
    *("x_dummy", "x_dummy_wall", "peak_rss_mib", "trace", "start_cpu_s", "x_dummy_without_start"),
]
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
    """SHA-256 of a command line's standard output. The output is read in pieces, because memory that this process held
    at once would count as its children's.
    """
    digest = hashlib.sha256()
    with subprocess.Popen(["sh", "-c", command], stdout=subprocess.PIPE) as child:
        assert child.stdout
        while piece := child.stdout.read(1 << 20):
            digest.update(piece)
    if child.returncode != 0:
        raise SystemExit(f"failed ({child.returncode}): {command}")
    return digest.hexdigest()


def forget_pages(trace: Path) -> None:
    """Removes the trace's files from the page cache: the next reader reads them from the disk, as it would read a trace
    of yesterday. Files that LTTng's consumer has just written lie in the page cache in single pages, which take four
    times as long to map as pages that came from the disk together.
    """
    for path in (p for p in trace.rglob("*") if p.is_file()):
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


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


def interleaved(orders: Sequence[Sequence[str]], run: Callable[[str], Sample]) -> dict[str, list[Sample]]:
    """The samples of each name; ``orders`` has the names of each round, in the order in which they are run."""
    samples: dict[str, list[Sample]] = {}
    for names in orders:
        for name in names:
            samples.setdefault(name, []).append(run(name))
    return samples


def _median(samples: Sequence[Sample], of: Callable[[Sample], float]) -> float:
    return statistics.median(of(s) for s in samples)


def rows_of(
    samples: Mapping[str, Sequence[Sample]],
    starts: Mapping[str, Sequence[Sample]],
    events: int,
    streams: int,
    trace: Path,
) -> list[dict[str, object]]:
    """A row per method. ``starts`` has samples of the same programs on a trace of next to no events, by the methods'
    names: their median is the start-up that ``x_dummy_without_start`` takes off on both sides.
    """
    size = sum(f.stat().st_size for f in trace.rglob("*") if f.is_file() and f.suffix != ".idx")
    rows: list[dict[str, object]] = []
    dummy = samples.get(DUMMY, ())
    for name, got in samples.items():
        cpu, wall = _median(got, lambda s: s.cpu_s), _median(got, lambda s: s.wall_s)
        row: dict[str, object] = {
            "events": events, "streams": streams, "bytes": size, "method": name, "rounds": len(got),
            "cpu_s": f"{cpu:.3f}", "wall_s": f"{wall:.3f}", "ns_per_event": f"{cpu / events * 1e9:.0f}",
            "peak_rss_mib": f"{_median(got, lambda s: s.rss_kib) / 1024:.0f}",
        }  # fmt: skip
        if dummy:
            row["x_dummy"] = f"{_median(dummy, lambda s: s.cpu_s) / cpu:.2f}"
            row["x_dummy_wall"] = f"{_median(dummy, lambda s: s.wall_s) / wall:.2f}"
        if name in starts:
            start = _median(starts[name], lambda s: s.cpu_s)
            row["start_cpu_s"] = f"{start:.3f}"
            if dummy and DUMMY in starts:
                theirs = _median(dummy, lambda s: s.cpu_s) - _median(starts[DUMMY], lambda s: s.cpu_s)
                row["x_dummy_without_start"] = f"{theirs / (cpu - start):.2f}"
        rows.append(row)
    return rows


def _show(rows: Sequence[Mapping[str, object]]) -> None:
    widths = (9, 9, 10, 9, 10, 8, 9)
    columns = ("cpu_s", "wall_s", "ns_per_event", "x_dummy", "x_dummy_without_start", "x_dummy_wall", "peak_rss_mib")
    titles = ("CPU s", "wall s", "ns/event", "x dummy", "no start", "x wall", "RSS MiB")
    print(f"{'method':26}" + "".join(f"{t:>{w}}" for t, w in zip(titles, widths, strict=True)))
    for r in rows:
        cells = [str(r.get(c, "")) for c in columns]
        print(f"{r['method']:26}" + "".join(f"{c:>{w}}" for c, w in zip(cells, widths, strict=True)), flush=True)


def report(measured: Sequence[Mapping[str, object]], trace: str, save: bool) -> None:
    """Prints the rows, and appends them to the results."""
    rows = [{**machine(), **r, "trace": trace} for r in measured]
    print(f"{trace}: {rows[0]['events']} events, {rows[0]['streams']} streams; outputs are equal")
    _show(rows)
    if save:
        results.append(RESULTS, COLUMNS, rows)
