# SPDX-License-Identifier: MIT
"""What other programs read of ours and we of theirs: two columns, PyLatencyMap's records; and, where OPLINE_PEERS names
a folder with the originals (HeatMap, PyLatencyMap, perf-tools), what these themselves make of the same input.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from tests.lib.io_runs import io_run
from tests.lib.perf_text import text_of
from tests.lib.recorded import RunOf

from opline_analyses.cli import main

PEERS = Path(os.environ.get("OPLINE_PEERS", "/nonexistent"))
peers = pytest.mark.skipif(not PEERS.is_dir(), reason="OPLINE_PEERS names no folder with the original programs")
Printed = Callable[..., str]


def test_c7_1_two_columns_in_any_order(tmp_path: Path, printed: Printed) -> None:
    """A header, blank and short lines are skipped; the earliest line need not be the first."""
    file = tmp_path / "t.txt"
    file.write_text("TIME DELTA\n2500000 30\n\n1000000 10 more\n7\n1000000.5 20.5\n4000000 40\n")
    found = json.loads(printed("heatmap", "--unitstime=us", "--stepsec=1", "--rows=4", file, "--json"))
    assert [(c["column"], c["count"]) for c in found["cells"]] == [(0, 1), (0, 1), (1, 1), (3, 1)]
    assert sum(c["sum"] for c in found["cells"]) == 100_500, "in thousandths"


def test_c7_2_the_shells_own_redirection_makes_a_picture(tmp_path: Path) -> None:
    (tmp_path / "out.lat_us").write_text("".join(f"{1_000_000 + 1000 * n} {n}\n" for n in range(100)))
    words = ["heatmap", "--unitstime=us", "--unitslat=us", "--grid", str(tmp_path / "out.lat_us")]
    for name, begins in (("x.svg", "<?xml"), ("x.txt", "Latency Heat Map")):
        with (tmp_path / name).open("w") as out:
            subprocess.run([sys.executable, "-m", "opline_analyses", *words], stdout=out, check=True)
        assert (tmp_path / name).read_text().startswith(begins)


def test_c7_2_the_option_says_what_the_text_is(tmp_path: Path, printed: Printed) -> None:
    """Also behind a long preface, which alone shows nothing."""
    file = tmp_path / "t.txt"
    file.write_text("# a\n# b\n# c\n1 20\n2 30\n")
    assert sum(c["count"] for c in json.loads(printed("heatmap", "--unitstime=s", file, "--json"))["cells"]) == 2
    assert main(["heatmap", str(file)]) == 1


def test_c7_2_c7_8_trace2heatmaps_command_line(
    tmp_path: Path, printed: Printed, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "out.lat_us"
    file.write_text("".join(f"{1_000_000 + 1000 * n} {n}\n" for n in range(1000)))
    style = ("--style", "trace2heatmap")
    args = ("heatmap", *style, "--unitstime=us", "--unitslat=us", "--grid", "--maxlat=500", "--title=zoom", file)
    printed(*args, "-o", tmp_path / "x.svg")
    cells = [e for e in ET.parse(tmp_path / "x.svg").iter() if e.get("class") == "cell"]
    assert sum(int(e.get("data-count", "0")) for e in cells) == 1000
    assert sum(int(e.get("data-count", "0")) for e in cells if "500us and above" in e.get("data-told", "")) == 500
    assert main(["heatmap", "--unitstime=weeks", str(file)]) == 2
    capfd.readouterr()
    assert main(["heatmap", "--unitstime=s", "--stepsec=1", str(file)]) == 2
    said = capfd.readouterr().err
    assert "Too many columns" in said and "--unitstime" in said, "C7.4"


def test_two_columns_out_and_in_again(run_of: RunOf, tmp_path: Path, printed: Printed) -> None:
    run = run_of("fio-libaio-qd16-hdd-bfq")
    done = [r for r in run.rows("requests") if r["complete_ns"] is not None]
    file = tmp_path / "pairs.txt"
    file.write_text(printed("log", run.path, "--pairs"))
    found = json.loads(printed("heatmap", "--unitstime=us", file, "--json"))
    assert sum(c["count"] for c in found["cells"]) == len(done)
    assert sum(c["sum"] for c in found["cells"]) == sum(r["complete_ns"] - r["issue_ns"] for r in done)


def records(text: str) -> list[tuple[int, dict[int, int]]]:
    """PyLatencyMap's records: time and counts by bucket."""
    found = []
    for part in text.split("<begin record>\n")[1:]:
        lines = [line.split(",") for line in part.split("<end record>")[0].splitlines()]
        (time,) = [int(line[2]) for line in lines if line[0] == "timestamp"]
        assert ["latencyunit", "microsec"] in lines and ["datasource", "systemtap"] in lines
        found.append((time, {int(line[0]): int(line[1]) for line in lines if line[0].isdecimal()}))
    return found


def test_c3_2_c3_9_records_for_latencymap(tmp_path: Path, printed: Printed) -> None:
    """Cumulative; 5 us are in bucket 4, and what is below 1 us in bucket 1."""
    us = [0.5, 5, 7.9, 8, 1000]
    run = io_run(tmp_path / "run", [{"d": 100_000 * n, "c": 100_000 * n + v} for n, v in enumerate(us)], seconds=0.45)
    found = records(printed("hist", run, "0.1", "--style", "latencymap"))
    assert [sum(counts.values()) for _, counts in found] == [0, 1, 2, 3, 4, 5]
    assert found[-1][1] == {1: 1, 4: 2, 8: 1, 512: 1}
    assert {b - a for (a, _), (b, _) in pairwise(found)} == {100_000}


def test_c3_2_our_records_come_back_as_the_same_counts(run_of: RunOf, tmp_path: Path, printed: Printed) -> None:
    """Interval by interval and bucket by bucket, and through a second time."""
    path = run_of("fio-libaio-qd16-hdd-bfq").path
    file = tmp_path / "records.txt"
    file.write_text(printed("hist", path, "0.5", "--style", "latencymap"))

    def counts(*words: str | Path) -> list[dict[int, int]]:
        document = json.loads(printed("hist", *words, "0.5", "--json"))
        return [{b["low_ns"]: b["count"] for g in i["groups"] for b in g["buckets"]} for i in document["intervals"]]

    back, ours = counts(file), counts(path)
    assert sum(sum(found.values()) for found in back) == 10_240
    assert back == ours[: len(back)] and not any(ours[len(back) :])


@peers
def test_latencymap_reads_our_records_to_their_end(run_of: RunOf, printed: Printed) -> None:
    text = printed("hist", run_of("fio-libaio-qd16-hdd-bfq").path, "0.1", "--style", "latencymap")
    program = [sys.executable, str(PEERS / "PyLatencyMap" / "LatencyMap.py"), "-d", "2", "--screen_delay", "0"]
    done = subprocess.run(program, input=text, text=True, capture_output=True, check=True)
    assert "Reached EOF from data source" in done.stdout
    assert f"Sample num: {len(records(text)) - 1}." in done.stdout


@peers
def test_c7_8_trace2heatmap_leaves_out_its_last_column_and_top_row(printed: Printed, tmp_path: Path) -> None:
    """Of its own example 42 of 15 288 events, the greatest latency among them; ours has all."""
    example = PEERS / "HeatMap" / "example-trace.txt"
    options = ("--unitstime=us", "--unitslabel=us")
    program = ["perl", str(PEERS / "HeatMap" / "trace2heatmap.pl"), *options, str(example)]
    theirs = subprocess.run(program, text=True, capture_output=True, check=True).stdout
    drawn = sum(int(n) for n in re.findall(r"onmouseover=\"s\('[^']*','[^']*',(\d+),", theirs))
    ours = json.loads(printed("heatmap", *options, example, "--json"))
    assert (drawn, sum(c["count"] for c in ours["cells"])) == (15_288 - 42, 15_288)


@peers
def test_c4_10_iolatencys_own_awk_forgets_what_crosses_a_tick(
    trace: Callable[[str], Path],
    opline: Callable[..., subprocess.CompletedProcess[str]],
    tmp_path: Path,
    printed: Printed,
) -> None:
    """The same text through its awk program: --compat gives its sum, and we count all."""
    events = opline("events", trace("fio-libaio-qd16-hdd-bfq")).stdout.splitlines()
    lines = [
        line.replace(" none,0,0", "") for line in text_of(events, "ftrace", 6) if "block_rq" in line or line[0] == "#"
    ]
    (tmp_path / "ftrace.txt").write_text("\n".join(lines) + "\n")
    times = [float(m[1]) for line in lines if (m := re.search(r" (\d+\.\d+):", line))]
    ticked, tick = [], 1
    for line, time in zip(lines[1:], times, strict=True):
        while time >= times[0] + tick - 1e-9:
            ticked.append("tick")
            tick += 1
        ticked.append(line)
    source = (PEERS / "perf-tools" / "iolatency").read_text()
    awk = source.split("-v b_start=$b_start '", 1)[1].split("\n'", 1)[0]
    program = ["awk", "-v", "o=1", "-v", "opt_timestamp=0", "-v", "b_start=block_rq_issue", awk]
    theirs = subprocess.run(
        program, input="\n".join([*ticked, "tick", ""]), text=True, capture_output=True, check=True
    ).stdout

    def total(text: str) -> int:
        return sum(int(n) for n in re.findall(r"-> \d+ *: (\d+)", text))

    ours = [printed("hist", tmp_path / "ftrace.txt", "1", "--style", "iolatency", *o) for o in ((), ("--compat",))]
    assert total(ours[0]) == 10_240
    assert total(theirs) == total(ours[1]) == 10_237
