# SPDX-License-Identifier: MIT
"""Threads that read and write the same few sectors at once: who is woken behind a completion says whose it is.

ftrace records the events without pointers, with the kernel's own order; opline records the same requests through BPF,
whose pointers are the truth.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from tests.lib.block_capture import dev_of, loop_device
from tests.lib.core_driver import Driver, parse_line, plan_of
from tests.lib.recorder import status
from tests.links.test_links_near_losses import MODEL

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

pytestmark = pytest.mark.live
TRACING = Path("/sys/kernel/tracing")
BLOCK = ("block_bio_queue", "block_getrq", "block_rq_issue", "block_rq_complete")
CALLS = ("pread64", "pwrite64")
FIO = (
    "fio --direct=1 --rw=randrw --bs=4k --size=8k --io_size=800k --norandommap --output=/dev/null --name=hot "
    "--ioengine=psync --numjobs=8"
)
EVENT = re.compile(r".+-(?P<tid>\d+) +\[(?P<cpu>\d+)\] \S+ +(?P<s>\d+)\.(?P<us>\d+): (?P<text>.*)")
REQUEST = re.compile(r"(?P<name>block_\w+): (?P<dev>\d+,\d+) (?P<rwbs>\w+) .*?(?P<sector>\d+) \+ (?P<sectors>\d+)")
CALL = re.compile(r"sys_\w+\(.*count: (?P<count>\w+), pos: (?P<at>\w+)\)")


class Recorded(NamedTuple):
    """Lines for the core's driver; the truth: of each thread, its requests."""

    lines: list[str]
    requests: dict[int, list[dict[str, int]]]


class Ftrace:
    """An instance of ftrace, by the monotonic clock."""

    def __init__(self) -> None:
        self.path = TRACING / "instances" / f"opline-test-{os.getpid()}"

    def __enter__(self) -> Ftrace:
        self.path.mkdir()
        (self.path / "trace_clock").write_text("mono")
        (self.path / "buffer_size_kb").write_text("20000")
        calls = (f"syscalls/sys_{which}_{call}" for call in CALLS for which in ("enter", "exit"))
        for event in ("sched/sched_waking", *(f"block/{name}" for name in BLOCK), *calls):
            (self.path / "events" / event / "enable").write_text("1")
        return self

    def text(self) -> list[str]:
        """What it has, and no more from now on."""
        (self.path / "tracing_on").write_text("0")
        return (self.path / "trace").read_text(errors="replace").splitlines()

    def __exit__(self, *_: object) -> None:
        self.path.rmdir()


def lines_of(text: list[str], dev: int) -> Iterator[str]:
    """Each event has a time of its own: those of one microsecond are a nanosecond apart."""
    name = f"{dev >> 20},{dev & 0xFFFFF}"
    last_ns = op = 0
    at_work: dict[str, int] = {}
    for event in filter(None, map(EVENT.match, text)):
        tid, said = event["tid"], event["text"]
        last_ns = max(last_ns + 1, int(event["s"]) * 10**9 + int(event["us"]) * 1000)
        if call := CALL.match(said):
            if int(call["count"], 16) != 4096:
                continue
            op += 1
            at_work[tid] = op
            yield f"{last_ns} app:io_begin tid={tid} pid=1 id={op} off={int(call['at'], 16)} len=4096"
        elif said.startswith("sys_") and tid in at_work:
            yield f"{last_ns} app:io_end tid={tid} pid=1 id={at_work.pop(tid)}"
        elif (woken := re.search(r"sched_waking: .* pid=(\d+) ", said)) is not None:
            yield f"{last_ns} sched_waking tid={woken[1]} by={tid} cpu={int(event['cpu'])}"
        elif (r := REQUEST.match(said)) is not None and r["dev"] == name:
            place = f"dev={dev} sector={r['sector']} nr_sector={r['sectors']} rwbs={33 if 'W' in r['rwbs'] else 36}"
            yield f"{last_ns} {r['name']} tid={tid} comm=fio cpu={int(event['cpu'])} {place} error=0"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """One run of fio, through both."""
    if shutil.which("fio") is None or not os.access(TRACING / "instances", os.W_OK):
        pytest.skip("needs fio, and ftrace at /sys/kernel/tracing")
    run = tmp_path_factory.mktemp("woken") / "run"
    opline = Path(sys.executable).with_name("opline")
    with loop_device() as device, Ftrace() as ftrace:
        done = subprocess.run(
            [opline, "record", "--model", "syscalls", "-o", run, "--", *FIO.split(), f"--filename={device}"],
            capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        text, dev = ftrace.text(), dev_of(device)
    assert status(done) == 0, done.stderr
    if json.loads((run / "recording.json").read_text())["block_source"] != "bpf":
        pytest.skip(f"not through BPF here: {done.stderr}")
    sql = f"SELECT queue_tid, queue_ns, complete_ns FROM requests WHERE dev = {dev} AND queue_ns IS NOT NULL"
    answer = subprocess.run([opline, "sql", run, sql, "--json"], capture_output=True, text=True, check=True)
    requests = defaultdict(list)
    for row in json.loads(answer.stdout):
        requests[row["queue_tid"]].append(row)
    return Recorded(list(lines_of(text, dev)), requests)


def nearest(requests: Sequence[dict[str, int]], step: str, ns: int) -> dict[str, int]:
    """The request with that step at that time, or next to it."""
    return min(requests, key=lambda known: abs(known[step] - ns))


def links_of(recorded: Recorded, *, wakes: bool) -> Counter[tuple[str, bool, bool]]:
    """How many links have this confidence, are ambiguous, and have the completion that the pointers say."""
    driver = Driver(plan_of(MODEL))
    for line in recorded.lines:
        if wakes or "sched_waking" not in line:
            driver.push(parse_line(line))
    driver.finish()
    tables: dict[str, list[dict[str, Any]]] = driver.tables()
    requests = {r["request_id"]: r for r in tables["requests"]}
    completed = [known for of_thread in recorded.requests.values() for known in of_thread if known["complete_ns"]]
    true: dict[int, dict[str, int]] = {}  # of a thread, those that are nearest to each other in both records
    for tid, known in recorded.requests.items():
        its = [r for r in requests.values() if r["queue_tid"] == tid]
        for r in its:
            other = nearest(known, "queue_ns", r["queue_ns"])
            if other["complete_ns"] and nearest(its, "queue_ns", other["queue_ns"]) is r:
                true[r["request_id"]] = other
    found: Counter[tuple[str, bool, bool]] = Counter()
    for link in tables["links"]:
        if (one := true.get(link["request_id"])) and (ns := requests[link["request_id"]]["complete_ns"]) is not None:
            is_right = nearest(completed, "complete_ns", ns) is one
            found[link["confidence"], link["ambiguous"], is_right] += 1
    return found


def test_the_thread_that_is_woken_waited_for_the_completion(recorded: Recorded) -> None:
    before, after = (links_of(recorded, wakes=wakes) for wakes in (False, True))
    ambiguous = [sum(n for (_, marked, _), n in found.items() if marked) for found in (before, after)]
    assert ambiguous[1] < ambiguous[0], (before, after)
    # Between the two records of one completion the CPU may do something else: then another one's seems nearer.
    right = sum(n for (_, _, is_right), n in after.items() if is_right)
    assert right >= 0.97 * after.total() > 100, after
    assert after["high", False, False] <= 0.01 * after.total(), after
