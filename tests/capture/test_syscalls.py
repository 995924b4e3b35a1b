# SPDX-License-Identifier: MIT
"""The model ``syscalls`` on recorded kernels: an op per I/O, against what fio and the application say of them."""

from __future__ import annotations

import bisect
import csv
import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.lib.core_driver import Driver, parse_line
from tests.lib.recorded import HERE, Correlated, Row, RunOf

from opline.correlation import correlate
from opline.model import load_model

Runs = Callable[[str], Correlated]


@pytest.fixture(scope="module")
def by_syscalls(trace: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """The runs of the lab application's traces as its system calls show it."""
    done: dict[str, Correlated] = {}

    def get(name: str) -> Correlated:
        if name not in done:
            out = tmp_path_factory.mktemp("run")
            done[name] = Correlated(out, correlate(trace(name), load_model("syscalls"), out, progress=False))
        return done[name]

    return get


@dataclass(frozen=True)
class Said:
    """What fio printed of one direction."""

    issued: int
    iops: float
    mean_us: float
    clat_us: dict[float, int]


def fio_said(name: str) -> dict[str, Said]:
    text = (HERE / "traces" / f"{name}.out").read_text()
    issued = re.search(r"issued rwts: total=(\d+),(\d+),", text)
    runtime = re.search(r"run=(\d+)-", text)
    assert issued
    assert runtime
    said = {}
    for kind, total in zip(("read", "write"), issued.groups(), strict=True):
        part = re.search(rf"^  {kind}: IOPS.*?bw \(", text, re.M | re.S)
        if part is None:
            continue
        mean = re.search(r" clat \((\w+)\).*avg=([\d.]+)", part[0])
        assert mean
        assert mean[1] == "usec"
        clat = {float(p): int(us) for p, us in re.findall(r"(\d+\.\d+)th=\[ *(\d+)\]", part[0])}
        said[kind] = Said(int(total), int(total) / (int(runtime[1]) / 1000), float(mean[2]), clat)
    return said


@pytest.mark.parametrize(
    ("name", "classes"),
    [
        ("fio-psync-qd1-nvme", {"write": "pwrite64"}),
        ("fio-libaio-qd16-hdd-bfq", {"read": "io_submit read", "write": "io_submit write"}),
    ],
)
def test_fio_without_a_tracepoint_of_its_own(name: str, classes: dict[str, str], run_of: RunOf) -> None:
    """As many ops as fio issued, its IOPS; each op contains its request, and fio's clat is never below Q2C."""
    run = run_of(name)
    said = fio_said(name)
    assert said.keys() == classes.keys()
    every = [op for op in run.rows("ops") if op["class"] in classes.values()]
    span_s = (max(op["end_ns"] for op in every) - min(op["begin_ns"] for op in every)) / 1e9
    requests = {r["op_id"]: r for r in run.rows("requests") if r["op_id"] is not None}
    for kind, op_class in classes.items():
        ops = [op for op in every if op["class"] == op_class]
        assert len(ops) == said[kind].issued
        assert abs(len(ops) / span_s / said[kind].iops - 1) < 0.01
        for op in ops:
            r = requests[op["op_id"]]
            assert (op["request_count"], op["no_request"], op["complete"]) == (1, None, True)
            assert op["begin_ns"] <= r["queue_ns"] < r["complete_ns"] <= op["end_ns"]
            assert r["kind"] == kind
            assert op["length_bytes"] == r["nr_sectors"] * 512 == 4096
        q2c = sorted(requests[op["op_id"]]["q2c_ns"] for op in ops)
        assert sum(q2c) / len(q2c) <= said[kind].mean_us * 1000
        for percent, us in said[kind].clat_us.items():
            assert q2c[math.ceil(len(q2c) * percent / 100) - 1] <= us * 1000, percent


def first_sectors(run: Correlated) -> dict[int, int]:
    """The sector of each op's first bio."""
    found: dict[int, Row] = {}
    for bio in run.rows("bios"):
        op = bio["op_id"]
        if op is not None and (op not in found or bio["bio_id"] < found[op]["bio_id"]):
            found[op] = bio
    return {op: bio["sector"] for op, bio in found.items()}


# How many ends are another's: requests that complete at the same time on two CPUs.
LIBAIO = {
    "app-libaio-qd16-nvme": (4000, 2),
    "app-libaio-qd32-hdd-bfq-seq": (3000, 2),
    "app-libaio-qd8-dmcrypt": (500, 0),
    "app-libaio-qd8-dmlinear": (1000, 0),
    "app-libaio-requeue-vdc": (1500, 0),
    "ptr-libaio-qd32-hdd-bfq-seq": (3000, 6),
}


@pytest.mark.parametrize("name", LIBAIO)
def test_an_io_of_libaio_ends_where_the_application_took_it(name: str, by_syscalls: Runs, run_of: RunOf) -> None:
    """The application's own events say when it had each I/O's completion: right after the call that took it."""
    run, (count, exchanged) = by_syscalls(name), LIBAIO[name]
    ops = [op for op in run.rows("ops") if (op["class"] or "").startswith("io_submit")]
    assert len(ops) == count
    assert all(op["complete"] and op["class"] == "io_submit write" for op in ops)
    sectors = first_sectors(run)
    taken = sorted({t["ts_ns"] for t in run.rows("transitions") if t["point"] == "reaped"})
    ours: dict[int, list[int]] = defaultdict(list)
    for op in ops:
        ours[sectors[op["op_id"]] * 512].append(op["end_ns"])
    lab = run_of(name)
    offsets = {op["op_id"]: op["offset_bytes"] for op in lab.rows("ops")}
    truth: dict[int, list[int]] = defaultdict(list)
    for t in lab.rows("transitions"):
        if t["point"] == "io_end":
            truth[offsets[t["op_id"]]].append(taken[bisect.bisect_right(taken, t["ts_ns"]) - 1])
    assert {offset: len(ends) for offset, ends in ours.items()} == {offset: len(ends) for offset, ends in truth.items()}
    wrong = sum(a != b for offset in ours for a, b in zip(sorted(ours[offset]), sorted(truth[offset]), strict=True))
    assert wrong == exchanged


@pytest.mark.parametrize(
    ("name", "op_class", "count"),
    [
        ("app-uring-qd16-nvme-6.12", "io_uring write", 4000),
        ("app-uring-qd16-nvme", "bio write", 4000),  # lttng-modules 2.13.9 never shows io_uring_enter
        ("app-sqpoll-qd16-nvme", "io_uring write", 2000),
        ("app-sync-2m-nvme-split", "pwrite64", 100),
        ("app-sync-qd4-ext4-direct", "pwrite64", 1500),
        ("fie-direct", "pwrite64", 1500),
    ],
)
def test_every_direct_io_has_its_requests(name: str, op_class: str, count: int, by_syscalls: Runs) -> None:
    run = by_syscalls(name)
    ops = {op["op_id"]: op for op in run.rows("ops") if op["class"] == op_class}
    assert len(ops) == count
    assert all(op["complete"] and op["request_count"] >= 1 for op in ops.values())
    sectors = Counter(b["op_id"] for b in run.rows("bios") if b["split_from_id"] is None and b["op_id"] in ops)
    assert set(sectors) == set(ops)
    for r in run.rows("requests"):
        if r["op_id"] in ops:
            begin = r["getrq_ns"] if r["queue_ns"] is None else r["queue_ns"]  # a split's remainder has no Q
            assert ops[r["op_id"]]["begin_ns"] <= begin < r["complete_ns"] <= ops[r["op_id"]]["end_ns"]


def test_programs_are_not_mixed_silently(trace: Callable[[str], Path], opline: Callable[..., Any]) -> None:
    """With and without a run: the same words. A program can be taken by its threads' names or its process."""
    path = trace("app-sync-qd4-nvme")
    whole = opline("stages", path, "--model", "syscalls").stdout.splitlines()
    told = " ".join(line.strip() for line in whole[-2:])
    assert told.startswith("of 7 programs: labapp 4653 ops, lttng-consumerd 2438 ops, ")
    assert opline("stages", path, "--model", "syscalls", "--since", "0").stdout.splitlines() == whole
    workers = opline("stages", path, "--model", "syscalls", "--comm", "lab-work*").stdout.splitlines()
    assert workers[-1].startswith("mean of 3001 ops:")
    one = json.loads(opline("stages", path, "--model", "syscalls", "--pid", "256", "--json").stdout)
    assert one["programs"] == {"labapp": 4653}
    lines = opline("csv", path, "--model", "syscalls", "--comm", "lttng-consumerd").stdout.splitlines()
    assert len(lines) == 1 + 2438
    assert {row["comm"] for row in csv.DictReader(lines)} == {"lttng-consumerd"}


def test_offsets_and_lengths_of_vectored_calls() -> None:
    """pos_l is the offset, -1 the file's own; the bytes are what the call returned, none for an error."""
    calls = [("preadv2", 8192, 4096), ("preadv2", -1, 100), ("pwritev2", 0, -11), ("preadv", 4096, 0)]
    lines = []
    for n, (name, pos, ret) in enumerate(calls):
        lines.append(f"{100 + n * 10} syscall_entry_{name} tid=1 pid=1 fd=3 vlen=2 pos_l={pos % 2**64} pos_h=0 flags=0")
        lines.append(f"{105 + n * 10} syscall_exit_{name} tid=1 pid=1 ret={ret}")
    driver = Driver(load_model("syscalls").plan_json())
    for line in lines:
        driver.push(parse_line(line))
    driver.finish()
    found = [(op["class"], op["offset_bytes"], op["length_bytes"]) for op in driver.tables()["ops"]]
    assert found == [("preadv", 8192, 4096), ("preadv", None, 100), ("pwritev", 0, None), ("preadv", 4096, 0)]
