# SPDX-License-Identifier: MIT
"""fio's system calls through BPF, on this machine: every I/O that fio issued is an op, down to its block request.

No tracepoint of fio's own, no lttng-modules. fio's figures are what it printed, and its log of single I/Os.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.lib.block_capture import loop_device
from tests.lib.recorded import Correlated, Row
from tests.lib.recorder import status

from opline.capture.lttng import recipe
from opline.correlation import correlate
from opline.model import load_model
from opline_analyses.cli import main
from opline_analyses.client.checks import BYTES_LIMIT

pytestmark = pytest.mark.live
ROOT = Path(__file__).resolve().parents[2]
# engine: how the class of its I/Os begins
ENGINES = {"psync": "p", "libaio": "io_submit ", "io_uring": "io_uring "}
UNSEEN = 0.05  # completions that no BPF program sees come in batches of a hundred: tracepoints/COLLECTOR.md
NOISE = ["dd", "if=/dev/zero", "of=/dev/null", "bs=4k", "status=none"]  # another process' reads and writes


FIO = (
    "fio --name={0} --ioengine={0} --filename={1} --direct=1 --rw=randrw --bs=4k --iodepth=8 --runtime=1 --time_based "
    "--size=32M --rate_iops=1500,1500 --write_lat_log={0} --log_offset=1 --output={0}.txt"
)


@dataclass
class Recorded:
    """One recording of fio with each engine, and its run."""

    folder: Path  # fio's files; the recording is in `run` below
    run: Correlated
    noise_pid: int

    def said(self, engine: str) -> tuple[dict[str, int], float]:
        """What fio says that it issued, by direction, and in how many seconds."""
        text = (self.folder / f"{engine}.txt").read_text()
        reads, writes = re.search(r"issued rwts: total=(\d+),(\d+),", text).groups()  # type: ignore[union-attr]
        milliseconds = int(re.search(r"run=(\d+)-", text)[1])  # type: ignore[index]
        return {"read": int(reads), "write": int(writes)}, milliseconds / 1000

    def ios(self, engine: str) -> list[Row]:
        """The ops of one engine's class. psync: not the small files that fio reads by pread64 as well."""
        ops = [op for op in self.run.rows("ops") if re.match(ENGINES[engine] + ".*(read|write)", op["class"])]
        return [op for op in ops if op["length_bytes"] in (4096, None)]

    def ended(self, engine: str) -> list[Row]:
        """Those that end. BPF does not see all completions (tracepoints/COLLECTOR.md): what ends at its completion then
        has no end, and nothing else has none.
        """
        ops = self.ios(engine)
        unseen = {r["request_id"] for r in self.run.rows("requests") if r["complete_ns"] is None}
        may = {link["op_id"] for link in self.run.rows("links") if link["request_id"] in unseen}
        without = {op["op_id"] for op in ops if op["end_ns"] is None}
        assert without <= may and len(without) <= UNSEEN * len(ops)
        return [op for op in ops if op["end_ns"] is not None]

    def span(self, engine: str) -> float:
        """Seconds from the first begin to the last end."""
        ops = self.ended(engine)
        last, first = max(int(op["end_ns"]) for op in ops), min(int(op["begin_ns"]) for op in ops)
        return (last - first) / 1e9


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    if shutil.which("fio") is None:
        pytest.skip("needs fio")
    folder = tmp_path_factory.mktemp("calls")
    with loop_device() as device, subprocess.Popen(NOISE) as noise:
        work = "; ".join(FIO.format(engine, device) for engine in ENGINES)
        try:
            done = subprocess.run(
                [Path(sys.executable).with_name("opline"), "record", "--model", "syscalls", "-o", folder / "run", "--",
                 "sh", "-c", work],
                capture_output=True, text=True, timeout=180, cwd=folder,
            )  # fmt: skip
        finally:
            noise.kill()
    assert status(done) == 0, done.stderr
    if json.loads((folder / "run" / "recording.json").read_text())["block_source"] != "bpf":
        pytest.skip(f"not through BPF here: {done.stderr}")
    manifest = correlate(folder / "run" / "trace", load_model("syscalls"), folder / "run", progress=False)
    return Recorded(folder, Correlated(folder / "run", manifest), noise.pid)


@pytest.mark.parametrize("engine", ENGINES)
def test_every_io_that_fio_issued_is_an_op(recorded: Recorded, engine: str) -> None:
    ops = recorded.ios(engine)
    issued, seconds = recorded.said(engine)
    assert Counter("read" if "read" in op["class"] else "write" for op in ops) == issued
    # fio's time is in milliseconds, and begins before the first I/O: on a busy machine long before
    assert recorded.span(engine) <= seconds + 0.001


@pytest.mark.parametrize("engine", ENGINES)
def test_every_op_contains_its_block_request(recorded: Recorded, engine: str) -> None:
    requests = {r["request_id"]: r for r in recorded.run.rows("requests")}
    links: dict[int, list[Row]] = {}
    for link in recorded.run.rows("links"):
        links.setdefault(link["op_id"], []).append(link)
    missing = 0
    for op in recorded.ios(engine):
        mine = [requests[link["request_id"]] for link in links[op["op_id"]]]
        assert mine and not any(link["ambiguous"] for link in links[op["op_id"]])
        for r in mine:
            assert op["begin_ns"] <= r["queue_ns"] <= r["issue_ns"]
            if r["complete_ns"] is None:
                missing += 1
            else:
                assert r["complete_ns"] <= op["end_ns"]
    assert missing <= UNSEEN * len(links)


def test_only_the_commands_processes_are_recorded(recorded: Recorded) -> None:
    """The command and the job that it forks; not the dd that ran all the while."""
    calls = [t for t in recorded.run.rows("transitions") if (t["event"] or "").startswith("syscall:")]
    assert {t["comm"] for t in calls} <= {"sh", "fio", "opline"}  # opline: before it has become the command
    assert recorded.noise_pid not in {t["pid"] for t in calls}
    assert len({t["pid"] for t in calls}) == 1 + 2 * len(ENGINES)


def test_calls_are_recorded_from_the_first_one_of_the_command_on(recorded: Recorded) -> None:
    """The loader's reads of libraries are the first that any program does."""
    calls = [t for t in recorded.run.rows("transitions") if t["event"] == "syscall:syscall_entry_read"]
    first = min(calls, key=lambda t: t["ts_ns"])
    assert first["ts_ns"] < min(op["begin_ns"] for engine in ENGINES for op in recorded.ios(engine))
    assert first["seq"] == 0


def test_nothing_is_lost_but_completions_that_no_program_sees(recorded: Recorded) -> None:
    """Those are counted, one by one; they are no loss of data unless they are many, and no op is tainted."""
    told = {r["loss"]: r["count"] for r in recorded.run.rows("losses")}
    severe = {r["loss"] for r in recorded.run.rows("losses") if r["severity"] in ("data_loss", "error")}
    assert severe <= {"completions_missing"}, severe
    requests = recorded.run.rows("requests")
    unseen = {r["request_id"] for r in requests if r["complete_ns"] is None and r["outcome"] == "reused"}
    counted = told.get("completions_unseen", 0) + told.get("completions_missing", 0)
    assert len(unseen) <= counted <= UNSEEN * len(requests)  # others are given up at the end
    assert ("completions_missing" in severe) == (counted * 1000 > len(requests))
    assert not any(op["tainted"] for op in recorded.run.rows("ops"))
    collector = json.loads((recorded.run.path / "recording.json").read_text())["collector"]
    assert collector["lost_ring"] == collector["lost_nested"] == 0
    assert collector["sent"]["syscall_entry"] == collector["sent"]["syscall_exit"]


@pytest.mark.parametrize("engine", ENGINES)
def test_coverage_joins_fios_own_log(recorded: Recorded, engine: str, capfd: pytest.CaptureFixture[str]) -> None:
    files = ["--client", f"{recorded.folder}/{engine}.txt", "--client-log", f"{recorded.folder}/{engine}_lat.1.log"]
    assert main(["coverage", str(recorded.run.path), "--json", *files]) == 0
    document = json.loads(capfd.readouterr().out)
    issued = sum(recorded.said(engine)[0].values())
    assert document["client"]["count"] == document["client_log"]["lines"] == issued
    assert document["ops"] == document["client_log"]["ops"] == sum(not op["tainted"] for op in recorded.ended(engine))
    verdicts = {c["check"]: c["passed"] for c in document["checks"]}
    names = ["IOPS", "stages in order", "sum per op"]
    if recorded.span(engine) >= 0.99 * recorded.said(engine)[1]:  # the rate is fio's, whose job may have had to wait
        names.append("Little's law")
    for name in names:
        assert verdicts[name] is True, document["checks"]
    # Where completions were not seen their bytes can be missing as well, no more; the check says so past its limit.
    moved = next(c for c in document["checks"] if c["check"] == "bytes")
    assert abs(moved["difference"]) <= (issued - document["ops"]) / issued, moved
    assert moved["passed"] is (abs(moved["difference"]) <= BYTES_LIMIT), moved
    assert 0 < document["coverage"] < 1  # fio takes the time before its call and after it


def test_the_recorder_knows_the_calls_of_the_collector() -> None:
    table = (ROOT / "tracepoints" / "calls.h").read_text()
    assert tuple(re.findall(r"^    X\((\w+), \w+, \w+\)", table, re.MULTILINE)) == recipe.BPF_SYSCALLS
