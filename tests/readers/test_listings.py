# SPDX-License-Identifier: MIT
"""Listings of other tools as traces: iosnoop, blkparse, perf trace, and operations that Ceph keeps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from opline_analyses.cli import main

Captured = pytest.CaptureFixture[str]


def rows(path: Path, capfd: Captured, *options: str) -> list[dict[str, Any]]:
    capfd.readouterr()
    assert main(["log", str(path), "--json", *options]) == 0
    return [json.loads(line) for line in capfd.readouterr().out.splitlines()]


def lost(path: Path, capfd: Captured) -> dict[str, int]:
    capfd.readouterr()
    main(["losses", str(path), "--json"])
    found = json.loads(capfd.readouterr().out)["losses"]
    return {loss["loss"]: loss["count"] for loss in found if loss["severity"] == "data_loss"}


COLUMNS = "COMM         PID    TYPE DEV      BLOCK        BYTES     LATms"
IOSNOOP = (
    ("5982800.302061", "5982800.302679", "supervise    1809   W    202,1    17039600     4096       0.62"),
    ("5982800.302423", "5982800.302842", "my prog      1809   W    202,1    17039608     4096       0.42"),
    ("5982801.304962", "5982801.305446", "jbd2/sda1-8  213    FF   202,1    18446744073709551615 0          0.48"),
)


@pytest.mark.parametrize("start", [False, True])
@pytest.mark.parametrize("end", [False, True])
def test_iosnoop(start: bool, end: bool, tmp_path: Path, capfd: Captured) -> None:
    path = tmp_path / "a.txt"
    head = f"{'STARTs          ' * start}{'ENDs            ' * end}{COLUMNS}"
    lines = [" ".join([*[f"{s:15}"] * start, *[f"{e:15}"] * end, rest]) for s, e, rest in IOSNOOP]
    path.write_text("\n".join(["Tracing block I/O. Ctrl-C to end.", head, *lines, "Ending tracing..."]) + "\n")
    found = rows(path, capfd)
    exact = [618_000, 419_000, 484_000] if start and end else [620_000, 420_000, 480_000]
    assert [r["latency_ns"] for r in found] == exact
    assert [r["comm"] for r in found] == ["supervise", "my prog", "jbd2/sda1-8"]
    assert [(r["kind"], r["dev"] >> 20, r["dev"] & 0xFFFFF, r["bytes"]) for r in found] == [
        ("write", 202, 1, 4096), ("write", 202, 1, 4096), ("flush", 202, 1, 0),
    ]  # fmt: skip
    assert lost(path, capfd) == {}
    main(["hist", str(path)])
    assert ("rates and intervals of it mean nothing" in capfd.readouterr().err) == (not start and not end)


def test_what_log_prints_is_read(tmp_path: Path, capfd: Captured) -> None:
    path, again = tmp_path / "a.txt", tmp_path / "b.txt"
    head = f"STARTs ENDs {COLUMNS}"
    path.write_text("\n".join([head, *(f"{s} {e} {rest}" for s, e, rest in IOSNOOP[:2])]) + "\n")
    capfd.readouterr()
    assert main(["log", str(path), "-s", "-t"]) == 0
    again.write_text(capfd.readouterr().out)
    columns = ("begin_ns", "end_ns", "comm", "tid", "rwbs", "dev", "sector", "bytes")
    first, second = ([[r[c] for c in columns] for r in rows(p, capfd)] for p in (path, again))
    assert first == second


BLKPARSE = """\
  8,0    1        1     0.000000000   697  A   W 223490 + 8 <- (8,1) 223427
  8,0    1        2     0.000000829   697  Q   W 223490 + 8 [kjournald]
  8,0    1        3     0.000003471   697  G   W 223490 + 8 [kjournald]
  8,0    1        4     0.000004000   697  P   N [kjournald]
  8,0    1        5     0.000006914   697  I   W 223490 + 8 [kjournald]
  8,0    1        6     0.000007000   697  U   N [kjournald] 1
  8,0    1        7     0.000009815   697  D   W 223490 + 8 [kjournald]
  8,0    0        1     0.001209815     0  C   W 223490 + 8 [0]
  8,0    1       11     0.004000829  1697  Q  RA 1000 + 8 [my prog]
  8,0    1       13     0.004003471  1697  G  RA 1000 + 8 [my prog]
  8,0    1       14     0.004009815  1697  D  RA 1000 + 8 [my prog]
  8,0    0        3     0.005209815     0  C  RA 1000 + 8 [0]
  8,0    1        0     0.006000000     0  m   N cfq697 slice expired t=0
CPU0 (sda):
 Reads Queued:           1,        8KiB\t Writes Queued:           1,        4KiB
Events (sda): 18 entries
"""


def without(columns: tuple[int, ...]) -> str:
    """As -f without these columns."""
    lines = [line.split() for line in BLKPARSE.splitlines() if line.startswith("  8,0")]
    return "".join(" ".join(w for n, w in enumerate(words) if n not in columns) + "\n" for words in lines)


TABS = without(()).replace(" ", "\t")


@pytest.mark.parametrize("text", [BLKPARSE, TABS, without(()), without((2,)), without((1, 2)), without((1, 2, 4))])
def test_blkparse(text: str, tmp_path: Path, capfd: Captured) -> None:
    path = tmp_path / "a.txt"
    path.write_text(text)
    assert [(r["rwbs"], r["sector"], r["latency_ns"]) for r in rows(path, capfd)] == [
        ("W", 223490, 1_200_000), ("RA", 1000, 1_200_000),
    ]  # fmt: skip
    assert [r["latency_ns"] for r in rows(path, capfd, "--from", "queue", "--to", "issue")] == [8986, 8986]
    assert lost(path, capfd) == {}


def of_the_day(seconds: float) -> str:
    whole = int(seconds) % 86400
    return f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}.{round(seconds % 1 * 1e6):06}"


def test_blkparse_with_the_time_first_or_of_the_day_or_since_1970(tmp_path: Path, capfd: Captured) -> None:
    """-f '%T.%t %D %a ...', '%D %z %a ...'; a time of the day begins again at midnight."""
    path = tmp_path / "a.txt"
    lines = [line.split() for line in BLKPARSE.splitlines() if line.startswith("  8,0")]
    texts = (
        [f"{w[3]}   {w[0]} {' '.join(w[5:])}" for w in lines],
        [f"{w[3]} {w[0]}  {' '.join(w[4:])}" for w in lines],
        [" ".join([*w[:3], f"{1_700_000_000 + int(w[3][0])}{w[3][1:]}", *w[4:]]) for w in lines],
        [" ".join([*w[:3], of_the_day(86399.999 + float(w[3])), *w[4:]]) for w in lines],
    )
    for text in texts:
        path.write_text("\n".join(text) + "\n")
        assert [(r["rwbs"], r["sector"], r["latency_ns"] // 10_000) for r in rows(path, capfd)] == [
            ("W", 223490, 120), ("RA", 1000, 120),
        ]  # fmt: skip
        assert lost(path, capfd) == {}


def test_a_bio_is_an_op_of_the_model_blocks(tmp_path: Path, capfd: Captured) -> None:
    path = tmp_path / "a.txt"
    path.write_text(BLKPARSE)
    found = rows(path, capfd, "--of", "ops", "--model", "blocks")
    assert [(r["class"], r["latency_ns"]) for r in found] == [("request write", 1_208_986), ("request read", 1_208_986)]
    capfd.readouterr()
    assert main(["stages", str(path), "--model", "blocks", "--json"]) == 0
    stages = {stage["stage"] for stage in json.loads(capfd.readouterr().out)["stages"]}
    assert {"Q2G", "G2I", "I2D", "D2C"} <= stages


def test_a_device_that_issues_nothing_completes_bios(tmp_path: Path, capfd: Captured) -> None:
    path = tmp_path / "a.txt"
    path.write_text("253,0 1 1 0.000000829 697 Q W 8 + 8 [a]\n253,0 1 2 0.000100829 697 C W 8 + 8 [0]\n")
    capfd.readouterr()
    assert main(["losses", str(path), "--json"]) == 0
    assert {f["event"] for f in json.loads(capfd.readouterr().out)["fates"]} == {
        "block_bio_queue",
        "block_bio_complete",
    }


PERF_TRACE = """\
         ? (         ): fio/1234  ... [continued]: read()) = 832
     0.035 ( 0.012 ms): fio/1234 pread64(fd: 3</dev/sda>, buf: 0x7f00, count: 4096, pos: 8192) = 4096
     0.050 (         ): my prog/77 fsync(fd: 4</x>) ...
     0.060 ( 0.005 ms): fio/1234 openat(dfd: CWD, filename: "/etc/ld.so.cache", flags: RDONLY|CLOEXEC) = 3
     1.000 ( 0.500 ms): fio/1234 pwrite64(fd: 3</dev/sda>, buf: 0x7f00, count: 8192, pos: 0) = 8192
     0.050 ( 2.012 ms): my prog/77  ... [continued]: fsync()) = 0
     3.000 ( 0.001 ms): fio/1234 read(fd: 5, buf: 0x7f, count: 832) = -1 EAGAIN (Resource temporarily unavailable)
"""


def test_perf_trace(tmp_path: Path, capfd: Captured) -> None:
    path = tmp_path / "a.txt"
    path.write_text(PERF_TRACE)
    found = rows(path, capfd, "--of", "ops", "--sort", "start")
    assert [(r["class"], r["tid"], r["latency_ns"]) for r in found] == [
        ("pread64", 1234, 12_000), ("fsync", 77, 2_012_000), ("pwrite64", 1234, 500_000), ("read", 1234, 1000),
    ]  # fmt: skip
    assert [r["bytes"] for r in found[:3]] == [4096, None, 8192]


EVENTS = (("initiated", 0), ("queued_for_pg", 20), ("reached_pg", 1000), ("waiting for subops from 1,2", 1100))


def ceph_op(number: int, zone: str, listed: bool) -> dict[str, Any]:
    def at(us: int) -> str:
        return f"2021-03-03{'T' if zone else ' '}10:00:0{number}.{us:06d}{zone}"

    events = [{"time": at(us), "event": name} for name, us in (*EVENTS, ("done", 12_500))]
    return {
        "description": f"osd_op(client.4153.0:{number} 2.3 obj{number} [write 0~4096] snapc 0=[] e20)",
        "initiated_at": at(0), "age": 100.5, "duration": 0.0125,
        "type_data": ["commit sent", {"client": "client.4153"}, events] if listed else {"events": events},
    }  # fmt: skip


@pytest.mark.parametrize(("zone", "listed"), [("", True), ("", False), ("+0000", False)])
@pytest.mark.parametrize("name", ["ops", "Ops"])
def test_operations_that_ceph_keeps(zone: str, listed: bool, name: str, tmp_path: Path, capfd: Captured) -> None:
    path = tmp_path / "a.json"
    document = {"num to keep": 20, "duration": 600, name: [ceph_op(n, zone, listed) for n in range(3)]}
    path.write_text(json.dumps(document, indent=4))
    found = rows(path, capfd, "--of", "ops")
    assert [(r["class"], r["bytes"], r["latency_ns"]) for r in found] == [("osd_op write", 4096, 12_500_000)] * 3
    stages = rows(path, capfd, "--of", "stages", "--sort", "start")[:4]
    assert [(r["stage"].partition(" → ")[2], r["latency_ns"]) for r in stages] == [
        ("queued_for_pg", 20_000), ("reached_pg", 980_000), ("waiting for subops", 100_000), ("end", 11_400_000),
    ]  # fmt: skip


def test_operations_in_flight_have_no_end(tmp_path: Path, capfd: Captured) -> None:
    path = tmp_path / "a.json"
    op = ceph_op(1, "+0000", listed=False)
    op["type_data"]["events"].pop()
    path.write_text(json.dumps({"ops": [op], "num_ops": 1}))
    capfd.readouterr()
    assert main(["sql", str(path), "SELECT complete FROM ops", "--json"]) == 0
    assert json.loads(capfd.readouterr().out) == [{"complete": False}]
