# SPDX-License-Identifier: MIT
"""`opline iostat`: the seven columns at any interval, the -x columns, and figures that are the definitions' own."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from tests.lib.io_runs import SDA, SDB, TEN_HERTZ, ZERO_NS, io_run
from tests.lib.recorded import RunOf

MS = 1000  # in the us of io_run


Said = Callable[..., tuple[str, str]]

DTRACE = ("--style", "dtrace")


def breathing(path: Path) -> tuple[Path, list[str]]:
    """A run whose 10 Hz rows are the seed's, writes thinned out to every tenth; and these rows."""
    ios: list[dict[str, Any]] = []
    rows = []
    for line in TEN_HERTZ.splitlines()[:10]:
        time, *numbers = line.split()
        end = round(float(time) * 1000) - 153_000
        r, kr, ur, w, kw, uw = map(int, numbers)
        w, kw = w // 100, kw // 100  # of a tenth of a second, and thinned
        for n, kb, us, kind in ((r // 10, kr // 10, ur, "read"), (w, kw, uw, "write")):
            for i in range(n):
                c = (end - 50) * MS + i
                sectors = 2 * (kb // n + (i < kb % n))
                ios.append({"d": c - us, "c": c, "kind": kind, "sectors": sectors})
        cells = [f"{n * 10:.0f}" for n in (r // 10, kr // 10, w, kw)]
        rows.append([f"{end / 1000:.1f}", cells[0], cells[1], str(ur), cells[2], cells[3], str(uw if w else 0)])
    return io_run(path, ios, seconds=1.05), [" ".join(r) for r in rows]


def test_c6_1_c6_2_c6_4_the_seeds_rows_at_10_hz(tmp_path: Path, said: Said) -> None:
    """C6.7: the burst that one row per second hides; idle rows are there, with zeros."""
    run, rows = breathing(tmp_path / "run")
    text, _ = said("iostat", run, "0.1", "--window", "0:1", *DTRACE)
    lines = text.splitlines()
    assert lines[0] == "    time         r/s     Kr/s     us/r         w/s     Kw/s     us/w"
    assert lines[1] == "     0.1          10     1280     3875           0        0        0"
    assert lines[8] == "     0.8          20     2560   136888         410   217140    82941"
    assert [" ".join(line.split()) for line in lines[1:]] == rows


def test_c6_6_fine_rows_sum_to_the_coarse_row(tmp_path: Path, said: Said) -> None:
    run, _ = breathing(tmp_path / "run")
    documents = [json.loads(said("iostat", run, i, "--window", "0:1", "--json")[0]) for i in ("1", "0.1", "7ms")]
    coarse = documents[0]["rows"][0]
    assert coarse["write_count"] > 300
    for found in documents[1:]:
        for key in ("read_count", "read_bytes", "read_sum_ns", "write_count", "write_bytes", "write_sum_ns"):
            assert sum(row[key] for row in found["rows"]) == coarse[key]


def test_c6_3_rates_are_per_second(tmp_path: Path, said: Said) -> None:
    run = io_run(tmp_path / "run", [{"d": 1 * MS, "c": 2 * MS}], seconds=0.1)
    assert said("iostat", run, "0.1", *DTRACE)[0].splitlines()[1].split() == ["0.1", "10", "40", "1000", "0", "0", "0"]
    assert said("iostat", run, "15", *DTRACE)[0].splitlines()[1].split()[:4] == ["15", "0.067", "0.27", "1000"]


def test_c6_5_over_a_set_of_devices_or_each(tmp_path: Path, said: Said) -> None:
    ios = [{"d": 1, "c": 2, "dev": SDA}, {"d": 1, "c": 2, "dev": SDB}, {"d": 1, "c": 2, "dev": SDB}]
    run = io_run(tmp_path / "run", ios, seconds=0.9)
    assert said("iostat", run, "1", *DTRACE)[0].splitlines()[1].split()[1] == "3"
    assert said("iostat", run, "1", "-d", "sdb", *DTRACE)[0].splitlines()[1].split()[1] == "2"
    each = said("iostat", run, "1", "--per-device", *DTRACE)[0].splitlines()[1:]
    assert [(line.split()[1], line.split()[-1]) for line in each] == [("1", "sda"), ("2", "sdb")]


def test_c5_4_the_x_columns_by_their_definitions(tmp_path: Path, said: Said) -> None:
    """C6.8, C5.6: two reads of 4 KiB overlap, a write of 64 KiB comes later, a flush and a discard are neither. Wait,
    service and queue size of a device, in both views.
    """
    ios: list[dict[str, Any]] = [
        {"g": 100 * MS, "d": 110 * MS, "c": 200 * MS},
        {"g": 150 * MS, "d": 160 * MS, "c": 250 * MS},
        {"g": 600 * MS, "d": 600 * MS, "c": 700 * MS, "kind": "write", "sectors": 128},
        {"g": 900 * MS, "d": 900 * MS, "c": 910 * MS, "kind": "flush"},
        {"g": 900 * MS, "d": 900 * MS, "c": 910 * MS, "kind": "discard"},
    ]
    run = io_run(tmp_path / "run", ios, seconds=0.999)
    header, row = said("iostat", run, "1")[0].splitlines()
    assert " ".join(header.split()) == "device r/s rkB/s r_await w/s wkB/s w_await o/s areq-sz aqu-sz %util"
    # in flight from G to C: 100 + 100 + 100 + 10 + 10 ms, at least one in 150 + 100 + 10 ms of the second
    assert row.split() == ["sda", "2", "8", "100.000", "1", "64", "100.000", "2", "24.0", "0.32", "26.0"]
    solaris = said("iostat", run, "1", "--style", "solaris")[0].splitlines()
    assert " ".join(solaris[0].split()) == "device r/s w/s kr/s kw/s wait actv svc_t %w %b"
    # waiting for the issue: 10 + 10 ms; at the device: 90 + 90 + 100 + 10 + 10 ms, 140 + 100 + 10 of them busy
    assert solaris[1].split() == ["sda", "2.0", "1.0", "8.0", "64.0", "0.0", "0.3", "64.0", "2", "25"]
    _, err = said("iostat", run, "1", *DTRACE)
    assert "2 flushes and discards are neither reads nor writes: --style linux has them in o/s." in err


def test_x_has_merges_flushes_and_the_await_of_all(tmp_path: Path, said: Said) -> None:
    """C5.4: awaits of reads, of writes, of both and of flushes apart; merges are those into the requests of a row."""
    ios: list[dict[str, Any]] = [
        {"g": 100 * MS, "d": 110 * MS, "c": 200 * MS, "merges": 3},
        {"g": 600 * MS, "d": 600 * MS, "c": 640 * MS, "kind": "write", "sectors": 128, "merges": 15},
        {"g": 600 * MS, "d": 600 * MS, "c": 640 * MS, "kind": "write", "sectors": 128, "merges": 1, "dev": SDB},
        {"g": 900 * MS, "d": 900 * MS, "c": 910 * MS, "kind": "flush"},
        {"g": 900 * MS, "d": 900 * MS, "c": 930 * MS, "kind": "discard"},
    ]
    run = io_run(tmp_path / "run", ios, seconds=0.999)

    def row(*more: str) -> dict[str, str]:
        header, *lines = said("iostat", run, "1", "-x", *more)[0].splitlines()
        return dict(zip(header.split(), lines[0].split(), strict=True))

    assert row() == {
        "device": "sda", "r/s": "1", "rkB/s": "4", "rrqm/s": "3", "r_await": "100.000", "w/s": "1", "wkB/s": "64",
        "wrqm/s": "15", "w_await": "40.000", "o/s": "2", "f/s": "1", "f_await": "10.000", "await": "70.000",
        "areq-sz": "34.0", "aqu-sz": "0.18", "%util": "17.0",
    }  # fmt: skip
    found = json.loads(said("iostat", run, "0.5", "-x", "--json")[0])["rows"]
    merges = [(r["end_ns"], r["device"], r["read_merges"], r["write_merges"], r["flush_sum_ns"]) for r in found]
    assert merges == [
        (500_000_000, "sda", 3, 0, 0), (500_000_000, "sdb", 0, 0, 0),
        (1_000_000_000, "sda", 0, 15, 10_000_000), (1_000_000_000, "sdb", 0, 1, 0),
    ]  # fmt: skip
    assert row("--by", "comm")["wrqm/s"] == "16"
    filtered = json.loads(said("iostat", run, "1", "-x", "--size", "64k", "--json")[0])["rows"]
    assert [(r["device"], r["read_merges"], r["write_merges"]) for r in filtered] == [("sda", 0, 15), ("sdb", 0, 1)]
    bios = json.loads(said("iostat", run, "1", "-x", "--of", "bios", "--json")[0])["rows"]
    assert [r["write_merges"] for r in bios] == [None] * len(bios)
    assert all(r["read_merges"] is None for r in json.loads(said("iostat", run, "1", "--json")[0])["rows"])


def test_queue_and_utilisation_are_of_all_that_were_there(tmp_path: Path, said: Said) -> None:
    """C4.10: counted once, at its end; but the device was busy in every interval that it was there."""
    run = io_run(tmp_path / "run", [{"g": 50 * MS, "d": 50 * MS, "c": 250 * MS}], seconds=0.299)
    rows = json.loads(said("iostat", run, "0.1", "-x", "--json")[0])["rows"]
    assert [r["read_count"] for r in rows] == [0, 0, 1]
    assert [r["busy_ns"] for r in rows] == [50_000_000, 100_000_000, 50_000_000]
    seen = json.loads(said("iostat", run, "0.1", "-x", "--window", "0.1:0.2", "--json")[0])["rows"]
    assert [(r["read_count"], r["busy_ns"]) for r in seen] == [(0, 100_000_000)]


def test_an_interval_in_which_the_window_ends_ends_there(tmp_path: Path, said: Said) -> None:
    """Its rates are those of the window, whatever the interval: 1 I/O in 50 ms; one that ends later is there, too."""
    ios = [{"g": 110 * MS, "d": 110 * MS, "c": 120 * MS}, {"g": 140 * MS, "d": 140 * MS, "c": 400 * MS}]
    run = io_run(tmp_path / "run", [*ios, {"g": 500 * MS, "d": 500 * MS, "c": 700 * MS}], seconds=0.999)
    for words in ((), ("1",), ("70ms",), ("50ms",)):
        (row,) = json.loads(said("iostat", run, *words, "-x", "--window", "0.1:0.15", "--json")[0])["rows"]
        assert (row["begin_ns"], row["end_ns"], row["read_count"]) == (100_000_000, 150_000_000, 1)
        assert row["in_flight_area_ns"] == row["busy_ns"] == 20_000_000
        for style, busy in (("linux", "40.0"), ("solaris", "40")):
            cells = (
                said("iostat", run, *words, "-x", "--style", style, "--window", "0.1:0.15")[0].splitlines()[1].split()
            )
            assert (cells[1].removesuffix(".0"), cells[-1]) == ("20", busy)
    rows = json.loads(said("iostat", run, "30ms", "--window", "0.1:0.15", "--json")[0])["rows"]
    assert [r["end_ns"] for r in rows] == [130_000_000, 150_000_000]


def test_histograms_and_outliers_end_with_the_window_as_well(tmp_path: Path, said: Said) -> None:
    """One I/O in 50 ms is 20 IOPS, in an interval of a second, too."""
    run = io_run(tmp_path / "run", [{"g": 110 * MS, "d": 110 * MS, "c": 120 * MS}], seconds=0.999)
    window = ("1", "--window", "0.1:0.15")
    assert "0.10 to 0.15 s" in said("hist", run, *window)[0]
    (interval,) = json.loads(said("hist", run, *window, "--json")[0])["intervals"]
    assert (interval["begin_ns"], interval["end_ns"]) == (100_000_000, 150_000_000)
    assert said("hist", run, *window, "--csv")[0].splitlines()[1].startswith("100000000,150000000,")
    rates = [line.split()[4] for line in said("hist", run, *window, "--style", "iolatency_micro")[0].splitlines()[2:]]
    assert rates == ["20.0"]
    assert "measurement time: 0.05 seconds" in said("outliers", run, *window, "--style", "systemtap")[0]


def test_c6_8_without_earlier_events_the_issue_is_the_begin_and_is_said_to_be(tmp_path: Path, said: Said) -> None:
    run = io_run(tmp_path / "run", [{"d": 1 * MS, "c": 3 * MS}], seconds=0.9)
    text, err = said("iostat", run, "1")
    assert text.splitlines()[1].split()[3] == "2.000"
    assert "no event before the issue was traced" in err


def test_the_single_row_is_of_the_time_in_which_the_recorded_programs_ran(tmp_path: Path, said: Said) -> None:
    """Another program's I/O of that time is in it, and the I/O before is not; intervals are of the whole run."""
    times = [100 * MS, *range(400 * MS, 500 * MS, MS)]
    run = io_run(tmp_path / "run", [{"g": t, "d": t, "c": t + MS} for t in (*times, 450 * MS)], seconds=0.999)
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["core"]["population"] = {
        "ops": 101, "incomplete_ops": 0, "requests": 101, "other_ops": 0, "other_requests": 1, "idle": False,
        "programs": [], "others": [],
    }  # fmt: skip
    (run / "manifest.json").write_text(json.dumps(manifest))
    table = pq.read_table(run / "requests.parquet")
    columns = {"queue_tid": [7, *[8] * 100, 9], "end_ns": table["complete_ns"], "population": [*[True] * 101, False]}
    for name, values in columns.items():
        at = table.schema.get_field_index(name)
        table = table.set_column(at, table.schema.field(at), pa.array(values, table.schema.field(at).type))
    pq.write_table(table, run / "requests.parquet")
    text, err = said("iostat", run, "-x")
    assert (
        text.splitlines()[1].split()[1] == "1010" and "100 ms in which the recorded programs did I/O, of 999 ms" in err
    )
    assert said("iostat", run, "-x", "--window", "0:")[0].splitlines()[1].split()[1] == "102"
    assert sum(r["read_count"] for r in json.loads(said("iostat", run, "0.1", "--json")[0])["rows"]) == 102


def test_csv_has_exact_numbers(tmp_path: Path, said: Said) -> None:
    run, _ = breathing(tmp_path / "run")
    rows = list(csv.DictReader(io.StringIO(said("iostat", run, "0.1", "--csv")[0])))
    found = json.loads(said("iostat", run, "0.1", "--json")[0])
    assert found["zero_ns"] == ZERO_NS
    assert [{k: v or None for k, v in r.items()} for r in rows] == [
        {k: None if v in (None, "") else str(v) for k, v in r.items()} for r in found["rows"]
    ]


def test_a_recorded_trace_against_the_tables(run_of: RunOf, said: Said) -> None:
    run = run_of("fio-libaio-qd16-hdd-bfq")
    first = run.core["first_ns"]
    rows = json.loads(said("iostat", run.path, "50ms", "-x", "--json")[0])["rows"]
    done = [r for r in run.rows("requests") if r["complete_ns"] is not None and r["getrq_ns"] is not None]
    for row in rows:
        dev = int(row["device"].partition(":")[0]) << 20 | int(row["device"].partition(":")[2])
        mine = [
            r
            for r in done
            if r["dev"] == dev and row["begin_ns"] <= r["complete_ns"] - first < row["end_ns"] and r["kind"] == "read"
        ]
        assert (row["read_count"], row["read_bytes"]) == (len(mine), sum(r["nr_sectors"] * 512 for r in mine))
        assert row["read_sum_ns"] == sum(r["complete_ns"] - r["getrq_ns"] for r in mine)
    area = sum(r["in_flight_area_ns"] for r in rows)
    assert area == sum(r["complete_ns"] - r["getrq_ns"] for r in done), "Little's law: areas are the latencies' sum"
    assert all(0 <= r["busy_ns"] <= 50_000_000 for r in rows)
