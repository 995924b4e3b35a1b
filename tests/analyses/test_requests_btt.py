# SPDX-License-Identifier: MIT
"""`opline requests` and `opline btt`, on a recorded trace with merges, against a plain computation from the tables."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from opline.correlation import correlate
from opline.model import load_model
from opline_analyses.api import block
from opline_analyses.block import request_text
from opline_analyses.block.requests import ORDERS
from opline_analyses.runs import columns
from opline_analyses.runs.run import open_run

LAB = Path(__file__).parents[1] / "models" / "lab.toml"


@pytest.fixture(scope="module")
def merged(trace: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("run")
    correlate(trace("ptr-libaio-qd32-hdd-bfq-seq"), load_model(LAB), out, progress=False)
    return out


def rows(run: Path, table: str) -> list[dict[str, Any]]:
    return list(pq.read_table(run / f"{table}.parquet").to_pylist())


def test_one_line_per_request(merged: Path, opline: Callable[..., Any]) -> None:
    said = opline("requests", merged, "--csv")
    lines = list(csv.DictReader(io.StringIO(said.stdout)))
    assert len(lines) == len(rows(merged, "requests"))
    whole = [x for x in lines if x["outcome"] == "completed" and x["requeues"] == "0" and x["g2i_ns"]]
    assert len(whole) > 2900
    for x in whole:
        assert int(x["q2g_ns"]) + int(x["g2i_ns"]) + int(x["i2d_ns"]) + int(x["d2c_ns"]) == int(x["q2c_ns"])
    assert "" not in {x["device"] for x in lines}


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        (("-i", "writes"), lambda r: r["kind"] == "write"),
        (("-i", "*S*", "--size", "4k"), lambda r: "S" in r["rwbs"] and r["nr_sectors"] == 8),
        (("--size", ">4k"), lambda r: (r["nr_sectors"] or 0) > 8),
        (("--comm", "lab-*"), lambda r: (r["queue_comm"] or r["issue_comm"] or "").startswith("lab-")),
    ],
)
def test_filters_are_those_of_the_block_layer_over_time(
    merged: Path, opline: Callable[..., Any], options: tuple[str, ...], wanted: Callable[[dict[str, Any]], bool]
) -> None:
    """All requests, those that did not complete or were absorbed too."""
    lines = list(csv.DictReader(io.StringIO(opline("requests", merged, *options, "--csv").stdout)))
    assert {int(x["request_id"]) for x in lines} == {r["request_id"] for r in rows(merged, "requests") if wanted(r)}
    assert lines


def test_the_slowest_come_first(merged: Path, opline: Callable[..., Any]) -> None:
    worst = sorted((r["q2c_ns"] for r in rows(merged, "requests") if r["q2c_ns"] is not None), reverse=True)[:3]
    said = opline("requests", merged, "--slowest", "3", "--json").stdout.splitlines()
    assert [json.loads(line)["q2c_ns"] for line in said] == worst


def test_an_unknown_device_is_named(merged: Path, opline: Callable[..., Any]) -> None:
    said = opline("requests", merged, "--device", "sdz")
    assert said.returncode == 2
    assert "No device sdz: the run has" in said.stderr


def test_btt_is_exact(merged: Path, opline: Callable[..., Any]) -> None:
    (device,) = json.loads(opline("btt", merged, "--json").stdout)["devices"]
    requests = {r["request_id"]: r for r in rows(merged, "requests")}
    bios = [b for b in rows(merged, "bios") if b["queue_ns"] is not None]
    expected = {
        "Q2M": [b["merge_ns"] - b["queue_ns"] for b in bios if b["merge_ns"] is not None],
        "Q2C": [requests[b["request_id"]]["complete_ns"] - b["queue_ns"] for b in bios],
        "D2C": [r["complete_ns"] - r["issue_ns"] for r in requests.values() if r["issue_ns"] and r["complete_ns"]],
    }
    assert expected["Q2M"], "the trace has merges"
    for name, values in expected.items():
        interval = device["intervals"][name]
        assert (interval["count"], interval["total_ns"]) == (len(values), sum(values))
        assert (interval["min_ns"], interval["max_ns"]) == (min(values), max(values))
    assert device["queued"] == len(bios)
    text = opline("btt", merged).stdout
    assert "Q2Q" in text and "#Q" in text and "NSEEKS" in text


def test_the_parts_of_q2c_are_of_the_bios_of_the_whole(
    trace: Callable[[str], Path], opline: Callable[..., Any], tmp_path: Path
) -> None:
    """Half of the device's time is that of flushes which served several bios."""
    run = tmp_path / "run"
    correlate(trace("fdatasync-2-queues"), load_model("syscalls"), run, progress=False)
    requests = {r["request_id"]: r for r in rows(run, "requests")}
    mine = [requests[b["request_id"]] | {"queue_ns": b["queue_ns"]} for b in rows(run, "bios") if b["queue_ns"]]
    mine = [r for r in mine if r["complete_ns"]]
    whole = sum(r["complete_ns"] - r["queue_ns"] for r in mine)
    device_ns = sum(r["complete_ns"] - r["issue_ns"] for r in mine if r["issue_ns"])
    by_flushes = sum(r["complete_ns"] - r["issue_ns"] for r in mine if r["issue_ns"] and r["flushed_by"])
    assert by_flushes > 0.3 * whole
    (device,) = json.loads(opline("btt", run, "--json").stdout)["devices"]
    assert device["share"]["D2C"] == pytest.approx(device_ns / whole)
    assert sum(device["share"].values()) == pytest.approx(1, abs=0.01)
    text = opline("btt", run).stdout.splitlines()
    (at,) = (n for n, line in enumerate(text) if line.startswith("share of Q2C"))
    parts = [float(part) for part in text[at + 2].split()[1:]]  # each rounded to a tenth
    assert text[at + 1].split()[-1] == "left" and sum(parts) == pytest.approx(100, abs=0.05 * len(parts))


def test_btts_filters_choose_requests(merged: Path, opline: Callable[..., Any]) -> None:
    """The tables of a window, a size and a latency are those of exactly these requests; nothing says so."""
    whole = list(csv.DictReader(io.StringIO(opline("btt", merged, "--csv").stdout)))
    slow = list(
        csv.DictReader(io.StringIO(opline("btt", merged, "--csv", "--latency", ">1ms", "--size", ">4k").stdout))
    )
    found = {row["name"]: row for row in slow}
    times = [
        r["complete_ns"] - r["issue_ns"]
        for r in rows(merged, "requests")
        if r["complete_ns"] and r["issue_ns"] and (r["nr_sectors"] or 0) > 8 and r["outcome"] != "absorbed"
    ]
    times = [t for t in times if t > 1_000_000]
    assert 0 < len(times) == int(found["D2C"]["count"]) < int({r["name"]: r for r in whole}["D2C"]["count"])
    assert (int(found["D2C"]["min_ns"]), int(found["D2C"]["max_ns"])) == (min(times), max(times))
    nothing = opline("btt", merged, "--window", "1000:")
    assert nothing.stdout == "" and "the options select no I/O" in nothing.stderr


def test_interferences_filters_and_csv(merged: Path, opline: Callable[..., Any]) -> None:
    """Of each request that is chosen all owners' times sum to Q2C."""
    listed = list(csv.DictReader(io.StringIO(opline("interference", merged, "--slowest", "3", "--csv").stdout)))
    q2c = {str(r["request_id"]): r["complete_ns"] - r["queue_ns"] for r in rows(merged, "requests") if r["complete_ns"]}
    for op, request in {(row["op_id"], row["request_id"]) for row in listed}:
        mine = [row for row in listed if (row["op_id"], row["request_id"]) == (op, request)]
        of_it = [int(r["wait_ns"]) + int(r["service_ns"]) for r in mine]
        assert sum(of_it) == q2c[request]
    said = opline("interference", merged, "--slowest", "3", "-i", "discards")
    assert said.stdout == "" and "select no block request of these ops" in said.stderr


def test_the_text_is_made_without_rows_in_python(merged: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_run(merged) as run:
        whole = {order: block.requests(run, order=order) for order in ORDERS}
        rows_of = {order: list(found.items()) for order, found in whole.items()}
        texts = {order: found.text() for order, found in whole.items()}
        assert sorted(texts["q2c"].splitlines()) == sorted(texts["time"].splitlines())
        monkeypatch.setattr(request_text, "requests", None)  # the rows
        monkeypatch.setattr(columns, "RANGE", 97)
        assert {order: block.requests(run, order=order).text() for order in ORDERS} == texts
        monkeypatch.undo()
        monkeypatch.setattr(columns, "RANGE", 97)
        assert {order: list(block.requests(run, order=order).items()) for order in ORDERS} == rows_of
        few = block.requests(run).sorted("q2c_ns").first(3)
        assert few.kept and not whole["time"].kept
        header, *lines = few.text().splitlines()
        assert header.split() == texts["time"].splitlines()[0].split()
        assert [line.split()[0] for line in lines] == [line.split()[0] for line in texts["q2c"].splitlines()[1:4]]
