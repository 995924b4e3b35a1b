# SPDX-License-Identifier: MIT
"""Times, values and histograms in forms that users' scripts, spreadsheets and benchmarks write."""

from __future__ import annotations

from pathlib import Path

import pytest

from opline_analyses.cli import main

Captured = pytest.CaptureFixture[str]


def said_of(path: Path, text: str, capfd: Captured, *options: str) -> tuple[int, str, str]:
    path.write_text(text)
    capfd.readouterr()
    status = main(["hist", str(path), *options])
    said = capfd.readouterr()
    return status, said.out, said.err


@pytest.mark.parametrize(
    ("label", "unit"),
    [
        ("usecs", "us"), ("nsecs", "ns"), ("msecs", "ms"), ("secs", "s"), ("latency (us)", "us"), ("latency_ms", "ms"),
        ("Latency in ns", "ns"), ("read lat us", "us"), ("queue_usecs", "us"), ("value", None), ("latency", None),
    ],
)  # fmt: skip
@pytest.mark.parametrize("linear", [False, True])
def test_a_histogram_of_bcc_under_a_label_of_ones_own(
    label: str, unit: str | None, linear: bool, tmp_path: Path, capfd: Captured
) -> None:
    rows = ("4", "5") if linear else ("4 -> 7", "8 -> 15")
    text = f"     {label:19s} : count     distribution\n" + "".join(
        f"        {row:16s} : {count:<8d} |*****     |\n" for row, count in zip(rows, (3, 0), strict=True)
    )
    status, out, err = said_of(tmp_path / "a.txt", text, capfd)
    assert status == 0
    assert "3 events, mean about " in out and f" {unit or 'us'}, from the middles" in out
    assert ("is a guess" in err) == (unit is None)


@pytest.mark.parametrize("label", ["Kbytes", "bytes", "queue_len", "sectors"])
def test_a_histogram_of_sizes_is_left_out_by_its_label(label: str, tmp_path: Path, capfd: Captured) -> None:
    text = f"     {label:19s} : count     distribution\n         4 -> 7          : 3        |*****     |\n"
    status, _, err = said_of(tmp_path / "a.txt", text, capfd)
    assert status != 0 and f"the table {label} has no times" in err
    assert said_of(tmp_path / "a.txt", text, capfd, "--counted-in", "us")[0] == 0


@pytest.mark.parametrize(
    ("text", "mean"),
    [
        ("0.5 12.5\n1 7.5\n", "10 us"),
        ("0.5,12.5\n1,7.5\n", "10 us"),
        ("0.5, 12.5\n1, 7.5\n", "10 us"),
        ("0.5;12.5\n1;7.5\n", "10 us"),
        ("0,5;12,5\n1;7,5\n", "10 us"),
        ("0,5 12,5\n1 7,5\n", "10 us"),
        ("0,5\t12,5\n1\t7,5\n", "10 us"),
        ('"0.5","12.5"\n"1","7.5"\n', "10 us"),
        ("1 7,5\n1,5 12,5\n", "10 us"),
        ("time,latency\n0.5,12.5\n1,7.5\n", "10 us"),
        ("time_s,latency_ms\n0.5,12.5\n1,7.5\n", "10 ms"),
        ("zeit;dauer_ns\n0,5;12,5\n1;7,5\n", "10 ns"),
        ("t(s)\tlat(us)\n0.5\t12.5\n1\t7.5\n", "10 us"),
        ("time value_ms\n0.5 12.5\n1 7.5\n", "10 ms"),
        ("0.5,12.5,read\n1,7.5,write\n", "10 us"),
        ("1.5e-3,12.5\r\n1e0,7.5\r\n", "10 us"),
    ],
)
def test_two_columns_of_a_spreadsheet(text: str, mean: str, tmp_path: Path, capfd: Captured) -> None:
    status, out, err = said_of(tmp_path / "a.csv", text, capfd)
    assert status == 0
    assert f"2 events, latency mean {mean}" in out
    first = next(line for line in text.splitlines() if not line[0].isalpha())
    assert ("decimal sign" in err) == any(",5" in word for word in text.replace(";", " ").split() if "." not in word)
    assert ("is a guess" in err) == (first == text.splitlines()[0] or "latency\n" in text)
    assert main(["heatmap", str(tmp_path / "a.csv")]) == 0


@pytest.mark.parametrize("unit", ["ns", "us", "ms"])
def test_the_unit_that_the_user_gives_is_the_one(unit: str, tmp_path: Path, capfd: Captured) -> None:
    status, out, err = said_of(tmp_path / "a.csv", "time,latency_s\n1,4\n2,8\n", capfd, "--unit", unit)
    assert status == 0 and f"mean 6 {unit}" in out and not err


def test_a_header_says_the_unit_of_times(tmp_path: Path, capfd: Captured) -> None:
    out = said_of(tmp_path / "a.csv", "time_ms,latency_us\n1000,4\n3000,8\n", capfd)[1]
    assert "0.000000 to 2.000000 s" in out


@pytest.mark.parametrize(
    "text",
    [
        "1,5,2,5\n3,4,5,6\n",
        "1.0,2.0,3.0\n1.0,2.0,3.0\n",
        "1;2;3\n1;2;3\n",
        "1,5 2,5 3,5\n",
        "begin_ns,end_ns\n1000,2000\n",
        "issue,complete\n1000,2000\n",
        "a,b,c\n1,2,\n",
    ],
)
def test_a_table_that_is_no_time_and_value_is_refused(text: str, tmp_path: Path, capfd: Captured) -> None:
    status, out, err = said_of(tmp_path / "a.csv", text, capfd)
    assert status != 0 and not out
    assert len(err.splitlines()) == 1


# Of PostgreSQL 9.3, 9.5 with --rate, 14 and 15.
@pytest.mark.parametrize("more", ["", " 10 20 1 4", " 10 20 1 4 3", " 0", " 0 0 0 0 0 0 0 0 0"])
def test_pgbenchs_log_of_intervals(more: str, tmp_path: Path, capfd: Captured) -> None:
    rows = ["1650260552 4 1000 300000 100 400", "1650260562 2 3000 5000000 1000 2000", "1650260572 0 0 0 0 0"]
    status, out, err = said_of(tmp_path / "pgbench_log.7", "".join(f"{row}{more}\n" for row in rows), capfd)
    assert status == 0
    assert "2 means, latency mean 875 us" in out
    assert "All 6 transactions: mean 666.7 us, min 100 us, max 2 ms" in err
    assert "another form" not in err


@pytest.mark.parametrize(
    "row",
    [
        "1650260552 4 1000 300000 300 400",  # the sum is less than so many minima
        "1650260552 4 1000 300000 100 200",
        "1650260552 4 1000 249999 100 400",  # the mean's square is more than that of the squares
    ],
)
def test_sums_that_do_not_agree_are_of_no_interval(row: str, tmp_path: Path, capfd: Captured) -> None:
    assert said_of(tmp_path / "a.txt", f"{row}\n{row}\n", capfd)[0] != 0


@pytest.mark.parametrize("behind", [", 0", ", 0x0000", ", 4096, 0", ", 4096, 0x2004, 123456"])
def test_fios_log_of_means_and_maxima(behind: str, tmp_path: Path, capfd: Captured) -> None:
    rows = ("1000, 185000, 923000, 0, 0", "1000, 215000, 1923000, 1, 0", "2000, 200000, 200000, 2, 0")
    status, out, err = said_of(tmp_path / "a_lat.1.log", "".join(f"{row}{behind}\n" for row in rows), capfd)
    assert status == 0
    assert "3 means, latency mean 200 us, min 185 us, max 215 us" in out
    assert "The slowest I/O took 1.923 ms" in err


@pytest.mark.parametrize("behind", ["", ", 0", ", 4096, 0", ", 4096, 0x2004, 123456"])
def test_fios_log_of_means_alone_has_no_slowest_io(behind: str, tmp_path: Path, capfd: Captured) -> None:
    _, out, err = said_of(tmp_path / "a_lat.1.log", f"1000, 185000, 0, 0{behind}\n2000, 215000, 1, 0{behind}\n", capfd)
    assert "2 means, latency mean 200 us" in out
    assert "mean of an interval" in err and "slowest" not in err
