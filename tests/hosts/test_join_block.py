# SPDX-License-Identifier: MIT
"""Block events and threads' states of two hosts in one joined run. Both recordings are of one machine, so both hosts
have the same device numbers, the same threads and the same block I/O: nothing but the host tells them apart.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest

from opline.cluster.network import HostMap
from opline_analyses.cli import main

SAME = (
    "sector, nr_sectors, kind, rwbs, queue_tid, queue_comm, queue_cpu, issue_tid, issue_comm, issue_cpu, complete_cpu, "
    "error, bio_count, merge_count, requeue_count, in_flight, outcome, ambiguous, cgroup"
)
TIMES = ("queue_ns", "getrq_ns", "insert_ns", "first_issue_ns", "issue_ns", "complete_ns", "end_ns")
HOSTS = ("client", "server")


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the two recordings."""
    folder = tmp_path_factory.mktemp("recorded")
    subprocess.run(["tar", "-xJf", Path(__file__).with_name("two-hosts-block.tar.xz"), "-C", folder], check=True)
    return folder / "two-hosts-block"


@pytest.fixture(scope="module")
def cluster(given: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recorded client and server, joined."""
    out = tmp_path_factory.mktemp("join") / "cluster"
    assert main(["join", "-o", str(out), f"client={given}/client", f"server={given}/server"]) == 0
    return out


def rows(sql: str, *parameters: object) -> list[tuple[Any, ...]]:
    with duckdb.connect() as con:
        return con.execute(sql, parameters).fetchall()


def devices_of(cluster: Path, host: str) -> str:
    """The host's devices in the joined run, for SQL."""
    found = json.loads((cluster / "manifest.json").read_text())["devices"]
    return ", ".join(str(device["dev"]) for device in found if device["host"] == host)


def map_of(cluster: Path, host: str) -> HostMap:
    clock = pq.read_table(cluster / "clock.parquet", filters=[("host", "==", host)])
    own, reference, low, high = (
        clock.column(name).to_numpy() for name in ("ts_ns", "reference_ns", "low_ns", "high_ns")
    )
    return HostMap(own, reference, low, high)


@pytest.mark.parametrize("host", HOSTS)
def test_each_host_has_the_requests_of_its_own_run(cluster: Path, host: str) -> None:
    joined = f"'{cluster}/requests.parquet' WHERE dev IN ({devices_of(cluster, host)})"
    own = f"'{cluster}/runs/host={host}/requests.parquet'"
    mine = rows(f"SELECT {SAME} FROM {own} ORDER BY ALL")
    assert len(mine) > 1000
    assert rows(f"SELECT {SAME} FROM {joined} ORDER BY ALL") == mine
    clock = map_of(cluster, host)
    for name in TIMES:
        of_own, of_joined = (
            np.array([t for (t,) in rows(f"SELECT {name} FROM {of} ORDER BY request_id")], object)
            for of in (own, joined)
        )
        known = np.array([t is not None for t in of_own])
        assert (known == np.array([t is not None for t in of_joined])).all(), name
        away = of_joined[known].astype(np.int64) - clock.at(of_own[known].astype(np.int64))
        assert (np.abs(away) <= 1).all(), name  # a time that a record tells by its distance from another


def test_devices_of_one_number_are_two(cluster: Path) -> None:
    core = json.loads((cluster / "manifest.json").read_text())["core"]["host_devices"]
    assert len({device["dev"] for device in core}) == len(core)
    owners: dict[int, set[str]] = {}
    for device in core:
        assert device["dev"] >> 20 == device["own_dev"] >> 20
        owners.setdefault(device["own_dev"], set()).add(device["host"])
    assert set(HOSTS) in owners.values()


def test_requests_of_the_server_serve_ops_and_copies_on_the_client_do_not(cluster: Path) -> None:
    """The client's recorder saw the server's I/O too, by the same threads on the same device."""
    commits = f"""SELECT count(*), count(batch_id) FROM '{cluster}/bios.parquet'
                  WHERE comm = 'demo-commit' AND dev IN ({{}})"""
    ((all_of_client, of_client),) = rows(commits.format(devices_of(cluster, "client")))
    ((all_of_server, of_server),) = rows(commits.format(devices_of(cluster, "server")))
    assert (all_of_client, of_client) == (971, 0)
    assert (all_of_server, of_server) == (971, 971)
    linked = f"SELECT count(*) FROM '{cluster}/links.parquet' JOIN '{cluster}/bios.parquet' b USING (bio_id)"
    assert rows(f"{linked} WHERE b.dev IN ({devices_of(cluster, 'client')})") == [(0,)]
    assert rows(f"{linked} WHERE b.dev IN ({devices_of(cluster, 'server')})")[0][0] >= 1179


def test_ops_are_whole_down_to_the_disk(cluster: Path) -> None:
    run = str(cluster)
    assert rows(f"SELECT count(*), sum(complete::INT), sum(unattributed_ns) FROM '{run}/ops.parquet'") == [
        (300, 300, 0)
    ]
    off = f"""SELECT count(*) FROM '{run}/ops.parquet' JOIN
              (SELECT op_id, sum(duration_ns) AS ns FROM '{run}/stages.parquet' GROUP BY op_id) USING (op_id)
              WHERE ns <> latency_ns"""
    assert rows(off) == [(0,)]
    found = dict(rows(f"SELECT stage, count(DISTINCT op_id) FROM '{run}/stages.parquet' GROUP BY stage"))
    assert found["D2C"] == found["request in socket"] == found["reply in socket"] == 300
    assert rows(f"SELECT count(*) FROM '{run}/hops.parquet' WHERE request_ns < 0 OR reply_ns < 0") == [(0,)]
    # the threads' states of both hosts, each of the stage's own
    known = dict(rows(f"SELECT stage, count(on_cpu_ns) FROM '{run}/stages.parquet' GROUP BY stage"))
    assert known["client queue"] == known["commit queue"] == known["shard queue"] == 300
    law = "on_cpu_ns + runnable_ns + blocked_io_ns + blocked_ns <> duration_ns"
    assert rows(f"SELECT count(*) FROM '{run}/stages.parquet' WHERE {law}") == [(0,)]
    parts = f"""SELECT count(*) FROM '{run}/stages.parquet' JOIN
                (SELECT op_id, seq, sum(duration_ns) AS ns FROM '{run}/waits.parquet' GROUP BY ALL) USING (op_id, seq)
                WHERE ns <> runnable_ns + blocked_io_ns + blocked_ns"""
    assert rows(parts) == [(0,)]


def test_stages_are_those_of_the_exact_clocks(cluster: Path, given: Path, tmp_path: Path) -> None:
    """The recordings are of one boot: with their offset written down the maps are exact. The stages within a host are
    the same by both ways but for the fitted rate.
    """
    exact = tmp_path / "exact"
    for host, offset_ns in (("client", 0), ("server", 1_000_000_020_000)):
        shutil.copytree(given / host, tmp_path / host)
        about = tmp_path / host / "recording.json"
        note = json.loads(about.read_text())
        note["host"]["clock_offset_ns"] = offset_ns
        about.write_text(json.dumps(note))
    assert main(["join", "-o", str(exact), f"client={tmp_path}/client", f"server={tmp_path}/server"]) == 0
    within = "stage NOT LIKE '%socket' AND stage NOT LIKE '%sendmsg'"
    sql = f"""SELECT op_id, stage, duration_ns, tid, on_cpu_ns, blocked_ns FROM '{{}}/stages.parquet'
              WHERE {within} ORDER BY op_id, seq"""
    mine, truth = (rows(sql.format(run)) for run in (cluster, exact))
    assert [row[:2] for row in mine] == [row[:2] for row in truth]
    assert [row[3] for row in mine] == [row[3] for row in truth]
    for column in (2, 4, 5):
        pairs = [(a[column], b[column]) for a, b in zip(mine, truth, strict=True)]
        assert [a is None for a, _ in pairs] == [b is None for _, b in pairs]
        assert all(abs(a - b) <= 2 + b * 500e-6 for a, b in pairs if a is not None)


def test_devices_are_named_by_their_host(cluster: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["disk", "iostat", str(cluster), "--all-programs"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert {line.split()[0] for line in lines} >= {"client:vda", "server:vda"}
    assert main(["disk", "iostat", str(cluster), "--all-programs", "-d", "server:vda", "--csv"]) == 0
    assert "client:vda" not in capfd.readouterr().out
    assert main(["why", str(cluster)]) in (0, 3)


def said(arguments: list[str], capfd: pytest.CaptureFixture[str]) -> str:
    assert main(arguments) == 0
    return capfd.readouterr().out


def test_host_chooses_the_ios_of_its_devices(cluster: Path, capfd: pytest.CaptureFixture[str]) -> None:
    whole = ["disk", "hist", str(cluster), "--all-programs", "--json"]
    counts = {
        host: sum(
            group["count"] for group in json.loads(said([*whole, "--host", host], capfd))["intervals"][0]["groups"]
        )
        for host in HOSTS
    }
    for host, count in counts.items():
        own = "outcome <> 'absorbed' AND flushed_by IS NULL AND issue_ns IS NOT NULL AND complete_ns IS NOT NULL"
        run = cluster / "runs" / f"host={host}"
        assert rows(f"SELECT count(*) FROM '{run}/requests.parquet' WHERE {own}") == [(count,)]
    by_host = json.loads(said([*whole, "--by", "host"], capfd))["intervals"][0]["groups"]
    assert {group["group"]: group["count"] for group in by_host} == counts
    assert main(["disk", "iostat", str(cluster), "--host", "moon"]) == 2
    assert "--host moon: the run has no such host. It has: client, server." in capfd.readouterr().err


def test_places_sum_to_the_latency(cluster: Path, capfd: pytest.CaptureFixture[str]) -> None:
    document = json.loads(said(["stages", str(cluster), "--by", "host", "--json"], capfd))
    found = {row["stage"]: row for row in document["stages"]}
    places = ("client", "client to server", "server", "server to client")
    assert tuple(found) == (*places, "unattributed", "latency")
    assert sum(found[place]["total_ns"] for place in places) == found["latency"]["total_ns"]
    assert {place for place in places if found[place]["bound_ns"] is not None} == {places[1], places[3]}
    ((both, request),) = rows(f"SELECT sum(both_ns), sum(request_ns) FROM '{cluster}/hops.parquet'")
    assert found["client to server"]["total_ns"] == request - sendmsg(cluster, "request sendmsg")
    assert found["server to client"]["total_ns"] == both - request - sendmsg(cluster, "reply sendmsg")
    by_op = """SELECT sum(duration_ns) AS ns FROM '{}/stages.parquet' WHERE host = 'server'
               AND stage <> 'request in socket' GROUP BY op_id ORDER BY ns"""
    server = np.array([int(ns) for (ns,) in rows(by_op.format(cluster))])
    rank = [int(np.ceil(q * len(server))) - 1 for q in (0.5, 0.9, 0.99, 0.999)]
    assert [found["server"][name] for name in ("p50_ns", "p90_ns", "p99_ns", "p999_ns")] == server[rank].tolist()
    assert main(["stages", str(cluster), "--by", "host", "--states"]) == 2
    assert "--states is by stage: leave out --by or --states." in capfd.readouterr().err


def sendmsg(cluster: Path, stage: str) -> int:
    """The part of a message's way in which the sender's call goes on: it lies on the sender's host."""
    ((found,),) = rows(f"SELECT coalesce(sum(duration_ns), 0) FROM '{cluster}/stages.parquet' WHERE stage = '{stage}'")
    return int(found)


def test_why_names_the_host_and_the_stage(cluster: Path, capfd: pytest.CaptureFixture[str]) -> None:
    document = json.loads(said(["why", str(cluster), "--json"], capfd))
    places = {place["place"]: place for place in document["places"]}
    latency = document["latency"]
    assert abs(sum(place["slow_ns"] for place in places.values()) - latency["slow_mean_ns"]) < 1
    assert abs(sum(place["more_ns"] for place in places.values()) - latency["more_ns"]) < 1
    lead = document["places"][0]
    assert lead["more_ns"] == max(place["more_ns"] for place in places.values())
    assert lead["stages"][0][0] in document["place_sentence"]
    assert lead["place"].split(" to ")[0] in document["place_sentence"]
    assert "between server and client" in said(["why", str(cluster)], capfd).replace("\n", " ")


def test_a_wait_for_a_host_that_is_not_recorded_is_unknown(
    given: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The server's recording ends in the middle of the client's: packets at the end of two files are taken away."""
    shutil.copytree(given / "server", tmp_path / "server")
    streams = tmp_path / "server" / "trace" / "ust" / "uid" / "0" / "64-bit"
    shutil.rmtree(streams / "index")
    for name, size in (("app_0", 12_288), ("app_1", 135_168)):
        with (streams / name).open("r+b") as file:
            file.truncate(size)
    out = tmp_path / "cluster"
    assert main(["join", "-o", str(out), f"client={given}/client", f"server={tmp_path}/server"]) == 0
    unknown = "unknown: another host (not recorded)"
    found = f"""SELECT kind, host, from_point, to_point, count(*) FROM '{out}/stages.parquet'
                WHERE stage = '{unknown}' GROUP BY ALL"""
    assert rows(found) == [("unknown", "client", "client.send", "client.recv", 122)]
    law = f"""SELECT count(*), sum((ns + unattributed_ns = latency_ns)::INT), sum((unknown_ns > 0)::INT)
              FROM '{out}/ops.parquet'
              JOIN (SELECT op_id, sum(duration_ns) AS ns FROM '{out}/stages.parquet' GROUP BY op_id) USING (op_id)"""
    assert rows(law) == [(300, 300, 123)]  # one more op has points of the server, but not its reply
    capfd.readouterr()
    assert unknown in said(["stages", str(out), "--json"], capfd)
