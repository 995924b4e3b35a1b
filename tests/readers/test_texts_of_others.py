# SPDX-License-Identifier: MIT
"""Texts as other machines, kernels and tools write them: each kind is read right, or refused in one line."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from opline_analyses.cli import main

Captured = pytest.CaptureFixture[str]


def ftrace(*events: str) -> str:
    return "".join(f"  fio-10  [00{n % 2}] ..... 100.{n:06d}: {event}\n" for n, event in enumerate(events))


def requests_of(path: Path, capfd: Captured) -> list[dict[str, Any]]:
    capfd.readouterr()
    columns = "kind, rwbs, sector, nr_sectors, issue_ns, complete_ns, requeue_count, outcome"
    assert main(["sql", str(path), f"SELECT {columns} FROM requests ORDER BY request_id", "--json"]) == 0
    return [dict(row) for row in json.loads(capfd.readouterr().out)]


def lost(path: Path, capfd: Captured) -> tuple[int, dict[str, int]]:
    """The exit status with --max-loss 0, and the counts of lost data."""
    capfd.readouterr()
    main(["losses", str(path), "--json"])
    losses = json.loads(capfd.readouterr().out)["losses"]
    status = main(["losses", str(path), "--max-loss", "0"])
    return status, {x["loss"]: x["count"] for x in losses if x["severity"] == "data_loss"}


@pytest.mark.parametrize(
    ("letters", "kind"),
    [
        ("WZ", "write_zeroes"), ("WZS", "write_zeroes"), ("WZFS", "write_zeroes"), ("NS", "write_zeroes"),
        ("ZA", "write"), ("ZAS", "write"), ("FZA", "write"), ("ZR", "zone_reset"), ("ZRS", "zone_reset"),
        ("ZRA", "zone_reset_all"), ("ZO", "zone_open"), ("ZC", "zone_close"), ("ZF", "zone_finish"),
        ("ZFS", "zone_finish"), ("WSU", "write"), ("RA", "read"), ("DE", "discard"), ("WFS", "write"),
    ],
)  # fmt: skip
def test_letters_of_rwbs(letters: str, kind: str, tmp_path: Path, capfd: Captured) -> None:
    path = tmp_path / "a.txt"
    path.write_text(
        ftrace(f"block_rq_issue: 8,0 {letters} 4096 () 8 + 8 [fio]", f"block_rq_complete: 8,0 {letters} () 8 + 8 [0]")
    )
    (request,) = requests_of(path, capfd)
    assert (request["kind"], request["rwbs"]) == (kind, letters)
    assert request["complete_ns"] - request["issue_ns"] == 1000


NONE = 2**64 - 1


@pytest.mark.parametrize("letters", ["FWS", "FW", "FWSM"])
def test_a_flush_of_an_old_kernel(letters: str, tmp_path: Path, capfd: Captured) -> None:
    path = tmp_path / "a.txt"
    path.write_text(
        ftrace(
            f"block_rq_issue: 8,0 {letters} 0 () {NONE} + 0 [jbd2]",
            "block_rq_issue: 8,0 WS 4096 () 64 + 8 [jbd2]",
            f"block_rq_complete: 8,0 {letters} () {NONE} + 0 [0]",
            "block_rq_complete: 8,0 WS () 64 + 8 [0]",
        )
    )
    found = [(r["kind"], r["complete_ns"] - r["issue_ns"]) for r in requests_of(path, capfd)]
    assert found == [("flush", 2000), ("write", 2000)]


@pytest.mark.parametrize("letters", ["N", "NS", "R", "W"])
@pytest.mark.parametrize("command", ["", "12 00 00 00 ff 00"])
def test_a_passthrough_command_with_data(letters: str, command: str, tmp_path: Path, capfd: Captured) -> None:
    path = tmp_path / "a.txt"
    path.write_text(
        ftrace(
            f"block_rq_issue: 8,0 {letters} 4096 ({command}) 0 + 0 [sg]",
            f"block_rq_complete: 8,0 {letters} ({command}) {NONE} + 8 [0]",
            f"block_rq_issue: 8,0 {letters} 512 ({command}) 0 + 0 [sg]",
            "block_rq_issue: 8,0 R 4096 () 8 + 8 [fio]",
            "block_rq_complete: 8,0 R () 8 + 8 [0]",
            f"block_rq_complete: 8,0 {letters} ({command}) {NONE} + 1 [0]",
        )
    )
    found = [(r["kind"], r["complete_ns"] - r["issue_ns"]) for r in requests_of(path, capfd)]
    assert found == [("other", 1000), ("other", 3000), ("read", 1000)]


def issued(place: int, times: int, completed: int = 1) -> list[str]:
    issue = f"block_rq_issue: 8,0 W 4096 () {place} + 8 [kworker/0:1H]"
    return [issue] * times + [f"block_rq_complete: 8,0 W () {place} + 8 [0]"] * completed


@pytest.mark.parametrize("times", [2, 3, 5])
def test_a_request_that_is_issued_again(times: int, tmp_path: Path, capfd: Captured) -> None:
    path = tmp_path / "a.txt"
    events = [*issued(8, 1), *issued(1000, times), *issued(2000, 1), *issued(1000, 1)]
    path.write_text(ftrace(*events).replace("[001]", "[000]"))
    found = requests_of(path, capfd)
    assert [r["requeue_count"] for r in found] == [0, times - 1, 0, 0]
    assert {r["complete_ns"] - r["issue_ns"] for r in found} == {1000}
    assert lost(path, capfd) == (0, {})


def test_two_requests_of_one_place_are_two(tmp_path: Path, capfd: Captured) -> None:
    path = tmp_path / "a.txt"
    path.write_text(ftrace(*issued(8, 1), *issued(1000, 2, completed=2), *issued(2000, 1)))
    found = requests_of(path, capfd)
    assert sorted(r["sector"] for r in found) == [8, 1000, 1000, 2000]
    assert all(r["complete_ns"] is not None for r in found)


@pytest.mark.parametrize(
    ("line", "counts"),
    [
        ("   python3  5468 [001]   100.010000: PERF_RECORD_LOST lost 10593", {"discarded_events": 10593}),
        ("   python3  5468 [001]   100.010000: PERF_RECORD_LOST_SAMPLES lost 7", {"discarded_events": 7}),
        ("# entries-in-buffer/entries-written: 100/120   #P:4", {"discarded_events": 20}),
        ("# entries-in-buffer/entries-written: 120/120   #P:4", {}),
        ("CPU:1 [LOST 12 EVENTS]", {"discarded_events": 12}),
        ("CPU 3 [LOST 12 EVENTS]", {"discarded_events": 12}),
        ("CPU:1 [LOST EVENTS]", {"discarded_unknown_count": 1}),
        ("CPU:2 [34 EVENTS DROPPED]", {"discarded_events": 34}),
        ("CPU:2 [EVENTS DROPPED]", {"discarded_unknown_count": 1}),
        ("Lost 9 events", {"discarded_events": 9}),
        ("Possibly lost 3 samples", {"discarded_events": 3}),
    ],
)
@pytest.mark.parametrize("place", [0, 2, 4])
def test_losses_that_a_text_tells(
    line: str, counts: dict[str, int], place: int, tmp_path: Path, capfd: Captured
) -> None:
    path = tmp_path / "a.txt"
    lines = ftrace(*issued(8, 1), *issued(16, 1)).splitlines()
    path.write_text("\n".join([*lines[:place], line, *lines[place:]]) + "\n")
    assert lost(path, capfd) == (3 if counts else 0, counts)


EVENT = "block_rq_issue: 8,0 W 4096 () 64 + 8 none,0,0 [fio]"


@pytest.mark.parametrize(
    ("before", "ts_ns", "tid", "comm", "cpu"),
    [
        ("fio  2664   793.228815628: block:", 793228815628, 2664, "fio", None),
        ("fio  793.228815: block:", 793228815000, None, "fio", None),
        ("2664 793.228815: block:", 793228815000, 2664, "", None),
        ("10/2664 [003] 793.228815: ", 793228815000, 2664, "", 3),
        ("793.228815: block:", 793228815000, None, "", None),
        ("[002] 793.228815: block:", 793228815000, None, "", 2),
        ("fio 10/2664 [003] 793.228815:          1 block:", 793228815000, 2664, "fio", 3),
        ("fio-2664    1d..1 793.228815: ", 793228815000, 2664, "fio", 1),
        ("fio-2664    1d.h2.   15us : ", 15000, 2664, "fio", 1),
        ("fio-2664    1d..1    15us+: ", 15000, 2664, "fio", 1),
        ("fio-2664  [001] 793.228815: ", 793228815000, 2664, "fio", 1),
        ("fio-2664  (   2660) [001] d..1. 793.228815: ", 793228815000, 2664, "fio", 1),
        ("my prog 2664 [001] K   793.228815: block:", 793228815000, 2664, "my prog", 1),
    ],
)
def test_fields_of_perf_script_and_options_of_ftrace(
    before: str, ts_ns: int, tid: int | None, comm: str, cpu: int | None, tmp_path: Path, capfd: Captured
) -> None:
    from opline import _core

    found = _core.parse_block_line(f"  {before}{EVENT}".encode())
    assert found is not None
    path = tmp_path / "a.txt"
    path.write_text(f"  {before}{EVENT}\n")
    capfd.readouterr()
    assert main(["events", str(path), "--json"]) == 0
    (event,) = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert event["ts_ns"] == ts_ns
    assert event.get("cpu") == cpu
    assert event["fields"]["tid"] == (-1 if tid is None else tid)
    assert event["fields"]["comm"] == comm


def test_differences_are_no_times(tmp_path: Path, capfd: Captured) -> None:
    path = tmp_path / "a.perf"
    deltas = ["0.000000", "0.000500", "0.000100", "0.000400", "0.000100", "0.000300"]
    lines = [f"fio 10 [001] {d}: block:{EVENT}" for d in deltas]
    path.write_text("\n".join(lines) + "\n")
    assert main(["hist", str(path)]) == 1
    assert "--deltatime" in capfd.readouterr().err
    path.write_text("fio 10 [001] 0.000000: block:block_touch_buffer: 8,0 sector=0 size=4096\n" + "\n".join(lines[1:]))
    assert main(["hist", str(path)]) == 1
    assert "--deltatime" in capfd.readouterr().err


@pytest.mark.parametrize("row", ["1 100 4096 0", "0.5 12 3", "1\t2\t3"])
def test_a_table_of_more_than_two_numbers_is_no_heat_map(row: str, tmp_path: Path, capfd: Captured) -> None:
    path = tmp_path / "table.txt"
    path.write_text(f"{row}\n{row}\n")
    assert main(["heatmap", str(path)]) != 0
    assert len(capfd.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize(("there", "missing"), [((0, 2), 1), ((1, 2), 1), ((0, 3), 2), ((2,), 2), ((0, 1, 2), 0)])
def test_a_cpus_file_of_blktrace_that_is_gone(
    there: tuple[int, ...], missing: int, tmp_path: Path, capfd: Captured
) -> None:
    for cpu in there:
        record = struct.pack(
            "<IIQQIIIIIHH", 0x65617407, 1, 1000 * (cpu + 1), 8, 4096, 1 << 16 | 1, 1, 8 << 20, cpu, 0, 0
        )
        (tmp_path / f"sdb.blktrace.{cpu}").write_bytes(record)
    status, counts = lost(tmp_path / f"sdb.blktrace.{there[-1]}", capfd)
    assert (status, counts) == ((3, {"streams_missing": missing}) if missing else (0, {}))


ALL_NAMES = (
    "timestamp = {}, {}trace:hostname = labvm, name = {}, stream.packet.context = {{ cpu_id = 0 }}, "
    "event.fields = {{ dev = 8388608, sector = 8, nr_sector = 8, rwbs = 4 }}"
)
STAMPS = {
    "default": ("20:47:28.589364505", "20:47:28.589614505"),
    "date": ("2026-11-20 23:59:59.999999999", "2026-11-21 00:00:00.000249999"),
    "seconds": ("1795207648.589364505", "1795207648.589614505"),
    "cycles": ("00000000123456789012", "00000000123457039012"),
    "midnight": ("23:59:59.999999999", "00:00:00.000249999"),
}
DELTAS = {"default": ("(+?.?????????) ", "(+0.000250000) "), "cycles": ("(+????????????) ", "(+000000250000) ")}


@pytest.mark.parametrize("stamps", STAMPS)
@pytest.mark.parametrize("form", ["delta", "no-delta", "names", "names without delta"])
def test_the_forms_of_babeltrace(stamps: str, form: str, tmp_path: Path, capfd: Captured) -> None:
    deltas = DELTAS["cycles" if stamps == "cycles" else "default"]
    fields = "{ dev = 8388608, sector = 8, nr_sector = 8, rwbs = 4 }"
    lines = []
    for stamp, delta, name in zip(STAMPS[stamps], deltas, ("block_rq_issue", "block_rq_complete"), strict=True):
        if form.startswith("names"):
            said = "" if form.endswith("delta") else f"delta = {delta[1:-2]}, "
            lines.append(ALL_NAMES.format(stamp, said, name))
        else:
            lines.append(f"[{stamp}] {delta if form == 'delta' else ''}labvm {name}: {{ cpu_id = 0 }}, {fields}")
    path = tmp_path / "a.txt"
    path.write_text("\n".join(lines) + "\n")
    (request,) = requests_of(path, capfd)
    assert request["complete_ns"] - request["issue_ns"] == 250_000


def test_a_text_that_is_not_in_order(tmp_path: Path, capfd: Captured) -> None:
    """Two files one after the other: the run begins with the earliest event, not with the first line."""
    path = tmp_path / "a.txt"
    early = ftrace(*issued(8, 1))
    path.write_text(ftrace(*issued(16, 1)).replace(" 100.", " 900.") + early)
    assert main(["events", str(path)]) == 0
    assert len(capfd.readouterr().out.splitlines()) == 4
    assert main(["hist", str(path), "--json"]) == 0
    (interval,) = json.loads(capfd.readouterr().out)["intervals"]
    assert interval["begin_ns"] == 0 and interval["end_ns"] > 799 * 10**9


def test_block_events_behind_many_others(tmp_path: Path, capfd: Captured) -> None:
    path = tmp_path / "a.perf"
    other = "fio  2664 [001]   793.228815628: block:block_dirty_buffer: 254,0 sector=0 size=4096\n"
    path.write_text(other * 2000 + ftrace(*issued(8, 1)).replace("100.", "800."))
    assert len(requests_of(path, capfd)) == 1


@pytest.mark.parametrize(
    ("stats", "count", "mean_ns"),
    [
        ({"lat_ns": {"mean": 129302.0}, "total_ios": 452354}, 452354, 129302),
        ({"lat_ns": {"mean": 129302.0, "N": 400}, "total_ios": 452354}, 400, 129302),
        ({"clat_ns": {"mean": 1000.0}, "total_ios": 10}, 10, 1000),
        ({"lat": {"mean": 129.5}, "total_ios": 10, "io_bytes": 40}, 10, 129500),
        ({"lat": {"mean": 129.5}, "iops": 5.0}, 300, 129500),
    ],
)
def test_fio_of_every_version(stats: dict[str, Any], count: int, mean_ns: int) -> None:
    from opline_analyses.client.fio_report import fio_json

    zero = {"total_ios": 0, "lat_ns": {"mean": 0.0}, "runtime": 0}
    report = fio_json({"jobs": [{"jobname": "a", "read": {"runtime": 60000, **stats}, "write": zero}]})
    assert report is not None
    assert report.by_class["read"] == (count, mean_ns)


def test_the_csv_of_ext4slower(tmp_path: Path, capfd: Captured) -> None:
    """Names of threads and files may have commas."""
    path = tmp_path / "slower.csv"
    rows = ["1000000,fio,7,R,4096,8192,100,data", "1000500,a,b,8,W,512,-1,200,x,y", "1001000,fio,7,S,0,0,900,"]
    path.write_text("\n".join(["ENDTIME_us,TASK,PID,TYPE,BYTES,OFFSET_b,LATENCY_us,FILE", *rows, "torn,li"]) + "\n")
    capfd.readouterr()
    assert main(["hist", str(path)]) == 0
    said = capfd.readouterr()
    assert "3 operations, latency mean 400 us" in said.out
    assert "1 lines" in said.err
    assert main(["heatmap", str(path)]) == 0


def test_the_listing_of_ext4slower(tmp_path: Path, capfd: Captured) -> None:
    """It has the time of the day; names may have blanks."""
    path = tmp_path / "slower.txt"
    path.write_text(
        "Tracing ext4 operations slower than 10 ms\n"
        "TIME     COMM           PID    T BYTES   OFF_KB   LAT(ms) FILENAME\n"
        "23:59:59 cron           16464  R 1249    0          16.05 common-auth\n"
        "00:00:01 my prog        16463  W 0       -1         20.5 a file\n"
    )
    assert main(["hist", str(path), "--json"]) == 0
    assert main(["hist", str(path)]) == 0
    out = capfd.readouterr().out
    assert "0.000000 to 2.000000 s" in out and "2 operations, latency mean 18.27 ms" in out
    assert main(["log", str(path)]) == 2


def test_a_header_of_csv_may_have_blanks_in_its_names(tmp_path: Path, capfd: Captured) -> None:
    path = tmp_path / "a.csv"
    path.write_text("time (ms);latency (ms)\n100,5;3,5\n200,5;4,5\n")
    assert main(["hist", str(path)]) == 0
    said = capfd.readouterr()
    assert "0.000000 to 0.100000 s" in said.out and "mean 4 ms" in said.out and "guess" not in said.err


@pytest.mark.parametrize("more", ["", " 12", " 12 0"])
def test_the_log_of_pgbench(more: str, tmp_path: Path, capfd: Captured) -> None:
    path = tmp_path / "pgbench_log.1"
    rows = [f"0 {199 + n} {us} 0 1716887520 {n * 1000}{more}" for n, us in enumerate((100, 200, 900))]
    path.write_text("\n".join([*rows, "1 5 skipped 0 1716887520 5000"]) + "\n")
    capfd.readouterr()
    assert main(["hist", str(path)]) == 0
    said = capfd.readouterr()
    assert "3 transactions, latency mean 400 us" in said.out
    assert "1 lines" in said.err
    assert main(["heatmap", str(path)]) == 0


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("ns", "ns"), ("ms", "ms"), ("read_ns", "ns"), ("usecs", "us"), ("latms", "ms"), ("queue_lat_us", "us"),
        ("latencyUs", "us"), ("delay_seconds", "s"), ("nsecs[sda]", "ns"), ("io_msec", "ms"), ("disk_ns_total", "ns"),
        ("", None), ("status", None), ("transactions", None), ("items", None), ("lat", None), ("ns_to_ms", None),
        ("times", None), ("lats", None), ("s", "s"), ("timens", "ns"), ("latency_sec", "s"), ("write_micros", "us"),
    ],
)  # fmt: skip
def test_the_unit_of_a_map_of_bpftrace(name: str, unit: str | None, tmp_path: Path, capfd: Captured) -> None:
    path = tmp_path / "a.txt"
    path.write_text(f"@{name}: \n[16, 32)             4 |@@@@@@@@|\n")
    for counted_in in (None, "ms"):
        capfd.readouterr()
        assert main(["hist", str(path), *(["--counted-in", counted_in] if counted_in else [])]) == 0
        said = capfd.readouterr()
        assert f"mean about 24 {counted_in or unit or 'us'}" in said.out
        assert ("is a guess" in said.err) == (unit is None and counted_in is None)


def test_a_map_of_sizes_has_no_times(tmp_path: Path, capfd: Captured) -> None:
    path = tmp_path / "a.txt"
    path.write_text("@bytes: \n[4K, 8K)   10 |@@@|\n\n@us: \n[16, 32)   4 |@@@|\n")
    assert main(["hist", str(path)]) == 0
    said = capfd.readouterr()
    assert "@us: 4 events, mean about 24 us" in said.out
    assert "bytes" not in said.out
    assert "@bytes" in said.err
