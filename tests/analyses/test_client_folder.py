# SPDX-License-Identifier: MIT
"""Folders of CBT: the outputs of the clients of one test are one report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.analyses.test_client_reports import MAIL, NEW_WRITE, parsed

from opline.errors import OplineError
from opline_analyses.client.client import read_report
from opline_analyses.client.client_report import ClientReport

BENCH = "results/00000000/id-1a2b/Radosbench/osd_ra-00004096/op_size-00004096/concurrent_ops-00000001"


def fio(reads: int, read_ns: float, writes: int, seconds: float, syncs: int = 0) -> str:
    """As `--output-format=json,normal` prints it: the text follows."""
    job = {
        "read": {"lat_ns": {"mean": read_ns, "N": reads}, "runtime": 1000 * seconds, "io_bytes": 4096 * reads},
        "write": {"lat_ns": {"mean": 1e6, "N": writes}, "runtime": 1000 * seconds, "io_bytes": 8192 * writes},
        "sync": {"lat_ns": {"mean": 5e6, "N": syncs}}, "job options": {"iodepth": "4"},
    }  # fmt: skip
    return f"{json.dumps({'fio version': 'fio-3.33', 'jobs': [job]}, indent=2)}\n\njob: (groupid=0, jobs=1)\n"


def folder(root: Path, outputs: dict[str, str]) -> Path:
    for name, text in outputs.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_c1_12_clients_of_rados_bench_are_one(tmp_path: Path) -> None:
    """What CBT writes beside the outputs is not read: its JSON of the same text, logs, monitoring."""
    one, other = parsed(MAIL), parsed(NEW_WRITE)
    outputs = {
        f"{BENCH}/write/output.0.node1.example": MAIL, f"{BENCH}/write/output.0.node2": NEW_WRITE,
        f"{BENCH}/write/json_output.0.node2": json.dumps({"Average Latency(s)": "9"}),
        f"{BENCH}/write/objecter.0.log.node1": "output", f"{BENCH}/write/collectl/output.raw": "x",
    }  # fmt: skip
    path = folder(tmp_path, outputs)
    found = read_report(path)
    assert one.count and other.count and one.iops and other.iops and one.bytes and other.bytes and found.count
    assert (found.tool, found.count, found.seconds) == ("rados bench", one.count + other.count, one.seconds)
    assert found.mean_ns == pytest.approx((one.count * one.mean_ns + other.count * other.mean_ns) / found.count)
    assert (found.iops, found.bytes) == (one.iops + other.iops, one.bytes + other.bytes)
    assert (found.by_class, found.source, found.queue_depth) == ({}, str(path), None)


def test_clients_of_fio_keep_reads_and_writes_apart(tmp_path: Path) -> None:
    outputs = {"output.0": fio(100, 2e6, 50, 10), "output.1": fio(300, 6e6, 0, 9, syncs=7), "output.0_lat.1.log": "1,2"}
    found = read_report(folder(tmp_path, outputs))
    assert found.by_class == {"read": (400, 5e6), "write": (50, 1e6)}
    assert found.bytes_by_class == {"read": 4096 * 400, "write": 8192 * 50}
    assert found.iops == pytest.approx(150 / 10 + 300 / 9)
    assert (found.count, found.seconds, found.queue_depth, found.syncs) == (450, 10, 8, (7, 5e6))
    assert found.bytes == sum(found.bytes_by_class.values())


@pytest.mark.parametrize(
    ("outputs", "said"),
    [
        ({"write/output.0": MAIL, "seq/output.0": MAIL}, "has several tests: name one of"),
        ({"write/json_output.0": MAIL}, "has no output of a client"),
        ({"output.0": MAIL, "output.1": fio(1, 1, 1, 1)}, "different programs: fio, rados bench"),
        ({"output.0": MAIL, "output.1": "killed\n"}, "output.1: no mean latency"),
        ({"output.0": MAIL, "output.1": "Average Latency: 0.1\n"}, "does not say its number of ops"),
    ],
)
def test_what_is_no_test_is_refused(tmp_path: Path, outputs: dict[str, str], said: str) -> None:
    with pytest.raises(OplineError, match=said):
        read_report(folder(tmp_path, outputs))


def test_one_client_is_its_own_report(tmp_path: Path) -> None:
    whole: ClientReport = read_report(folder(tmp_path, {"output.0.node1": MAIL}))
    assert (whole.mean_ns, whole.count, whole.iops) == (parsed(MAIL).mean_ns, 16136, parsed(MAIL).iops)
