# SPDX-License-Identifier: MIT
"""What the seeds' behaviours are tested by, where the other tests show a part of it only: whole pictures of histograms,
all combinations of filters, what counts once.
"""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable
from itertools import accumulate, product
from pathlib import Path
from typing import Any

import pytest
from tests.lib.io_runs import SDB, io_run
from tests.lib.recorded import RunOf

from opline_analyses.pictures.heatmap_text import heat

Printed = Callable[..., str]
XVDA, XVDA1 = 202 << 20 | 1, 202 << 20 | 16

SDY = """\
  value |-------------------------------------------------- count
     16 |                                                    0
     32 |                                                    0
     64 |@                                                   2
    128 |@@@@@@@                                            14
    256 |@@                                                  4
    512 |@                                                   2
   1024 |@@@                                                 7
   2048 |@@@@@@@@@                                          19
   4096 |@@@@@@@@@@@@@@@@@@                                 37
   8192 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@                      59
  16384 |@@@@@@@                                            14
  32768 |                                                    0
  65536 |@@@@@                                              10
 131072 |@@@@@                                              11
 262144 |@@@@@                                              10
 524288 |@@@                                                 6
1048576 |@@                                                  4
2097152 |                                                    0
"""
GOOD = """\
value |-------------------------------------------------- count
   32 |                                                    0
   64 |                                                    0
  128 |@@@@@@@@@                                          19
  256 |@@@@@@@@                                           16
  512 |                                                    1
 1024 |@@@@                                                9
 2048 |@@@@@@@@@@@@@@                                     28
 4096 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@                       56
 8192 |@@@@@@@@@@@@@@@@@@@@@@@@                           49
16384 |@@@@@@@@@                                          18
32768 |                                                    0
65536 |                                                    0
"""


@pytest.mark.parametrize("picture", [SDY, GOOD], ids=["sdy", "good"])
def test_c2_6_the_whole_of_both_disks_histograms(tmp_path: Path, printed: Printed, picture: str) -> None:
    """Of so many I/Os in each bucket. What stap drew below the last one with any it had no room for: two rows, here."""
    rows = [(int(line.split("|")[0]), int(line.split()[-1])) for line in picture.splitlines()[1:]]
    ios = [{"d": 0, "c": 1.5 * value} for value, count in rows for _ in range(count)]
    text = printed("hist", io_run(tmp_path / "run", ios, seconds=9.9), "10", "--style", "hist_log")
    ours, theirs = text.splitlines()[9:], picture.splitlines()
    assert ours[: len(theirs)] == theirs and all(line.split()[-1] == "0" for line in ours[len(theirs) :])


def test_c2_5_filters_that_nobody_set_are_minus_one(tmp_path: Path, printed: Printed) -> None:
    run = io_run(tmp_path / "run", [{"d": 0, "c": 5, "sectors": 16}])

    def header(*options: str) -> list[str]:
        lines = printed("hist", run, "--style", "hist_log", *options).splitlines()
        assert lines[:2] == ["Block I/O latency histograms from kernel trace points", "Filters:"]
        return [line.split("=", 1)[1].split()[0] for line in lines[2:6]]

    assert header() == ["-1", "-1", "-1", "-1"]
    assert header("--size", "8192", "-i", "reads") == ["8192", "0", "-1", "-1"], "the script's own defaults"


RWBS = ("R", "RA", "RM", "RSM", "W", "WS", "WM")


@pytest.fixture
def sixteen(tmp_path: Path) -> tuple[Path, list[dict[str, Any]]]:
    """Of each size, direction and device one, two, four ... I/Os."""
    ios: list[dict[str, Any]] = []
    devices = (XVDA, XVDA1, SDB)
    for n, (sectors, kind, dev) in enumerate(product((8, 16), ("read", "write"), devices)):
        ios += [{"d": 1000 * n, "c": 1000 * n + 5, "sectors": sectors, "kind": kind, "dev": dev}] * (n + 1)
    return io_run(tmp_path / "run", ios), ios


def test_c2_4_c4_6_the_truth_table_of_the_four_filters(
    sixteen: tuple[Path, list[dict[str, Any]]], printed: Printed
) -> None:
    """Size, direction, major and minor number, each set or not; 202,1 is another device than 202,16."""
    run, ios = sixteen
    for size, kind, major, minor in product((None, 8192), (None, "writes"), (None, 202), (None, 16)):
        words = ["--size", str(size)] if size else []
        words += ["-i", kind] if kind else []
        if minor is not None:
            words += ["-d", f"{major or 202},{minor}"] if major else ["-d", "202,16", "-d", "8,16"]
        elif major is not None:
            words += ["-m", str(major)]
        expected = [
            io
            for io in ios
            if (size is None or io["sectors"] * 512 == size)
            and (kind is None or io["kind"] == "write")
            and (major is None or io["dev"] >> 20 == major)
            and (minor is None or io["dev"] & 0xFFFFF == minor)
        ]
        found = json.loads(printed("hist", run, "--json", *words))["intervals"][0]["groups"]
        assert sum(group["count"] for group in found) == len(expected) > 0, words
    per = printed("hist", run, "--per", "device", "--json", "-m", "202")
    assert {g["group"]: g["count"] for g in json.loads(per)["intervals"][0]["groups"]} == {
        f"202:{dev & 0xFFFFF}": sum(io["dev"] == dev for io in ios) for dev in (XVDA, XVDA1)
    }


def test_c4_7_a_pattern_of_rwbs_has_stars_at_its_ends(tmp_path: Path, printed: Printed) -> None:
    ios = [
        {"d": n, "c": n + 5, "rwbs": rwbs, "kind": "read" if rwbs[0] == "R" else "write"} for n, rwbs in enumerate(RWBS)
    ]
    run = io_run(tmp_path / "run", ios)

    def listed(pattern: str) -> list[str]:
        return [line.split()[2] for line in printed("log", run, "-i", pattern).splitlines()[1:]]

    assert listed("*R*") == ["R", "RA", "RM", "RSM"] and listed("R") == ["R"] and listed("*M") == ["RM", "RSM", "WM"]
    assert listed("W*") == ["W", "WS", "WM"] and listed("*A*") == ["RA"]


def test_c2_8_cleared_or_grown(tmp_path: Path, printed: Printed) -> None:
    run = io_run(
        tmp_path / "run", [{"d": 100_000 * n + 1, "c": 100_000 * n + 9} for n in (0, 0, 1, 3, 3, 3)], seconds=0.4
    )

    def counts(*options: str) -> list[int]:
        found = json.loads(printed("hist", run, "0.1", "--json", *options))["intervals"]
        return [sum(group["count"] for group in interval["groups"]) for interval in found]

    assert counts()[:4] == [2, 1, 0, 3]
    assert counts("--cumulative") == list(accumulate(counts()))
    text = printed("hist", run, "0.1", "--style", "hist_log")
    assert re.findall(r"I/O count: (\d+)", text)[:4] == ["2", "1", "0", "3"]


def test_c2_10_an_io_of_a_mapped_device_counts_once(run_of: RunOf, printed: Printed) -> None:
    """The mapped device's bios and its member's request are one I/O: that of the member. A flush has no size."""
    run = run_of("app-libaio-qd8-dmlinear")
    requests = [r for r in run.rows("requests") if r["complete_ns"] is not None and r["outcome"] != "absorbed"]
    bios = Counter(bio["dev"] for bio in run.rows("bios"))
    (mapped,) = bios.keys() - {r["dev"] for r in requests}
    document = json.loads(printed("hist", run.path, "--per", "device", "--json"))
    counted = Counter({g["group"]: g["count"] for g in document["intervals"][0]["groups"]})
    assert counted.total() == len(requests) > 900
    assert f"{mapped >> 20}:{mapped & 0xFFFFF}" not in counted and bios[mapped] > 900, "they are bios of both"


def test_c2_11_a_merged_request_is_one_and_its_bios_are_three(tmp_path: Path, printed: Printed) -> None:
    def line(us: int, event: str, sector: int, sectors: int, behind: str = "[fio]") -> str:
        size = f"{512 * sectors} () " if event in ("rq_issue", "rq_insert") else "() " if "complete" in event else ""
        return f" fio 7 [000] 1.{us:06}: block:block_{event}: 8,0 R {size}{sector} + {sectors} {behind}"

    lines = [line(1, "bio_queue", 0, 8), line(2, "getrq", 0, 8), line(3, "rq_insert", 0, 8)]
    for n in (1, 2):
        lines += [line(10 * n, "bio_queue", 8 * n, 8), line(10 * n + 1, "bio_backmerge", 8 * n, 8)]
    lines += [line(50, "rq_issue", 0, 24), line(150, "rq_complete", 0, 24, "[0]")]
    (tmp_path / "merged.txt").write_text("\n".join(lines) + "\n")

    def counted(*options: str) -> tuple[int, int]:
        (group,) = json.loads(printed("hist", tmp_path / "merged.txt", "--json", *options))["intervals"][0]["groups"]
        return group["count"], group["sum_ns"]

    assert counted() == (1, 100_000)
    assert counted("--of", "bios") == (3, 149_000 + 140_000 + 130_000)
    assert [line.split()[5] for line in printed("log", tmp_path / "merged.txt").splitlines()[1:]] == ["12288"]
    assert len(printed("log", tmp_path / "merged.txt", "--of", "bios").splitlines()) == 1 + 3


def test_c2_13_system_calls_their_sum_and_one_process(run_of: RunOf, printed: Printed) -> None:
    run = run_of("fio-psync-qd1-nvme")
    ops = [op for op in run.rows("ops") if op["complete"] and not op["tainted"]]
    (name, _), *_ = Counter(op["class"] for op in ops if "read" in op["class"]).most_common()
    mine = [op for op in ops if op["class"] == name]
    words = ("hist", run.path, "--of", "ops", "--class", name)
    pids = {op["pid"] for op in mine}
    for pid in pids:
        (group,) = json.loads(printed(*words, "-p", str(pid), "--json"))["intervals"][0]["groups"]
        latencies = [op["latency_ns"] for op in mine if op["pid"] == pid]
        assert (group["count"], group["sum_ns"]) == (len(latencies), sum(latencies))
    text = printed(*words, "--style", "hist_log")
    assert f" op count: {len(mine)}\n" in text
    assert sum(int(line.split()[-1]) for line in text.splitlines() if re.match(r" *\d+ \|", line)) == len(mine) > 10


def test_c2_14_each_iocb_is_a_line(run_of: RunOf, printed: Printed) -> None:
    """Of libaio: what was asked for, where, how much, when it was submitted and when reaped."""
    run = run_of("fio-libaio-qd16-hdd-bfq")
    ops = [op for op in run.rows("ops") if op["complete"] and str(op["class"]).startswith("io_submit")]
    listed = [json.loads(line) for line in printed("log", run.path, "--of", "ops", "--json").splitlines()]
    found = {row["op_id"]: row for row in listed if str(row["class"]).startswith("io_submit")}
    assert {op["op_id"] for op in ops} == found.keys() and len(found) > 5000
    for op in ops[:100]:
        row = found[op["op_id"]]
        assert (row["bytes"], row["latency_ns"], row["pid"]) == (op["length_bytes"], op["latency_ns"], op["pid"])


def test_c2_16_any_pair_of_an_applications_events(
    trace: Callable[[str], Path], run_of: RunOf, printed: Printed
) -> None:
    """`--period` makes an op of two events, whose histogram has their differences; and an op that goes through client,
    server and device is one list.
    """
    folder, begun, took = trace("demo-qd4"), dict[int, int](), list[int]()
    for line in printed("events", folder, "--json", "--names", "demo:io_*").splitlines():
        event = json.loads(line)
        if event["event"] == "demo:io_begin":
            begun[event["tid"]] = event["ts_ns"]
        else:
            took.append(event["ts_ns"] - begun.pop(event["tid"]))
    words = ("--of", "ops", "--period", "demo:io_begin,demo:io_end", "--json")
    (group,) = json.loads(printed("hist", folder, *words))["intervals"][0]["groups"]
    assert (group["count"], group["sum_ns"]) == (len(took), sum(took)) and len(took) > 1000
    assert (group["min_ns"], group["max_ns"]) == (min(took), max(took))
    (op,) = [json.loads(printed("ops", run_of("demo-qd4").path, "--slowest", "1", "--json"))]
    layers = [row["point"].split(".")[0] for row in op["transitions"]]
    assert layers[0] == layers[-1] == "client" and {"server", "shard", "worker"} <= set(layers)
    assert {stage["stage"] for stage in op["stages"]} >= {"request in socket", "shard queue", "D2C", "reply in socket"}


def test_c5_2_a_process_and_a_name_narrow_together(tmp_path: Path, printed: Printed) -> None:
    """iosnoop takes one of them; here both are meant."""
    run = io_run(
        tmp_path / "run", [{"d": n, "c": n + 5, "pid": n % 2, "tid": n, "comm": "ab"[n // 2]} for n in range(4)]
    )
    assert len(printed("log", run, "-n", "b").splitlines()) == 1 + 2
    assert [line.split()[0] for line in printed("log", run, "-n", "b", "--tid", "3").splitlines()[1:]] == ["b"]
    assert len(printed("log", run, "-n", "a", "--tid", "3").splitlines()) == 1


def test_c7_5_the_colour_is_the_share_of_the_fullest_cell(tmp_path: Path, printed: Printed) -> None:
    ios = [{"d": 100_000 * n, "c": 100_000 * n + 50} for n, many in enumerate((1, 2, 5, 10)) for _ in range(many)]
    run = io_run(tmp_path / "run", ios, seconds=0.5)
    printed("heatmap", run, "--stepsec", "0.1", "-o", tmp_path / "x.svg")
    cells = [e for e in ET.parse(tmp_path / "x.svg").iter() if e.get("class") == "cell"]
    fills = {int(e.get("data-count", "0")): e.get("fill") for e in cells}
    assert fills == {n: "rgb({},{},{})".format(*heat(n / 10)) for n in (1, 2, 5, 10)}
    assert fills[10] == "rgb(255,0,0)" and fills[1] == "rgb(255,216,198)", "as trace2heatmap.pl's color()"


def test_c7_7_labels_stand_where_their_time_is(tmp_path: Path, printed: Printed) -> None:
    """In proportion, whatever the step; and so do those of the latencies, from the least to the greatest."""
    run = io_run(tmp_path / "run", [{"d": 40_000 * n, "c": 40_000 * n + 100 + n} for n in range(50)], seconds=2.0)
    for step in ("0.02", "0.03"):
        printed("heatmap", run, "--stepsec", step, "--grid", "--linear", "-o", tmp_path / "x.svg")
        texts = [e for e in ET.parse(tmp_path / "x.svg").iter() if e.tag.endswith("text")]
        marks = {
            float(m[1]): float(e.get("x", "nan")) for e in texts if (m := re.fullmatch(r"([\d.]+)s", e.text or ""))
        }
        (first, x), *others = sorted(marks.items())
        assert len(others) > 1
        for time, at in others:
            assert at - x == pytest.approx((time - first) / float(step) * 8, abs=0.001), "8 pixels for each column"
        values = {
            int(e.text or ""): float(e.get("y", "nan"))
            for e in texts
            if (e.text or "").isdecimal() and (e.get("font-size"), e.get("fill")) == ("10", "rgb(100,100,100)")
        }
        (least, bottom), *above = sorted(values.items())
        assert least == 0 and above[-1][0] >= 140, "the latencies are 100 to 149 us"
        assert len({round((bottom - y) / value, 6) for value, y in above}) == 1, "a linear axis"


def test_c7_11_c7_13_three_pictures_and_a_zoomed_one_beside_the_full(
    run_of: RunOf, printed: Printed, tmp_path: Path
) -> None:
    run = run_of("fio-libaio-qd16-hdd-bfq")
    done = [r for r in run.rows("requests") if r["complete_ns"] is not None]
    pictures = {
        "latency": (), "size": ("--value", "size"), "offset": ("--value", "offset"),
        "zoom": ("--maxlat=15000", "--title=the first 15 ms"),
    }  # fmt: skip
    for name, options in pictures.items():
        printed("heatmap", run.path, "-o", tmp_path / f"{name}.svg", *options)
        drawn = (tmp_path / f"{name}.svg").read_text()
        assert sum(map(int, re.findall(r'data-count="(\d+)"', drawn))) == len(done), name
        assert ("the first 15 ms" in drawn) == (name == "zoom")
