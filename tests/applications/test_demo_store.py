# SPDX-License-Identifier: MIT
"""The demo store: real recordings on a real loop device, against what the benchmark logs beside the trace.

Covers C1.1, C1.2, C1.4, C1.13 and C1.14.
"""

from __future__ import annotations

import csv
import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from tests.lib.recorder import status, wait_for
from tests.truth_demo import check

from opline.capture.sources import blocksource
from opline.model import load_model

pytestmark = pytest.mark.live

ROOT = Path(__file__).resolve().parents[2]
STORE = ROOT / "examples" / "demo-store"
OPLINE = [sys.executable, "-m", "opline_analyses"]
OPS = 1009
RUNS = (("pwrite", 1), ("libaio", 16), ("uring", 4), ("buffered", 16))  # back end, depth

# fmt: off
EVERY_OP = (
    "client_enqueue", "client_dequeue", "client_encode", "client_send", "client_sent", "server_recv", "server_decode",
    "shard_enqueue", "shard_dequeue", "object_lookup", "io_begin", "io_end", "op_finish", "reply_send", "reply_sent",
    "reply_recv", "reply_decode", "finisher_enqueue", "finisher_dequeue", "aio_complete",
)
# fmt: on
KEYS = {"completion", "client", "seq", "op", "iocb"}
LINE = re.compile(
    r"demo:(\w+): \{ cpu_id = \d+ \}, "
    r"\{ vpid = \d+, vtid = (\d+), procname = \"[^\"]*\"(?:, pid_ns = \d+)? \}, \{ (.*) \}"
)


@dataclass(frozen=True, slots=True)
class Event:
    """One line of babeltrace2."""

    name: str
    tid: int
    fields: dict[str, str]


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recording, the benchmark's logs beside it, and what it printed."""

    folder: Path
    text: str

    @property
    def log(self) -> list[dict[str, str]]:
        with (self.folder / "log.csv").open(newline="") as f:
            return list(csv.DictReader(f))

    @property
    def points(self) -> list[dict[str, str]]:
        with (self.folder / "points.csv").open(newline="") as f:
            return list(csv.DictReader(f))

    @property
    def results(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads((self.folder / "results.json").read_text())
        return document

    def events(self) -> Iterator[Event]:
        """In the order of time."""
        trace = self.folder / "run" / "trace"
        out = subprocess.run(["babeltrace2", trace], text=True, capture_output=True, check=True, timeout=60).stdout
        for line in out.splitlines():
            found = LINE.search(line)
            assert found, line
            yield Event(found[1], int(found[2]), dict(f.split(" = ", 1) for f in found[3].split(", ")))


@pytest.fixture(scope="module", autouse=True)
def built() -> None:
    """The programs that ``run`` starts."""
    subprocess.run(["make", "-s", "-C", STORE], check=True, timeout=120)


def opline(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run the program, which is to succeed."""
    argv = [*OPLINE, *map(str, arguments)]
    done = subprocess.run(argv, text=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=60, check=False)
    assert status(done) == 0, done.stdout[-2000:] + done.stderr
    return done


def logs(folder: Path) -> list[object]:
    """Options: have the benchmark write its logs there."""
    return ["--json", folder / "results.json", "--log", folder / "log.csv", "--log-points", folder / "points.csv"]


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Recorded]:
    """Record a run of the demo store: ``record("--qd", 4)``; the same options, the same recording."""
    done: dict[tuple[object, ...], Recorded] = {}

    def start(*options: object, block: bool = False) -> Recorded:
        if (block, *options) not in done:
            folder = tmp_path_factory.mktemp("recorded")
            session = ["record", "-o", folder / "run", "--model", "demo", "--sessiond", "private"]
            command = [STORE / "run", *options, *logs(folder)]
            text = opline(*session, *([] if block else ["--no-block"]), "--", *command).stdout
            done[(block, *options)] = Recorded(folder, text)
        return done[(block, *options)]

    return start


@pytest.fixture
def play(tmp_path: Path) -> Callable[..., Recorded]:
    """The same without recording."""

    def start(*options: object) -> Recorded:
        argv = [str(a) for a in (STORE / "run", *options, *logs(tmp_path))]
        done = subprocess.run(argv, text=True, capture_output=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        return Recorded(tmp_path, done.stdout)

    return start


def mixed(backend: str, depth: int) -> list[object]:
    """Options of a short run: a prime number of ops."""
    return ["--backend", backend, "--qd", depth, "--ops", OPS, "--read", 20]


def test_compiles_without_warnings(tmp_path: Path) -> None:
    argv = ["make", "-s", "-C", str(STORE), f"BUILD={tmp_path}", "CFLAGS=-O0 -Werror"]
    subprocess.run(argv, check=True, timeout=120)


@pytest.mark.parametrize(("backend", "depth"), RUNS)
def test_each_op_passes_every_point_once(record: Callable[..., Recorded], backend: str, depth: int) -> None:
    recorded = record(*mixed(backend, depth))
    events = Counter(e.name for e in recorded.events())
    writes = sum(line["class"] == "write" for line in recorded.log)
    expected = dict.fromkeys(EVERY_OP, OPS) | {"aio_write": writes, "aio_read": OPS - writes}
    if backend in ("libaio", "uring"):
        expected |= dict.fromkeys(("io_submit", "io_submitted", "io_reap"), OPS)
    if backend == "buffered":
        expected |= dict.fromkeys(("commit_enqueue", "commit_join", "commit_finish"), writes)
        commits = events["commit_open"]
        assert 1 <= commits < writes  # of a group
        expected |= dict.fromkeys(("commit_open", "sync_begin", "sync_end", "commit_close"), commits)
    assert 0 < writes < OPS
    assert events == expected
    assert recorded.results["ops"] == OPS and recorded.results["errors"] == 0


def test_the_trace_does_not_hand_the_answer_over(record: Callable[..., Recorded]) -> None:
    recorded = record(*mixed("libaio", 16))
    keyless, begun = set(), []
    pointers: dict[str, set[str]] = defaultdict(set)
    owners: dict[int, list[str]] = defaultdict(list)  # by thread: the ops of its points, one after the other
    for e in recorded.events():
        assert "truth" not in " ".join(e.fields)
        if not KEYS & e.fields.keys():
            keyless.add(e.name)
        for key in ("completion", "op"):
            if key in e.fields:
                pointers[key].add(e.fields[key])
                owners[e.tid].append(e.fields[key])
        if e.name in ("aio_write", "aio_read"):
            begun.append(e.fields["oid"])
    assert len(keyless) >= 5
    assert len(pointers["completion"]) <= 32 and len(pointers["op"]) <= 32  # recycled
    # An object's name comes again while its last op is among the 16 in flight.
    assert sum(oid in begun[max(0, i - 15) : i] for i, oid in enumerate(begun)) > 100
    interleaved = [tid for tid, ops in owners.items() if len(set(ops)) > 4]
    assert len(interleaved) >= 8  # caller, sender, dispatch, four workers, reader, finisher


@pytest.mark.parametrize(("backend", "depth"), RUNS)
def test_every_transition_is_the_hidden_ops(record: Callable[..., Recorded], backend: str, depth: int) -> None:
    # How near the times are depends on what else the machine does: ./demo checks them, on runs of real length.
    times = {"begin", "end", "latency", "mean", "interrupted"}  # "between" and the rest have no tolerance
    recorded = record(*mixed(backend, depth))
    opline("losses", recorded.folder / "run")  # correlates, puts the tables beside
    verdict = check(recorded.folder / "run", recorded.folder / "log.csv", recorded.folder / "points.csv")
    assert {f.name for f in verdict.findings if not f.holds} <= times, str(verdict)


@pytest.mark.parametrize("backend", ["libaio"])
def test_each_direct_op_is_linked_by_thread_and_by_sector(record: Callable[..., Recorded], backend: str) -> None:
    if (why := blocksource.lacking()) is not None:
        pytest.skip(why)
    recorded = record(*mixed(backend, 16), block=True)
    run = recorded.folder / "run"
    asked = {
        "ops with one request": "select count(*) from ops where complete and request_count = 1",
        "links": "select count(*) from links where evidence = 'thread+sector' and not shared and not ambiguous",
        "same op by both rules": "select count(*) from bios where op_by_thread = op_by_sector",
        "other op": "select count(*) from bios where op_by_thread <> op_by_sector",
        "unbalanced": """select count(*) from ops where latency_ns - unattributed_ns <>
            (select sum(duration_ns) from stages where stages.op_id = ops.op_id)""",
        "out of the window": """select count(*) from bios join transitions t using (op_id) where
            t.point = 'io.begin' and queue_ns < ts_ns or t.point = 'client.complete' and queue_ns > ts_ns""",
        "completed": "select count(*) from requests where op_id is not null and complete_ns is not null",
    }
    sql = "select " + ", ".join(f"({query})" for query in asked.values())
    said = opline("sql", run, sql, "--csv").stdout.splitlines()[-1].split(",")
    counts = {what: int(count) for what, count in zip(asked, said, strict=True)}
    assert counts.pop("completed") >= 0.99 * OPS  # BPF misses one now and then
    ideal = {"ops with one request": OPS, "links": OPS, "same op by both rules": OPS}
    assert counts == dict.fromkeys(counts, 0) | ideal


def test_the_results_are_those_of_the_log(play: Callable[..., Recorded]) -> None:
    recorded = play("--qd", 4, "--ops", 101, "--read", 50)
    latencies = sorted(int(line["latency_ns"]) for line in recorded.log)
    said = recorded.results["latency_ns"]
    assert all(int(x["end_ns"]) - int(x["begin_ns"]) == int(x["latency_ns"]) for x in recorded.log)
    assert said["count"] == len(latencies) == 101
    assert said["mean"] == pytest.approx(sum(latencies) / 101, abs=0.01)
    assert (said["min"], said["max"]) == (latencies[0], latencies[-1])
    for name, p in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)):
        assert said[name] == latencies[math.ceil(p * 101) - 1]
    assert f"Average Latency (us):   {said['mean'] / 1000:.3f}" in recorded.text
    seconds = (recorded.results["end_ns"] - recorded.results["begin_ns"]) / 1e9
    assert recorded.results["iops"] == pytest.approx(101 / seconds, rel=1e-3)


INJECTIONS = {  # back end, and the two points between which the delay is spent
    "client-queue": ("pwrite", "client_enqueue", "client_dequeue"),
    "shard-queue": ("pwrite", "shard_enqueue", "shard_dequeue"),
    "worker": ("pwrite", "object_lookup", "io_begin"),
    "device": ("libaio", "io_submit", "io_reap"),
    "commit": ("buffered", "commit_join", "commit_finish"),
}
BRANCHES = {"client_sent", "reply_sent", "io_submitted"}  # the op goes on elsewhere at the same time


def stages_of(points: list[dict[str, str]]) -> dict[str, dict[tuple[str, str], int]]:
    """By op: the ns between each two points that follow each other."""
    passed: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for p in points:
        event = p["event"].removeprefix("demo:")
        if p["truth_id"] and event not in BRANCHES:
            passed[p["truth_id"]].append((int(p["time_ns"]), event))
    return {
        op: {(a[1], b[1]): b[0] - a[0] for a, b in pairwise(sorted(times, key=lambda t: t[0]))}
        for op, times in passed.items()
    }


def grown_ns(ops: dict[str, dict[tuple[str, str], int]], delayed: set[str]) -> dict[tuple[str, str], float]:
    """By stage: how much longer the median delayed op takes."""
    rest = ops.keys() - delayed
    return {pair: median(ops[op][pair] for op in delayed) - median(ops[op][pair] for op in rest) for pair in ops["0"]}


@pytest.mark.parametrize("stage", INJECTIONS)
def test_a_delay_grows_its_stage_and_no_other(play: Callable[..., Recorded], stage: str) -> None:
    backend, *pair = INJECTIONS[stage]
    delay_ns = 5_000_000
    for _ in range(3):  # a busy machine delays as well
        ops = stages_of(play("--backend", backend, "--ops", 200, "--inject", f"{stage}:5000:0.1").points)
        delayed = {op for op in ops if int(op) % 10 == 9}  # evenly spread, one after the other at depth 1
        assert all(ops[op][pair[0], pair[1]] >= delay_ns for op in delayed)
        grown = grown_ns(ops, delayed)
        expected = dict.fromkeys(grown, 0) | {(pair[0], pair[1]): delay_ns}
        if grown == pytest.approx(expected, abs=0.05 * delay_ns):
            return
    pytest.fail(f"in none of three runs: {grown}")


@pytest.mark.parametrize(
    "options, complaint",
    [
        (["--inject", "worker:100"], "not STAGE:DELAY_US:FRACTION"),
        (["--inject", "worker:100:1.5"], "not STAGE:DELAY_US:FRACTION"),
        (["--inject", "nowhere:100:0.5"], "not STAGE:DELAY_US:FRACTION"),
        (["--inject", "commit:100:0.5"], "only --backend buffered"),
        (["--fault", "lock:5000"], "not KIND:US:WHAT"),
        (["--fault", "lock:5000:4000"], "not KIND:US:WHAT"),
        (["--fault", "object:x:bench_object_3"], "not KIND:US:WHAT"),
        (["--size", "1000"], "--size must be a multiple of 512"),
        (["--qd", "0"], "--qd must be 1 to 1024"),
        (["extra"], 'what is "extra"?'),
    ],
)
def test_wrong_use_is_one_clear_line(options: list[str], complaint: str) -> None:
    argv = [str(STORE / "build" / "demo-bench"), "--device", "/dev/null", *options]
    done = subprocess.run(argv, text=True, capture_output=True, check=False, timeout=20)
    assert (done.returncode, done.stdout) == (2, "")
    assert complaint in done.stderr and done.stderr.count("\n") == 1


def test_a_device_that_cannot_be_opened_is_one_clear_line() -> None:
    argv = [str(STORE / "build" / "demo-bench"), "--device", "/nonexistent/disk", "--ops", "1"]
    done = subprocess.run(argv, text=True, capture_output=True, check=False, timeout=20)
    assert done.returncode == 1
    assert done.stderr == (
        'demo-server: cannot open the device: path="/nonexistent/disk", reason="No such file or directory"\n'
    )


def leftovers() -> tuple[set[str], set[str]]:
    """Loop devices of demo stores, and images that have a name."""
    argv = ["losetup", "-n", "-O", "NAME,BACK-FILE"]
    loops = subprocess.run(argv, text=True, capture_output=True, check=True).stdout.splitlines()
    images = [str(p) for d in ("/dev/shm", "/var/tmp") for p in Path(d).glob("demo-store.*.img")]
    return {line for line in loops if "demo-store" in line}, set(images)


def under_way(session: int) -> bool:
    """A benchmark of that session has run for 50 ms."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "comm").read_text() == "demo-bench\n" and os.getsid(int(process.name)) == session:
                return int((process / "schedstat").read_text().split()[0]) > 50_000_000
        except OSError:  # it has ended
            continue
    return False


def own_loop(pid: int) -> bool:
    return any(f"demo-store.{pid}.img" in line for line in leftovers()[0])


@pytest.mark.parametrize("where", ["raw", "file"])
@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGKILL], ids=lambda s: s.name)
def test_nothing_is_left_behind(where: str, sig: signal.Signals) -> None:
    process = subprocess.Popen(
        [str(STORE / "run"), "--on", where, "--backend", "buffered", "--seconds", "50"],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stderr is not None
    assert "demo-store: on" in process.stderr.readline()
    wait_for(lambda: under_way(process.pid), 20)
    assert own_loop(process.pid)
    if sig == signal.SIGINT:
        os.killpg(process.pid, sig)  # as the terminal does
    else:
        process.kill()  # the shell only
    out, _ = process.communicate(timeout=20)
    deadline = time.monotonic() + 5
    while own_loop(process.pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not own_loop(process.pid)
    assert not any(f"demo-store.{process.pid}.img" in image for image in leftovers()[1])
    if sig == signal.SIGINT:
        assert process.returncode == 130
        assert "Average Latency" in out  # it reports what it had


def test_every_event_is_documented_and_in_the_model() -> None:
    header = (STORE / "demo_tp.h").read_text()
    events = set(re.findall(r"^DEMO_EVENT_\w+\((\w+)\) ", header, re.MULTILINE))
    events |= set(re.findall(r"^    demo, (?:begin, demo, )?(\w+),(?: /\*.*)?$", header, re.MULTILINE))
    events -= {"begin", "completion", "message", "op", "iocb", "step"}  # classes
    assert len(events) == 32
    readme = (STORE / "README.md").read_text()
    model = load_model("demo")
    claimed = {event.removeprefix("demo:") for rule in model.rules for event in rule.events}
    assert claimed == events
    assert not [event for event in events if f"`{event}`" not in readme]
    provider = re.findall(r"^    opline, (\w+),$", (ROOT / "tracepoints" / "opline_tp.h").read_text(), re.MULTILINE)
    macros = re.findall(
        r"^#define (OPLINE_[A-Z_]+)\(", (ROOT / "tracepoints" / "opline_tp.h").read_text(), re.MULTILINE
    )
    described = (ROOT / "tracepoints" / "README.md").read_text()
    assert len(provider) == 3
    assert not [event for event in provider if f"### `opline:{event}`" not in described]
    public = {m for m in macros if "EMIT" not in m and m != "OPLINE_KEY"}
    assert not [macro for macro in public if f"`{macro}(" not in described]
