# SPDX-License-Identifier: MIT
"""The one table of results: the same rows as text, CSV, JSON, Arrow and HTML; and the screen that a text goes to."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from tests.lib.recorded import RunOf

from opline.errors import OplineError
from opline_analyses.base.result_table import (
    Column,
    ResultTable,
    identifier,
    label,
    of_items,
    rendered,
    share,
    text,
    time,
)
from opline_analyses.base.screen import PAPER, Screen, page

COLUMNS = (label("stage", "stage (us)"), Column("count", "count"), time("mean_ns", "mean", 1), share(), text("kind"))
ROWS = [("reply", 3, 2500.0, 0.25, "wait"), ("D2C", 9, 700.0, 0.745, None), ("x", 1, None, 0.005, "work")]
SUM = ("latency", 9, 10_000.0, 1.0, None)


def table() -> ResultTable:
    return ResultTable(COLUMNS, [*ROWS, SUM], totals=1)


def test_every_form_has_the_same_values() -> None:
    expected = [dict(zip(("stage", "count", "mean_ns", "share", "kind"), row, strict=True)) for row in (*ROWS, SUM)]
    assert list(table().items()) == json.loads("".join(table().json())) == expected
    assert table().arrow().to_pylist() == expected
    read = list(csv.DictReader(io.StringIO("".join(table().csv()))))
    assert read == [{key: "" if value is None else str(value) for key, value in row.items()} for row in expected]
    assert "".join(table().csv(header=False)).splitlines() == "".join(table().csv()).splitlines()[1:]
    assert table().text().splitlines() == [
        "stage (us)  count  mean  share%",
        "reply           3   2.5    25.0",
        "D2C             9   0.7    74.5",
        "x               1           0.5",
        "latency         9  10.0   100.0",
    ]
    assert table()._repr_html_().count("<tr>") == 5 and "<td>74.5</td>" in table()._repr_html_()
    assert [c.unit for c in COLUMNS] == ["", "", "ns", "of 1", ""]


def test_rows_of_a_function_are_not_kept_where_nothing_changes_them() -> None:
    asked = []

    def rows() -> list[tuple[object, ...]]:
        asked.append("rows")
        return [*ROWS]

    long = ResultTable(COLUMNS, rows)
    assert long.sorted(None).first(None) is long
    assert not asked
    assert len(list(long.first(None).items())) == len(list(long.items())) == 3
    assert asked == ["rows", "rows"]


def test_sums_stay_at_the_end_and_unknown_ones_are_last() -> None:
    assert [row[0] for row in table().sorted("mean_ns").rows] == ["reply", "D2C", "x", "latency"]
    assert [row[0] for row in table().sorted("count").rows] == ["D2C", "reply", "x", "latency"]
    assert [row[0] for row in table().sorted("stage").rows] == ["D2C", "reply", "x", "latency"]
    assert table().sorted(None).rows == table().rows
    with pytest.raises(OplineError, match=r"no column p99\. Columns: stage, count, mean_ns, share, kind"):
        table().sorted("p99")


def test_rows_that_come_anew_come_each_time() -> None:
    asked = []

    def items() -> list[dict[str, int]]:
        asked.append(1)
        return [{"n": 1}, {"n": 2}]

    found = of_items((Column("n", "n"),), items, records=lambda t: t.items())
    assert asked == []
    assert "".join(found.json()) == '{"n": 1}\n{"n": 2}\n' and "".join(found.csv()) == "n\n1\n2\n"
    assert len(asked) == 2 and found.column("n") == [1, 2] and len(found) == 2


def test_names_are_identifiers_and_no_two_are_the_same() -> None:
    assert identifier("begin → dequeued") == "begin_to_dequeued"
    assert identifier("client queue", ("client_queue", "client_queue_2")) == "client_queue_3"
    assert identifier("→") == "to" and identifier("--") == "unnamed" and identifier("2nd").isidentifier()


def test_a_terminal_gets_weight_and_a_name_can_not_speak_to_it() -> None:
    found = ResultTable(COLUMNS, [("\x1b[31mred", 1, 1.0, 0.001, None), SUM], totals=1)
    plain, weighed = list(found.lines(PAPER)), list(found.lines(Screen(weighs=True)))
    assert plain[1].startswith("\\x1b[31mred") and not any("\x1b" in line for line in plain)
    assert weighed == [f"\x1b[1m{plain[0]}\x1b[0m", f"\x1b[2m{plain[1]}\x1b[0m", f"\x1b[1m{plain[2]}\x1b[0m"]
    assert list(rendered(["a\x1bb"], Screen(weighs=True))) == ["a\\x1bb"]


def on_a_terminal(argv: list[str], columns: int, **environment: str) -> str:
    """What a command writes to a terminal so wide."""
    import fcntl
    import struct
    import termios

    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 200, columns, 0, 0))
    env = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "PAGER")} | {"TERM": "xterm"} | environment
    child = subprocess.Popen(
        [sys.executable, "-m", "opline_analyses", *argv], stdin=slave, stdout=slave, stderr=subprocess.PIPE, env=env
    )
    os.close(slave)
    found = b""
    while True:
        try:
            piece = os.read(master, 65536)
        except OSError:  # EIO: nobody has the other end any more
            break
        if not piece:
            break
        found += piece
    os.close(master)
    _, said = child.communicate()
    assert child.returncode == 0, said
    return found.decode().replace("\r\n", "\n")


def test_a_table_is_as_wide_as_the_terminal(run_of: RunOf) -> None:
    run = str(run_of("demo-qd4").path)
    wide, narrow = (on_a_terminal(["graph", run], columns, NO_COLOR="1") for columns in (200, 60))
    assert "~" in narrow and "~" not in wide and "\x1b" not in wide
    assert max(map(len, narrow.splitlines())) <= 60
    weighed = on_a_terminal(["graph", run], 200)
    assert weighed.startswith("\x1b[1mfrom (us)")


def test_a_pager_shows_what_is_longer_than_the_screen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    got = tmp_path / "got"
    pager = tmp_path / "pager"
    pager.write_text(f'#!/bin/sh\nprintf %s "$LESSSECURE" > {got}\ncat >> {got}\n')
    pager.chmod(0o755)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    lines, wanted = [b"a\n", b"b\n", b"c\n"], {"PAGER": str(pager)}
    assert list(page(iter(lines), PAPER, wanted)) == lines
    assert list(page(iter(lines), Screen(80, 4), wanted)) == lines, "it fits"
    assert list(page(iter(lines), Screen(80, 2), {"PAGER": "cat"})) == lines
    assert list(page(iter(lines), Screen(80, 2), {"PAGER": "/nowhere/less"})) == lines
    assert not got.exists()
    assert list(page(iter(lines), Screen(80, 2), wanted)) == [] and got.read_text() == "1a\nb\nc\n"


def test_rows_of_stages_are_sorted_as_asked(run_of: RunOf, capfd: pytest.CaptureFixture[str]) -> None:
    from opline_analyses.cli import main

    run = str(run_of("demo-qd4").path)
    capfd.readouterr()
    assert main(["stages", run, "--sort", "p99_ns", "--csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capfd.readouterr().out)))
    values = [int(row["p99_ns"]) for row in rows[:-2]]
    assert values == sorted(values, reverse=True) and [row["stage"] for row in rows[-2:]] == ["unattributed", "latency"]
    assert main(["stages", run, "--sort", "nothing"]) == 2
    assert "There is no column nothing. Columns: stage, kind" in capfd.readouterr().err
