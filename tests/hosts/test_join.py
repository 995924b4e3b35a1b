# SPDX-License-Identifier: MIT
"""`opline join` and `opline hosts` on two recordings whose clocks differ by a known function of time."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from opline_analyses.cli import main

Trace = Callable[[str], Path]


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the two recordings, and of the truth."""
    folder = tmp_path_factory.mktemp("recorded")
    subprocess.run(["tar", "-xJf", Path(__file__).with_name("two-hosts.tar.xz"), "-C", folder], check=True)
    return folder / "two-hosts"


@pytest.fixture(scope="module")
def cluster(given: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recorded client and server, joined."""
    out = tmp_path_factory.mktemp("join") / "cluster"
    assert main(["join", "-o", str(out), f"client={given}/client", f"server={given}/server"]) == 0
    return out


def columns(file: Path) -> dict[str, Any]:
    table = pq.read_table(file)
    return {name: np.array(table.column(name).to_pylist()) for name in table.column_names}


def true_ns(own_ns: Any, truth: Path) -> Any:
    """The client's time at times of the server's clock, which the clock plug-in of the recording made: offset, rate,
    wander, its period, and when the clock began.
    """
    offset, ppm, wander, period, begin = truth.read_text().split()
    reference = own_ns - int(offset)
    for _ in range(6):
        passed = reference - int(begin)
        wave = float(wander) * 1e-6 * float(period) / 2 / math.pi * 1e9
        theta = np.trunc(passed * float(ppm) * 1e-6) + np.trunc(
            wave * (1 - np.cos(2 * math.pi * passed / 1e9 / float(period)))
        )
        reference = own_ns - int(offset) - theta.astype(np.int64)
    return reference


def test_every_op_is_whole_and_sums_up(cluster: Path) -> None:
    ops = columns(cluster / "ops.parquet")
    assert len(ops["op_id"]) == 2500
    assert ops["complete"].all()
    stages = columns(cluster / "stages.parquet")
    assert (stages["duration_ns"] >= 0).all()
    sums = np.bincount(stages["op_id"], stages["duration_ns"], minlength=int(ops["op_id"].max()) + 1)
    assert (sums[ops["op_id"]] + ops["unattributed_ns"] == ops["latency_ns"]).all()
    assert not ops["unattributed_ns"].any()
    assert {"shard queue", "commit turn", "request in socket"} <= set(stages["stage"])


def test_every_time_of_the_server_is_within_its_bound(cluster: Path, given: Path) -> None:
    truth = given / "truth"
    own = np.sort(columns(cluster / "runs/host=server/messages.parquet")["ts_ns"])
    joined = columns(cluster / "messages.parquet")
    mapped = np.sort(joined["ts_ns"][joined["host"] == "server"])
    clock = columns(cluster / "clock.parquet")
    knot = np.clip(np.searchsorted(clock["reference_ns"], mapped, "right") - 1, 0, None)
    away = np.abs(mapped - true_ns(own, truth))
    assert (away <= clock["bound_ns"][knot] + 2).all()


def test_hops_are_within_their_bound_and_both_ways_together_need_none(cluster: Path, given: Path) -> None:
    truth = given / "truth"
    hops = columns(cluster / "hops.parquet")
    assert len(hops["op_id"]) == 2500
    assert sorted(hops["op_id"]) == sorted(columns(cluster / "ops.parquet")["op_id"])
    assert (hops["request_ns"] >= 0).all()
    assert (hops["reply_ns"] >= 0).all()
    own = np.sort(columns(cluster / "runs/host=server/messages.parquet")["ts_ns"])
    joined = columns(cluster / "messages.parquet")
    of_own = dict(
        zip(np.sort(joined["ts_ns"][joined["host"] == "server"]).tolist(), true_ns(own, truth).tolist(), strict=True)
    )
    received, replied = (np.array([of_own[t] for t in hops[k].tolist()]) for k in ("received_ns", "replied_ns"))
    request, reply = received - hops["sent_ns"], hops["returned_ns"] - replied
    assert (np.abs(request - hops["request_ns"]) <= hops["bound_ns"] + 2).all()
    assert (np.abs(reply - hops["reply_ns"]) <= hops["bound_ns"] + 2).all()
    visit = hops["replied_ns"] - hops["received_ns"]
    assert (np.abs(request + reply - hops["both_ns"]) <= visit * 500e-6 + 3).all()


def test_what_one_host_does_keeps_its_times(cluster: Path) -> None:
    """Stages within the server are its own but for the clocks' rate."""
    client_alone = columns(cluster / "runs/host=client/ops.parquet")["latency_ns"]
    assert sorted(columns(cluster / "ops.parquet")["latency_ns"]) == sorted(client_alone)


def test_hosts_says_offset_rate_bound_and_counts(cluster: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["hosts", str(cluster)]) == 0
    text = capfd.readouterr().out
    assert "client reference" in text
    assert "client and server  model    5000         0          0              0" in text
    assert main(["hosts", str(cluster), "--json"]) == 0
    document = json.loads(capfd.readouterr().out)
    client, server = document["hosts"]
    assert client["bound_max_ns"] == 0
    assert abs(server["offset_ns"] - 37_000_000_000) < 1_000_000
    assert 0 < server["bound_p50_ns"] <= server["bound_max_ns"]
    assert server["limit_ppm"] == 500
    assert main(["hosts", str(cluster), "--csv"]) == 0
    assert capfd.readouterr().out.splitlines()[0].startswith("host,status,event_count,interval_ns,offset_ns,rate_ppm")
    picture = cluster.parent / "bound.svg"
    assert main(["hosts", str(cluster), "--plot", str(picture)]) == 0
    assert "bound (us)" in picture.read_text()


def test_a_lower_limit_is_a_tighter_bound(cluster: Path, given: Path, tmp_path: Path) -> None:
    out = tmp_path / "tight"
    arguments = [f"client={given}/client", f"server={given}/server"]
    assert main(["join", "-o", str(out), *arguments, "--clock-rate-limit", "10", "--reference", "server"]) == 0
    tight, loose = (json.loads((folder / "cluster.json").read_text()) for folder in (out, cluster))
    assert tight["reference"] == "server"
    assert tight["hosts"][0]["bound_p50_ns"] < loose["hosts"][1]["bound_p50_ns"]
    assert abs(tight["hosts"][0]["rate_ppm"] + 23) < 1.5


def test_a_cluster_is_a_run(cluster: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for command in ("ops", "stages", "why", "csv"):
        assert main([command, str(cluster)]) == 0, command
    capfd.readouterr()
    assert main(["sql", str(cluster), "SELECT host, count(*) FROM messages GROUP BY host ORDER BY host", "--csv"]) == 0
    assert capfd.readouterr().out.splitlines()[1:] == ["client,5000", "server,5000"]


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["{}/client"], 2, "A cluster has two hosts at least"),
        (["{}/client"] * 256, 2, "A cluster has 255 hosts at most"),
        (["{}/client", "{}/server"], 2, "are both of a host vm: name them"),
        (["a={}/client", "b={}/client/"], 2, "{}/client is given twice: each recording is of another host."),
        (["a={}/absent", "b={}/none"], 1, "No recording can be read. {}/absent does not exist."),
        (["a={}/client", "b={}/absent", "--reference", "b"], 1, "b, whose clock all times are to have, is missing"),
        (["a={}/client", "a={}/absent"], 2, "are both of a host a"),
        (["a={}/client", "b={}/server", "--reference", "c"], 2, "--reference c: there is no such host"),
        (["a={}/client", "b={}/server", "--model", "syscalls"], 1, "says of no point that it sends or receives"),
        (["a={}/client", "b={}/server", "--clock-rate-limit", "0"], 2, "must lie between 0 and 1000 ppm"),
    ],
)
def test_mistakes_are_one_line_and_leave_nothing(
    arguments: list[str], status: int, said: str, given: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["join", "-o", str(tmp_path / "out"), *(a.format(given) for a in arguments)]) == status
    error = capfd.readouterr().err
    assert said.format(given) in error
    assert len(error.splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_two_recordings_of_one_boot_are_not_two_hosts(
    given: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(given / "client", tmp_path / "copy")
    arguments = ["join", "-o", str(tmp_path / "out"), f"a={given}/client", f"b={tmp_path}/copy"]
    assert main(arguments) == 2
    assert "have one clock: they are of one boot of one host" in capfd.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_folder_that_is_there_is_kept(given: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["join", "-o", str(tmp_path), f"a={given}/client", f"b={given}/server"]) == 2
    assert f"{tmp_path} exists" in capfd.readouterr().err


def test_hosts_without_messages_between_them(
    given: Path, trace: Trace, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    demo = tmp_path / "demo"
    shutil.copytree(trace("demo-qd4"), demo)
    arguments = ["join", "-o", str(tmp_path / "out"), f"client={given}/client", f"other={demo}", "--model", "demo"]
    assert main(arguments) == 1
    assert "other is not aligned: no message between client and other." in capfd.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_third_host_without_messages_stays_out_and_is_named(
    given: Path, trace: Trace, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    arguments = [f"client={given}/client", f"server={given}/server", f"other={trace('demo-qd4')}", "--model", "demo"]
    assert main(["join", "-o", str(out), *arguments]) == 3
    assert "other is not aligned: no message between client and server and other." in capfd.readouterr().err
    assert [h["status"] for h in json.loads((out / "cluster.json").read_text())["hosts"]] == [
        "reference",
        "aligned",
        "apart",
    ]


def test_stages_have_a_bound_where_they_cross_hosts_and_nowhere_else(
    cluster: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["stages", str(cluster), "--json"]) == 0
    document = json.loads(capfd.readouterr().out)
    bounds = {s["stage"]: s["bound_ns"] for s in document["stages"]}
    assert {stage for stage, bound in bounds.items() if bound is not None} == {"request in socket", "reply in socket"}
    hops = columns(cluster / "hops.parquet")
    assert bounds["request in socket"] == hops["bound_ns"].max()
    (ways,) = document["both_ways"]
    assert (ways["parent_host"], ways["child_host"], ways["count"]) == ("client", "server", 2500)
    assert abs(ways["mean_ns"] - hops["both_ns"].mean()) < 1
    assert main(["stages", str(cluster)]) == 0
    text = capfd.readouterr().out
    assert " mean    ± " in text.splitlines()[0]
    assert "client to server and back: " in text


def test_points_closer_than_the_bound_are_not_cut(cluster: Path) -> None:
    """The client's return from sendmsg and the server's receive: nobody knows which came first."""
    stages = columns(cluster / "stages.parquet")
    into = stages["to_point"] == "server.recv"
    after_sendmsg = into & (stages["from_point"] == "client.sent")
    assert 0 < after_sendmsg.sum() < into.sum()
    clock = columns(cluster / "clock.parquet")
    ends = (stages["begin_ns"] + stages["duration_ns"])[after_sendmsg]
    knot = np.clip(np.searchsorted(clock["reference_ns"], ends, "right") - 1, 0, None)
    assert (stages["duration_ns"][after_sendmsg] >= clock["bound_ns"][knot]).all()


def test_one_host_of_a_cluster(cluster: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["stages", str(cluster), "--host", "client"]) == 0
    assert "mean of 2500 ops" in capfd.readouterr().out
    assert main(["stages", str(cluster), "--host", "server"]) == 2
    assert "--host server: no op begins on such a host. Ops begin on: client." in capfd.readouterr().err


def without_metadata(recording: Path) -> None:
    next(recording.rglob("metadata")).write_bytes(b"no metadata")


def without_streams(recording: Path) -> None:
    for file in recording.rglob("app_*"):
        file.unlink()


@pytest.mark.parametrize("damage", [shutil.rmtree, without_metadata, without_streams])
def test_a_host_that_cannot_be_read_is_said_by_every_command(
    damage: Callable[[Path], None], given: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The client alone is joined. Its ops are whole, and say of the server that it is not known."""
    server = tmp_path / "server"
    shutil.copytree(given / "server", server)
    damage(server)
    out = tmp_path / "out"
    assert main(["join", "-o", str(out), f"client={given}/client", f"server={server}"]) == 3
    said = capfd.readouterr()
    assert said.err.count("\n") == 1 and said.err.startswith("opline: server is missing: ")
    assert str(server) in said.err and "server missing" in said.out
    _, host = json.loads((out / "cluster.json").read_text())["hosts"]
    assert (host["status"], f"opline: server is missing: {host['why']}.\n") == ("missing", said.err)
    for command in ("stages", "why", "ops", "losses"):
        assert main([command, str(out), "--json"]) == 0
        lines = capfd.readouterr().err.splitlines()
        assert lines[-1].startswith(f"opline: the recording is not whole: server is missing: {host['why']}. ")
        if command != "losses":
            assert lines[0].startswith("opline: lost: hosts_missing 1 (a host of the cluster is not in the figures)")
    stages = columns(out / "stages.parquet")
    waits = stages["stage"] == "unknown: server (not recorded)"
    assert waits.sum() == 2500 and set(stages["kind"][waits]) == {"unknown"}
    assert main(["stages", str(out), "--max-loss", "0"]) == 3
    capfd.readouterr()
    assert main(["stages", str(out), "--json", "--engine", "processes"]) == 3
    found = capfd.readouterr()
    assert json.loads(found.out)["ops"] == 2500
    assert f"opline: server: {host['why']}\n" in found.err
    assert "1 of 2 recordings are not in the figures below: server." in found.err
    assert main(["hosts", str(out)]) == 0
    assert f"server is missing: {host['why']}." in capfd.readouterr().out


def test_a_gap_in_a_joined_run_has_the_name_of_its_host(
    given: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    hosts = [Path(shutil.copytree(given / name, tmp_path / name)) for name in ("client", "server")]
    for folder in hosts:
        note = folder / "recording.json"
        note.write_text(json.dumps(json.loads(note.read_text()) | {"state": "recording"}))
    out = tmp_path / "out"
    assert main(["join", "-o", str(out), *(f"{host.name}={host}" for host in hosts)]) == 0
    capfd.readouterr()
    assert main(["stages", str(out)]) == 0
    last = capfd.readouterr().err.splitlines()[-1]
    for host in ("client", "server"):
        assert f"{host}: the recorder was killed, or is still at it" in last
