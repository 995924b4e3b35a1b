# SPDX-License-Identifier: MIT
"""Checks of what tests/vm/run recorded in the machine: kernel domain and application in one session.

Not collected by itself: ``OPLINE_VM_OUT`` says where the recordings are, a folder per Debian release.

What an op's block I/O is, is taken from elsewhere than the trace and its links: from what the demo store, fio and
writers.py wrote down beside the recording, and from filefrag.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from tests.lib.recorded import Correlated, Row
from tests.truth_demo import check
from tests.vm.logs import Points, file_sectors, fio_log, object_offsets, writers_log

from opline.model import load_model

OUT = Path(os.environ["OPLINE_VM_OUT"])
SUITES = sorted(path.name for path in OUT.iterdir() if (path / "doctor.json").exists())
OBJECT_BYTES = 4 << 20  # demo-bench's
LINGER_NS = load_model("demo").linger_ns


@dataclass(frozen=True)
class Demo:
    """A recording of the demo store with direct I/O."""

    ops: int
    disk: str  # that the block layer's events name
    begun: str = "io_begin"  # the thread's point before its bio
    start_sector: int = 0  # of the partition
    inserted: bool = False  # into a scheduler


DIRECT = {
    "demo-pwrite": Demo(1009, "vdb"),
    "demo-libaio": Demo(1009, "nvme0n1", "io_submit"),
    "demo-uring": Demo(1009, "vdc", "io_submit"),
    "demo-mq-deadline": Demo(409, "sda", "io_submit", inserted=True),
    "demo-bfq": Demo(409, "sda", inserted=True),
    "demo-partition": Demo(409, "vdd", "io_submit", start_sector=2048),
    "demo-dm": Demo(409, "dm-0"),
}
DM_LOWER = ("nvme0n1", 4096)  # where dm-0 lies
COMMITS = {"demo-buffered": 409, "demo-ext4": 409}  # group commit: how many ops
FIO = {"fio-psync": "nvme0n1", "fio-libaio": "vdc", "fio-io_uring": "vdc"}  # and its disk
CLASSES = {  # of the ops of a read and of a write
    "fio-psync": {"read": "pread64", "write": "pwrite64"},
    "fio-libaio": {"read": "io_submit read", "write": "io_submit write"},
    "fio-io_uring": {"read": "io_uring read", "write": "io_uring write"},
}
UNSEEN = {"read": "bio read", "write": "bio write"}  # lttng-modules 2.13.9 never shows io_uring_enter
SAME_BLOCKS = {"same-blocks-none": "vdc", "same-blocks-mq-deadline": "sda"}  # I/Os in flight at once, and their disk
FILES = {"ext4-fsync": "vdc", "dm-ext4": "vdd"}  # files that are synced, and the disk below
WRITERS = "ext4-fdatasync"
DEMO = {name: demo.ops for name, demo in DIRECT.items()} | COMMITS
ALL = [*DEMO, *FIO, *SAME_BLOCKS, *FILES, WRITERS]

every_suite = pytest.mark.parametrize("suite", SUITES)


def opline(*arguments: str | Path) -> str:
    """What the program prints."""
    program = Path(sys.executable).with_name("opline")
    done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@cache
def run(suite: str, name: str) -> Correlated:
    """A recording with its tables, which the first question to it makes."""
    path = OUT / suite / name
    opline("losses", path, "--json")
    return Correlated(path, json.loads((path / "recording.json").read_text()))


def device(of: Correlated, name: str) -> int:
    """A disk's number in the events, by its name in the manifest."""
    (dev,) = (entry["dev"] for entry in of.manifest["devices"] if entry["name"] == name)
    return int(dev)


def links(of: Correlated) -> dict[int, list[Row]]:
    """By op."""
    by_op = defaultdict(list)
    for link in of.rows("links"):
        by_op[link["op_id"]].append(link)
    return by_op


def test_every_release_was_recorded() -> None:
    assert SUITES == ["bookworm", "trixie"]


@every_suite
def test_doctor_finds_the_kernel_domain(suite: str) -> None:
    document = json.loads((OUT / suite / "doctor.json").read_text())
    assert document["block_source"] == "kernel"


@every_suite
@pytest.mark.parametrize("name", ALL)
def test_one_session_has_both_domains(suite: str, name: str) -> None:
    said = (OUT / suite / f"{name}.stderr").read_text()
    assert (OUT / suite / f"{name}.status").read_text() == "0\n", said
    document = run(suite, name).manifest
    assert (document["block_source"], document["state"], document["notes"]) == ("kernel", "complete", [])
    assert document["sessiond"] == ("private" if name == "demo-pwrite" else "system")
    channels = {channel["domain"]: channel for channel in document["channels"]}
    assert set(channels) == ({"ust", "kernel"} if name in DEMO else {"kernel"})
    assert [channel["discarded_count"] for channel in channels.values()] == [0] * len(channels)
    if name in DEMO:
        assert channels["ust"]["event_count"] >= 21 * DEMO[name]


@every_suite
def test_nothing_is_left_in_the_guest(suite: str) -> None:
    assert (OUT / suite / "private.left").read_text() == ""
    assert "opline-" not in (OUT / suite / "system.sessions").read_text()


@every_suite
@pytest.mark.parametrize("name", ALL)
def test_every_event_has_a_fate_and_nothing_is_lost(suite: str, name: str) -> None:
    of = run(suite, name)
    fates: Counter[str] = Counter()
    for row in of.rows("fates"):
        fates[row["fate"]] += row["count"]
    assert fates.total() == sum(channel["event_count"] for channel in of.manifest["channels"])
    lost = {row["loss"]: row["count"] for row in of.rows("losses") if row["severity"] != "info"}
    orphans = {fate: count for fate, count in fates.items() if fate.startswith("orphan:")}
    # LTTng has the calls of all processes: another one may be in a call when the recording ends.
    others = [op for op in of.rows("ops") if not op["complete"] and op["comm"] not in ("fio", "python3")]
    if name not in DEMO:
        assert lost.pop("incomplete_ops", 0) == len(others)
    if name in DEMO:  # the emulator may hold a thread up for longer than an op lingers
        stragglers = Points(of.path / "client-points.csv").stragglers(LINGER_NS)
        late = orphans.pop("orphan:no_key_no_thread", 0)
        assert lost.pop("orphan_no_key_no_thread", 0) == late <= stragglers
    assert (lost, orphans) == ({}, {})


@every_suite
@pytest.mark.parametrize("name", ALL)
def test_every_op_is_partitioned(suite: str, name: str) -> None:
    of = run(suite, name)
    sums: Counter[int] = Counter()
    for stage in of.rows("stages"):
        sums[stage["op_id"]] += stage["duration_ns"]
    ops = [op for op in of.rows("ops") if op["complete"]]
    assert len(ops) >= DEMO.get(name, 1)
    assert [op for op in ops if sums[op["op_id"]] + op["unattributed_ns"] != op["latency_ns"]] == []


@every_suite
@pytest.mark.parametrize("name", DEMO)
def test_every_transition_is_the_hidden_ops(suite: str, name: str) -> None:
    path = run(suite, name).path
    verdict = check(
        path, path / "client-log.csv", path / "client-points.csv", 0 if name == "demo-ext4" else OBJECT_BYTES
    )
    findings = {finding.name: finding for finding in verdict.findings}
    assert findings["ops"].holds and findings["stitching"].holds, str(verdict)
    # These go by times, and times are not to be had: every thread of the guest waits for the emulator now and then,
    # and the clocks of its processors differ meanwhile.
    for name_of in ("join", "agreement", "between"):
        held = int(re.findall(r"\d+", findings[name_of].text)[0])
        assert held >= 0.99 * int(re.findall(r"\d+", findings["ops"].text)[0]), str(verdict)
    (transitions,) = (finding.text for finding in verdict.findings if finding.name == "transitions")
    found, logged, *wrong = map(int, re.findall(r"\d+", transitions))
    stragglers = Points(path / "client-points.csv").stragglers(LINGER_NS)
    assert logged - stragglers <= found <= logged and wrong == [0, 0], transitions


@every_suite
@pytest.mark.parametrize("name", DIRECT)
def test_every_direct_op_has_the_bio_that_its_thread_queued_for_it(suite: str, name: str) -> None:
    """The thread's last point in the benchmark's log before the bio was queued says whose bio it is."""
    of, demo = run(suite, name), DIRECT[name]
    points = Points(of.path / "client-points.csv")
    dev = device(of, demo.disk)
    queued = {}  # bio: the hidden op
    for bio in of.rows("bios"):
        at = points.at(bio["tid"], bio["queue_ns"]) if bio["dev"] == dev else None
        if at is not None and at.event == demo.begun:
            queued[bio["bio_id"]] = at.truth_id
    hidden = points.hidden(of.rows("transitions"))
    assert len(queued) == len(set(queued.values())) == demo.ops
    top = [link for link in of.rows("links") if not link["evidence"].endswith("+parent")]
    assert {link["bio_id"]: hidden[link["op_id"]] for link in top} == queued
    assert {(link["evidence"], link["confidence"]) for link in top} == {("thread+sector", "high")}
    assert not [link for link in of.rows("links") if link["shared"] or link["ambiguous"]]


@every_suite
@pytest.mark.parametrize("name", DIRECT)
def test_every_direct_op_has_the_sector_that_it_asked_for(suite: str, name: str) -> None:
    """The log has the offset in the object; objects lie on the device one after the other."""
    of, demo = run(suite, name), DIRECT[name]
    offsets, hidden = (
        object_offsets(of.path / "client-log.csv"),
        Points(of.path / "client-points.csv").hidden(of.rows("transitions")),
    )
    bios, by_op = {bio["bio_id"]: bio for bio in of.rows("bios")}, links(of)
    for op in of.rows("ops"):
        mine = [bios[link["bio_id"]] for link in by_op[op["op_id"]]]
        (bio,) = (bio for bio in mine if bio["dev"] == device(of, demo.disk))
        offset_bytes = (bio["sector"] - demo.start_sector) * 512
        assert (offset_bytes % OBJECT_BYTES, bio["nr_sectors"]) == (offsets[hidden[op["op_id"]]], 8)
        assert bio["op_by_thread"] == bio["op_by_sector"] == op["op_id"]
        if demo.disk == "dm-0":
            (lower,) = (other for other in mine if other is not bio)
            disk, start = DM_LOWER
            assert (lower["parent_id"], lower["dev"]) == (bio["bio_id"], device(of, disk))
            assert (lower["sector"], lower["nr_sectors"]) == (bio["sector"] + start, 8)


@every_suite
@pytest.mark.parametrize("name", DIRECT)
def test_every_direct_op_has_one_request_from_q_to_c(suite: str, name: str) -> None:
    of, demo = run(suite, name), DIRECT[name]
    ops = {op["op_id"]: op for op in of.rows("ops")}
    assert [op["request_count"] for op in ops.values()] == [1] * demo.ops
    requests = [request for request in of.rows("requests") if request["op_id"] is not None]
    assert len(requests) == demo.ops
    for request in requests:
        op = ops[request["op_id"]]
        steps = ("queue", "getrq", *(["insert"] if demo.inserted else []), "issue", "complete")
        times = [op["begin_ns"], *(request[f"{step}_ns"] for step in steps), op["end_ns"]]
        assert times == sorted(times) and request["outcome"] == "completed" and not request["ambiguous"]


@every_suite
@pytest.mark.parametrize("name", COMMITS)
def test_every_commits_bios_are_its_members(suite: str, name: str) -> None:
    """The log says who joined which commit; what the commit's thread queued between its sync's two points is theirs."""
    of = run(suite, name)
    points = Points(of.path / "client-points.csv")
    commits = points.commits()
    hidden = points.hidden(of.rows("transitions"))
    truth = set()
    for bio in of.rows("bios"):
        at = points.at(bio["tid"], bio["queue_ns"])
        if at is not None and at.event == "sync_begin":
            truth |= {(member, bio["bio_id"]) for member in commits[at.place].members}
    found = {(hidden[link["op_id"]], link["bio_id"]) for link in of.rows("links")}
    assert sum(len(commit.members) for commit in commits.values()) == COMMITS[name]
    assert truth and found == truth


@every_suite
@pytest.mark.parametrize("name", COMMITS)
def test_every_committed_ops_data_is_written_before_its_reply(suite: str, name: str) -> None:
    """By its own commit, or by the one before, if that one's sync found the page already: so no link need say so."""
    of = run(suite, name)
    disk = device(of, "vdc")
    written = [bio for bio in of.rows("bios") if bio["dev"] == disk and bio["comm"] == "demo-commit"]
    for op in of.rows("ops"):
        first = op["offset_bytes"] // 512  # the store maps a file's offset to the device's
        with_data = [bio for bio in written if bio["sector"] <= first < bio["sector"] + bio["nr_sectors"]]
        assert [bio for bio in with_data if op["begin_ns"] < bio["queue_ns"] < op["end_ns"]], op


@every_suite
@pytest.mark.parametrize("name", FIO)
def test_every_io_that_fio_logged_is_an_op_with_its_request(suite: str, name: str) -> None:
    of = run(suite, name)
    log = fio_log(of.path / "client_lat.1.log")
    assert len(log) == 600
    ops = {op["op_id"]: op for op in of.rows("ops")}
    requests = {r["request_id"]: r for r in of.rows("requests") if r["dev"] == device(of, FIO[name])}
    mine = sorted((link for link in of.rows("links") if link["request_id"] in requests), key=lambda link: link["op_id"])
    assert len({link["op_id"] for link in mine}) == len({link["request_id"] for link in mine}) == len(mine)
    assert not [link for link in mine if link["shared"] or link["ambiguous"]]
    classes = UNSEEN if (suite, name) == ("bookworm", "fio-io_uring") else CLASSES[name]
    found = []
    for link in mine:
        op, request = ops[link["op_id"]], requests[link["request_id"]]
        assert (op["comm"], request["nr_sectors"]) == ("fio", 8)
        assert op["class"] == classes[request["kind"]]
        assert op["begin_ns"] <= request["queue_ns"] < request["complete_ns"] <= op["end_ns"]
        found.append((request["kind"], request["sector"] * 512))
    if name == "fio-psync":  # one after the other: in the log's order
        assert found == log
        assert [ops[link["op_id"]]["offset_bytes"] for link in mine] == [offset for _, offset in log]
    assert Counter(found) == Counter(log)


@every_suite
def test_every_writers_fdatasync_has_the_bio_with_its_data(suite: str) -> None:
    """Four processes write and sync a file each: the sync has the bio with the page that its process wrote."""
    of = run(suite, WRITERS)
    log, sectors = writers_log(of.path / "client-log.csv"), file_sectors(OUT / suite / "ext4-fdatasync.filefrag")
    assert len(log) == 400 and len({line.pid for line in log}) == 4
    dev = device(of, "vdc")
    written = [
        bio for bio in of.rows("bios") if bio["dev"] == dev and bio["nr_sectors"] and bio["queue_ns"] is not None
    ]
    syncs = defaultdict(list)
    for op in of.rows("ops"):
        if op["class"] == "fdatasync":
            syncs[op["pid"]].append(op)
    linked = {(link["op_id"], link["bio_id"]) for link in of.rows("links") if not link["ambiguous"]}
    of_file = defaultdict(set)  # pid: bios with data of its file
    for line in log:
        (sync,) = (op for op in syncs[line.pid] if line.written_ns <= op["begin_ns"] and op["end_ns"] <= line.end_ns)
        sector = sectors[line.file](line.offset_bytes // 512)
        (bio,) = (
            bio
            for bio in written
            if bio["sector"] <= sector < bio["sector"] + bio["nr_sectors"]
            and line.begin_ns <= bio["queue_ns"] <= line.end_ns
        )
        assert (sync["op_id"], bio["bio_id"]) in linked
        of_file[line.pid].add(bio["bio_id"])
    pid_of = {op["op_id"]: op["pid"] for ops in syncs.values() for op in ops}
    owner = {bio: pid for pid, bios in of_file.items() for bio in bios}
    assert [link for link in linked if pid_of.get(link[0], 0) != owner.get(link[1], pid_of.get(link[0], 0))] == []


@every_suite
@pytest.mark.parametrize("name", ALL)
def test_the_tracers_own_system_calls_are_left_out(suite: str, name: str) -> None:
    """The consumer daemon writes each page of the application's buffers once: more than everything else together."""
    trace = run(suite, name).path / "trace"
    text = subprocess.run(["babeltrace2", trace], capture_output=True, text=True, check=True, timeout=300)
    callers = [line for line in text.stdout.splitlines() if "syscall_entry_" in line]
    assert callers and not [line for line in callers if 'procname = "lttng-' in line]


@every_suite
@pytest.mark.parametrize("name", DIRECT)
def test_the_state_dump_names_the_disk(suite: str, name: str) -> None:
    disk = DM_LOWER[0] if name == "demo-dm" else DIRECT[name].disk  # that of the request
    assert f" {disk} sector " in opline("ops", run(suite, name).path, "--limit", "1")
