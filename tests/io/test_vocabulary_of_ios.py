# SPDX-License-Identifier: MIT
"""The filters mean the same on every command."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable

import pytest
from tests.lib.recorded import RunOf

from opline_analyses.cli import main
from opline_analyses.command_map import GROUPS

COMMANDS = [name for _, group in GROUPS for name, _, _ in group]
Printed = Callable[..., str]


WINDOWS = ("--since", "1", "--until", "1.5"), ("--window", "1:1.5"), ("--window", "500ms", "--at", "1.25")


@pytest.mark.parametrize(
    "command", ["log", "requests", "hist --csv", "heatmap --csv", "ops --json", "stages", "csv", "why --csv"]
)
def test_a_window_has_three_forms(run_of: RunOf, printed: Printed, command: str) -> None:
    path = run_of("fdatasync-2-queues").path
    name, *options = command.split()
    whole, *forms = (printed(name, path, *options, *words) for words in ((), *WINDOWS))
    assert len(set(forms)) == 1 and forms[0] != whole


@pytest.mark.parametrize("words", [("--window", "1:2", "--since", "1"), ("--window", "1:2", "--until", "2")])
def test_two_forms_of_a_window_at_once_are_refused(run_of: RunOf, words: tuple[str, ...]) -> None:
    path = str(run_of("demo-qd4").path)
    assert [main([name, path, *words]) for name in ("log", "ops", "stages")] == [2, 2, 2]


def test_a_latency_without_a_unit_is_in_us_everywhere(run_of: RunOf, printed: Printed) -> None:
    path = run_of("demo-qd4").path
    counted = {
        len(printed("ops", path, "--json", "--latency", text).splitlines()) for text in (">500", ">500us", ">0.5ms")
    }
    (number,) = counted
    slow = [op for op in run_of("demo-qd4").rows("ops") if op["complete"] and op["latency_ns"] > 500_000]
    assert number == len(slow) > 0
    logged = printed("log", path, "--of", "ops", "--latency", ">500", "--json")
    assert sorted(json.loads(line)["op_id"] for line in logged.splitlines()) == sorted(op["op_id"] for op in slow)
    rows = json.loads(printed("stages", path, "--latency", ">500", "--json"))
    assert rows["ops"] == len(slow)


def test_the_slowest_ops_are_the_same_on_each_command(run_of: RunOf, printed: Printed) -> None:
    path = run_of("demo-qd4").path
    listed = [json.loads(line) for line in printed("ops", path, "--slowest", "7", "--json").splitlines()]
    rows = list(csv.DictReader(io.StringIO(printed("csv", path, "--slowest", "7"))))
    assert [op["op_id"] for op in listed] == [int(row["op_id"]) for row in rows]
    found = json.loads(printed("stages", path, "--slowest", "7", "--json"))
    assert found["ops"] == 7 == len(listed)


def test_ops_as_csv_are_those_of_opline_csv(run_of: RunOf, printed: Printed) -> None:
    path = run_of("demo-qd4").path
    for words in ((), ("--class", "write", "--limit", "9"), ("--slowest", "3")):
        assert printed("ops", path, "--csv", *words) == printed("csv", path, "--all", *words)


def test_requests_by_latency_and_a_table_with_some_rows(run_of: RunOf, printed: Printed) -> None:
    path = run_of("fio-libaio-qd16-hdd-bfq").path
    rows = list(csv.DictReader(io.StringIO(printed("requests", path, "--latency", ">10ms", "--csv"))))
    slow = [
        r
        for r in run_of("fio-libaio-qd16-hdd-bfq").rows("requests")
        if (r["complete_ns"] or 0) - (r["issue_ns"] or 0) > 10_000_000
    ]
    assert sorted(int(row["request_id"]) for row in rows) == sorted(r["request_id"] for r in slow) and rows
    table = list(csv.DictReader(io.StringIO(printed("stages", path, "--sort", "share", "--limit", "2", "--csv"))))
    every = list(csv.DictReader(io.StringIO(printed("stages", path, "--sort", "share", "--csv"))))
    assert table == [*every[:2], *every[-2:]], "the sums stay"
