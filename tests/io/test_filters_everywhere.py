# SPDX-License-Identifier: MIT
"""The filters of the block commands on `sql`, `losses` and `interference`: the same rows as everywhere else."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.lib.recorded import RunOf

from opline_analyses.cli import main

Printed = Callable[..., str]
COUNT = "SELECT count(*) AS n FROM {}"


@pytest.mark.parametrize(
    "filters",
    [
        ("-d", "8:0", "-i", "writes"),
        ("--latency", ">5ms"),
        ("-i", "reads", "--size", "4k", "--window", "1:2"),
        ("--of", "bios", "-i", "reads"),
        ("--of", "ops", "--latency", ">5ms"),
        ("--of", "stages", "--stage", "D2C"),
        ("-Q", "--latency", ">1ms"),
    ],
    ids=" ".join,
)
def test_sql_and_losses_mean_the_rows_that_hist_counts(
    run_of: RunOf, printed: Printed, filters: tuple[str, ...]
) -> None:
    path = run_of("fio-libaio-qd16-hdd-bfq").path
    counted = json.loads(printed("hist", path, "--json", *filters))["intervals"]
    expected = sum(group["count"] for interval in counted for group in interval["groups"])
    table = filters[1] if filters[0] == "--of" else "requests"
    (row,) = csv.DictReader(io.StringIO(printed("sql", path, "--csv", COUNT.format(table), *filters)))
    assert 0 < expected == int(row["n"])
    chosen = json.loads(printed("losses", path, "--json", *filters))["chosen"]
    assert chosen["counted"] == expected and set(chosen["left_out"]) <= {"without insert"}


def test_sql_with_filters_is_as_closed_as_without(run_of: RunOf, tmp_path: Path) -> None:
    path = run_of("fio-libaio-qd16-hdd-bfq").path
    for query in (f"COPY requests TO '{tmp_path}/x'", "CREATE TABLE x AS SELECT 1", "DROP VIEW requests"):
        assert main(["sql", str(path), query, "-i", "reads"]) == 1
    assert not list(tmp_path.iterdir())


def test_losses_of_a_window(run_of: RunOf, printed: Printed) -> None:
    """What was discarded outside of it is not shown; what can't be measured is, by reason."""
    path = run_of("discard-tiny-buffers").path
    whole = json.loads(printed("losses", path, "--json"))
    assert whole["discarded"] and "chosen" not in whole
    last = max(gap["end_ns"] for gap in whole["discarded"])
    after = json.loads(printed("losses", path, "--json", "--window", f"{last + 1}:"))
    assert after["discarded"] == []
    text = printed("losses", path, "-i", "discards")
    assert text.startswith("meant by the options: ") and " of which can be measured\n" in text


def test_a_window_that_holds_nothing_says_so(run_of: RunOf, capfd: pytest.CaptureFixture[str]) -> None:
    path = str(run_of("fio-libaio-qd16-hdd-bfq").path)
    assert main(["sql", path, COUNT.format("requests"), "--window", "900:901"]) == 0
    assert "nothing to count: no I/O of the run's" in capfd.readouterr().err


def test_requests_of_an_op_by_how_long_they_waited(run_of: RunOf, printed: Printed) -> None:
    path = run_of("app-sync-2m-nvme-split").path
    order = {}
    for sort in ("request", "waited", "served"):
        (op,) = map(json.loads, printed("interference", path, "--slowest", "1", "--sort", sort, "--json").splitlines())
        order[sort] = op["requests"]
    assert len(order["request"]) > 2
    assert [r["request_id"] for r in order["request"]] == sorted(r["request_id"] for r in order["request"])
    for sort, begin, end in (("waited", "queue_ns", "issue_ns"), ("served", "issue_ns", "complete_ns")):
        lengths = [r[end] - r[begin] for r in order[sort]]
        assert lengths == sorted(lengths, reverse=True)
    first = json.loads(printed("interference", path, "--slowest", "1", "--sort", "served", "--limit", "1", "--json"))
    assert first["requests"] == order["served"][:1]
