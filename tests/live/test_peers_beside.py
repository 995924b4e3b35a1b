# SPDX-License-Identifier: MIT
"""Other people's programs at the same time on the same device: sysstat's iostat, libbpf-tools' biolatency and biosnoop,
perf. Each I/O of fio's is in all of them, or how many are not is known: what a program has missed it does not say, so
the tests allow what BPF itself misses on this machine (docs/losses.md), which ours tells.
"""

from __future__ import annotations

import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from tests.lib.block_capture import loop_device

from opline.capture.sources import livesource
from opline_analyses.cli import main

OPLINE = str(Path(sys.executable).with_name("opline"))
IOS = 2560
pytestmark = pytest.mark.live


def program(name: str, needs: str) -> str:
    """The path of one; skips the test where it is not installed."""
    found = next((path for path in (f"/usr/sbin/{name}", shutil.which(name)) if path and Path(path).exists()), None)
    if found is None:
        pytest.skip(f"needs {name} (apt install {needs})")
    return found


@pytest.fixture
def device() -> Iterator[str]:
    if why := livesource.lacking():
        pytest.skip(why)
    program("fio", "fio")
    with loop_device(256 << 20) as path:
        yield path


def attached(pid: int) -> int:
    """How many BPF programs a process has attached: descriptors of links and of perf events."""
    found = 0
    for path in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):
            target = str(path.readlink())
            found += "bpf_link" in target or "perf_event" in target or "bpf-raw-tracepoint" in target
    return found


def await_attached(child: subprocess.Popen[bytes]) -> None:
    """Until its programs are attached, all of them, however long a busy machine takes; a program that ends meanwhile is
    for its test to judge.
    """
    until, before = time.monotonic() + 120, 0
    while time.monotonic() < until and child.poll() is None:
        now = attached(child.pid)
        if now and now == before:
            return
        before = now
        time.sleep(1)


@contextmanager
def beside(argv: list[str], file: Path, bpf: bool) -> Iterator[subprocess.Popen[bytes]]:
    """A program that runs meanwhile, its output in a file; it ends by Ctrl-C. ``bpf``: it attaches programs first."""
    with file.open("wb") as out:
        child = subprocess.Popen(argv, stdout=out, stderr=subprocess.STDOUT)
        if bpf:
            await_attached(child)
        try:
            yield child
            time.sleep(1)
        finally:
            child.send_signal(signal.SIGINT)
            child.wait(60)


@contextmanager
def perf_record(perf: str, events: str, data: Path) -> Iterator[None]:
    """perf has its events enabled, as it says itself, until the end."""
    control, answer = data.with_name("perf.control"), data.with_name("perf.answer")
    os.mkfifo(control)
    os.mkfifo(answer)
    argv = [perf, "record", "-q", "-a", "-m", "8M", "-e", events, "-o", str(data)]
    argv += ["--delay=-1", f"--control=fifo:{control},{answer}"]
    log = data.with_name("perf.log")
    with beside(argv, log, bpf=False) as child, control.open("r+b", 0) as told, answer.open("r+b", 0) as heard:
        for command in (b"enable\n", b"disable\n"):
            told.write(command)
            while not select.select([heard], [], [], 1)[0]:
                if child.poll() is not None:
                    pytest.skip(log.read_text())
            assert heard.read(64).strip(b"\0") == b"ack\n"
            if command == b"enable\n":
                yield


def perfs_losses(perf: str, data: Path) -> int:
    """Events that perf's buffers had no room for."""
    shown = subprocess.run(
        [perf, "script", "--show-lost-events", "-i", str(data)], capture_output=True, text=True, check=True
    ).stdout
    return sum(map(int, re.findall(r"PERF_RECORD_LOST\w*[ :]+lost[ :]+(\d+)", shown)))


def fio(device: str, folder: Path) -> int:
    """So many reads and writes as it says itself; none has a neighbour that it could be merged with."""
    argv = ["fio", "--name=a", f"--filename={device}", "--direct=1", "--rw=randrw", "--bs=4k", "--ioengine=libaio"]
    argv += ["--iodepth=4", f"--io_size={4 * IOS}k", "--blockalign=8k", "--rate_iops=800,800"]
    argv += ["--output-format=json", f"--output={folder / 'fio.json'}"]
    subprocess.run(argv, check=True, capture_output=True, timeout=120)
    text = (folder / "fio.json").read_text()
    job = json.loads(text[text.index("{\n") :])["jobs"][0]
    return int(job["read"]["total_ios"] + job["write"]["total_ios"])


class Ours:
    """`opline live log` of the device: how many I/Os it has, and how many it says that it can't measure."""

    def __init__(self, stack: ExitStack, device: str, folder: Path) -> None:
        self._file = folder / "ours.jsonl"
        argv = [OPLINE, "live", "log", "-d", Path(device).name, "--json"]
        with self._file.open("wb") as out:
            self._child = stack.enter_context(subprocess.Popen(argv, stdout=out, stderr=subprocess.PIPE, text=True))
        stack.callback(self._child.kill)
        assert self._child.stderr is not None
        first = self._child.stderr.readline()  # said when its programs are attached
        if "BPF is not permitted" in first:
            pytest.skip(first)
        assert "tracing" in first

    def end(self) -> tuple[list[dict[str, int]], int]:
        self._child.send_signal(signal.SIGINT)
        said = self._child.communicate(timeout=60)[1]
        if "BPF is not permitted" in said:
            pytest.skip(said)
        told = re.search(r"of \d+ I/Os (?:is|are) not counted: (.*)\.", said)
        return [json.loads(line) for line in self._file.read_text().splitlines()], sum(
            map(int, re.findall(r"\d+", told[1]))
        ) if told else 0


def test_iostat_and_biolatency_count_what_ours_counts(device: str, tmp_path: Path) -> None:
    """iostat has the kernel's own counters: exactly fio's; ours has all of them, counted or told; so has biolatency, up
    to those that no BPF program on this machine has seen to end.
    """
    iostat, biolatency = program("iostat", "sysstat"), program("biolatency", "libbpf-tools")
    name = Path(device).name
    with ExitStack() as stack:
        ours = Ours(stack, device, tmp_path)
        stack.enter_context(beside([biolatency, "-d", name, "100", "1"], tmp_path / "biolatency", bpf=True))
        before = counters(name)
        made = fio(device, tmp_path)
        after = counters(name)
        shown = subprocess.run([iostat, "-d", name, "-o", "JSON"], capture_output=True, text=True, check=True).stdout
        assert name in shown
        time.sleep(1)
        rows, told = ours.end()
    assert after - before == made == len(rows) + told
    theirs = sum(int(n) for n in re.findall(r"^ *\d+ -> \d+ +: (\d+)", (tmp_path / "biolatency").read_text(), re.M))
    assert 0 <= made - theirs <= max(told, 4)


def counters(name: str) -> int:
    """What iostat reads: I/Os of a device since it is there."""
    fields = Path(f"/sys/block/{name}/stat").read_text().split()
    return int(fields[0]) + int(fields[4])


def test_perfs_own_text_of_the_same_minute(device: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """perf needs no BPF, so it has each I/O; ours has the same sectors, and the same latencies up to the few
    microseconds between two programs at one tracepoint.
    """
    perf = program("perf", "linux-perf")
    data = tmp_path / "perf.data"
    with ExitStack() as stack:
        ours = Ours(stack, device, tmp_path)
        stack.enter_context(perf_record(perf, "block:block_rq_issue,block:block_rq_complete", data))
        made = fio(device, tmp_path)
        time.sleep(1)
        rows, told = ours.end()
    text = tmp_path / "out.blockio"
    with text.open("wb") as out:
        subprocess.run([perf, "script", "--ns", "-i", str(data)], stdout=out, stderr=subprocess.DEVNULL, check=True)
    dev = Path(device).stat().st_rdev
    capfd.readouterr()
    assert main(["log", str(text), "-d", f"{dev >> 8}:{dev & 0xFF}", "--json"]) == 0
    theirs = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert made == len(rows) + told
    unsaid = max(told, 4)  # of perf's: beside other tracers a few of its events are missing without a count
    assert made - perfs_losses(perf, data) - unsaid <= len(theirs) <= made
    placed = {(row["sector"], row["begin_ns"]): row for row in rows}
    assert len({row["sector"] for row in rows} - {row["sector"] for row in theirs}) <= made - len(theirs)
    total, other = sum(row["latency_ns"] for row in placed.values()), sum(row["latency_ns"] for row in theirs)
    if not told and len(theirs) == made:
        assert abs(total - other) / made < 20_000, "mean latencies: less than 20 us apart"


def test_biosnoops_lines(device: str, tmp_path: Path) -> None:
    """The same I/Os in its lines, but those whose end no BPF program has seen."""
    biosnoop = program("biosnoop", "libbpf-tools")
    name = Path(device).name
    with ExitStack() as stack:
        ours = Ours(stack, device, tmp_path)
        stack.enter_context(beside([biosnoop, "-d", name], tmp_path / "biosnoop", bpf=True))
        made = fio(device, tmp_path)
        time.sleep(1)
        rows, told = ours.end()
    text = (tmp_path / "biosnoop").read_text()
    if "failed to load" in text:
        pytest.skip(text.splitlines()[-1])
    found = re.findall(rf"^\S+ +\S+ +\d+ +{name} +[RW]\w* +(\d+) +4096 ", text, re.MULTILINE)
    assert made == len(rows) + told
    assert 0 <= made - len(found) <= max(told, 4)
    assert set(map(int, found)) <= {row["sector"] for row in rows} or told
