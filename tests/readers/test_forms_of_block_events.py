# SPDX-License-Identifier: MIT
"""Block events in forms that are not the kernel's default: field by field, and by the accounting's events alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from opline import _core
from opline_analyses.cli import main

Captured = pytest.CaptureFixture[str]
NONE = 2**64 - 1
DEV = 259 << 20 | 3
# An event as the kernel prints it, and its fields in the kernel's order (TP_STRUCT__entry).
EVENTS: dict[str, tuple[str, dict[str, int | str]]] = {
    "block_rq_issue": (
        "259,3 WFS 4096 () 8 + 8 be,0,4 [my prog]",
        {"dev": DEV, "sector": 8, "nr_sector": 8, "bytes": 4096, "ioprio": 16388, "rwbs": "WFS"},
    ),
    "block_rq_insert": (
        "259,3 FF 0 () 18446744073709551615 + 0 [x]",
        {"dev": DEV, "sector": NONE, "nr_sector": 0, "bytes": 0, "ioprio": 0, "rwbs": "FF"},
    ),
    "block_rq_complete": (
        "259,3 R () 4294967296 + 1024 none,0,0 [-5]",
        {"dev": DEV, "sector": 1 << 32, "nr_sector": 1024, "error": -5, "ioprio": 0, "rwbs": "R"},
    ),
    "block_bio_complete": (
        "259,3 RA 16 + 8 [0]",
        {"dev": DEV, "sector": 16, "nr_sector": 8, "error": 0, "rwbs": "RA"},
    ),
    "block_bio_queue": ("259,3 W 16 + 8 [fio]", {"dev": DEV, "sector": 16, "nr_sector": 8, "rwbs": "W"}),
    "block_bio_backmerge": ("259,3 W 16 + 8 [fio]", {"dev": DEV, "sector": 16, "nr_sector": 8, "rwbs": "W"}),
    "block_split": ("259,3 W 16 / 2576 [fio]", {"dev": DEV, "sector": 16, "new_sector": 2576, "rwbs": "W"}),
    "block_bio_remap": (
        "259,3 W 16 + 8 <- (253,1) 4112",
        {"dev": DEV, "sector": 16, "nr_sector": 8, "old_dev": 253 << 20 | 1, "old_sector": 4112, "rwbs": "W"},
    ),
    "block_rq_requeue": (
        "259,3 N () 0 + 0 [-16]",
        {"dev": DEV, "sector": 0, "nr_sector": 0, "error": -16, "ioprio": 0, "rwbs": "N"},
    ),
}


def of_ftrace(name: str, value: int | str) -> str:
    """As the option "fields" prints a field (print_fields() in kernel/trace/trace_output.c, Linux 6.4 to 6.18)."""
    if isinstance(value, str):
        return value
    bits = 64 if "sector" in name and name != "nr_sector" else 16 if name == "ioprio" else 32
    signed = value - (1 << bits) if value >= 1 << (bits - 1) and bits > 16 else value
    return f"0x{value % (1 << bits):x} ({signed})"


def of_libtraceevent(_: str, value: int | str) -> str:
    return str(value)


FORMS: dict[str, Callable[[str, int | str], str]] = {"fields": of_ftrace, "raw": of_libtraceevent}


def printed(fields: dict[str, int | str], form: str) -> str:
    return " ".join(f"{name}={FORMS[form](name, value)}" for name, value in fields.items())


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("before", [": ", ":       ", ": [FAILED TO PARSE] "])
@pytest.mark.parametrize("behind", ["", " comm=rwbs=R sector=1 cmd=", " comm=fio cmd=ARRAY[12, 00]", " cmd="])
def test_an_event_field_by_field(event: str, form: str, before: str, behind: str) -> None:
    usual, fields = EVENTS[event]
    head = "  my-prog-10  [001] d..1.   694.429871: "
    expected = _core.parse_block_line(f"{head}{event}: {usual}".encode())
    assert expected is not None
    assert _core.parse_block_line(f"{head}{event}{before}{printed(fields, form)}{behind}".encode()) == expected


@pytest.mark.parametrize("gone", ["sector", "nr_sector", "rwbs"])
def test_an_event_without_a_field_is_not_understood(gone: str) -> None:
    fields = {name: value for name, value in EVENTS["block_rq_issue"][1].items() if name != gone}
    line = f"x-1 [001] ..... 1.000000: block_rq_issue: {printed(fields, 'raw')}".encode()
    assert _core.parse_block_line(line) is None
    assert _core.is_block_line(line)


def test_errors_of_linux_3_have_their_own_name() -> None:
    found = _core.parse_block_line(
        b"x 1 [001] 1.0: block_rq_complete: dev=8388608 sector=8 nr_sector=8 errors=-5 rwbs=W"
    )
    assert found is not None and found[5]["error"] == -5


# Of one I/O each: place, length, rwbs at its begin, rwbs at its end. As Linux 6.18 prints them: an end has no bytes,
# and no FLUSH. A sync without data is two requests, of which the device's flush (FF) has no start.
IOS = (("64", 8, "WS", "WS"), ("9000", 256, "RA", "RA"), ("72", 16, "D", "D"), ("0", 0, "FWS", "WS"))
LETTERS = {"WS": "write", "RA": "read", "D": "discard", "FWS": "flush"}


def text_of(*names: str) -> str:
    lines, us = [], 0
    for sector, number, first, last in IOS:
        flush = number == 0
        steps = [
            ("block_io_start", f"8,0 {first} {number * 512} () {sector} + {number} be,0,4 [fio]"),
            ("block_rq_issue", f"8,0 {'FF' if flush else first} {number * 512} () {sector} + {number} be,0,4 [fio]"),
            (
                "block_rq_complete",
                f"8,0 {'FF' if flush else last} () {NONE if flush else sector} + {number} be,0,4 [0]",
            ),
            ("block_io_done", f"8,0 {'FF' if flush else last} 0 () {sector} + 0 be,0,4 [swapper/1]"),
        ]
        if flush:
            steps += [
                ("block_rq_complete", f"8,0 {last} () {sector} + 0 be,0,4 [0]"),
                ("block_io_done", f"8,0 {last} 0 () {sector} + 0 be,0,4 [swapper/1]"),
            ]
        for name, body in steps:
            us += 10
            lines += [f"fio 10 [001] 5.{us:06d}: block:{name}: {body}\n"] if name in names else []
    return "".join(lines)


def requests_of(path: Path, capfd: Captured) -> tuple[list[dict[str, Any]], str]:
    capfd.readouterr()
    columns = "kind, sector, nr_sectors, complete_ns - issue_ns AS took_ns"
    assert main(["sql", str(path), f"SELECT {columns} FROM requests ORDER BY request_id", "--json"]) == 0
    said = capfd.readouterr()
    return [dict(row) for row in json.loads(said.out)], said.err


@pytest.mark.parametrize(
    ("begin", "end", "took_us"),
    [
        ("block_rq_issue", "block_rq_complete", [10, 10, 10, 10]),
        ("block_rq_issue", "block_io_done", [20, 20, 20, 20]),
        ("block_io_start", "block_rq_complete", [20, 20, 20, 40]),
        ("block_io_start", "block_io_done", [30, 30, 30, 50]),
    ],
)
def test_the_accountings_events_stand_for_others(
    begin: str, end: str, took_us: list[int], tmp_path: Path, capfd: Captured
) -> None:
    path = tmp_path / "a.perf"
    path.write_text(text_of(begin, end))
    found, said = requests_of(path, capfd)
    assert [(r["kind"], r["nr_sectors"], r["took_ns"]) for r in found] == [
        (LETTERS[first], number, us * 1000) for (_, number, first, _), us in zip(IOS, took_us, strict=True)
    ]
    assert ("block_io_start stands for it" in said) == (begin == "block_io_start")
    assert main(["losses", str(path), "--max-loss", "0", "--json"]) == 0
    losses = {one["loss"]: one["count"] for one in json.loads(capfd.readouterr().out)["losses"]}
    assert not losses.keys() & {"requests_incomplete", "events_missing"}
    # The request of a sync without data has no issue of its own.
    assert losses.get("unmatched_complete", 0) == (begin, end).count("block_rq_issue") * (end == "block_rq_complete")


def test_beside_the_issue_the_accountings_events_are_no_steps(tmp_path: Path, capfd: Captured) -> None:
    every, alone = tmp_path / "every.perf", tmp_path / "alone.perf"
    both = ("block_rq_issue", "block_rq_complete")
    every.write_text(text_of(*both, "block_io_start", "block_io_done"))
    alone.write_text(text_of(*both))
    found, said = requests_of(every, capfd)
    assert "stands" not in said
    assert [r for r in found if r["nr_sectors"]] == [r for r in requests_of(alone, capfd)[0] if r["nr_sectors"]]


def test_events_of_a_text_have_their_own_names(tmp_path: Path, capfd: Captured) -> None:
    path = tmp_path / "a.perf"
    path.write_text(text_of("block_io_start", "block_io_done"))
    capfd.readouterr()
    assert main(["events", str(path), "--json"]) == 0
    names = [json.loads(line)["event"] for line in capfd.readouterr().out.splitlines()]
    assert names == ["block_io_start", "block_io_done"] * 4 + ["block_io_done"]


def test_an_io_that_was_retried_in_one_place(tmp_path: Path, capfd: Captured) -> None:
    """The next I/O of a place has its own length, also if the one before was never done."""
    path = tmp_path / "a.perf"
    rows = [("start", 8), ("start", 16), ("done", 0), ("start", 24), ("done", 0)]
    path.write_text(
        "".join(
            f"fio 10 [001] 5.{n:06d}: block:block_io_{what}: 8,0 R {number * 512} () 64 + {number} none,0,0 [fio]\n"
            for n, (what, number) in enumerate(rows)
        )
    )
    found, _ = requests_of(path, capfd)
    assert [r["nr_sectors"] for r in found if r["took_ns"] is not None] == [16, 24]


def test_two_recordings_in_one_text_are_refused(tmp_path: Path, capfd: Captured) -> None:
    path = tmp_path / "a.perf"
    path.write_text(text_of("block_io_start", "block_io_done") * 8000 + text_of("block_rq_issue", "block_rq_complete"))
    capfd.readouterr()
    assert main(["hist", str(path)]) == 1
    *_, last = capfd.readouterr().err.splitlines()
    assert "one by one" in last and "line 72001" in last


@pytest.mark.parametrize("line", ["22554 0 694428317083 type: 2107", "0000581a 00000000 000000a1af27359b type: 2107"])
@pytest.mark.parametrize("command", ["hist", "what", "events", "losses"])
def test_ftrace_without_fields_is_refused_with_the_reason(
    line: str, command: str, tmp_path: Path, capfd: Captured
) -> None:
    path = tmp_path / "trace"
    path.write_text(f"# tracer: nop\n#\n{line}\n\n{line}\n")
    capfd.readouterr()
    assert main([command, str(path)]) != 0
    said = capfd.readouterr()
    assert "options/raw" in said.out + said.err
    assert len((said.out + said.err).splitlines()) == 1


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize(
    ("head", "behind"),
    [
        ("     my-prog-10    [001]   694.429871: (+3)     ", "       "),
        ("     my-prog-10    [001]   694.429871000: (+6110)  ", " "),
        ("  my-prog-10      1.....   694.429871: (+0)     ", " "),
        ("other.dat:          my-prog-10    [001]   694.429871: ", " "),
        ("wb:                 my-prog-10    [001]   694.429871: (+12)    ", " "),
    ],
)
def test_an_event_with_the_time_since_the_last_or_the_recording_before_it(event: str, head: str, behind: str) -> None:
    usual, _ = EVENTS[event]
    expected = _core.parse_block_line(f"  my-prog-10  [001] d..1.   694.429871: {event}: {usual}".encode())
    assert expected is not None
    assert _core.parse_block_line(f"{head}{event}:{behind}{usual}".encode()) == expected


def test_a_name_with_a_colon_is_a_name() -> None:
    found = _core.parse_block_line(b"postgres: check-10  [001]  694.429871: block_bio_queue: 259,3 W 16 + 8 [x]")
    assert found is not None and found[3] == "postgres: check"


@pytest.mark.parametrize("time", ["37669072446043:", "37669072446043: (+2)    ", "14507799156982:"])
@pytest.mark.parametrize("cpu", ["[001]", "[001] d..1. "])
def test_times_that_are_counts_of_a_clock_are_refused(time: str, cpu: str, tmp_path: Path, capfd: Captured) -> None:
    path = tmp_path / "a.txt"
    line = f"    fio-24174 {cpu}{time} block_rq_issue: 7,5 WS 8192 () 237744 + 16 [fio]\n"
    path.write_text("cpus=2\n" + line * 3)
    assert main(["hist", str(path)]) == 1
    said = capfd.readouterr().err
    assert "times without a unit" in said and "-C mono" in said and said.count("\n") == 1


def test_events_without_times_are_refused_with_the_option_that_prints_them(tmp_path: Path, capfd: Captured) -> None:
    path = tmp_path / "a.txt"
    path.write_text("    fio 15729 [000]   block:block_rq_insert: 254,0 RA 4096 () 25356800 + 8 0x2,0,4 [fio]\n" * 3)
    assert main(["hist", str(path)]) == 1
    said = capfd.readouterr().err
    assert "-F +time" in said and said.count("\n") == 1
