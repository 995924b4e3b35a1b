#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How quick the page is in a headless Chromium: files of `opline report`, and `opline view`.

    .venv/bin/python benchmarks/page_speed.py [--view] RUN ...

For each run: how long `opline report` takes and how large the file is; the page's load, from the request for it to the
moment in which it has drawn itself (median of ROUNDS); a drag over the heat map in STEPS, each from the movement of the
pointer to the picture with all panels; and the memory of all of the browser's processes (PSS). With --view, for runs
that are too large for a page of their own: the first picture, the same with the sums of all stages, and a zoom into a
tenth of the time, until both are drawn. Appends to page_speed.csv, of which docs/report.md has a table.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from tests.lib.browser import Browser, Page  # noqa: E402

from opline_analyses.runs.run import open_tables  # noqa: E402

OPLINE = Path(sys.executable).with_name("opline")
RESULTS = HERE / "page_speed.csv"
COLUMNS = (
    *(
        "date",
        "run",
        "what",
        "ops",
        "stages",
        "make_s",
        "file_mib",
        "load_s",
        "sums_s",
        "step_median_ms",
        "step_most_ms",
    ),
    *("zoom_median_s", "zoom_most_s", "pss_mib"),
)
ROUNDS, STEPS = 5, 40
# Its rAF callback is asked for before the page's own; the task behind it comes when the frame is made.
MEASURE = """(window.steps = [], addEventListener('pointermove', () => { const begin = performance.now();
  requestAnimationFrame(() => setTimeout(() => steps.push(performance.now() - begin))); }, true), 1)"""
BOX = """(() => { const r = document.querySelector('canvas.over').getBoundingClientRect();
  const b = opline.page.heats[0].box; return [r.left + b.x, r.top + b.y, b.width, b.height]; })()"""
TOLD = "opline.page.runs[0].answer && !opline.page.runs[0].stale"


def processes(pid: int) -> Iterator[int]:
    """A process and its descendants."""
    yield pid
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            yield from processes(int(child))


def pss_mib(pid: int) -> float:
    """What they have of memory, what is shared by its part."""
    found = (re.search(r"^Pss:\s+(\d+)", Path(f"/proc/{p}/smaps_rollup").read_text(), re.M) for p in processes(pid))
    return sum(int(m[1]) for m in found if m) / 1024


def drag(page: Page) -> list[float]:
    """Marks more and more of the heat map; the milliseconds of each step."""
    page.ask(MEASURE)
    left, top, width, height = page.ask(BOX)
    page.mouse("mouseMoved", left + 0.1 * width, top + 0.05 * height)
    page.mouse("mousePressed", left + 0.1 * width, top + 0.05 * height, 1)
    for k in range(1, STEPS + 1):
        page.mouse("mouseMoved", left + (0.1 + 0.015 * k) * width, top + (0.05 + 0.02 * k) * height, 1)
        page.frame()
    page.mouse("mouseReleased", left + 0.7 * width, top + 0.85 * height)
    page.frame()
    steps: list[float] = page.ask("steps")
    return steps[1:]  # the first one was before the press


def of_a_file(run: Path, folder: Path) -> dict[str, object]:
    """The page as a file."""
    file = folder / "report.html"
    began = time.monotonic()
    subprocess.run([OPLINE, "report", run, "-o", file], check=True, stderr=subprocess.DEVNULL)
    made_s = time.monotonic() - began
    loads = []
    for _ in range(ROUNDS):
        with Browser() as browser:
            browser.open("about:blank", ready="true")  # the browser itself has started
            began = time.monotonic()
            page = browser.open(file)
            loads.append(time.monotonic() - began)
            steps = drag(page)
            memory = pss_mib(browser.pid)
    return {
        "what": "report", "make_s": f"{made_s:.1f}", "file_mib": f"{file.stat().st_size / 2**20:.2f}",
        "load_s": f"{statistics.median(loads):.2f}", "step_median_ms": f"{statistics.median(steps):.0f}",
        "step_most_ms": f"{max(steps):.0f}", "pss_mib": f"{memory:.0f}",
    }  # fmt: skip


@contextmanager
def served(run: Path) -> Iterator[str]:
    """The address of the run's page."""
    with subprocess.Popen([OPLINE, "view", run], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as p:
        assert p.stdout is not None
        try:
            yield p.stdout.readline().strip()
        finally:
            p.send_signal(signal.SIGINT)


def of_a_server(run: Path) -> dict[str, object]:
    """The page of `opline view`: each load is of a server of its own, and each zoom another tenth of the time."""
    loads, sums, zooms = [], [], []
    for _ in range(ROUNDS):
        with served(run) as address, Browser() as browser:
            browser.open("about:blank", ready="true")
            began = time.monotonic()
            page = browser.open(address)
            loads.append(time.monotonic() - began)
            page.wait(TOLD)
            sums.append(time.monotonic() - began)
            span = page.ask("opline.page.runs[0].head.span_ns")
            for tenth in range(9):
                begin, end = span * tenth // 10, span * (tenth + 1) // 10
                began = time.monotonic()
                page.ask(f"(location.hash = '#t={begin},{end}', 1)")
                page.wait(f"opline.page.runs[0].drawn?.from_ns === {begin} && {TOLD}")
                page.frame()
                zooms.append(time.monotonic() - began)
            memory = pss_mib(browser.pid)
    return {
        "what": "view", "load_s": f"{statistics.median(loads):.2f}", "sums_s": f"{statistics.median(sums):.2f}",
        "zoom_median_s": f"{statistics.median(zooms):.2f}",
        "zoom_most_s": f"{max(zooms):.2f}", "pss_mib": f"{memory:.0f}",
    }  # fmt: skip


def main() -> None:
    """Measures and appends."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", metavar="RUN", nargs="+", type=Path)
    parser.add_argument("--view", action="store_true", help="of `opline view` instead of a file")
    args = parser.parse_args()
    begins = not RESULTS.exists()
    with RESULTS.open("a", newline="") as out, tempfile.TemporaryDirectory() as folder:
        writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
        if begins:
            writer.writeheader()
        for run in args.runs:
            opened = open_tables(run)
            ops, stages = (opened.row(f"SELECT count(*) FROM {table}")[0] for table in ("ops", "stages"))
            found = of_a_server(run) if args.view else of_a_file(run, Path(folder))
            row = {"date": datetime.date.today(), "run": run.name, "ops": ops, "stages": stages} | found
            print(", ".join(f"{k} {v}" for k, v in row.items()))
            writer.writerow(row)


if __name__ == "__main__":
    main()
