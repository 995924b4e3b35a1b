# SPDX-License-Identifier: MIT
"""Uprobes on a program whose functions have ceph-osd's names and arguments: what each hit says, in a real session."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.lib.block_capture import capture

from opline.capture.bpf.bridge import load_library
from opline.capture.ceph.osd_probes import BRIDGE, probe_list
from opline.capture.machine import processes
from opline.capture.sources import blocksource
from opline.errors import OplineError

SOURCE = Path(__file__).parents[1] / "fake_osd" / "fake_osd.cpp"
OPS = 23

MODEL = """
claims = ["cephprobe:*"]
ignore = ["cephprobe:watermark"]
[keys]
number = { fields = ["client", "msg_tid"], scope = "global" }
request = "op"
repop = "repop"
txc = "txc"
[points]
dispatch = { event = "cephprobe:ms_fast_dispatch", role = "begin", key = "number", class = "op", thread = "enter" }
request = { event = "cephprobe:op_request", key = "number", bind = "request" }
enqueue = { event = "cephprobe:enqueue_op", key = "request" }
"mark:{text}" = { event = "cephprobe:mark_event", key = "request" }
execute = { event = "cephprobe:execute_ctx", key = "request" }
issue = { event = "cephprobe:issue_repop", key = "request", bind = "repop" }
add = { event = "cephprobe:txc_add_transaction", bind = "txc" }
"state_{state}" = { event = "cephprobe:txc_state_end", key = "txc" }
flush = "cephprobe:device_flush"
flushed = "cephprobe:device_flush_return"
commit = { event = "cephprobe:op_commit", key = "request" }
done = { event = "cephprobe:eval_repop", key = "repop", role = "end", thread = "leave" }
"""
POINTS = [
    "dispatch", "request", "enqueue", "mark:queued_for_pg", "mark:a name of more than thirty-one ", "execute", "issue",
    "add", "state_5", "flush", "flushed", "commit", "done",
]  # fmt: skip


@dataclass(slots=True)
class Played:
    """What the program did, and what the trace says of it."""

    pid: int
    trace: Path
    told: list[list[int]]  # per op: number, and the addresses of Message, OpRequest, RepGather, TransContext
    ready: dict[str, Any]
    counts: dict[str, Any]
    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def of(self, name: str) -> list[dict[str, Any]]:
        return [payload for event, payload in self.events if event == f"cephprobe:{name}"]


@pytest.fixture(scope="module")
def fake_osd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    binary = tmp_path_factory.mktemp("fake") / "ceph-osd"
    subprocess.run(["g++", "-O1", "-std=c++17", "-rdynamic", str(SOURCE), "-o", str(binary)], check=True, timeout=120)
    return binary


@pytest.fixture(scope="module")
def running(fake_osd: Path) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen([fake_osd, str(OPS)], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None and child.stdout.readline() == "ready\n"
        yield child
        child.terminate()


@pytest.fixture(scope="module")
def played(fake_osd: Path, running: subprocess.Popen[str], tmp_path_factory: pytest.TempPathFactory) -> Played:
    assert running.stdout is not None
    folder = tmp_path_factory.mktemp("uprobes")
    told = []
    with capture(folder, "--uprobes", str(fake_osd), enable=("cephprobe:*",)) as recording:
        running.send_signal(10)
        while (line := running.stdout.readline()) != "done\n":
            told.append([int(word, 0) for word in line.split()])
    assert recording.discarded == 0
    events = [(name, payload) for name, _, payload in recording.events()]
    return Played(running.pid, recording.trace, told, recording.ready, recording.counts, events)


@pytest.mark.live
def test_every_call_is_a_hit_with_what_its_arguments_name(played: Played) -> None:
    assert [number for number, *_ in played.told] == list(range(1, OPS + 1))
    dispatched, requests = played.of("ms_fast_dispatch"), played.of("op_request")
    for (number, message, request, repop, txc), i in zip(played.told, range(OPS), strict=True):
        for hit in (dispatched[i], requests[i]):
            assert (hit["msg"], hit["msg_tid"], hit["msg_type"], hit["client"]) == (message, 100 + number, 42, 4711)
        assert requests[i]["op"] == request
        for name in ("enqueue_op", "execute_ctx", "op_commit", "issue_repop"):
            assert played.of(name)[i]["op"] == request, name
        for name in ("issue_repop", "eval_repop"):
            assert played.of(name)[i]["repop"] == repop, name
        assert played.of("txc_add_transaction")[i]["txc"] == txc
        assert (played.of("txc_state_end")[i]["txc"], played.of("txc_state_end")[i]["state"]) == (txc, 5)
    texts = Counter(hit["text"] for hit in played.of("mark_event"))
    assert texts == {"queued_for_pg": OPS, "a name of more than thirty-one ": OPS}


@pytest.mark.live
def test_hits_say_thread_and_process_and_come_in_order_without_a_gap(played: Played) -> None:
    hits = [payload for name, payload in played.events if name != "cephprobe:watermark"]
    assert {(hit["tid"], hit["pid"], hit["comm"]) for hit in hits} == {(played.pid, played.pid, "ceph-osd")}
    times = [hit["ktime"] for hit in hits]
    assert times == sorted(times)
    for cpu in {hit["cpu"] for hit in hits}:
        numbers = [hit["seq"] for hit in hits if hit["cpu"] == cpu]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    flushes = zip(played.of("device_flush"), played.of("device_flush_return"), strict=True)
    assert all(back["ktime"] - there["ktime"] >= 100_000 for there, back in flushes)


@pytest.mark.live
def test_the_report_says_what_is_probed_and_what_a_hit_costs(played: Played) -> None:
    assert set(played.ready["functions"]) | set(played.ready["absent"]) == {
        p.event for p in probe_list(load_library(BRIDGE))
    }
    assert "queue_transactions" in played.ready["absent"] and "device_flush_return" in played.ready["functions"]
    assert played.counts["hits"] == 13 * OPS and sum(played.counts["sent"].values()) == 13 * OPS
    assert played.counts["lost_ring"] == played.counts["lost_nested"] == played.counts["not_enabled"] == 0
    assert played.ready["entry_ns"] > 0 and played.ready["return_ns"] > 0
    cost_ns = 12 * OPS * played.ready["entry_ns"] + OPS * played.ready["return_ns"]
    assert played.counts["cost_ns"] == cost_ns


@pytest.mark.live
@pytest.mark.parametrize("reader", ["native", "bt2"])
def test_hits_are_points_of_ops_at_their_own_time_and_thread(
    played: Played, tmp_path: Path, opline: Any, reader: str
) -> None:
    model = tmp_path / "fake.toml"
    model.write_text(MODEL)
    done = opline("csv", played.trace, "--model", model, "--reader", reader, "-o", tmp_path / "ops.csv")
    assert done.returncode == 0, done.stderr
    assert len((tmp_path / "ops.csv").read_text().splitlines()) == OPS + 1
    done = opline("sql", played.trace, "--model", model, "--reader", reader, "--csv",
                  "SELECT op_id, point, tid, comm FROM transitions ORDER BY op_id, ts_ns")  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = [line.split(",") for line in done.stdout.splitlines()[1:]]
    assert [row[1] for row in rows] == POINTS * OPS
    assert {(int(row[2]), row[3]) for row in rows} == {(played.pid, "ceph-osd")}


def test_the_osd_that_runs_is_found(
    fake_osd: Path, running: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "named", lambda comm: [running.pid])
    assert blocksource.running_osd() == fake_osd
    monkeypatch.setattr(processes, "named", lambda comm: [])
    with pytest.raises(OplineError, match="no ceph-osd is running"):
        blocksource.running_osd()
    monkeypatch.setattr(processes, "named", lambda comm: [running.pid, os.getpid()])
    with pytest.raises(OplineError, match="several ceph-osd"):
        blocksource.running_osd()
