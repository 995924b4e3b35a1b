# SPDX-License-Identifier: MIT
"""The filters of the block commands on `sql`, `losses` and `interference`: the same rows as everywhere else."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.lib.io_runs import SDA, SDB, io_run
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
    assert text.startswith("selected: ") and "; opline can measure " in text


def test_a_window_that_holds_nothing_says_so(run_of: RunOf, capfd: pytest.CaptureFixture[str]) -> None:
    path = str(run_of("fio-libaio-qd16-hdd-bfq").path)
    assert main(["sql", path, COUNT.format("requests"), "--window", "900:901"]) == 0
    assert "the options select no I/O of the run's" in capfd.readouterr().err


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


def test_ops_by_device_size_and_thread_are_those_that_the_list_says(
    run_of: RunOf, printed: Printed, capfd: pytest.CaptureFixture[str]
) -> None:
    """The same options on what is about ops: of `opline sql` the rows, filtered by hand, are those of `opline csv`."""
    run = run_of("app-libaio-qd8-dmlinear")
    every = {op["op_id"]: op for op in run.rows("ops")}
    dev = next(op["dev"] for op in every.values() if op["dev"] is not None)
    tid = next(op["begin_tid"] for op in every.values())
    sizes = sorted({op["length_bytes"] for op in every.values() if op["length_bytes"]})
    number = f"{dev >> 20}:{dev & 0xFFFFF}"
    wanted: dict[tuple[str, ...], Callable[[dict[str, Any]], bool]] = {
        ("-d", number): lambda op: op["dev"] == dev,
        ("-d", f"!{number}"): lambda op: op["dev"] is not None and op["dev"] != dev,
        ("-m", str(dev >> 20)): lambda op: op["dev"] is not None and op["dev"] >> 20 == dev >> 20,
        ("--size", str(sizes[0])): lambda op: op["length_bytes"] == sizes[0],
        ("--size", f">{sizes[-1]}"): lambda op: (op["length_bytes"] or 0) > sizes[-1],
        ("--tid", str(tid), "-p", "1"): lambda op: op["begin_tid"] == tid and op["pid"] == 1,
        ("--tid", str(tid), "-n", "*", "-d", number): lambda op: op["begin_tid"] == tid and op["dev"] == dev,
    }
    for words, meant in wanted.items():
        capfd.readouterr()
        assert main(["csv", str(run.path), "--all", *words]) == 0
        out, err = capfd.readouterr()
        found = {int(row["op_id"]) for row in csv.DictReader(io.StringIO(out))}
        assert found == {op_id for op_id, op in every.items() if meant(op)}, words
        assert ("select no op of the run's" in err) is not bool(found), words
    commands = "  " + " ".join(printed("why", "--all", run.path, "-d", number, "--size", str(sizes[0])).split())
    assert f"--device {number} --size {sizes[0]}" in commands, "what it says to type has them, too"


SDA1 = {"name": "sda1", "dev": SDA + 1, "parent": "sda", "start_sector": 2048, "size_bytes": 1000 * 512}
SDA2 = {"name": "sda2", "dev": SDA + 2, "parent": "sda", "start_sector": 3048, "size_bytes": 1000 * 512}


def partitioned(path: Path, *devices: dict[str, Any]) -> Path:
    """A run of six I/Os, whose recording knows these devices."""
    places = [(SDA, 2047), (SDA, 2048), (SDA, 3047), (SDA, 3048), (SDB, 2500)]
    ios = [{"q": n, "d": n, "c": n + 5, "dev": dev, "sector": sector} for n, (dev, sector) in enumerate(places)]
    io_run(path, [*ios, {"d": 9, "c": 10, "kind": "flush", "cls": "flush"}])
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["core"]["devices"] |= {str(d["dev"]): d["name"] for d in (SDA1, SDA2)}
    manifest["recording"] = {"devices": devices}
    (path / "manifest.json").write_text(json.dumps(manifest))
    return path


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["-d", "sda1"], [2048, 3047]),
        (["-d", "8:1"], [2048, 3047]),
        (["-d", "sda2"], [3048]),
        (["-d", "sda1", "-d", "sdb"], [2048, 2500, 3047]),
        (["-d", "!sda1"], [2047, 2500, 3048]),
        (["-d", "sda", "-d", "!sda1"], [2047, 3048]),
    ],
)
def test_a_partition_is_its_disks_sectors(words: list[str], meant: list[int], tmp_path: Path, printed: Printed) -> None:
    """Requests, bios and ops name the disk; what has no sector is the whole disk's."""
    path = partitioned(tmp_path / "run", SDA1, SDA2)
    for of in ("requests", "bios", "ops"):
        rows = map(json.loads, printed("log", path, "--of", of, "--json", *words).splitlines())
        assert sorted(row["sector"] for row in rows if row["class"] != "flush" and row["bytes"]) == meant, of
    (row,) = json.loads(printed("sql", path, COUNT.format("requests"), "--json", "-i", "flushes", *words[:2]))
    assert row["n"] == (words[1] == "!sda1" or words[1] == "sda")


def test_where_a_partition_lies_is_asked_of_the_recording(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for n, known in enumerate(([], [SDA1 | {"start_sector": None}])):
        path = partitioned(tmp_path / f"run{n}", *known)
        for words in (["hist", "-d", "sda1"], ["ops", "-d", "!8:1"]):
            assert main([words[0], str(path), *words[1:]]) == 2
            err = capfd.readouterr().err
            assert "-d sda1: a partition, whose I/O is the disk's" in err and "-d sda means the whole disk." in err
