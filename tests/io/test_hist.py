# SPDX-License-Identifier: MIT
"""`opline hist`: the seeds' histograms, their layouts and filters; sums never differ from the number of I/Os."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.lib.io_runs import SDB, io_run
from tests.lib.recorded import RunOf

from opline_analyses.cli import main

LATENCIES = [0.5, 1.5, 3, 3.9, 4, 1000, 1000.001, 15_000]


@pytest.fixture
def some(tmp_path: Path) -> Path:
    """I/Os of these latencies, one per 100 ms; the third is on the other device, the fourth a write."""
    ios: list[dict[str, Any]] = []
    for n, latency in enumerate(LATENCIES):
        d = 100_000 * n + 50_000
        ios.append({"q": d - 10, "g": d - 9, "i": d - 5, "d": d, "c": d + latency, "tid": 100 + n})
    ios[2] |= {"dev": SDB, "comm": "other", "cls": "scan"}
    ios[3] |= {"kind": "write", "rwbs": "WS", "sectors": 16}
    return io_run(tmp_path / "run", ios)


def said(capfd: pytest.CaptureFixture[str], *args: str | Path) -> tuple[str, str]:
    """Standard output and error of a command that succeeds."""
    assert main([str(a) for a in args]) == 0
    out = capfd.readouterr()
    return out.out, out.err


def document(capfd: pytest.CaptureFixture[str], *args: str | Path) -> Any:
    return json.loads(said(capfd, *args, "--json")[0])


def counts(found: Any) -> dict[str, int]:
    """Of all intervals, per group."""
    sums: Counter[str] = Counter()
    for interval in found["intervals"]:
        for group in interval["groups"]:
            sums[group["group"]] += group["count"]
            assert group["count"] == sum(b["count"] for b in group["buckets"])
    return dict(sums)


def test_c2_7_buckets_hold_low_to_below_high(some: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (interval,) = document(capfd, "hist", some)["intervals"]
    (group,) = interval["groups"]
    found = {(b["low_ns"], b["high_ns"]): b["count"] for b in group["buckets"]}
    assert found == {
        (0, 1000): 1, (1000, 2000): 1, (2000, 4000): 2, (4000, 8000): 1, (512_000, 1_024_000): 2,
        (8_192_000, 16_384_000): 1,
    }  # fmt: skip
    assert (group["count"], group["sum_ns"]) == (8, round(sum(LATENCIES) * 1000))
    assert (group["min_ns"], group["max_ns"]) == (500, 15_000_000)


def test_the_table_has_shares_sums_and_fits_80_columns(some: Path, capfd: pytest.CaptureFixture[str]) -> None:
    text, _ = said(capfd, "hist", some)
    assert text.splitlines()[:2] == [
        "0.000000 to 1.000000 s",
        "8 I/Os, D2C mean 2.127 ms, min 500 ns, max 15 ms, sum 17.01 ms",
    ]
    rows = [line.split() for line in text.splitlines()[3:]]
    assert [r[:2] for r in rows] == [["0", "1"], *([str(1 << i), str(2 << i)] for i in range(14))]
    assert sum(int(r[2]) for r in rows) == 8
    assert rows[-1][4] == "100.0"
    assert max(map(len, text.splitlines())) <= 80


def test_c2_8_c6_4_intervals_are_cleared_and_idle_ones_are_there(some: Path, capfd: pytest.CaptureFixture[str]) -> None:
    found = document(capfd, "hist", some, "0.05")
    times = [(i["begin_ns"], i["end_ns"]) for i in found["intervals"]]
    assert times == [(50_000_000 * n, 50_000_000 * (n + 1)) for n in range(21)]
    assert [sum(g["count"] for g in i["groups"]) for i in found["intervals"]] == [0, 1] * 8 + [0] * 5
    grown = document(capfd, "hist", some, "0.05", "--cumulative")
    assert [sum(g["count"] for g in i["groups"]) for i in grown["intervals"]][-1] == 8
    assert len(document(capfd, "hist", some, "0.05", "3")["intervals"]) == 3
    blocks = said(capfd, "hist", some, "0.2", "3", "--style", "iolatency")[0].split("\n\n")
    assert len(blocks) == 3, "C4.1: so many blocks"
    assert len(document(capfd, "hist", some, "-Q", "0.05", "-d", "sda", "3")["intervals"]) == 3, "wherever it stands"


def test_c4_10_what_is_in_flight_across_a_tick_is_counted_once(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run = io_run(tmp_path / "run", [{"d": 90_000, "c": 110_000}, {"d": 10, "c": 350_000}, {"d": 1, "c": 2}])
    found = document(capfd, "hist", run, "0.1")
    assert [sum(g["count"] for g in i["groups"]) for i in found["intervals"]] == [1, 1, 0, 1] + [0] * 7
    forgotten = document(capfd, "hist", run, "0.1", "--style", "iolatency", "--compat")
    assert counts(forgotten) == {"": 1}, "iolatency itself deletes what it waits for at each tick"


def test_c4_2_the_layout_of_iolatency(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The first block of iolatency's own documentation, from 4396 I/Os of such latencies."""
    ms = [0.3] * 4381 + [1.2] * 9 + [3] * 5 + [9]
    run = io_run(tmp_path / "run", [{"d": 10 * n, "c": 10 * n + m * 1000} for n, m in enumerate(ms)])
    text, _ = said(capfd, "hist", run, "--style", "iolatency")
    assert text == (
        "\n"
        "  >=(ms) .. <(ms)   : I/O      |Distribution                          |\n"
        "       0 -> 1       : 4381     |######################################|\n"
        "       1 -> 2       : 9        |#                                     |\n"
        "       2 -> 4       : 5        |#                                     |\n"
        "       4 -> 8       : 0        |                                      |\n"
        "       8 -> 16      : 1        |#                                     |\n"
    )


def test_c4_3_exactly_one_ms_follows_the_header(some: Path, capfd: pytest.CaptureFixture[str]) -> None:
    exact = ("hist", some, "--style", "iolatency", "--latency", "999us..1001us")
    assert "       0 -> 1       : 0        |" in said(capfd, *exact)[0]
    assert "       0 -> 1       : 1        |" in said(capfd, *exact, "--compat")[0], "1.000 ms, but not 1.000001 ms"


def sdy() -> list[float]:
    """Latencies in us that fall into the seed's histogram of the bad disk: so many from 64, 128, ... on."""
    found: list[float] = []
    for n, count in enumerate((2, 14, 4, 2, 7, 19, 37, 59, 14, 0, 10, 11, 10, 6, 4)):
        found += [1.5 * (64 << n)] * count
    return found


def test_c2_6_the_layout_of_hist_log(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """C2.3, C2.5, C2.18: the seed's bad disk, its header and its filters."""
    run = io_run(
        tmp_path / "run",
        [{"d": 1000 * n, "c": 1000 * n + us, "sectors": 16, "dev": 65 << 20 | 128} for n, us in enumerate(sdy())],
        seconds=9.9,
        names={65 << 20 | 128: "sdy"},
    )
    text, _ = said(
        capfd, "hist", run, "10", "--style", "hist_log", "--device", "65,128", "--size", "8192", "-i", "reads"
    )
    lines = text.splitlines()
    assert lines[:9] == [
        "Block I/O latency histograms from kernel trace points",
        "Filters:",
        "    IO_size = 8192",
        "    IO_operation = 0 (0=read, 1=write, -1=disable filter)",
        "    IO_devmaj = 65 (-1=disable filter)",
        "    IO_devmin = 128 (-1=disable filter)",
        "",
        "Block I/O latency histogram, measurement time: 10 seconds, I/O count: 199",
        "Value = latency bucket (microseconds), count=I/O operations in 10 seconds",
    ]
    assert lines[9:14] == [
        "  value |-------------------------------------------------- count",
        "     16 |                                                    0",
        "     32 |                                                    0",
        "     64 |@                                                   2",
        "    128 |@@@@@@@                                            14",
    ]
    rows = [(int(line.split("|")[0]), int(line.split()[-1])) for line in lines[10:]]
    seed = (0, 0, 2, 14, 4, 2, 7, 19, 37, 59, 14, 0, 10, 11, 10, 6, 4, 0, 0)
    assert rows == [(16 << n, count) for n, count in enumerate(seed)], "two empty rows on each side"
    assert "   8192 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@                      59" in lines
    assert "  32768 |                                                    0" in lines
    assert "1048576 |@@                                                  4" in lines
    assert lines[-1].split() == ["4194304", "|", "0"]


def test_c2_6_long_gaps_are_a_tilde(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run = io_run(tmp_path / "run", [{"d": 0, "c": 2}, {"d": 0, "c": 5000}])
    text, _ = said(capfd, "hist", run, "--style", "hist_log")
    values = [line.split()[0] for line in text.splitlines()[10:]]
    assert values == ["0", "1", "2", "4", "8", "~", "1024", "2048", "4096", "8192", "16384"]


def test_the_layout_of_biolatency(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run = io_run(tmp_path / "run", [{"d": 0, "c": us} for us in (0.2, 1, 2, 3, 7, 8, 8, 8)])
    text, _ = said(capfd, "hist", run, "--style", "biolatency")
    assert text.splitlines() == [
        "     usecs               : count     distribution",
        "         0 -> 1          : 2        |**************************              |",
        "         2 -> 3          : 2        |**************************              |",
        "         4 -> 7          : 1        |*************                           |",
        "         8 -> 15         : 3        |****************************************|",
    ]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("-d", "sda"), 7), (("-d", "8,16"), 1), (("-d", "8:16"), 1), (("-d", "!sdb"), 7), (("-d", "not 8,16"), 7),
        (("-d", "sda", "-d", "sdb"), 8), (("-i", "reads"), 7), (("-i", "writes"), 1), (("-i", "flushes"), 0),
        (("-i", "*W*"), 1), (("-i", "R*"), 7), (("-i", "W"), 0), (("--size", "8k"), 1), (("--size", "4096"), 7),
        (("--size", ">4k"), 1), (("--comm", "oth*"), 1), (("--tid", "103"), 1), (("--pid", "10"), 8),
        (("--class", "scan"), 1), (("--latency", ">=1ms"), 3), (("--latency", "1us..3us"), 2),
        (("--window", "0.1:0.3"), 2), (("--window", ":0.1"), 1), (("--window", "200ms", "--at", "0.45"), 2),
        (("--window", "5100000000:"), 7), (("-d", "sda", "-i", "reads", "--size", "4k", "--latency", "<5"), 3),
    ],
)  # fmt: skip
def test_c2_4_c4_6_c4_7_filters_alone_and_combined(
    some: Path, capfd: pytest.CaptureFixture[str], options: tuple[str, ...], expected: int
) -> None:
    assert sum(counts(document(capfd, "hist", some, *options)).values()) == expected


def test_c2_9_c4_4_the_start_point_changes_the_result_as_constructed(
    some: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    sums = {}
    for option in (
        ("--from", "queue"),
        ("--from", "getrq"),
        ("-Q",),
        (),
        ("--to", "issue"),
        ("--from", "I", "--to", "D"),
    ):
        (interval,) = document(capfd, "hist", some, *option)["intervals"]
        sums[option] = interval["groups"][0]["sum_ns"]
    device = sums[()]
    assert sums["--from", "queue"] == device + 8 * 10_000
    assert sums["--from", "getrq"] == device + 8 * 9_000
    assert sums["-Q",] == device + 8 * 5_000
    assert sums["--to", "issue"] == 8 * 10_000, "C7.15: what was queued, up to its issue"
    assert sums["--from", "I", "--to", "D"] == 8 * 5_000


def test_c4_4_two_start_points_side_by_side(some: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The same I/Os from their insert and from their issue: each histogram is what it is alone."""
    alone = {}
    for name, options in (("I2C", ("-Q",)), ("D2C", ())):
        (interval,) = document(capfd, "hist", some, *options)["intervals"]
        (alone[name],) = interval["groups"]
    (interval,) = document(capfd, "hist", some, "-Q", "--beside", "issue")["intervals"]
    both = {group.pop("group"): group for group in interval["groups"]}
    assert both == {name: {k: v for k, v in group.items() if k != "group"} for name, group in alone.items()}
    text, _ = said(capfd, "hist", some, "-Q", "--beside", "issue")
    assert text.splitlines()[1].startswith("D2C: 8 I/Os, latency mean")
    assert text.splitlines()[2].startswith("I2C: 8 I/Os, latency mean")
    text, _ = said(capfd, "hist", some, "--style", "iolatency", "--beside", "insert")
    assert [line for line in text.splitlines() if line.startswith("stage")] == ["stage = D2C", "stage = I2C"]
    for wrong in (("--beside", "issue"), ("--beside", "queue", "--per", "device"), ("--beside", "nowhere")):
        assert main(["hist", str(some), *wrong]) == 2


def test_what_cannot_be_counted_is_said(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """C2.10: nothing is dropped in silence; a flush has no size, and a size says whether it is wanted."""
    ios: list[dict[str, Any]] = [
        {"d": 5, "c": 9},
        {"d": 6},
        {"q": 1, "d": 2, "i": 1, "c": 3},
        {"d": 1, "c": 8, "kind": "flush"},
    ]
    run = io_run(tmp_path / "run", ios)
    text, err = said(capfd, "hist", run, "-Q")
    assert "1 I/O, I2C mean" in text
    assert "3 of 4 I/Os are not counted: 2 without an insert, 1 without a completion." in err
    assert counts(document(capfd, "hist", run, "--size", ">0")) == {"": 2}
    assert counts(document(capfd, "hist", run, "-i", "flushes")) == {"": 1}


def test_c2_10_what_has_no_size_is_not_in_the_scripts_histogram(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    ios: list[dict[str, Any]] = [{"d": 1, "c": 9}, {"d": 1, "c": 8, "kind": "flush"}, {"d": 1, "c": 7, "kind": "flush"}]
    run = io_run(tmp_path / "run", ios)
    text, err = said(capfd, "hist", run, "--style", "hist_log")
    assert "I/O count: 1" in text
    assert "2 requests without a size (flushes) are not in it" in err
    text, err = said(capfd, "hist", run, "--style", "hist_log", "--of", "ops")
    assert text.startswith("Latency histograms of ops\n") and "Op latency histogram, " in text and "op count: " in text
    assert "without a size" not in err


def test_a_flush_that_another_one_served_is_counted_once(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The device had two flushes: the first was for two empty ones that were asked for, the second for a write's."""
    ios: list[dict[str, Any]] = [
        {"q": 1, "d": 5, "c": 9, "kind": "flush"},
        {"q": 1, "g": 2, "d": 5, "c": 10, "kind": "flush", "served_by": 0},
        {"q": 3, "g": 4, "d": 5, "c": 11, "kind": "flush", "served_by": 0},
        {"q": 12, "d": 13, "c": 17, "kind": "flush"},
        {"q": 12, "g": 13, "d": 18, "c": 20, "kind": "write"},
    ]
    run = io_run(tmp_path / "run", ios)
    text, err = said(capfd, "hist", run, "-i", "flushes")
    assert "2 I/Os, D2C mean 4 us, " in text
    assert err == ""
    assert counts(document(capfd, "hist", run, "--from", "queue", "--per", "io")) == {"flush": 2, "write": 1}
    assert len(said(capfd, "log", run, "-i", "flushes")[0].splitlines()) == 1 + 2
    assert [b["count"] for b in document(capfd, "bitesize", run, "-i", "flushes")["buckets"]] == [2]
    found = document(capfd, "outliers", run, "--threshold", "1us")
    assert [(o["kind"], o["latency_ns"]) for o in found["outliers"]] == [("flush", 4000)] * 2 + [("write", 2000)]
    row = document(capfd, "iostat", run, "1", "--from", "issue")["rows"][0]
    assert (row["other_count"], row["write_count"]) == (2, 1)

    text, err = said(capfd, "hist", run, "-i", "flushes", "--from", "getrq")
    assert "2 I/Os, G2C mean 7.5 us" in text, "those that were asked for"
    assert "1 of 3 I/Os is not counted: 1 without an allocation." in err, "of which one was a write's"

    rows = "SELECT count(*) AS n, count(flushed_by) AS served FROM requests"
    assert json.loads(said(capfd, "sql", run, rows, "-i", "flushes", "--json")[0]) == [{"n": 4, "served": 2}]
    assert len(said(capfd, "requests", run, "-i", "flushes", "--csv")[0].splitlines()) == 1 + 4


def test_a_window_that_holds_nothing_says_so(some: Path, capfd: pytest.CaptureFixture[str]) -> None:
    text, err = said(capfd, "hist", some, "--window", "0.96:0.97")
    assert text == "0.96 to 0.97 s\nno I/O\n"
    assert "nothing to count: the options select no I/O of the run's 8 I/Os (0 to 1.000000 s)." in err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--device", "sdz"), "No device sdz: the run has sda, sdb."),
        (("--latency", "soon"), "--latency soon: not a duration"),
        (("--size", "big"), "--size big: not a size"),
        (("--window", "10ms"), "--at T, the middle"),
        (("--window", "2:1"), "it ends before it begins"),
        (("--from", "begin"), "one of queue, getrq, insert, issue, complete, end"),
        (("--from", "complete"), "the start point comes before the end point"),
        (("--of", "ops", "-i", "reads"), "ops have no rwbs flags"),
        (("--stage", "x"), "only with --of stages"),
        (("--of", "stages", "--stage", "x"), "--stage x: the run has no such stage. It has: "),
        (("-i", "read"), "-i read: one of reads, writes, flushes, discards, or a pattern"),
        (("--class", "none"), "the run has no such class. It has: op, scan"),
        (("--buckets", "linear"), "how long is a step?"),
        (("0",), "must be more than 0"),
        (("1ns",), "choose a longer one"),
    ],
)
def test_what_makes_no_sense_is_said_in_one_line(
    some: Path, capfd: pytest.CaptureFixture[str], options: tuple[str, ...], message: str
) -> None:
    assert main(["hist", str(some), *options]) == 2
    out = capfd.readouterr()
    assert out.out == ""
    assert message in out.err.splitlines()[-1]


def test_c2_17_histograms_side_by_side_on_one_scale(some: Path, capfd: pytest.CaptureFixture[str]) -> None:
    text, _ = said(capfd, "hist", some, "--per", "device")
    lines = text.splitlines()
    assert "sda: 7 I/Os" in lines[1] and "sdb: 1 I/O," in lines[2]
    assert lines[3].split() == [">=", "us", "<", "us", "sda", "sdb"]
    assert max(map(len, lines)) <= 80
    assert counts(document(capfd, "hist", some, "--per", "device")) == {"sda": 7, "sdb": 1}
    assert counts(document(capfd, "hist", some, "--per", "io")) == {"read": 7, "write": 1}


def test_csv_and_json_have_the_same(some: Path, capfd: pytest.CaptureFixture[str]) -> None:
    found = document(capfd, "hist", some, "0.1", "--per", "io")
    rows = list(csv.DictReader(io.StringIO(said(capfd, "hist", some, "0.1", "--per", "io", "--csv")[0])))
    listed = [
        (i["begin_ns"], g["group"], b["low_ns"], b["high_ns"], b["count"], b["sum_ns"])
        for i in found["intervals"]
        for g in i["groups"]
        for b in g["buckets"]
    ]
    names = ("begin_ns", "group", "low_ns", "high_ns", "count", "sum_ns")
    assert [tuple(r[n] for n in names) for r in rows if r["count"] != "0"] == [tuple(map(str, x)) for x in listed]
    assert len([r for r in rows if r["count"] == "0"]) == len([i for i in found["intervals"] if not i["groups"]])


@pytest.mark.parametrize("name", ["fio-libaio-qd16-hdd-bfq", "app-libaio-qd8-dmlinear", "app-buf-fsync1-ext4"])
def test_sums_are_the_number_of_ios_on_recorded_traces(
    run_of: RunOf, capfd: pytest.CaptureFixture[str], name: str
) -> None:
    run = run_of(name)
    rows = [r for r in run.rows("requests") if r["outcome"] != "absorbed" and r["flushed_by"] is None]
    flushes = {r["request_id"] for r in rows if r["kind"] == "flush"}
    assert flushes.issuperset(r["flushed_by"] for r in run.rows("requests") if r["flushed_by"] is not None)
    values = [
        r["complete_ns"] - r["issue_ns"] for r in rows if r["complete_ns"] is not None and r["issue_ns"] is not None
    ]
    for options in ((), ("10ms",), ("1s", "--per", "device"), ("--buckets", "fine")):
        found = document(capfd, "hist", run.path, *options)
        assert sum(counts(found).values()) == len(values)
        assert sum(g["sum_ns"] for i in found["intervals"] for g in i["groups"]) == sum(values)
    bios = [b for b in run.rows("bios") if b["queue_ns"] is not None]
    found = document(capfd, "hist", run.path, "--of", "bios")
    err = said(capfd, "hist", run.path, "--of", "bios")[1]
    assert sum(counts(found).values()) == len(bios) or f"of {len(bios)} bios" in err, "C2.11, C5.3: bios, dm's too"


def test_ops_and_stages_have_histograms_too(run_of: RunOf, capfd: pytest.CaptureFixture[str]) -> None:
    """C2.13, C2.16: any pair of points that the model knows; system calls by the model `syscalls`."""
    run = run_of("fio-psync-qd1-nvme")
    ops = [o for o in run.rows("ops") if o["complete"] and not o["tainted"]]
    found = document(capfd, "hist", run.path, "--of", "ops", "--per", "class")
    assert counts(found) == dict(Counter(o["class"] for o in ops))
    stages = [s for s in run.rows("stages") if s["stage"] == "D2C"]
    found = document(capfd, "hist", run.path, "--of", "stages", "--stage", "D2C", "--tainted")
    assert sum(g["sum_ns"] for i in found["intervals"] for g in i["groups"]) == sum(s["duration_ns"] for s in stages)
