# SPDX-License-Identifier: MIT
"""`opline events --json` and `--csv`: every field's value as babeltrace2's library has it, the same members in both,
well-formed whatever is in them; and the filters, against the rows themselves.
"""

from __future__ import annotations

import csv
import io
import json
import shutil
import sys
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import bt2
import pytest

from opline_analyses.cli import main

csv.field_size_limit(sys.maxsize)
Trace = Callable[[str], Path]
Said = Callable[..., str]
MEMBERS = ["ts_ns", "host", "channel", "cpu", "event", "comm", "pid", "tid", "context", "fields", "lost"]


@pytest.fixture
def said(capfd: pytest.CaptureFixture[str]) -> Said:
    """What `opline events` prints."""

    def run(*words: str | Path) -> str:
        capfd.readouterr()
        assert main(["events", *map(str, words)]) == 0
        return capfd.readouterr().out

    return run


def objects(text: str) -> list[dict[str, Any]]:
    def strict(word: str) -> None:
        raise AssertionError(f"{word} is no JSON")

    return [json.loads(line, parse_constant=strict) for line in text.splitlines()]


def as_cell(value: Any) -> str:
    return "" if value is None else str(value) if isinstance(value, (str, int)) else json.dumps(value)


def value_of(field: Any) -> Any:
    """A field's value; None of a compound one."""
    if isinstance(field, (bt2._StructureFieldConst, bt2._ArrayFieldConst, bt2._VariantFieldConst)):
        return None
    if isinstance(field, bt2._StringFieldConst):
        return str(field)
    return float(field) if isinstance(field, bt2._RealFieldConst) else int(field)


@pytest.mark.parametrize("name", ["app-sync-2m-nvme-split", "demo-kernel"])
def test_each_value_is_the_librarys(trace: Trace, said: Said, name: str) -> None:
    folder = trace(name)
    expected = [
        (m.event.name, {k: value_of(v) for k, v in m.event.payload_field.items()})
        for m in bt2.TraceCollectionMessageIterator(str(folder))
        if isinstance(m, bt2._EventMessageConst)
    ]
    for reader in ("native", "bt2"):
        found = objects(said(folder, "--json", "--reader", reader))
        ours = [(row["event"], row["fields"]) for row in found]
        assert sorted(map(repr, ours)) == sorted(map(repr, expected)), reader
        assert all(list(row) == MEMBERS for row in found)


@pytest.mark.parametrize("name", ["demo-kernel", "discard-tiny-buffers"])
def test_csv_has_the_members_of_json_and_the_order_of_the_lines(trace: Trace, said: Said, name: str) -> None:
    found = objects(said(trace(name), "--json"))
    rows = list(csv.reader(io.StringIO(said(trace(name), "--csv"), newline="")))
    assert rows[0] == MEMBERS
    assert rows[1:] == [[as_cell(value) for value in row.values()] for row in found]
    lines = said(trace(name)).splitlines()
    told = [line if line.startswith("#") else line.split(" ", 1)[0] for line in lines]
    assert len(told) == len(found)
    for line, row in zip(told, found, strict=True):
        if row["lost"] is None:
            assert line == str(row["ts_ns"])
            continue
        lost = row["lost"]
        assert row["event"] is None and line.startswith(f"# {lost['count'] or 0} {lost['what']}")
        assert line.endswith(f"from {row['ts_ns']} to {lost['end_ns']}")
    assert any(row["lost"] for row in found) == (name == "discard-tiny-buffers")


EVIL = 'a,"b\x1b[2J\u202e=\x00\\é'


def test_whatever_a_field_holds(tmp_path: Path, said: Said, capfd: pytest.CaptureFixture[str]) -> None:
    """A thread's name with a comma, a quote, what a terminal obeys, and bytes that are no UTF-8."""
    text = tmp_path / "trace.txt"
    line = " 7 [001] 9.000001: block:block_rq_issue: 8,0 R 0 () 8 + 8 [x]\n"
    text.write_bytes(EVIL.encode() + b"\xff" + line.encode() + b"=1+1" + line.encode())
    whole = objects(said(text, "--json"))
    assert [row["comm"] for row in whole] == [f"{EVIL}\\xff", "=1+1"]
    raw = said(text, "--json")
    assert "\x1b" not in raw and "\u202e" not in raw and "\x00" not in raw and len(raw.splitlines()) == 2
    rows = list(csv.DictReader(io.StringIO(said(text, "--csv"), newline="")))
    assert [row["comm"] for row in rows] == [row["comm"] for row in whole]
    assert [json.loads(row["fields"]) for row in rows] == [row["fields"] for row in whole]
    assert main(["events", str(text), "--csv", "--safe-cells", "-o", str(tmp_path / "safe.csv")]) == 0
    with (tmp_path / "safe.csv").open(newline="", encoding="utf-8") as safe:
        assert [row["comm"] for row in csv.DictReader(safe)][1] == "'=1+1"
    capfd.readouterr()


def test_doubles_and_texts_are_exact(trace: Trace, said: Said) -> None:
    """What tests/ust_app/kinds.c emits; babeltrace2 2.0.4 itself shows an older text where one is empty."""
    found = objects(said(trace("kinds-ctf2") / "lttng-ctf1", "--json", "--names", "kinds:all"))
    texts = ("", "a", "seven", "eight-888", "a longer text than eight")
    for n, fields in enumerate(row["fields"] for row in found):
        assert (fields["f"], fields["d"], fields["text"], fields["numbers"]) == (n / 2, n / 4, texts[n % 5], None)
        assert fields["u64"] == 0xFEDCBA9876543210 + n
    assert '"f": 1.0, "d": 0.5, "text": "seven"' in said(trace("kinds-ctf2") / "lttng-ctf1", "--json", "--limit", "90")


def numbers_of(rows: list[dict[str, Any]], name: str) -> list[int]:
    return sorted({row["fields"][name] for row in rows if name in row["fields"]})


@pytest.mark.parametrize("name", ["demo-kernel", "app-libaio-qd8-dmlinear"])
def test_filters_mean_what_the_rows_say(trace: Trace, said: Said, name: str) -> None:
    """By device, process, thread and name, alone and together; what does not say it is not meant."""
    folder = trace(name)
    every = objects(said(folder, "--json"))
    tid = next(row["tid"] for row in every if row["comm"] and row["comm"].startswith(("demo-work", "lab")))
    pid = next(row["pid"] for row in every if row["pid"] is not None)
    dev = numbers_of([row for row in every if row["event"].endswith("block_rq_issue")], "dev")[0]
    number, glob = f"{dev >> 20}:{dev & 0xFFFFF}", "*e*-*"

    def on(row: dict[str, Any], numbers: Callable[[int], bool]) -> bool:
        devices = [row["fields"][name] for name in ("dev", "old_dev") if name in row["fields"]]
        return "dev" in row["fields"] and any(map(numbers, devices))

    wanted: dict[tuple[str, ...], Callable[[dict[str, Any]], bool]] = {
        ("--tid", str(tid)): lambda row: row["tid"] == tid,
        ("-p", str(pid)): lambda row: row["pid"] == pid,
        ("-n", glob): lambda row: row["comm"] is not None and fnmatchcase(row["comm"], glob),
        ("-n", glob, "-n", "fio"): lambda row: (
            row["comm"] is not None and (fnmatchcase(row["comm"], glob) or row["comm"] == "fio")
        ),
        ("-d", number): lambda row: on(row, lambda d: d == dev),
        ("-d", f"!{number}"): lambda row: "dev" in row["fields"] and not on(row, lambda d: d == dev),
        ("-m", str(dev >> 20)): lambda row: on(row, lambda d: d >> 20 == dev >> 20),
        ("-d", number, "--tid", str(tid), "--names", "*rq*"): lambda row: (
            on(row, lambda d: d == dev) and row["tid"] == tid and "rq" in row["event"]
        ),
    }
    for words, meant in wanted.items():
        for reader in ("native", "bt2"):
            found = objects(said(folder, "--json", "--reader", reader, *words))
            assert found == [row for row in every if meant(row)], words
        assert len(said(folder, *words).splitlines()) == len(found)
    assert 0 < len([row for row in every if row["tid"] == tid]) < len(every)


def test_a_window_is_since_and_until(trace: Trace, said: Said) -> None:
    folder = trace("demo-qd4")
    first = objects(said(folder, "--json", "--limit", "1"))[0]["ts_ns"]
    window = said(folder, "--since", "0.6", "--until", "0.61")
    assert len(window.splitlines()) > 100
    for words in (("0.6:0.61",), ("10ms", "--at", "0.605"), ("10ms", "--at", str(first + 605_000_000).zfill(10))):
        assert said(folder, "--window", *words) == window


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("--window", "900:901"), 0, "the options select no event in the trace's 0.883107 s"),
        (("-p", "1"), 0, "the options select no event in the trace's 0.883107 s"),
        (("-d", "sdx"), 2, "No device sdx: the recording has loop0, vda, zram0, loop1"),
        (("--window", "1:2", "--since", "1"), 2, "leave out either"),
        (("--window", "10ms"), 2, "--at T, the middle"),
        (("--since", "x"), 2, "--since x: not a time"),
    ],
)
def test_what_means_nothing_is_said(
    trace: Trace, capfd: pytest.CaptureFixture[str], words: tuple[str, ...], status: int, said: str
) -> None:
    assert main(["events", str(trace("demo-qd4")), *words]) == status
    out, err = capfd.readouterr()
    assert said in err and len(err.splitlines()) == 1 and out == ""


def test_of_a_partition_it_is_said_that_events_name_its_disk(
    trace: Trace, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    copy = shutil.copytree(trace("demo-qd4"), tmp_path / "demo")
    devices = [
        {"name": "loop0", "dev": 7 << 20, "parent": None},
        {"name": "loop0p1", "dev": 259 << 20, "parent": "loop0"},
    ]
    for known in copy.rglob("recording.json"):
        known.write_text(json.dumps({"schema": "opline-recording", "devices": devices}))
    for words, told in (("-d", "loop0p1"), True), (("-d", "!259:0"), True), (("-d", "loop0"), False):
        assert main(["events", str(copy), "--limit", "1", *words]) == 0
        note = "loop0p1 is a partition: few events name it, most its disk and a sector of that (-d loop0)."
        assert (note in capfd.readouterr().err) is told


def test_the_file_is_there_when_it_is_complete(trace: Trace, said: Said, tmp_path: Path) -> None:
    out = tmp_path / "events.json"
    assert said(trace("demo-qd4"), "--json", "--limit", "1009", "-o", out) == ""
    assert len(objects(out.read_text())) == 1009 and list(tmp_path.iterdir()) == [out]
