# SPDX-License-Identifier: MIT
"""The probes of the model `ceph` on a program whose functions have ceph-osd's names and arguments: what a hit says."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import bt2
import pytest

from opline.model import load_model, read_text

SOURCE = Path(__file__).with_name("fake_osd.cpp")
OPS = 23

MODEL = """
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

Opline = Callable[..., subprocess.CompletedProcess[str]]


@dataclass(slots=True)
class Played:
    """What the program did, and what the recording says of it."""

    pid: int
    run: Path
    model: Path
    told: list[list[int]]  # per op: number, and the addresses of Message, OpRequest, RepGather, TransContext
    probes: dict[str, Any]
    said: str
    events: list[tuple[str, int, dict[str, Any], dict[str, Any]]]  # name, ns, contexts, payload

    def of(self, name: str) -> list[dict[str, Any]]:
        return [payload for event, _, _, payload in self.events if event == f"cephprobe:{name}"]


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


def _python(field: Any) -> Any:
    return str(field) if isinstance(field, bt2._StringFieldConst) else int(field)


def _hits(run: Path) -> list[tuple[str, int, dict[str, Any], dict[str, Any]]]:
    found = []
    for message in bt2.TraceCollectionMessageIterator(str(run / "trace" / "probes")):
        if type(message) is bt2._EventMessageConst:
            event = message.event
            contexts, payload = (
                {str(name): _python(value) for name, value in fields.items()}
                for fields in (event.common_context_field, event.payload_field)
            )
            found.append((event.name, message.default_clock_snapshot.ns_from_origin, contexts, payload))
    return found


@pytest.fixture(scope="module")
def played(fake_osd: Path, running: subprocess.Popen[str], tmp_path_factory: pytest.TempPathFactory) -> Played:
    """The table as the model `ceph` has it, and points for what the program plays."""
    assert running.stdout is not None
    folder = tmp_path_factory.mktemp("probes")
    run, model = folder / "run", folder / "fake.toml"
    text = read_text("ceph")[0]
    table = text[text.index("[probes]\n") : text.index("[keys]\n")]
    model.write_text(f"version = 2\n{table}{MODEL}")
    opline = str(Path(sys.executable).with_name("opline"))
    argv = [opline, "record", "-o", str(run), "--model", str(model), "--probes", "--no-block",
            "--program", str(fake_osd), "--pid", str(running.pid), "--duration", "600"]  # fmt: skip
    told = []
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=-1, text=True) as recorder:
        while recorder.poll() is None and not (run / "recording.json").exists():
            time.sleep(0.02)
        running.send_signal(10)
        while (line := running.stdout.readline()) != "done\n":
            told.append([int(word, 0) for word in line.split()])
        recorder.send_signal(2)
        _, said = recorder.communicate(timeout=60)
    assert recorder.returncode == 0, said
    probes = json.loads((run / "recording.json").read_text())["probes"]
    return Played(running.pid, run, model, told, probes, said, _hits(run))


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
def test_hits_say_thread_and_process_and_come_in_order(played: Played) -> None:
    who = {"vpid": played.pid, "vtid": played.pid, "procname": "ceph-osd"}
    assert all(contexts == who for _, _, contexts, _ in played.events)
    times = [at_ns for _, at_ns, _, _ in played.events]
    assert times == sorted(times)
    flushes = [
        [at for name, at, _, _ in played.events if name == f"cephprobe:device_flush{end}"] for end in ("", "_return")
    ]
    assert all(back - there >= 100_000 for there, back in zip(*flushes, strict=True))


@pytest.mark.live
def test_the_report_says_what_is_probed_and_what_a_hit_costs(played: Played) -> None:
    declared = {probe.event for probe in load_model("ceph").probes}
    placed, absent = set(played.probes["placed"]), {event for _, event, _ in played.probes["absent"]}
    assert placed | absent == declared and not placed & absent and len(declared) == 45
    assert "cephprobe:queue_transactions" in absent and "cephprobe:device_flush_return" in placed
    assert "no probe cephprobe:do_op: " in played.said
    assert played.probes["hits"] == 13 * OPS and sum(played.probes["sent"].values()) == 13 * OPS
    assert played.probes["lost_ring"] == played.probes["lost_nested"] == played.probes["unwritten"] == 0


@pytest.mark.live
@pytest.mark.parametrize("reader", ["native", "bt2"])
def test_hits_are_points_of_ops_at_their_own_time_and_thread(
    played: Played, tmp_path: Path, opline: Opline, reader: str
) -> None:
    asked = ("--model", played.model, "--reader", reader)
    done = opline("csv", played.run / "trace", *asked, "-o", tmp_path / "ops.csv")
    assert done.returncode == 0, done.stderr
    assert len((tmp_path / "ops.csv").read_text().splitlines()) == OPS + 1
    query = "SELECT op_id, point, tid, comm FROM transitions ORDER BY op_id, ts_ns"
    done = opline("sql", played.run / "trace", *asked, "--csv", query)
    assert done.returncode == 0, done.stderr
    rows = [line.split(",") for line in done.stdout.splitlines()[1:]]
    assert [row[1] for row in rows] == POINTS * OPS
    assert {(int(row[2]), row[3]) for row in rows} == {(played.pid, "ceph-osd")}


@pytest.mark.live
def test_probes_on_request_are_placed_on_request(fake_osd: Path, tmp_path: Path, opline: Opline) -> None:
    options = ("record", "--model", "ceph", "--preload", "none", "--no-block", "--program", fake_osd)
    done = opline(*options, "-o", tmp_path / "without", "--", "true")
    assert done.returncode == 0 and "opline: probes" not in done.stderr, done.stderr
    assert json.loads((tmp_path / "without" / "recording.json").read_text())["probes"] is None
    done = opline(*options, "-o", tmp_path / "with", "--probes", "--", "true")
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "with" / "recording.json").read_text())["probes"]["placed"]


def test_without_probes_there_is_nothing_to_ask_for(opline: Opline, tmp_path: Path) -> None:
    done = opline("record", "-o", tmp_path / "run", "--model", "demo", "--probes", "--", "true")
    assert (done.returncode, done.stderr) == (2, "opline: --probes needs a model with [probes].\n")
    done = opline("record", "-o", tmp_path / "run", "--model", "ceph", "--probe-budget", "2%", "--", "true")
    assert done.returncode == 2 and "this model needs --probes, too" in done.stderr
