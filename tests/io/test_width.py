# SPDX-License-Identifier: MIT
"""Tables fit a terminal of 80 columns, and the same option orders the rows of each command that lists some."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.lib.build_run import P, RunBuilder
from tests.lib.io_runs import io_run
from tests.lib.recorded import NAMES, RunOf

from opline_analyses.base.result_table import ResultTable, label, rendered, time
from opline_analyses.base.screen import Screen
from opline_analyses.base.text import fitted, shortened
from opline_analyses.cli import main

TABLES = (
    "requests", "requests -i flushes", "hist", "hist 0.1 --per device", "iostat", "iostat --style solaris",
    "log", "outliers 1 1", "bitesize", "heatmap", "burst", "btt",
    "stages", "stages --states", "graph", "coverage", "why", "losses", "ops --slowest 2", "ops --slowest 2 --states",
)  # fmt: skip
#: Asked for more columns than 80 have room for; sysstat's has more still.
WIDE = "iostat 0.1 -x"


@pytest.mark.parametrize("name", ["demo-qd4", "demo-kernel", "ptr-buf-fsync1-ext4", "app-libaio-qd8-dmcrypt"])
def test_tables_fit_80_columns(
    run_of: RunOf, name: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    path = str(run_of(name).path)
    has_states = name != "demo-qd4"
    wanted = [(80, line) for line in TABLES if has_states or "--states" not in line]
    for columns, line in [*wanted, (120, WIDE)]:
        words = line.split()
        monkeypatch.setenv("COLUMNS", str(columns))
        capfd.readouterr()
        assert main([words[0], path, *words[1:]]) == 0, words
        lines = [
            line
            for line in capfd.readouterr().out.splitlines()
            if path not in line and not line.startswith("  opline ")
        ]  # commands to type
        assert lines, words
        assert max(map(len, lines)) <= columns, (words, max(lines, key=len))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("ctf-blue-v2-qd1", "ops --limit 100000 --unfold"),  # stages, points and threads with long names
        ("ptr-buf-fsync1-ext4", "ops --limit 100000 --unfold"),  # a batch's requests are marked, and of several threads
        ("fio-libaio-qd16-hdd-bfq", "ops --states --limit 300"),
        ("fio-libaio-qd16-hdd-bfq", "stages"),
        ("fdatasync-2-queues", "stages"),
        ("ctf-blue-v2-qd1", "graph"),
        ("ctf-blue-v2-qd1", "coverage"),
        ("ctf-merged", "losses"),
        ("ctf-merged", "ops --limit 100000 --unfold"),
        ("ctf-deb12-uprobes-qd16", "log --of stages --limit 300"),
    ],
)
def test_lists_of_ops_fit_and_say_everything(
    run_of: RunOf, name: str, words: str, capfd: pytest.CaptureFixture[str]
) -> None:
    capfd.readouterr()
    command, *others = words.split()
    assert main([command, str(run_of(name).path), *others]) == 0
    lines = [line for line in capfd.readouterr().out.splitlines() if not line.startswith("  opline ")]
    assert len(lines) > 5 and max(map(len, lines)) <= 80, max(lines, key=len)
    if words.startswith("ops --limit 100000"):  # each op's points are there, with their threads
        threads = {f"{row['comm']}:{row['tid']}" for row in run_of(name).rows("transitions") if row["tid"] is not None}
        text = "\n".join(lines)
        assert threads and all(thread in text for thread in threads)


@pytest.mark.parametrize("name", NAMES)
def test_lists_of_requests_and_bursts_fit(run_of: RunOf, name: str, capfd: pytest.CaptureFixture[str]) -> None:
    """With marks, sectors and times of any length; a request is a row, and what is special about it is said."""
    run = run_of(name)
    for command in ("requests", "burst"):
        capfd.readouterr()
        assert main([command, str(run.path)]) == 0
        lines = [line for line in capfd.readouterr().out.splitlines() if str(run.path) not in line]
        assert max(map(len, lines)) <= 80, max(lines, key=len)
        if command == "requests":
            rows = run.rows("requests")
            assert len([line for line in lines[1:] if not line.startswith(" " * 40)]) == len(rows)
            special = sum(bool(row["ambiguous"]) for row in rows)
            assert sum(line.count("ambiguous") for line in lines) == special


def test_sizes_are_in_kib_where_there_is_no_room(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    at = {"q": 10**9, "g": 10**9 + 100, "d": 10**9 + 200, "c": 10**9 + 123_456_789}
    ios = [{**at, "sectors": n, "sector": 10**9 + n} for n in (1, 8, 4194303, 4194304)]
    run = io_run(tmp_path / "run", ios, seconds=4000)
    assert main(["requests", str(run)]) == 0
    head, *lines = capfd.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80 and head.split()[5] == "KiB", head
    assert [line.split()[4] for line in lines] == ["0.5", "4", "2097151.5", "2097152"]


def test_an_object_of_a_long_name(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Shown with its begin and its end, and whole in JSON."""
    name = "rbd_data.10926b8b4567." + "0123456789abcdef" * 8
    run = RunBuilder()
    run.op([P("begin", 0), P("end", 1000)], obj=name)
    path = str(run.write(tmp_path / "run"))
    assert main(["ops", path]) == 0
    text = capfd.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    (word,) = [word for word in text.split() if "~" in word]
    head, tail = word.split("~")
    assert name.startswith(head) and name.endswith(tail) and len(word) > 70
    assert main(["ops", path, "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["object"] == name


def test_names_give_way_and_numbers_do_not() -> None:
    columns = (label("stage", "stage"), label("thread", "thread"), time("ns", "us"))
    table = ResultTable(
        columns, [("a stage of a name that is long", "kworker/1:1H:44", 123456), ("short", "fio:7", 1000)], gap=" "
    )
    for width in (60, 40, 30, 24):
        lines = list(table.lines(Screen(width)))
        assert min(width, 54) - 1 <= max(map(len, lines)) <= width and lines[1].endswith(" 123.456")
        assert [line.split()[-2:] for line in lines[2:]] == [["fio:7", "1.000"]]
        assert ("~" in lines[1]) == (width < 54)
    assert shortened("kworker/1:1H:44", 12) == "kworke~1H:44"
    assert shortened("fio:7", 1) == "f~7", "never less than three"


def test_a_difference_of_two_graphs_fits(run_of: RunOf, capfd: pytest.CaptureFixture[str]) -> None:
    runs = [str(run_of(name).path) for name in ("demo-qd4", "demo-kernel")]
    capfd.readouterr()
    assert main(["graph", "--diff", *runs]) == 0
    assert max(map(len, capfd.readouterr().out.splitlines())) <= 80


def test_sentences_are_wrapped_and_nothing_else() -> None:
    row, command = ResultTable((time("ns", "x" * 90),), [(7,)]), "  opline ops " + "x" * 80
    sentence = "  pass  " + "word " * 30
    lines = list(rendered(fitted([row, command, sentence.rstrip()])))
    assert [lines[0], lines[2]] == ["x" * 90, command] and lines.pop(1).endswith(" 0.007")
    assert (
        max(map(len, lines[2:])) <= 80 and " ".join(" ".join(lines[2:]).split()) == sentence.replace("  ", " ").strip()
    )
    assert [len(line) - len(line.lstrip()) for line in lines[2:]] == [2, 6, 6]


def test_requests_and_ops_are_sorted_as_asked(run_of: RunOf, capfd: pytest.CaptureFixture[str]) -> None:
    path = str(run_of("demo-qd4").path)

    def listed(*words: str) -> list[dict[str, int]]:
        capfd.readouterr()
        assert main([words[0], path, *words[1:], "--json"]) == 0
        return [json.loads(line) for line in capfd.readouterr().out.splitlines()]

    sizes = [row["bytes"] for row in listed("requests", "--sort", "size")]
    assert sizes == sorted(sizes, reverse=True)
    assert listed("requests", "--sort", "d2c", "--limit", "5") == listed("requests", "--by", "d2c", "--limit", "5")
    assert listed("ops", "--sort", "latency", "--limit", "3") == listed("ops", "--slowest", "3")
    ends = [row["end_ns"] for row in listed("ops", "--sort", "end", "--limit", "50")]
    assert ends == sorted(ends)
    assert main(["ops", path, "--sort", "end", "--slowest", "3"]) == 2
    assert "one of them" in capfd.readouterr().err
