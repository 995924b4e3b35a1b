#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How long a heat map of `perf script` text takes: opline against awk and trace2heatmap.pl, on the same file.

The text is made (perf_text.c): an issue and a completion for each I/O. Before anything is timed, the latencies that
awk finds and those in opline's map are compared: how many, their sum to the microsecond of each, the greatest. Then
both are timed in turns. awk is given the line of "perf Heat Maps" with the field numbers of this layout; OPLINE_PEERS
names a folder with HeatMap/trace2heatmap.pl. Prints medians.

    OPLINE_PEERS=DIR .venv/bin/python benchmarks/text_heatmap.py --ios 10000000 --rounds 3
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from benchmarks.timing import Sample, execute, shell, text_of  # noqa: E402

OPLINE = [sys.executable, "-m", "opline_analyses"]
PEERS = Path(os.environ.get("OPLINE_PEERS", "/nonexistent"))
AWK = """{ gsub(/:/, "") } $5 ~ /issue/ { ts[$6, $10] = $4 }
$5 ~ /complete/ { if (l = ts[$6, $9]) { printf "%.f %.f\\n", $4 * 1000000, ($4 - l) * 1000000; ts[$6, $9] = 0 } }"""
LARGEST_US = 1000  # of the maps: what is above it is in a row of its own here, and left out there


def made(folder: Path, ios: int) -> Path:
    """The text of so many I/Os."""
    program, text = folder / "perf_text", folder / "out.blockio"
    subprocess.run(["cc", "-O2", "-o", str(program), str(HERE / "perf_text.c")], check=True)
    with text.open("wb") as out:
        subprocess.run([str(program), str(ios)], stdout=out, check=True)
    return text


def prove_equal(text: Path, pairs: Path, ios: int) -> None:
    """Ends the program unless both have the same latencies."""
    sums = 'END { printf "%.f %.f %.f", n, s, m } { n++; s += $2; if ($2 > m) m = $2 }'
    count, total, most = map(float, text_of(shell("awk", sums, pairs)).split())
    document = json.loads(text_of(shell(*OPLINE, "hist", text, "--json")))
    (group,) = document["intervals"][0]["groups"]
    map_ = json.loads(text_of(shell(*OPLINE, "heatmap", text, "--json")))
    ours = group["count"], group["sum_ns"] / 1000, group["max_ns"] / 1000
    if not ios == count == ours[0] == sum(cell["count"] for cell in map_["cells"]):
        raise SystemExit(f"{count} latencies, {ours[0]} here, of {ios} I/Os: nothing is timed")
    if abs(total - ours[1]) > ios / 1000 or abs(most - ours[2]) > 1:
        raise SystemExit(
            f"their sum is {total} us, {ours[1]} here; the greatest {most} and {ours[2]}: nothing is timed"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--ios", type=int, default=10_000_000, help="default: %(default)s")
    parser.add_argument("--rounds", type=int, default=3, help="default: %(default)s")
    parser.add_argument("--awk", action="append", help="an awk; may be given again (default: mawk and gawk)")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()), help="200 bytes for each I/O")
    asked = parser.parse_args()
    perl = PEERS / "HeatMap" / "trace2heatmap.pl"
    if not perl.is_file():
        raise SystemExit("OPLINE_PEERS names no folder with HeatMap/trace2heatmap.pl")
    with tempfile.TemporaryDirectory(dir=asked.folder) as name:
        folder = Path(name)
        text, pairs = made(folder, asked.ios), folder / "pairs"
        draw = ["perl", perl, "--unitstime=us", "--unitslabel=us", "--stepsec=2", "--grid", f"--maxlat={LARGEST_US}"]
        commands = {
            "opline": shell(*OPLINE, "heatmap", text, "--grid", f"--maxlat={LARGEST_US}", "-o", folder / "o.svg")
        }
        for awk in asked.awk or [found for found in ("mawk", "gawk") if shutil.which(found)]:
            commands[awk] = (
                f"{shell(awk, AWK, text)} > {shell(pairs)}; {shell(*map(str, draw), pairs)} > {shell(folder / 'p.svg')}"
            )
        others = [name for name in commands if name != "opline"]
        subprocess.run(["sh", "-c", commands[others[0]]], check=True)
        prove_equal(text, pairs, asked.ios)
        samples: dict[str, list[Sample]] = {name: [] for name in commands}
        for _ in range(asked.rounds):
            for method, command in commands.items():
                samples[method].append(execute(command))
        ours = statistics.median(s.cpu_s for s in samples["opline"])
        print(f"{asked.ios} I/Os, {text.stat().st_size >> 20} MiB of text; the latencies are equal")
        for method, got in samples.items():
            cpu, wall = (statistics.median(of) for of in ([s.cpu_s for s in got], [s.wall_s for s in got]))
            rss = statistics.median(s.rss_kib for s in got) / 1024
            print(f"{method:8} CPU {cpu:7.2f} s  wall {wall:7.2f} s  {rss:6.0f} MiB  {cpu / ours:5.1f} x")


if __name__ == "__main__":
    main()
