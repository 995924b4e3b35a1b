# SPDX-License-Identifier: MIT
"""A fio beside the recorded one, on another device or on the same: every figure counts the recorded one's I/Os."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.lib.block_capture import dev_of, loop_device
from tests.lib.recorder import status, wait_for

import opline as api

OPLINE = str(Path(sys.executable).with_name("opline"))
IOS = 1000
CLASS = "pwrite64"

pytestmark = pytest.mark.live
Run = Callable[..., subprocess.CompletedProcess[str]]


def _fio(device: str, *options: str) -> list[str]:
    return [
        "fio", "--name=job", f"--filename={device}", "--size=32M", "--direct=1", "--bs=4k", "--rw=randwrite",
        "--ioengine=psync", "--output-format=json", *options,
    ]  # fmt: skip


def _written(pid: int) -> int:
    """Bytes that the process has written to devices, as the kernel counts them."""
    return int(Path(f"/proc/{pid}/io").read_text().partition("\nwrite_bytes: ")[2].split()[0])


@contextmanager
def _stranger(device: str) -> Iterator[int]:
    """A fio of the same name that writes all the while; its PID."""
    # --thread: its job ends with the process
    argv = _fio(device, "--thread", "--time_based", "--runtime=600", "--rate_iops=2000")
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            wait_for(lambda: _written(process.pid) > 0)
            yield process.pid
        finally:
            process.kill()


@pytest.fixture(scope="module", params=["another device", "the same device"])
def beside(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """A recording beside a stranger: its run, what the recorder said, what the recorded fio said."""
    run = tmp_path_factory.mktemp("stranger") / "run"
    with loop_device() as one, loop_device() as two:
        with _stranger(two if request.param == "another device" else one) as pid:
            argv = [OPLINE, "record", "-o", str(run), "--model", "syscalls", "--", *_fio(one, f"--number_ios={IOS}")]
            done = subprocess.run(argv, capture_output=True, text=True, timeout=240)
        assert status(done) == 0, done.stderr
        (job,) = json.loads(done.stdout[done.stdout.index("{") :])["jobs"]
        yield {"run": run, "said": done.stderr, "write": job["write"], "pid": pid, "dev": dev_of(one)}


def _json(opline: Run, *words: object) -> Any:
    done = opline(*map(str, words))
    assert status(done) == 0, done.stderr
    return json.loads(done.stdout)


def _histogram(opline: Run, *words: object) -> int:
    """I/Os of `opline hist`: counted, or told as not counted (the kernel showed their completion to no program)."""
    done = opline("hist", *map(str, words), "--json")
    assert done.returncode == 0, done.stderr
    return _counted(done)


def _counted(done: subprocess.CompletedProcess[str]) -> int:
    told = re.search(r"of \d+ \S+ (?:is|are) not counted: (.*)\.", done.stderr)
    counted = sum(map(int, re.findall(r"\d+", told[1]))) if told else 0
    for interval in json.loads(done.stdout)["intervals"]:  # a command's own output is on standard error
        counted += sum(group["count"] for group in interval["groups"])
    return counted


def _latency(stages: Any) -> dict[str, Any]:
    (found,) = (stage for stage in stages["stages"] if stage["stage"] == "latency")
    return dict(found)


def test_every_figure_is_the_recorded_ones(beside: dict[str, Any], opline: Run) -> None:
    run, write = beside["run"], beside["write"]
    count, size = write["total_ios"], write["io_bytes"]
    assert (count, size) == (IOS, IOS * 4096)

    assert f"{count} {CLASS} ops: mean " in beside["said"] and f"fio says {count} ops" in beside["said"]
    assert re.search(r"not yours: \d+ I/Os of fio \(pid \d+\) on loop\d+", beside["said"].replace(",", ""))

    stages = _json(opline, "stages", run, "--class", CLASS, "--json")
    assert _latency(stages)["count"] == count
    assert _histogram(opline, run, "-i", "writes") == count
    rows = list(csv.DictReader(io.StringIO(opline("csv", run, "--class", CLASS).stdout)))
    assert len(rows) == count and sum(int(row["bytes"]) for row in rows) == size
    (asked,) = _json(
        opline, "sql", run, f"SELECT count(*) AS n, sum(length_bytes)::BIGINT AS b FROM ops WHERE class = '{CLASS}'",
        "--json",
    )  # fmt: skip
    assert asked == {"n": count, "b": size}
    text = opline("ops", run, "--class", CLASS, "--limit", str(2 * IOS)).stdout
    assert len(re.findall(rf"^ *op \d+ at .* {CLASS} ", text, re.MULTILINE)) == count
    assert opline("report", run, "--class", CLASS, "-o", run / "page.html").returncode == 0
    (whose,) = _json(
        opline, "sql", run, "SELECT count(DISTINCT queue_tid) AS n FROM requests WHERE kind = 'write'", "--json"
    )
    assert whose == {"n": 1}


def test_latencies_are_the_recorded_ones(beside: dict[str, Any], opline: Run) -> None:
    """fio measures around the system call, so its sum is larger; a stranger's I/Os would make opline's sum larger."""
    latency = _latency(_json(opline, "stages", beside["run"], "--class", CLASS, "--json"))
    clat = beside["write"]["clat_ns"]
    assert latency["total_ns"] <= clat["mean"] * clat["N"] * 1.000001
    assert latency["max_ns"] <= clat["max"]


@pytest.mark.filterwarnings("ignore:data loss. completions_missing")  # interrupts that this kernel runs no program for
def test_all_programs_has_the_stranger(beside: dict[str, Any], opline: Run) -> None:
    run = beside["run"]
    assert _histogram(opline, run, "-i", "writes", "--all-programs") > IOS
    counted = _json(opline, "losses", run, "--json")["completions"]  # as the kernel: of every program
    assert sum(row["recorded"] + row["unseen"] for row in counted if row["device"].startswith("loop")) > IOS
    with api.open(run) as mine, api.open(run, all_programs=True) as all_of_them:
        writes = "kind = 'write'"
        assert len(mine.requests.where(writes)) == IOS < len(all_of_them.requests.where(writes))


def test_compare_says_what_it_leaves_out(beside: dict[str, Any], opline: Run) -> None:
    found = opline("compare", beside["run"], beside["run"], "--class", CLASS)
    assert found.returncode == 0 and found.stderr.count("run: not yours: ") == 2, found.stderr


@pytest.mark.parametrize("of", ["requests", "ops"])
def test_a_live_view_with_a_model_counts_the_command(of: str, opline: Run) -> None:
    """Through the block layer of fio's device; all programs only if they are asked for."""
    with loop_device() as device, _stranger(device):
        fio = ["--", *_fio(device, f"--number_ios={IOS}")]
        which = ["-i", "writes"] if of == "requests" else ["--class", CLASS]
        view = ["live", "hist", "600", "--model", "syscalls", "--json", "--of", of, *which]
        mine = opline(*view, *fio)
        everything = opline(*view, "--all-programs", *fio) if of == "requests" else None
    assert mine.returncode == 0, mine.stderr

    assert _counted(mine) == IOS and "not yours: " in mine.stderr
    assert everything is None or (_counted(everything) > IOS and "not yours: " not in everything.stderr)


def _drop_from_the_page_cache(program: Path) -> None:
    with program.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


@pytest.mark.parametrize("cold", [False, True])
def test_a_command_that_does_nothing_watches_the_machine(cold: bool, tmp_path: Path, opline: Run) -> None:
    """Also if the program has to be read from the disk, by the process that is about to execute it."""
    program = tmp_path / "sleep"  # of no other process
    shutil.copy(shutil.which("sleep") or "", program)
    os.sync()
    with loop_device() as device, _stranger(device):
        if cold:
            _drop_from_the_page_cache(program)
        done = opline("record", "-o", tmp_path / "run", "--", program, "1")
        assert status(done) == 0, done.stderr
        dev = dev_of(device)
    said = "sleep did no I/O of its own but to start: all programs of the machine are counted"
    assert said in done.stderr
    found = opline("hist", tmp_path / "run", "-d", f"{dev >> 20}:{dev & 0xFFFFF}", "--json")
    assert json.loads(found.stdout)["intervals"][0]["groups"][0]["count"] > 0
    assert "all programs of the machine are counted" in found.stderr
    stages = json.loads(opline("stages", tmp_path / "run", "--json").stdout)
    requests = json.loads(opline("stages", tmp_path / "run", "--class", "bio write", "--json").stdout)
    assert stages["ops"] > requests["ops"] > 0  # whose calls are not recorded
