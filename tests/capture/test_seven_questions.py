# SPDX-License-Identifier: MIT
"""README's seven questions, each answered in at most two commands while a second fio writes to another disk. What is
counted lies within 2 % of what fio, dd, pgbench and rados bench count.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.capture.test_stranger_live import IOS, _fio, _stranger
from tests.lib.block_capture import loop_device
from tests.lib.postgresql import needs_postgresql, running
from tests.lib.recorded import HERE
from tests.lib.recorder import status

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(shutil.which("fio") is None, reason="no fio"),
]
NEAR = 0.02
MOST_COMMANDS = 2
OWN_NS = 2000  # fio's own work around a call, and two reads of the clock
BLOCK = 4096
#: What fio says of the trace fio-psync-qd1-nvme.
ISSUED = int(re.findall(r"issued rwts: total=0,(\d+),", (HERE / "traces" / "fio-psync-qd1-nvme.out").read_text())[0])


class Asked:
    """The commands that one question takes."""

    def __init__(self, opline: Callable[..., subprocess.CompletedProcess[str]]) -> None:
        self._opline = opline
        self.commands = 0

    def __call__(self, *words: object) -> str:
        self.commands += 1
        assert self.commands <= MOST_COMMANDS
        done = self._opline(*map(str, words))
        assert status(done) == 0, done.stderr
        return done.stdout

    def json(self, *words: object) -> Any:
        return json.loads(self(*words, "--json"))


@pytest.fixture
def ask(opline: Callable[..., subprocess.CompletedProcess[str]]) -> Asked:
    return Asked(opline)


@pytest.fixture(scope="module")
def disk() -> Iterator[str]:
    """The disk that is asked about; another one is busy."""
    with loop_device() as one, loop_device() as two, _stranger(two):
        yield one


def near(ours: float, theirs: float) -> bool:
    return abs(ours - theirs) <= NEAR * theirs


def close(ours_ns: float, theirs_ns: float, bin_ns: float = 0) -> bool:
    return near(ours_ns, theirs_ns) or abs(ours_ns - theirs_ns) <= OWN_NS + bin_ns


def fio_says(text: str) -> dict[str, Any]:
    """The writes of its report, which may stand between other output."""
    (job,) = json.loads(text[text.index("{") : text.rindex("}") + 1])["jobs"]
    return dict(job["write"])


def test_what_do_my_disks_do_now(ask: Asked, disk: str, tmp_path: Path) -> None:
    report = tmp_path / "fio.json"
    fio = [*_fio(disk, f"--number_ios={IOS}"), f"--output={report}"]
    rows = [json.loads(line) for line in ask("now", "iostat", "-d", Path(disk).name, "--json", "--", *fio).splitlines()]
    write = fio_says(report.read_text())
    assert near(sum(row["write_count"] for row in rows), write["total_ios"])
    assert near(sum(row["write_bytes"] for row in rows), write["io_bytes"])


@pytest.fixture(scope="module")
def job(
    disk: str, opline: Callable[..., subprocess.CompletedProcess[str]], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict[str, Any]]:
    """A recorded fio, by one command, and what it says of its writes."""
    run = tmp_path_factory.mktemp("job") / "run1"
    said = Asked(opline)("record", "-o", run, "--", *_fio(disk, f"--number_ios={IOS}"))
    return run, fio_says(said)


def test_why_is_my_fio_jobs_p99_high(ask: Asked, job: tuple[Path, dict[str, Any]]) -> None:
    run, write = job
    found = ask.json("why", run)
    assert near(found["sets"]["ops"], write["total_ios"])


def test_its_latencies_are_fios(ask: Asked, job: tuple[Path, dict[str, Any]]) -> None:
    """fio's are longer by what it does around the call; its percentiles are those of bins 1/64 wide."""
    run, write = job
    (latency,) = (row for row in ask.json("stages", run)["stages"] if row["stage"] == "latency")
    assert close(latency["mean_ns"], write["lat_ns"]["mean"])
    for name, share in (("p50_ns", "50.000000"), ("p99_ns", "99.000000")):
        theirs_ns = write["clat_ns"]["percentile"][share]
        assert close(latency[name], theirs_ns, theirs_ns / 64), name


def test_where_does_my_own_program_spend_its_time(ask: Asked, disk: str, tmp_path: Path) -> None:
    dd = ["dd", "if=/dev/zero", f"of={disk}", f"bs={BLOCK}", f"count={IOS}", "oflag=direct"]
    ask("record", "-o", tmp_path / "run1", "--", *dd)
    said = (tmp_path / "run1" / "stderr.txt").read_text()
    found = ask.json("stages", tmp_path / "run1", "--class", "write", "--size", BLOCK)
    assert near(found["ops"], int(re.findall(r"^(\d+)\+0 records out", said, re.MULTILINE)[0]))


@needs_postgresql
def test_what_does_a_running_postgresql_wait_for(ask: Asked, disk: str, tmp_path: Path) -> None:
    """Each transaction that pgbench counts is an op; few others are: those of pgbench's begin and of autovacuum."""
    each = 250
    with running() as server:
        load = server.client("pgbench", "-n", "-c", "4", "-j", "2", "-t", str(each), "postgres")
        options = ("--model", "postgresql-server", "--comm", "postgres")
        said = ask("record", "-o", tmp_path / "pg", *options, "--", *load)
    assert f"{4 * each}/{4 * each}" in said
    assert near(ask.json("why", tmp_path / "pg")["sets"]["ops"], 4 * each)


def test_what_did_a_recorded_postgresql_wait_for(ask: Asked, tmp_path: Path) -> None:
    """A recorded server and client, and the client's own logs: a line for each transaction."""
    subprocess.run(["tar", "-xJf", HERE / "postgresql" / "pgbench-4.tar.xz", "-C", tmp_path], check=True)
    logs = (tmp_path / "pgbench-4").glob("pgbench_log.*")
    found = ask.json("why", tmp_path / "pgbench-4" / "trace", "--model", "postgresql", "--class", "transaction")
    assert near(found["sets"]["ops"], sum(len(log.read_text().splitlines()) for log in logs))


def test_a_ceph_clusters_slow_write(ask: Asked, trace: Callable[[str], Path]) -> None:
    """A recorded cluster, and what its rados bench wrote."""
    name = "ctf-deb12-uprobes-qd16"
    bench = (HERE / "traces" / f"{name}.bench.txt").read_text()
    found = ask.json("stages", trace(name), "--model", "ceph", "--class", "aio_operate")
    assert near(found["ops"], int(re.findall(r"Total writes made: +(\d+)", bench)[0]))


def test_a_colleague_sent_a_trace(ask: Asked, trace: Callable[[str], Path]) -> None:
    """The second command is one that the first proposes, for the disk that fio wrote to."""
    path = trace("fio-psync-qd1-nvme")
    (document,) = ask.json("what", path)
    assert f"opline iostat {path}" in document["try"]
    rows = ask.json("iostat", path)["rows"]
    (row,) = (row for row in rows if row["device"] == "259:0")
    assert near(row["write_count"], ISSUED) and near(row["write_bytes"], ISSUED * BLOCK)


def test_what_has_changed(ask: Asked, job: tuple[Path, dict[str, Any]], trace: Callable[[str], Path]) -> None:
    """Since the day of a recorded trace: the runs that are compared have as many writes as their fio says."""
    run, write = job
    found = ask.json("compare", trace("fio-psync-qd1-nvme"), run, "--class", "pwrite64")
    (before,), (after,) = found["a"], found["b"]
    assert near(before["ops"], ISSUED) and near(after["ops"], write["total_ios"])
