# SPDX-License-Identifier: MIT
"""biosnoop's listing is a trace: of bcc with and without -Q, of libbpf-tools; a pipe is what a file is."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from opline_analyses.cli import main

Captured = pytest.CaptureFixture[str]
IOS = (("supervise", 1950, "xvda1", "W", 13092560, 4096, 0.01, 0.74), ("my prog 2", 7, "sdb", "RA", 8, 8192, 0.0, 1.25))
HEADER = "TIME(s)     COMM           PID     DISK      T SECTOR     BYTES  "


def listing(queue: bool) -> str:
    text = f"{HEADER}{'QUE(ms) ' if queue else ''}LAT(ms)\n"
    for n, (comm, pid, disk, kind, sector, size, queued, took) in enumerate(IOS):
        waited = f"{queued:>7.2f} " if queue else ""
        text += f"{n + 0.5:<11.6f} {comm:<14} {pid:<7} {disk:<9} {kind} {sector:<10} {size:<7} {waited}{took:>7.2f}\n"
    return text


def rows(path: Path, capfd: Captured, *options: str) -> list[dict[str, object]]:
    capfd.readouterr()
    assert main(["log", str(path), "--json", *options]) == 0
    return [json.loads(line) for line in capfd.readouterr().out.splitlines()]


@pytest.mark.parametrize("queue", [False, True])
def test_every_io_is_read(queue: bool, tmp_path: Path, capfd: Captured) -> None:
    path = tmp_path / "a.txt"
    path.write_text(listing(queue))
    found = rows(path, capfd)
    shown = [(r["comm"], r["tid"], r["rwbs"], r["sector"], r["bytes"], r["latency_ns"]) for r in found]
    assert shown == [(c, p, t, s, b, round(took * 1e6)) for c, p, _, t, s, b, _, took in IOS]
    assert int(str(found[1]["end_ns"])) - int(str(found[0]["end_ns"])) == 10**9
    assert rows(path, capfd, "-d", "sdb")[0]["sector"] == 8
    waits = [r["latency_ns"] for r in rows(path, capfd, "--from", "insert", "--to", "issue")] if queue else []
    assert waits == ([10_000, 0] if queue else [])


def test_two_ios_of_one_place_keep_their_latencies(tmp_path: Path, capfd: Captured) -> None:
    path = tmp_path / "a.txt"
    path.write_text(f"{HEADER}LAT(ms)\n1.000000 a 1 sda R 8 4096 900.00\n1.100000 b 2 sda R 8 4096 150.00\n")
    assert [(r["comm"], r["latency_ns"]) for r in rows(path, capfd)] == [("a", 900_000_000), ("b", 150_000_000)]


@pytest.mark.parametrize(("took", "said"), [("10", True), ("10.0", False)])
def test_whole_milliseconds_are_told(took: str, said: bool, tmp_path: Path, capfd: Captured) -> None:
    """bpftrace's biosnoop.bt prints them. A disk's name may have any bytes."""
    path = tmp_path / "a.txt"
    text = f"TIME(ms)     DISK    COMM             PID    LAT(ms)\n611  n\xe9 bash  4179  {took}\n"
    path.write_bytes(text.encode("latin-1"))
    assert main(["log", str(path)]) == 0
    err = capfd.readouterr().err
    assert ("whole milliseconds" in err) == said and "internal" not in err


def test_a_line_that_is_cut_off_is_told(tmp_path: Path, capfd: Captured) -> None:
    path = tmp_path / "a.txt"
    path.write_text(f"{listing(False)}2.000000    fio            1\n2.1 fio 1 sda W x 4096 1.0\n")
    assert len(rows(path, capfd)) == len(IOS)
    main(["losses", str(path), "--json"])
    losses = {loss["loss"]: loss["count"] for loss in json.loads(capfd.readouterr().out)["losses"]}
    assert losses["unreadable_lines"] == 2


@pytest.mark.parametrize("letters", ["FF", "FWS", "FWFS"])
def test_a_flush_has_no_sectors(letters: str, tmp_path: Path, capfd: Captured) -> None:
    """libbpf-tools' biosnoop prints the letters of the file system's request for it. Nothing is missing."""
    path = tmp_path / "a.txt"
    path.write_text(f"{HEADER}LAT(ms)\n1.000000 a 1 sda {letters} 100 0 2.00\n1.100000 b 2 sda W 8 4096 4.00\n")
    assert [r["latency_ns"] for r in rows(path, capfd)] == [2_000_000, 4_000_000]
    assert main(["losses", str(path), "--json", "--max-loss", "0"]) == 0


@pytest.mark.parametrize("queued", ["", "   0.25 ", "1000.25 "])
@pytest.mark.parametrize("comm", ["fio", "my prog 2"])
@pytest.mark.parametrize(("size", "took"), [(1048576, "1234.56"), (1310720, "9999.99"), (16777216, "1000.00")])
def test_a_size_and_a_time_without_a_blank(
    size: int, took: str, comm: str, queued: str, tmp_path: Path, capfd: Captured
) -> None:
    """bcc gives the size and the time behind it seven letters each, and nothing between them."""
    path = tmp_path / "a.txt"
    header = f"{HEADER}{'QUE(ms) ' if queued else ''}LAT(ms)\n"
    path.write_text(f"{header}{1:<11.6f} {comm:<14} {7:<7} {'sda':<9} R {64:<10} {size:<7}{queued}{took}\n")
    (row,) = rows(path, capfd)
    assert (row["comm"], row["bytes"], row["latency_ns"]) == (comm, size, round(float(took) * 1e6))


def test_decimal_commas(tmp_path: Path, capfd: Captured) -> None:
    (tmp_path / "a.txt").write_text(listing(True))
    (tmp_path / "b.txt").write_text(re.sub(r"(\d)\.(\d)", r"\1,\2", listing(True)))
    assert rows(tmp_path / "a.txt", capfd) == rows(tmp_path / "b.txt", capfd)
    assert main(["log", str(tmp_path / "b.txt")]) == 0
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("sector", ["-1", str(2**64 - 1)])
def test_a_command_without_a_place(sector: str, tmp_path: Path, capfd: Captured) -> None:
    path = tmp_path / "a.txt"
    path.write_text(f"{HEADER}LAT(ms)\n1.000000 fio 1 <unknown> N {sector} 0 2.00\n")
    (row,) = rows(path, capfd)
    assert row["latency_ns"] == 2_000_000


def test_lines_without_a_disk(tmp_path: Path, capfd: Captured) -> None:
    """bcc names none for some commands, bpftrace's biosnoop.bt had no such column at first."""
    path = tmp_path / "a.txt"
    path.write_text(f"{HEADER}LAT(ms)\n1.000000 ?  0       R -1 8 2.00\n1.500000 my prog 7 sda W 8 4096 3.00\n")
    assert [(r["latency_ns"], r["comm"], r["rwbs"]) for r in rows(path, capfd)] == [
        (2_000_000, "?", "R"), (3_000_000, "my prog", "W"),
    ]  # fmt: skip
    path.write_text("TIME(ms)     COMM             PID    LAT(ms)\n611          my prog          4179         10\n")
    assert [(r["latency_ns"], r["comm"], r["tid"]) for r in rows(path, capfd)] == [(10_000_000, "my prog", 4179)]


def test_requests_name_the_thread_of_the_listing(tmp_path: Path, capfd: Captured) -> None:
    path = tmp_path / "a.txt"
    path.write_text(f"{HEADER}LAT(ms)\n1.500000 my prog 7 sda W 8 4096 3.00\n")
    assert main(["requests", str(path)]) == 0
    assert capfd.readouterr().out.splitlines()[1].endswith("my prog:7")


@pytest.mark.parametrize("text", ["nothing that is an I/O\n", "1.0 fio 1 sda W x 4096 7\n", ""])
def test_a_listing_without_an_io_is_refused_in_one_line(text: str, tmp_path: Path, capfd: Captured) -> None:
    path = tmp_path / "a.txt"
    path.write_text(f"{HEADER}LAT(ms)\n{text}")
    assert main(["log", str(path)]) == 1
    assert len(capfd.readouterr().err.splitlines()) == 1
