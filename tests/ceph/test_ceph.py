# SPDX-License-Identifier: MIT
"""The model ``ceph``: real operations from the client's call to the disk and back; simulated ones, many in flight."""

from __future__ import annotations

import re
import subprocess
from collections import Counter, defaultdict
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from tests.ceph.lib.rough import RoughCeph
from tests.ceph.lib.simulation import Ceph
from tests.lib.core_driver import Driver, check_laws, parse_line
from tests.lib.recorded import Correlated, RunOf

from opline.correlation import correlate
from opline.model import load_model

Row = dict[str, Any]
Opline = Callable[..., subprocess.CompletedProcess[str]]
TRACES = Path(__file__).parents[1] / "traces"
STATES = {19: "prepare", 20: "aio_wait", 21: "io_done", 22: "kv_queued", 23: "kv_submitted", 24: "kv_done"}
# in order; each is on the path of every write that the client, the messengers, the OSD and BlueStore were traced of
WHOLE_PATH = [
    "client.submit", "client.send", "osd.receive", "osd.received", "osd:ms_fast_dispatch", "mark_flagpt:queued_for_pg",
    "osd:opwq_process_start", "osd:prepare_tx_enter", "osd:prepare_tx_exit", "bluestore:txc_create",
    "bluestore:prepare_end", "cephshim:aio_submit",
    "cephshim:aio_complete", "bluestore:aio_wait_end", "bluestore:io_done_end", "kv:fdatasync",
    "kv:fdatasync_end", "bluestore:kv_queued_end", "bluestore:kv_submit", "kv:write", "kv:write_end", "kv:sync_range",
    "kv:sync_range_end", "kv:wal_flush", "kv:wal_flush_end", "kv:aio_submit", "kv:aio_complete", "kv:log_flush",
    "kv:log_flush_end", "bluestore:kv_sync", "bluestore:commit", "osd.reply", "client.received", "client.callback",
    "client.woken", "client.reap",
]  # fmt: skip


def points_of(rows: list[Row]) -> dict[int, dict[str, Row]]:
    """Per op: point → transition."""
    out: dict[int, dict[str, Row]] = defaultdict(dict)
    for row in rows:
        out[row["op_id"]][row["point"]] = row
    return out


def clients_mean_ns(name: str) -> float:
    """What rados bench itself reported."""
    found = re.search(r"Average Latency\(s\):\s+([\d.]+)", (TRACES / f"{name}.bench.txt").read_text())
    assert found
    return float(found[1]) * 1e9


def client_ops(run: Correlated) -> list[Row]:
    """The ops that the client submitted and took the result of."""
    points = points_of(run.rows("transitions"))
    return [op for op in run.rows("ops") if {"client.submit", "client.reap"} <= points[op["op_id"]].keys()]


def shares(run: Correlated) -> dict[str, float]:
    """Per stage: its part of all latencies."""
    total = sum(op["latency_ns"] for op in run.rows("ops"))
    sums: Counter[str] = Counter()
    for row in run.rows("stages"):
        sums[row["stage"]] += row["duration_ns"]
    return {stage: ns / total for stage, ns in sums.items()}


def calls(trace: Path, opline: Opline) -> dict[str, list[int]]:
    """Object → latencies, from nothing but the client's own calls in their order of time."""
    begun: dict[str, tuple[int, str]] = {}
    out: dict[str, list[int]] = defaultdict(list)
    for line in opline("events", trace, "--names", "cephshim:rados*").stdout.splitlines():
        key = re.search(r" completion = (\w+)", line)
        if key and "aio_operate_enter" in line:
            begun[key[1]] = (int(line.split()[0]), re.findall(r'oid = "(.*?)"', line)[0])
        elif key and "get_return_value" in line:
            at, oid = begun.pop(key[1])
            out[oid].append(int(line.split()[0]) - at)
    return out


@pytest.mark.parametrize(("name", "ops"), [("ctf-blue-v2-qd1", 2273), ("ctf-deb12-shim-qd1", 12274)])
def test_the_clients_mean(run_of: RunOf, trace: Callable[[str], Path], opline: Opline, name: str, ops: int) -> None:
    run = run_of(name)
    mine = client_ops(run)
    assert len(mine) == ops and all(op["complete"] for op in mine)
    assert sum(op["latency_ns"] for op in mine) / ops == pytest.approx(clients_mean_ns(name), rel=0.005)
    assert {op["object"]: [op["latency_ns"]] for op in mine} == calls(trace(name), opline)
    assert sum(op["unknown_ns"] for op in mine) == 0


def test_bluestore_from_the_clients_call_to_the_disk_and_back(run_of: RunOf) -> None:
    run = run_of("ctf-blue-v2-qd1")
    points = points_of(run.rows("transitions"))
    for op in client_ops(run):
        passed = points[op["op_id"]]
        times = [passed[name]["ts_ns"] for name in WHOLE_PATH]
        assert times == sorted(times)
        assert not [name for name in WHOLE_PATH if passed[name]["aside"]]
        # the message's number at both messengers and the OSD's are one: the object is the same at both ends
        assert op["key"].startswith("completion=") and " reqid=4152," in op["key"]
        assert (op["class"], op["length_bytes"], op["complete"]) == ("write", 4096, True)
    assert max(shares(run).values()) < 0.15
    batches = run.rows("batches")
    assert len(batches) == len(run.rows("ops")) == 2274 and all(b["member_count"] == 1 for b in batches)
    assert run.core["joins"] == {"by_key": 2273, "by_order": 0}
    assert run.core["orphans"] == {}


def test_states_take_as_long_as_ceph_says(run_of: RunOf, trace: Callable[[str], Path], opline: Opline) -> None:
    """Ceph takes the time and then passes the tracepoint: a thread that loses its CPU between the two is seen later."""
    elapsed: dict[int, tuple[int, float]] = {}
    pattern = re.compile(r"^(\d+) .* state = (\d+), elapsed = (\S+) }")
    for line in opline("events", trace("ctf-blue-v2-qd1"), "--names", "*state_duration").stdout.splitlines():
        if found := pattern.match(line):
            elapsed[int(found[1])] = int(found[2]), float(found[3]) * 1e9
    checked = 0
    for passed in points_of(run_of("ctf-blue-v2-qd1").rows("transitions")).values():
        for state in range(20, 25):
            ends = [passed[f"bluestore:{STATES[s]}_end"]["ts_ns"] for s in (state - 1, state)]
            number, took_ns = elapsed[ends[1]]
            assert number == state
            assert abs(ends[1] - ends[0] - took_ns) <= 5000
            checked += 1
    assert checked == 2274 * 5


def test_without_tracepoints_the_osd_is_one_stage(run_of: RunOf) -> None:
    """Debian's Ceph: messages and the client are all that is seen. Joined by order, as the trace has no key of both."""
    run = run_of("ctf-deb12-shim-qd1")
    part = shares(run)
    assert list(part) == [
        "client submit", "network out", "network out awake", "osd receive", "osd without tracepoints", "network back",
        "network back awake", "client completion", "client wake-up", "client reap",
    ]  # fmt: skip
    assert part["osd without tracepoints"] == pytest.approx(0.588, abs=0.001)
    assert run.core["joins"] == {"by_key": 0, "by_order": 12274}
    assert run.core["orphans"] == {}


def test_every_data_aio_has_its_request(run_of: RunOf) -> None:
    """By the thread and by the sectors that the aio wrote to: its offset is the device's own. Loop devices are 7:N.

    (One thread also waits for pages of its own program, from another disk.)
    """
    run = run_of("ctf-merged")
    requests = {r["request_id"]: r for r in run.rows("requests")}
    linked: dict[int, list[Row]] = defaultdict(list)
    for link in run.rows("links"):
        if not link["shared"]:
            request = requests[link["request_id"]]
            if request["dev"] >> 20 == 7:
                assert link["evidence"] == "thread+sector"
                linked[link["op_id"]].append(request)
    points = points_of(run.rows("transitions"))
    aios = 0
    for op in run.rows("ops"):
        if "cephshim:aio_submit" not in points[op["op_id"]]:
            continue
        (request,) = linked[op["op_id"]]
        assert request["nr_sectors"] == 8
        times = [points[op["op_id"]]["cephshim:aio_submit"]["ts_ns"], request["queue_ns"], request["issue_ns"]]
        times += [request["complete_ns"], points[op["op_id"]]["cephshim:aio_complete"]["ts_ns"]]
        assert times == sorted(times)
        aios += 1
    assert aios == 1831


# -- many in flight ----------------------------------------------------------------------------------------------------


def correlated(ceph: Ceph) -> Driver:
    """What the core makes of a simulation."""
    return driven(ceph.run())


def driven(lines: list[str]) -> Driver:
    """What the core makes of events."""
    driver = Driver(load_model("ceph").plan_json())
    for line in lines:
        driver.push(parse_line(line))
    driver.finish()
    check_laws(driver, len(lines))
    return driver


def check_truth(ceph: Ceph, driver: Driver) -> dict[int, tuple[int, int]]:
    """Each op is its client's to the nanosecond, its message is the right one, its batches have the right members.

    Gives the batches of the core: number → the process of the OSD and the simulation's number there.
    """
    tables = driver.tables()
    by_begin = {op["begin_ns"]: op for op in tables["ops"]}
    assert len(by_begin) == len(ceph.ops) == len(tables["ops"])
    passed: dict[tuple[int, int], dict[str, Row]] = defaultdict(dict)  # what an op passed in a process, the first time
    for row in tables["transitions"]:
        passed[row["op_id"], row["pid"]].setdefault(row["point"].partition("#")[0], row)
    stages: dict[int, list[Row]] = defaultdict(list)
    for row in tables["stages"]:
        stages[row["op_id"]].append(row)
    batches: dict[int, tuple[int, int]] = {}
    members: Counter[int] = Counter()
    for truth in ceph.ops:
        op = by_begin[truth.submit_ns]
        assert (op["end_ns"], op["object"], op["unknown_ns"]) == (truth.reap_ns, truth.oid, 0)
        assert op["pid"] == truth.client.pid
        for t in truth.transactions:
            if not (t.kind.traced and t.store):
                continue
            here = passed[op["op_id"], t.store.pid]
            for state in range(20, 25):
                ends = [here[f"bluestore:{STATES[s]}_end"]["ts_ns"] for s in (state - 1, state)]
                assert abs(ends[1] - ends[0] - t.states[state]) <= 5000
            (number,) = {r["batch_id"] for r in here.values() if r["batch_id"] is not None}
            assert batches.setdefault(number, (t.store.pid, t.batch)) == (t.store.pid, t.batch)
            members[number] += 1
            if len(ceph.stores) > 1:
                continue
            # charged for the commit: what lies between the end of its I/O and the commit, neither more nor less
            begin_ns, end_ns = here["bluestore:io_done_end"]["ts_ns"], here["bluestore:kv_sync"]["ts_ns"]
            charged = sum(s["duration_ns"] for s in stages[op["op_id"]] if begin_ns <= s["begin_ns"] < end_ns)
            assert charged == end_ns - begin_ns or len(truth.sent) > 1
    assert len(set(batches.values())) == len(batches)
    assert not {row["stage"] for row in tables["stages"] if "kv:" in row["stage"]}
    # the path goes through a replica from its message to its reply, or not at all
    path = (t for t in tables["transitions"] if not t["aside"])
    for (_, pid), rows in groupby(path, key=lambda t: (t["op_id"], t["pid"])):
        points = [t["point"].partition("#")[0] for t in rows]
        assert pid <= 900 or (points[0], points[-1]) == ("replica.received", "replica.reply")
    declared = {store.pid: store.batches for store in ceph.stores}
    for batch in tables["batches"]:
        assert batch["member_count"] == members[batch["batch_id"]]
        if batch["batch_id"] in batches:
            pid, number = batches[batch["batch_id"]]
            assert batch["declared_count"] == declared[pid][number]
    return batches


@pytest.mark.parametrize(("depth", "seed", "objects"), [(1, 1, 0), (16, 2, 0), (16, 3, 5), (64, 4, 0)])
def test_many_in_flight(depth: int, seed: int, objects: int) -> None:
    ceph = Ceph(600, depth, seed, objects=objects)
    driver = correlated(ceph)
    batches = check_truth(ceph, driver)
    rows = {b["batch_id"]: b["member_count"] for b in driver.tables()["batches"]}
    assert [rows[number] for number in sorted(batches, key=batches.__getitem__)] == ceph.stores[0].batches
    assert depth == 1 or max(ceph.stores[0].batches) > depth / 4


@pytest.mark.parametrize("seed", [1, 2])
def test_many_in_flight_on_a_bad_day(seed: int) -> None:
    """Transactions of nobody's or untraced, several aios or none, deferred writes, commits without members."""
    ceph = RoughCeph(400, 16, seed, objects=5 * (seed - 1))
    driver = correlated(ceph)
    check_truth(ceph, driver)
    kinds = [op.transactions[0].kind for op in ceph.ops]
    assert ceph.foreigners and not all(k.traced for k in kinds) and any(k.deferred for k in kinds)
    assert any(k.partial and k.aios > 1 for k in kinds)
    orphans = driver.summary()["orphans"]
    assert orphans.keys() <= {"orphan:no_key_no_thread", "orphan:no_op_for_key"}  # those transactions' events


@pytest.mark.parametrize("names", [True, False])
@pytest.mark.parametrize("clients", [1, 2])
def test_many_in_flight_without_tracepoints(names: bool, clients: int) -> None:
    """With the first shim, which told no names, joined by the order of each process' calls and messages."""
    ceph = Ceph(600 // clients, 16, 5, tracepoints=False, names=names, clients=clients)
    driver = correlated(ceph)
    check_truth(ceph, driver)
    assert driver.summary()["joins"] == {"by_key": 600 * names, "by_order": 600 * (not names)}


@pytest.mark.parametrize(("seed", "objects", "tracepoints"), [(1, 0, True), (2, 5, True), (3, 5, False)])
def test_clients_that_name_their_objects_alike(seed: int, objects: int, tracepoints: bool) -> None:
    """Their messages' numbers and their completions' addresses are the same, too."""
    ceph = Ceph(200, 8, seed, clients=3, objects=objects, names=True, tracepoints=tracepoints)
    check_truth(ceph, correlated(ceph))


@pytest.mark.parametrize("clients", [2, 3])
def test_an_objects_name_does_not_say_whose_it_is(clients: int) -> None:
    """The first shim's messages are joined to calls by order and name: never to another client's call."""
    ceph = Ceph(200, 8, 4, clients=clients, objects=5)
    check_truth(ceph, correlated(ceph))


def test_what_several_clients_name_alike_is_left_alone() -> None:
    """Messages that can't be read (secure mode): the name is all that the client and the OSD share."""

    class Secure(Ceph):
        def event(self, name: str, pid: int, tid: int, comm: str, fields: str) -> None:
            if not name.startswith("cephshim:msgr"):
                super().event(name, pid, tid, comm, fields)

    ceph = Secure(200, 8, 4, clients=2)
    driver = correlated(ceph)
    by_begin = {op["begin_ns"]: op for op in driver.tables()["ops"]}
    joined = 0
    for truth in ceph.ops:
        op = by_begin.pop(truth.submit_ns)
        assert (op["end_ns"], op["object"], op["pid"]) == (truth.reap_ns, truth.oid, truth.client.pid)
        if "reqid=" in op["key"]:
            assert f" reqid={truth.client.number},{truth.tid}" in op["key"]
            joined += 1
    assert 0 < len(by_begin) == driver.summary()["losses"]["ambiguous_halves"] == len(ceph.ops) - joined


@pytest.mark.parametrize(("seed", "clients", "tracepoints"), [(1, 1, True), (2, 1, False), (3, 2, True), (4, 2, False)])
def test_messages_sent_again(seed: int, clients: int, tracepoints: bool) -> None:
    """A connection is reset, the message or its reply is lost, or the OSD is at it: one op still, and one reply."""
    ceph = Ceph(300, 16, seed, clients=clients, objects=7, resets=6, names=True, tracepoints=tracepoints)
    driver = correlated(ceph)
    check_truth(ceph, driver)
    assert sum(len(op.sent) > 1 for op in ceph.ops) > 40
    tables = driver.tables()
    lost = [row["duration_ns"] for row in tables["stages"] if row["stage"] == "lost attempt"]
    assert lost and min(lost) > 0
    assert not [row["stage"] for row in tables["stages"] if "→" in row["stage"]]


@pytest.mark.parametrize(("names", "tracepoints"), [(True, True), (False, True), (True, False)])
def test_replicas(names: bool, tracepoints: bool) -> None:
    """By Ceph's own tracepoints, which know the client's number at each OSD; by the shim's alone."""
    ceph = Ceph(400, 16, 7, replicas=2, names=names, tracepoints=tracepoints)
    driver = correlated(ceph)
    check_truth(ceph, driver)
    tables = driver.tables()
    on_path = Counter(t["point"].partition("#")[0] for t in tables["transitions"] if not t["aside"])
    # at most one replica is waited for, the slowest; and often one is
    assert 40 < on_path["replica.replied"] <= 400
    stored = {t["pid"] for t in tables["transitions"] if t["point"].startswith("bluestore:commit")}
    assert stored == ({900, 901, 902} if tracepoints else set())


def test_everything_at_once() -> None:
    """Replicas that reply while the client sends again, of objects that both clients write."""
    ceph = Ceph(150, 8, 8, clients=2, objects=7, resets=4, replicas=2, names=True)
    check_truth(ceph, correlated(ceph))
    assert any(len(op.sent) > 1 for op in ceph.ops)


def test_what_came_by_rings_is_what_threads_write_themselves() -> None:
    lines = [f"{line} cpu=3" for line in Ceph(150, 8, 8, clients=2, objects=7, resets=4, replicas=2, names=True).run()]
    direct = driven(lines).tables()
    ring = driven([line.replace("cephshim:", "cephring:") for line in lines]).tables()
    assert any(row["event"].startswith("cephring:") for row in ring["transitions"])
    for tables in (direct, ring):
        for row in (*tables["transitions"], *tables["fates"]):
            row["event"] = row["event"].replace("cephring:", "cephshim:")
    assert ring == direct


def test_a_batch_that_nobody_closes_is_bounded() -> None:
    """Without tracepoints no event says where a commit ends."""
    driver = Driver(load_model("ceph").plan_json())
    for i in range(40_000):
        driver.push(parse_line(f"{i} cephshim:sysio_fdatasync_enter tid=1 pid=1 comm=bstore_kv_sync fd=4"))
    driver.finish()
    assert len(driver.tables()["batches"]) == 3
    assert driver.summary()["losses"]["batches_left_open"] == 3


@pytest.mark.parametrize(("name", "in_flight"), [("ctf-blue-v2-qd1", 1), ("ctf-deb12-uprobes-qd16", 16)])
def test_the_thread_that_commits_is_known_by_what_it_does(
    name: str, in_flight: int, trace: Callable[[str], Path], run_of: RunOf, tmp_path: Path
) -> None:
    """Under a name that the model does not know only what comes before its first batch is not its work."""
    text = load_model("ceph").text
    assert text.count('"bstore_kv_sync"') >= 13
    (tmp_path / "ceph.toml").write_text(text.replace('"bstore_kv_sync"', '"another name"'))
    out = tmp_path / "run"
    manifest = correlate(trace(name), load_model(str(tmp_path / "ceph.toml")), out, progress=False)
    known, found = (
        Counter(s["stage"] for s in run.rows("stages")) for run in (run_of(name), Correlated(out, manifest))
    )
    assert found["data aio"] == known["data aio"]
    for stage in (stage for stage in known if stage.startswith("kv ")):
        assert known[stage] - in_flight <= found[stage] <= known[stage], stage
