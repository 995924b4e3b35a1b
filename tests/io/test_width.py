# SPDX-License-Identifier: MIT
"""Tables fit a terminal of 80 columns, and the same option orders the rows of each command that lists some."""

from __future__ import annotations

import json

import pytest
from tests.lib.recorded import RunOf

from opline_analyses.base.text import fitted
from opline_analyses.cli import main

TABLES = (
    "requests", "requests -i flushes", "hist", "hist 0.1 --per device", "iostat", "iostat 0.1 -x",
    "iostat --style solaris", "log", "outliers 1 1", "bitesize", "heatmap", "burst", "btt",
    "stages", "stages --states", "graph", "coverage", "why", "losses", "ops --slowest 2",
)  # fmt: skip
SHARED = ("ptr-buf-fsync1-ext4", "ops --slowest 2")  # a batch's requests are marked, and of several threads


@pytest.mark.parametrize("name", ["demo-qd4", "demo-kernel", "ptr-buf-fsync1-ext4", "app-libaio-qd8-dmcrypt"])
def test_tables_fit_80_columns(
    run_of: RunOf, name: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    path = str(run_of(name).path)
    has_states = name != "demo-qd4"
    wanted = [line for line in TABLES if (name, line) != SHARED and (has_states or "--states" not in line)]
    for words in map(str.split, wanted):
        capfd.readouterr()
        assert main([words[0], path, *words[1:]]) == 0, words
        lines = [
            line
            for line in capfd.readouterr().out.splitlines()
            if path not in line and not line.startswith("  opline ")
        ]  # commands to type
        assert lines, words
        assert max(map(len, lines)) <= 80, (words, max(lines, key=len))


def test_a_difference_of_two_graphs_fits(run_of: RunOf, capfd: pytest.CaptureFixture[str]) -> None:
    runs = [str(run_of(name).path) for name in ("demo-qd4", "demo-kernel")]
    capfd.readouterr()
    assert main(["graph", "--diff", *runs]) == 0
    assert max(map(len, capfd.readouterr().out.splitlines())) <= 80


def test_sentences_are_wrapped_and_nothing_else() -> None:
    row, command = f"{'stage':60} 12.5 13.75 100.0" + " 1", "  opline ops " + "x" * 80
    sentence = "  pass  " + "word " * 30
    lines = list(fitted([row.ljust(90) + "7", command, sentence.rstrip()]))
    assert lines[:2] == [row.ljust(90) + "7", command]
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
