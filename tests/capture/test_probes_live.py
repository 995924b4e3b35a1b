# SPDX-License-Identifier: MIT
"""Probes that a model declares, on a program that passes an LTTng tracepoint and a USDT probe at each step: both ways
must tell the same.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bt2
import pytest
from tests.lib.block_capture import standing_still

from opline.capture.bpf.btf import Btf
from opline.capture.probes.declared import to_json
from opline.model import load_model

SOURCES = Path(__file__).parents[1] / "probed_app"
COUNT = 211
MANY = 2003
CHILD = 1_000_000

Run = Callable[..., subprocess.CompletedProcess[str]]

PROBES = """
[probes]
program = "probed"
"probed:submit".usdt = "probed:submit"
"probed:submit".fields = { id = "arg1", name = "arg2:text16", delta = "arg3", five = "arg4" }
"probed:start" = { usdt = "probed:start", fields = { id = "arg1", own = "@name:text8" } }
"probed:finish" = { usdt = "probed:finish", fields = { id = "arg1" } }
"""
FUNCTIONS = """
"inside:served".function = "serve_request"
"inside:served".fields = { id = "arg1->0", n = "@served->0", name = "arg1->8->16:text8", factor = "arg2:u32", delta = \
"arg1->8->8:s32" }
"inside:back" = { return = "serve_request", fields = { ret = "ret:s32", after = "@served->0:s64" } }
"inside:none" = { function = "serve_requests" }
"""
POINTS = """
[keys]
id = "id"
[points]
submit = { event = "PROVIDER:submit", role = "begin", key = "id", class = "op", object = "name" }
start = { event = "PROVIDER:start", key = "id", thread = "enter" }
finish = { event = "PROVIDER:finish", key = "id", role = "end", thread = "leave" }
[stages]
"queue" = { from = "submit", to = "start", kind = "wait" }
"serve" = { from = "start", to = "finish" }
"""


@pytest.fixture(scope="module")
def probed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    binary = tmp_path_factory.mktemp("probed") / "probed"
    argv = ["gcc", "-O1", f"-I{SOURCES}", "-o", str(binary), f"{SOURCES}/probed.c", "-llttng-ust", "-ldl"]
    subprocess.run(argv, check=True, timeout=120)
    return binary


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "probed.toml"
    path.write_text(PROBES + FUNCTIONS + POINTS.replace("PROVIDER", "probed"))
    return path


@pytest.fixture(scope="module")
def recording(probed: Path, model: Path, tmp_path_factory: pytest.TempPathFactory, opline: Run) -> Path:
    """The command forks after it was started: the child is hit as its parent is."""
    run = tmp_path_factory.mktemp("run") / "run"
    done = opline("record", "-o", run, "--model", model, "--events", "twin:*", "--no-block", "--", probed, COUNT)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{3 * COUNT} 0\n", "every semaphore was up, in the child too"
    assert f"note: the model {model} places probes in probed\n" in done.stderr
    assert f"{model}:12: " in done.stderr and "(did you mean serve_request?)" in done.stderr
    return run


@pytest.fixture(scope="module")
def lossy(probed: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the collector says of itself, where its trace is, and the model."""
    folder = tmp_path_factory.mktemp("lossy")
    model = folder / "probed.toml"
    model.write_text(PROBES + POINTS.replace("PROVIDER", "probed"))
    (folder / "probes.json").write_text(to_json(load_model(model).probes, {"probed": [probed]}))
    what = ["--probes", str(folder / "probes.json"), "--trace", str(folder / "trace" / "probes")]
    small = ["--ring-bytes", str(1 << 16)]
    argv = [sys.executable, "-P", "-m", "opline.capture.collectors.collector", *what, *small]
    with subprocess.Popen(argv, stdout=-1, text=True) as collector:
        assert collector.stdout is not None
        assert json.loads(collector.stdout.readline())["ready"]
        with standing_still(collector.pid):
            subprocess.run([probed, str(MANY)], check=True, stdout=subprocess.DEVNULL)
        collector.terminate()
        report: dict[str, Any] = json.loads(collector.stdout.readline())
    return {**report, "trace": folder / "trace", "model": model}


def hits(run: Path) -> list[tuple[str, dict[str, int | str]]]:
    return hits_in(run / "trace" / "probes")


def hits_in(trace: Path) -> list[tuple[str, dict[str, int | str]]]:
    """(event, fields), in the order in which babeltrace2 has them."""
    found = []
    for message in bt2.TraceCollectionMessageIterator(str(trace)):
        if type(message) is bt2._EventMessageConst:
            payload = message.event.payload_field.items()
            fields = {str(n): str(v) if isinstance(v, bt2._StringFieldConst) else int(v) for n, v in payload}
            found.append((message.event.name, fields))
    return found


def thread_that_slept(run: Path, pid: int) -> bool:
    """Is there a scheduler event of this thread?"""
    return any(
        type(message) is bt2._EventMessageConst
        and message.event.name == "sched:off_cpu"
        and int(message.event.payload_field["tid"]) == pid
        for message in bt2.TraceCollectionMessageIterator(str(run / "trace"))
    )


def rows(opline: Run, run: Path, model: Path, reader: str, query: str) -> list[dict[str, object]]:
    done = opline("sql", run / "trace", query, "--model", model, "--reader", reader, "--json")
    assert done.returncode == 0, done.stderr
    found: list[dict[str, object]] = json.loads(done.stdout)
    return found


@pytest.mark.live
def test_every_pass_is_a_hit_with_what_the_arguments_are(recording: Path) -> None:
    found = hits(recording)
    ids = sorted([*range(COUNT), *range(CHILD, CHILD + COUNT)])
    for event in ("probed:submit", "probed:start", "probed:finish", "inside:served"):
        assert sorted(int(fields["id"]) for name, fields in found if name == event) == ids, event
    for name, fields in found:
        if name == "probed:submit":
            assert (fields["name"], fields["delta"], fields["five"]) == ("a request", -int(fields["id"]), -5)
        if name == "inside:served":
            assert (fields["name"], fields["delta"], fields["factor"]) == ("a reque", -int(fields["id"]), 3)
        if name == "probed:start":
            assert fields["own"] == "a reque"
    assert sorted(int(fields["ret"]) for name, fields in found if name == "inside:back") == sorted(-3 * i for i in ids)


@pytest.mark.live
def test_a_variable_is_read_as_it_is_in_that_process_at_that_moment(recording: Path) -> None:
    """The program is loaded anywhere; parent and child have a counter each."""
    found = hits(recording)
    assert all(fields["n"] == int(fields["id"]) % CHILD for name, fields in found if name == "inside:served")
    after = sorted(int(fields["after"]) for name, fields in found if name == "inside:back")
    assert after == sorted(2 * list(range(1, COUNT + 1)))


@pytest.mark.live
@pytest.mark.parametrize("reader", ["native", "bt2"])
def test_probes_give_the_ops_that_tracepoints_give(
    recording: Path, model: Path, opline: Run, tmp_path: Path, reader: str
) -> None:
    """LTTng's own come right before at each place; of a forked child it needs liblttng-ust-fork."""
    twin = tmp_path / "twin.toml"
    twin.write_text(POINTS.replace("PROVIDER", "twin"))
    query = """SELECT o.key, t.point, t.tid, t.pid, t.comm, t.evidence, t.ts_ns, s.stage, s.kind FROM ops o
        JOIN transitions t USING (op_id)
        LEFT JOIN stages s ON s.op_id = t.op_id AND s.begin_ns + s.duration_ns = t.ts_ns ORDER BY o.begin_ns, t.seq"""
    by_probes, by_tracepoints = (
        [row for row in rows(opline, recording, way, reader, query) if int(str(row["key"]).partition("=")[2]) < CHILD]
        for way in (model, twin)
    )
    assert len(by_tracepoints) == len(by_probes) == 3 * COUNT
    for probe, tracepoint in zip(by_probes, by_tracepoints, strict=True):
        assert {**probe, "ts_ns": 0} == {**tracepoint, "ts_ns": 0}
        assert int(str(tracepoint["ts_ns"])) <= int(str(probe["ts_ns"]))


@pytest.mark.live
def test_the_manifest_says_what_was_probed_and_what_a_hit_costs(recording: Path) -> None:
    document = json.loads((recording / "recording.json").read_text())
    assert all((recording / "trace" / name).stat().st_mode & 0o007 == 0 for name in ("probes", "probes/index"))
    probes = document["probes"]
    assert probes["placed"] == {
        "probed:submit": 1, "probed:start": 1, "probed:finish": 1, "inside:served": 1, "inside:back": 1,
    }  # fmt: skip
    assert probes["hits"] == 10 * COUNT and sum(probes["sent"].values()) == 10 * COUNT
    assert probes["lost_ring"] == probes["lost_nested"] == probes["unwritten"] == 0
    more_ns = len(probes["stepped"]) * (probes["stepped_ns"] - probes["entry_ns"])
    colder_ns = 5 * ((probes["hit_ns"] or probes["entry_ns"]) - probes["entry_ns"])
    assert probes["cost_ns"] == 2 * COUNT * (4 * probes["entry_ns"] + probes["return_ns"] + more_ns + colder_ns) > 0
    (channel,) = (channel for channel in document["channels"] if channel["name"] == "probes")
    assert (channel["event_count"], channel["discarded_count"], channel["lost_packet_count"]) == (10 * COUNT, 0, 0)


@pytest.mark.live
@pytest.mark.parametrize("reader", ["native", "bt2"])
def test_hits_that_found_no_room_are_discarded_events(lossy: dict[str, Any], opline: Run, reader: str) -> None:
    """A ring of 64 KiB that is emptied ten times a second: what is in the trace and what is not are all that were."""
    done = opline("losses", lossy["trace"], "--model", lossy["model"], "--reader", reader)
    assert done.returncode == 0, done.stderr
    found = re.search(r"^\s*discarded_events\s+(\d+)", done.stdout, re.MULTILINE)
    assert found is not None and int(found[1]) == lossy["lost_ring"] > 0
    assert "discarded_unknown_count" not in done.stdout
    assert lossy["hits"] + lossy["lost_ring"] == 6 * MANY and len(hits(lossy["trace"].parent)) == lossy["hits"]


@pytest.mark.live
def test_attaches_to_what_runs_and_leaves_nothing(probed: Path, tmp_path: Path, opline: Run) -> None:
    model = tmp_path / "probed.toml"
    model.write_text(PROBES + POINTS.replace("PROVIDER", "probed"))
    run = tmp_path / "run"
    with subprocess.Popen([probed, str(COUNT), "--wait"], text=True, stdin=-1, stdout=-1) as child:
        assert child.stdin is not None and child.stdout is not None
        assert int(child.stdout.readline()) == child.pid
        program = Path(sys.executable).with_name("opline")
        argv = [
            str(program),
            "record",
            "-o",
            str(run),
            "--model",
            str(model),
            "--pid",
            str(child.pid),
            "--duration",
            "60",
        ]
        with subprocess.Popen(argv, text=True, stderr=-1) as recorder:
            while recorder.poll() is None and not (run / "recording.json").exists():
                time.sleep(0.05)
            out, _ = child.communicate("go\n")
            assert out == f"{3 * COUNT} 0\n"
            _, said = recorder.communicate(timeout=60)
    assert recorder.returncode == 0 and "all processes that were attached to have ended" in said, said
    document = json.loads((run / "recording.json").read_text())
    assert (document["attached"], document["command"]["argv"], document["state"]) == ([child.pid], [], "complete")
    assert document["probes"]["hits"] == 6 * COUNT
    assert thread_that_slept(run, child.pid), "the scheduler states of what was attached to"
    after = subprocess.run([probed, "5"], check=True, text=True, capture_output=True)
    assert after.stdout == "0 3\n", "no semaphore is up any more"


@pytest.mark.live
def test_a_tracepoint_of_the_kernel_is_a_probe(tmp_path: Path, opline: Run) -> None:
    """Which program an exec is of, as the kernel's structure has it: its layout is looked up in the kernel's BTF."""
    filename = Btf.of_kernel().offset("linux_binprm", "filename")
    model = tmp_path / "exec.toml"
    model.write_text(
        '[probes]\n"k:exec" = { tracepoint = "sched:sched_process_exec", fields = { old = "arg2:s32", '
        f'name = "arg3->{filename}:text32" }} }}\n'
        '[points]\nexec = { event = "k:exec", role = "begin", class = "exec", object = "name" }\n'
    )
    run = tmp_path / "run"
    done = opline("record", "-o", run, "--model", model, "--no-block", "--", "sh", "-c", "for i in 1 2 3; do env; done")
    assert done.returncode == 0, done.stderr
    assert f"note: the model {model} places probes in the kernel\n" in done.stderr
    found = [fields for _, fields in hits(run) if str(fields["name"]).endswith("/env")]
    assert len(found) == 3 and all(int(fields["old"]) > 0 for fields in found)
    probes = json.loads((run / "recording.json").read_text())["probes"]
    assert probes["hits"] == probes["in_kernel"] >= 4 and probes["cost_ns"] == 0


@pytest.mark.live
def test_each_chunk_has_its_part_of_the_hits(tmp_path: Path, opline: Run) -> None:
    """A rotated recording has each hit once, and no part has them all."""
    model = tmp_path / "exec.toml"
    model.write_text(
        '[probes]\n"k:exec" = { tracepoint = "sched:sched_process_exec", fields = { old = "arg2:s32" } }\n'
        '[points]\nexec = { event = "k:exec", role = "begin", class = "exec", object = "old" }\n'
    )
    run = tmp_path / "run"
    command = ["sh", "-c", "for i in $(seq 40); do sleep 0.1; done"]
    done = opline("record", "-o", run, "--rotate", "1", "--model", model, "--no-block", "--", *command)
    assert done.returncode == 0, done.stderr
    probes = json.loads((run / "recording.json").read_text())["probes"]
    parts = list((run / "trace").rglob("probes"))  # of the open chunk too: LTTng may not have closed the last
    assert len(parts) >= 3 and not (run / "trace/probes").exists()
    counts = [len(hits_in(part)) for part in parts]
    assert probes["parts_failed"] == 0 and sum(counts) == probes["hits"] >= 40
    assert sum(count > 0 for count in counts) >= 3
