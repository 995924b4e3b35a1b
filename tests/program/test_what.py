# SPDX-License-Identifier: MIT
"""`opline what`: what an input is, what is in it, and commands that work on it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.readers.test_biosnoop import listing
from tests.readers.test_listings import BLKPARSE, PERF_TRACE, ceph_op
from tests.readers.test_registry import BEGINS

import opline
from opline_analyses.cli import main

Captured = pytest.CaptureFixture[str]
ALONE = (
    "  fio 10 [001]  100.000001: block:block_rq_issue: 8,0 R 4096 () 8 + 8 [fio]\n"
    "  fio 10 [001]  100.000101: block:block_rq_complete: 8,0 R () 8 + 8 [0]\n"
)
INPUTS = {
    "biosnoop": listing(True),
    "blkparse": BLKPARSE,
    "perf_trace": PERF_TRACE,
    "ceph_ops": json.dumps({"num to keep": 20, "ops": [ceph_op(1, "+0000", False)]}),
    "block_text": ALONE,
    "pgbench": "0 199 2241 0 1175850568 995598\n0 200 2465 0 1175850568 998079\n",
    "histograms_text": "@usecs: \n[2, 4)   7 |@@@@ |\n",
    "fio_log": "1, 100, 0, 4096\n2, 300, 0, 4096\n",
}


def what(path: Path, capfd: Captured, status: int = 0) -> dict[str, Any]:
    capfd.readouterr()
    assert main(["what", str(path), "--json"]) == status
    (document,) = json.loads(capfd.readouterr().out)
    assert opline.what(path) == document, "Python has the same"
    return dict(document)


@pytest.mark.parametrize("name", INPUTS)
def test_each_command_that_is_named_works(name: str, tmp_path: Path, capfd: Captured) -> None:
    path = tmp_path / "it's here.txt"
    path.write_text(INPUTS[name])
    found = what(path, capfd)
    assert found["is"] and found["has"] and found["try"]
    for line in found["try"]:
        assert main(shlex.split(line)[1:]) == 0, line
        assert capfd.readouterr().out, line
    assert main(["what", str(path)]) == 0
    assert capfd.readouterr().out.startswith(f"{path}: {found['is']}\n")


def test_a_trace_and_its_parts(trace: Callable[[str], Path], capfd: Captured) -> None:
    found = what(trace("app-sync-qd4-nvme"), capfd)
    assert found["is"] == "a folder with traces"
    assert found["has"]["requests"] and found["has"]["devices"]
    assert any(line.startswith("opline iostat ") for line in found["try"])


def test_what_is_missing(tmp_path: Path, capfd: Captured) -> None:
    path = tmp_path / "a.txt"
    path.write_text(ALONE)
    found = what(path, capfd)
    assert found["has"] | {"event_names": {}} == {
        "events": 2, "event_names": {}, "span_ns": 100_000, "ops": 0, "requests": 1, "devices": ["8:0"],
        "programs": ["fio"],
    }  # fmt: skip
    assert [line.partition(":")[0] for line in found["missing"]] == [
        "block_bio_queue and block_getrq", "block_rq_insert", "an application's ops",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["fio_report", "ceph_counters"])
def test_figures_are_for_the_coverage_of_a_run(name: str, tmp_path: Path, capfd: Captured) -> None:
    path = tmp_path / "a"
    path.write_bytes(dict(BEGINS)[name])
    main(["hist", str(path)])
    refused = capfd.readouterr().err
    if name == "fio_report":  # a report without a mean
        path.write_text('{"fio version": "fio-3.33", "jobs": [{"read": {"lat_ns": {"mean": 5.0, "N": 2}}}]}')
    found = what(path, capfd)
    assert found["try"] == [f"opline coverage RUN --client {path}"] and found["try"][0] in refused
    assert not found["missing"]


@pytest.mark.parametrize(
    ("name", "model"), [("fio-psync-qd1-nvme", "syscalls"), ("ctf-blue-v2-qd1", "ceph"), ("blktrace-loop-6.18", None)]
)
def test_ops_are_those_of_the_model_that_commands_choose(
    name: str, model: str | None, trace: Callable[[str], Path], capfd: Captured
) -> None:
    path = trace(name)
    found = what(path, capfd)
    assert found["model"] == model
    assert found["try"][0] == f"opline why {path}"
    assert main(["stages", str(path), "--json"]) == 0
    ops = json.loads(capfd.readouterr().out)["ops"]
    assert ops == (found["has"]["ops"] if model else found["has"]["requests"]) > 0


def test_a_single_op_is_compared_with_nothing(tmp_path: Path, capfd: Captured) -> None:
    path = tmp_path / "a.txt"
    path.write_text(ALONE)
    assert main(["why", str(path)]) == 1
    assert "There is 1 op: nothing to compare it with." in capfd.readouterr().err


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "is empty: nothing was traced"),
        (b"hello\n", "of no format that opline knows"),
        (b"\x1f\x8b\x08" + bytes(100), "is compressed: write its contents to a file (gzip -dc "),
    ],
)
def test_what_nothing_is(content: bytes, why: str, tmp_path: Path, capfd: Captured) -> None:
    path = tmp_path / "a"
    path.write_bytes(content)
    found = what(path, capfd, status=1)
    assert found["is"] is None
    assert why in found["refused"]
    assert what(tmp_path / "b", capfd, status=1)["refused"].endswith("does not exist.")
