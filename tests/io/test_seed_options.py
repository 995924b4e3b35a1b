# SPDX-License-Identifier: MIT
"""Options of iolatency, iosnoop and trace2heatmap.pl that no other test shows by their effect."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.lib.io_runs import SDB, io_run
from tests.lib.recorded import RunOf

from opline_analyses.cli import parser_of

Printed = Callable[..., str]


@pytest.fixture
def some(tmp_path: Path) -> Path:
    """Reads on one device, writes on the other: 12 and 8, of 8 and 16 sectors, over two seconds."""
    ios: list[dict[str, Any]] = [{"d": 100_000 * n, "c": 100_000 * n + 300 + n} for n in range(12)]
    ios += [
        {"d": 200_000 * n, "c": 200_000 * n + 5000, "dev": SDB, "kind": "write", "sectors": 16, "rwbs": "WS"}
        for n in range(8)
    ]
    return io_run(tmp_path / "run", ios, seconds=1.9)


def test_c4_5_each_block_has_the_time_of_day(run_of: RunOf, printed: Printed) -> None:
    """iolatency's HH:MM:SS and a colon, a second apart; without the option none."""
    words = ("hist", run_of("fio-libaio-qd16-hdd-bfq").path, "1", "3", "--style", "iolatency")
    times = re.compile(r"^(\d\d):(\d\d):(\d\d):$", re.MULTILINE)
    found = [int(h) * 3600 + int(m) * 60 + int(s) for h, m, s in times.findall(printed(*words, "-T"))]
    assert len(found) == 3 and {(b - a) % 86_400 for a, b in pairwise(found)} == {1}
    assert not times.findall(printed(*words))


def test_c4_8_the_help_names_every_option_of_iolatency_and_iosnoop() -> None:
    for command, options in (("hist", ("-Q", "-T", "-d", "-i")), ("log", ("-s", "-t", "-d", "-i", "-p", "-n", "-Q"))):
        text = parser_of(command).format_help()
        assert all(re.search(rf"^  {option}\b", text, re.MULTILINE) for option in options), command


def test_c2_15_where_a_latency_begins_and_of_what(tmp_path: Path, printed: Printed) -> None:
    """SystemTap's ioblock, block_rq and ioscheduler variants: bios from their queue, requests from issue, or insert."""
    run = io_run(tmp_path / "run", [{"q": 0, "g": 100, "i": 400, "d": 1000, "c": 5000}], seconds=0.5)

    def mean(*options: str) -> float:
        document = json.loads(printed("hist", run, "--json", *options))
        return float(document["intervals"][0]["groups"][0]["sum_ns"]) / 1000

    assert [mean(), mean("-Q"), mean("--from", "queue"), mean("--from", "insert", "--to", "issue")] == [
        4000, 4600, 5000, 600,
    ]  # fmt: skip


def test_c5_6_the_first_look_has_a_row_for_each_device(some: Path, printed: Printed) -> None:
    rows = json.loads(printed("iostat", some, "-x", "--json"))["rows"]
    assert [(r["device"], r["read_count"], r["write_count"], r["write_bytes"]) for r in rows] == [
        ("sda", 12, 0, 0), ("sdb", 0, 8, 8 * 8192),
    ]  # fmt: skip
    assert all(row["busy_ns"] > 0 for row in rows)
    shown = [line.split() for line in printed("iostat", some, "-x").splitlines()]
    read_us, write_us = sum(300 + n for n in range(12)), 8 * 5000  # one at a time, in 1.9 s
    assert " ".join(shown[0]) == (
        "device r/s rkB/s rrqm/s r_await w/s wkB/s wrqm/s w_await o/s f/s f_await await areq-sz aqu-sz %util"
    )
    read, write = f"{read_us / 12e3:.3f}", f"{write_us / 8e3:.3f}"
    none = ["0", "0", "0"]  # a mean of nothing is empty
    assert shown[1] == ["sda", "6.3", "25", "0", read, *none, "0", "0", read, "4.0", *_load(read_us)]
    assert shown[2] == ["sdb", *none, "4.2", "34", "0", write, "0", "0", write, "8.0", *_load(write_us)]


def _load(waited_us: int) -> list[str]:
    """The mean length of the queue, and the share of the time that there was something in it."""
    return [f"{waited_us / 1.9e6:.2f}", f"{waited_us / 1.9e4:.1f}"]


@pytest.mark.parametrize("parts", [(("-d", "sda"), ("-d", "!sda")), (("-i", "reads"), ("-i", "writes"))])
def test_c7_12_what_filters_leave_is_what_they_left_out_of(
    some: Path, printed: Printed, parts: tuple[tuple[str, str], ...]
) -> None:
    def total(*options: str) -> int:
        return sum(cell["count"] for cell in json.loads(printed("heatmap", some, "--json", *options))["cells"])

    assert [total(*part) for part in parts] == [12, 8] and total() == 20


@pytest.mark.parametrize("step", ["0.1", "0.03"])
def test_c7_7_the_grid_is_at_round_seconds(some: Path, printed: Printed, tmp_path: Path, step: str) -> None:
    """Whatever the width of a column; trace2heatmap.pl labels every tenth."""
    printed("heatmap", some, "--stepsec", step, "--grid", "-o", tmp_path / "x.svg")
    texts = [e.text or "" for e in ET.parse(tmp_path / "x.svg").iter() if e.tag.endswith("text")]
    marks = [float(m[1]) for text in texts if (m := re.fullmatch(r"([\d.]+)s", text))]
    apart = {round(b - a, 6) for a, b in pairwise(marks)}
    assert len(marks) > 2 and len(apart) == 1 and apart <= {0.1, 0.2, 0.5, 1.0}


def test_c7_17_offsets_in_ms_are_drawn(tmp_path: Path, printed: Printed) -> None:
    """The two columns of offsets-perf.pl --ms: seconds, and the millisecond within."""
    file = tmp_path / "offsets.txt"
    file.write_text("".join(f"{n // 10} {n % 10 * 97}\n" for n in range(40)))
    found = json.loads(printed("heatmap", "--unitslabel=ms", "--stepsec=1", "--rows=10", file, "--json"))
    assert found["columns"] == 4 and sum(cell["count"] for cell in found["cells"]) == 40


def test_c4_12_iolatency_micro(some: Path, printed: Printed) -> None:
    """12 reads of 300 to 311 us, 8 writes of 5000 us in 1.9 s: I/Os per second, the time that they took, exact or as
    the original guesses it (1.5 times the lower bound for each); from the first bucket that has any. -m is a driver.
    """

    def rows(*options: str) -> list[list[str]]:
        lines = printed("hist", some, "--style", "iolatency_micro", *options).splitlines()
        unit = options[-1] if "--unit" in options else "us"
        assert lines[1].split("|")[0].split() == [f">=({unit})", "..", f"<({unit})", ":", "IOPS", "IO_latency/DeltaT"]
        return [line.split("|")[0].replace("->", " ").replace(":", " ").split() for line in lines[2:]]

    waited = sum(300 + n for n in range(12))
    exact = [["256", "512", f"{12 / 1.9:.1f}", f"{waited / 1.9:.0f}"], ["4096", "8192", "4.2", f"{8 * 5000 / 1.9:.0f}"]]
    found = rows()
    assert [found[0], found[-1]] == exact and len(found) == 5, "rows between them are there"
    guessed = rows("--compat")
    assert [row[3] for row in (guessed[0], guessed[-1])] == [f"{12 * 384 / 1.9:.0f}", f"{8 * 6144 / 1.9:.0f}"]
    assert rows("-m", "8") == rows("-d", "8:*") == found and rows("-d", "!8,0") == rows("-i", "writes")
    assert rows("-m", "253") == []
    assert rows("--unit", "ms")[-1][:2] == ["4", "8"]


def test_a_driver_is_a_device_like_others(some: Path, printed: Printed, capfd: pytest.CaptureFixture[str]) -> None:
    assert "IO_devmaj = 8 " in printed("hist", some, "--style", "hist_log", "-m", "8")
    assert printed("log", some, "-m", "8", "--csv") == printed("log", some, "--csv")
    for bad in ("x", "-1", "8:0", "99999"):
        with pytest.raises(SystemExit):
            parser_of("hist").parse_args([str(some), "-m", bad])
    assert "is no major number" in capfd.readouterr().err
