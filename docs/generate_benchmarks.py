# SPDX-License-Identifier: MIT
"""The parts of docs/ that are made of files of measured figures in benchmarks/: tables that cog puts into the pages."""

from __future__ import annotations

import csv
from statistics import median

from generate import ROOT

DELAYS, DELAY_NS = ("client-queue", "shard-queue", "worker", "device", "commit"), 50_000_000
BEHIND = 70.0  # %: of so many slow ops a fault is truly behind


def planted_faults() -> None:
    """Of benchmarks/planted_faults.csv, by fault and load: in how many runs `opline why` named what was planted."""
    rows = _planted("planted_faults.csv")
    print("| planted | at | runs | behind, % | planted, % | share, % | within 10 | spent | caused | p99 | named |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for fault, load in dict.fromkeys((r["fault"], r["at"]) for r in rows):
        found = [r for r in rows if (r["fault"], r["at"]) == (fault, load)]
        cells = [""] * 7
        if fault != "none":
            shares = [float(r["share"]) for r in found]
            cells = [f"{median(float(r['behind']) for r in found):.0f}", "", f"{median(shares):.0f}", ""]
            if fault in DELAYS:
                cells[1] = f"{median(map(_planted_share, found)):.0f}"
                cells[3] = str(_near(found))
            cells += [str(sum(r[c] == "1" for r in found)) for c in ("spent", "caused", "p99")]
        print(f"| {' | '.join([fault, load, str(len(found)), *cells, _named(found)])} |")
    print()
    _sums(rows)


def planted_loaded() -> None:
    """Of benchmarks/planted_loaded.csv the sums alone."""
    _sums(_planted("planted_loaded.csv"))


def _planted(name: str) -> list[dict[str, str]]:
    with (ROOT / "benchmarks" / name).open(newline="") as file:
        rows = list(csv.DictReader(file))
    loads = sorted(float(r["load"]) for r in rows)
    seeds = len({r["seed"] for r in rows})
    print(f"{len(rows)} runs, {seeds} seeds; the load average of the two CPUs was {loads[0]:.0f} to {loads[-1]:.0f}.\n")
    return rows


def _planted_share(row: dict[str, str]) -> float:
    return min(100.0, 100 * DELAY_NS / float(row["excess_ns"]))


def _near(rows: list[dict[str, str]]) -> int:
    """In how many what is told of the planted stage is within 10 points of what was planted."""
    return sum(abs(_planted_share(row) - float(row["share"])) <= 10 for row in rows)


def _sums(rows: list[dict[str, str]]) -> None:
    delays = [r for r in rows if r["fault"] in DELAYS]
    right = sum(r["caused"] == "1" for r in delays)
    print(f"In {right} of the {len(delays)} runs with a delay the first cause is the planted one. The share is within")
    print(f"10 points in {_near(delays)}.\n")
    most = [r for r in rows if r["fault"] not in ("none", *DELAYS) and float(r["behind"]) >= BEHIND]
    right = sum(r["caused"] == "1" for r in most)
    print(f"In {len(most)} runs a fault that something separates is behind {BEHIND:.0f} % of the slow ops or more. The")
    print(f"first cause is the planted one in {right} of these runs. The separating condition or period is:")
    print(f"{_named(most)}.", end=" ")
    print(f"Without a fault: {_named([r for r in rows if r['fault'] == 'none'])}.\n")


def capture_cost() -> None:
    """Of benchmarks/capture_cost.csv, the newest run: medians by job and recorder."""
    with (ROOT / "benchmarks" / "capture_cost.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    rows = [r for r in rows if (r["date"], r["commit"]) == (rows[-1]["date"], rows[-1]["commit"])]
    loads = sorted(float(r["load"]) for r in rows)
    print("| fio | recorder | runs | untraced IOPS | share that is left | bytes per I/O | collector, ns per I/O |")
    print("|---|---|---|---|---|---|---|")
    for job, recorder in sorted({(r["job"], r["recorder"]) for r in rows}):
        found = [r for r in rows if (r["job"], r["recorder"]) == (job, recorder)]
        shares = sorted(float(r["share"]) for r in found)
        iops, written, own = (
            median(values) if (values := [float(r[name]) for r in found if r[name]]) else None
            for name in ("untraced_iops", "bytes_per_io", "collector_ns_per_io")
        )
        cells = [job, recorder, str(len(found)), f"{iops:,.0f}"]
        cells += [f"{median(shares):.2f} ({shares[0]:.2f} to {shares[-1]:.2f})", f"{written:.0f}"]
        print(f"| {' | '.join([*cells, '' if own is None else f'{own:.0f}'])} |")
    newest = rows[-1]
    load = f"{loads[0]:.0f} to {loads[-1]:.0f}"
    print(f"\n{newest['date'][:10]}, {newest['cpus']} CPUs, kernel {newest['kernel']}, load {load}.")


def postgresql_cost() -> None:
    """What examples/postgresql/cost.py printed."""
    print(f"```text\n{(ROOT / 'benchmarks' / 'postgresql_cost.txt').read_text()}```")


def page_speed() -> None:
    """Of benchmarks/page_speed.csv, the newest of each run: how quick the page is, as a file and served."""
    with (ROOT / "benchmarks" / "page_speed.csv").open(newline="") as file:
        newest = {(r["run"], r["what"]): r for r in csv.DictReader(file)}
    columns = {
        "report": ("make_s", "file_mib", "load_s", "step_median_ms", "step_most_ms", "pss_mib"),
        "view": ("load_s", "sums_s", "zoom_median_s", "zoom_most_s", "pss_mib"),
    }
    heads = {
        "report": "made in, s | file, MiB | load, s | a drag's step, ms | at most | browser, MiB",
        "view": "first picture, s | with all sums, s | a zoom, s | at most | browser, MiB",
    }
    for what, names in columns.items():
        print(f"| `opline {what}` of | ops | {heads[what]} |")
        print("|---" * (len(names) + 2) + "|")
        for row in newest.values():
            if row["what"] == what:
                cells = (row["run"], f"{int(row['ops']):,}", *(row[name] for name in names))
                print(f"| {' | '.join(cells)} |")
        print()


def _named(rows: list[dict[str, str]]) -> str:
    return ", ".join(f"{n} {v}" for v in ("right", "wrong", "none") if (n := sum(r["separator"] == v for r in rows)))
