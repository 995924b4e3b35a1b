# SPDX-License-Identifier: MIT
"""Who ends a thread's wait, through BPF: waits of which the cause is planted (tests/waiting_app)."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import bt2
import pytest
from tests.lib.block_capture import loop_device
from tests.lib.recorder import record_well

from opline.capture.bpf import kernel, stacks
from opline.capture.bpf.bpf import Collector
from opline.readers.stacks import Stack, Stacks, read_stacks
from opline.readers.trace import find_stacks

pytestmark = pytest.mark.live
ROOT = Path(__file__).resolve().parents[2]
WAITS, WRITES = 20, 50
NOT_KNOWN = 65535  # of waker_irq
SLEEPS, STOPPED = (1, 2), 4  # prev_state
SHARE = 0.95
Event = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Op:
    """A wait as the program tells it."""

    tid: int
    begin_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True)
class Recorded:
    """What the program did, and what the trace says of it."""

    ops: dict[str, list[Op]]
    outside: int  # the thread that answers, and is none of the recorded processes'
    waits: list[Event]
    follows: list[Event]
    stacks: Stacks | None

    def main_wait(self, op: Op) -> Event | None:
        """The wait that takes most of the op's time; None: it did not sleep."""
        mine = [w for w in self.waits if w["tid"] == op.tid and w["prev_state"] not in (0, 256)]
        return max(mine, key=lambda w: within(w, op), default=None) if any(within(w, op) > 0 for w in mine) else None

    def share(self, what: str, right: Callable[[Event], bool]) -> float:
        """Of the planted waits. Those in which the thread did not get to sleep, as others had its CPU, are no waits."""
        ops = [op for op in self.ops[what] if not self.preempted(op)]
        assert len(ops) >= len(self.ops[what]) / 2
        found = [self.main_wait(op) for op in ops]
        return sum(1 for wait in found if wait is not None and right(wait)) / len(found)

    def preempted(self, op: Op) -> bool:
        """Did the thread wait for a CPU for most of the op?"""
        mine = [w for w in self.waits if w["tid"] == op.tid and within(w, op) > 0]
        return bool(mine) and max(mine, key=lambda w: within(w, op))["prev_state"] in (0, 256)

    def cause(self, wait: Event) -> str | None:
        """What the sleeper's stack says."""
        stack = self._stack(wait, "stack")
        return None if stack is None or stack.cause is None or not self.stacks else self.stacks.causes[stack.cause][0]

    def end(self, wait: Event) -> str | None:
        """What the waker's stack says."""
        stack = self._stack(wait, "waker_stack")
        return None if stack is None or stack.end is None or not self.stacks else self.stacks.ends[stack.end][0]

    def _stack(self, wait: Event, which: str) -> Stack | None:
        return None if self.stacks is None or wait[which] < 0 else self.stacks.of[wait[which]]


def within(wait: Event, op: Op) -> int:
    return int(min(wait["woken_at"], op.end_ns) - max(wait["off_at"], op.begin_ns))


def plain(value: Any) -> Any:
    return str(value) if isinstance(value, bt2._StringFieldConst) else int(value)


def events(trace: Path, name: str) -> list[Event]:
    return [
        {field: plain(value) for field, value in message.event.payload_field.items()}
        for message in bt2.TraceCollectionMessageIterator(str(trace))
        if isinstance(message, bt2._EventMessageConst) and message.event.name == name
    ]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("app") / "waits"
    source = ROOT / "tests" / "waiting_app" / "waits.c"
    subprocess.run(["cc", "-O1", "-pthread", str(source), "-o", str(path)], check=True)
    return path


def record(folder: Path, program: Path, *options: str) -> Recorded:
    name = f"opline-test-{os.getpid()}"
    serving = [str(program), "serve", name, "0"]
    with loop_device() as device, subprocess.Popen(serving, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        outside = int(server.stdout.readline())
        whats = [f"{program} {what} x {WAITS}" for what in ("timer", "futex", "socket", "stop")]
        whats += [f"{program} outside {name} {WAITS}", f"{program} direct {device} {WRITES}"]
        opline = str(Path(sys.executable).with_name("opline"))
        argv = [opline, "record", "-o", str(folder / "run"), "--model", "syscalls", *options, "--"]
        record_well([*argv, "sh", "-c", "; ".join(whats)], stdout=subprocess.DEVNULL, timeout=60)
    ops: dict[str, list[Op]] = {}
    for line in (folder / "run" / "stdout.txt").read_text().splitlines():
        what, tid, begin, end = line.split()
        ops.setdefault(what, []).append(Op(int(tid), int(begin), int(end)))
    trace = folder / "run" / "trace" / "block"
    beside = find_stacks(trace.parent)
    told = None if beside is None else read_stacks(Path(beside))
    return Recorded(ops, outside, events(trace, "sched:off_cpu"), events(trace, "sched:follow"), told)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory, program: Path) -> Recorded:
    found = record(tmp_path_factory.mktemp("waits"), program, "--stacks", "0")
    if all(wait["waker_irq"] == NOT_KNOWN for wait in found.waits):
        pytest.skip("this kernel does not tell when it is in an interrupt")
    assert {what: len(ops) for what, ops in found.ops.items()} == {
        **dict.fromkeys(("timer", "futex", "socket", "stop", "outside"), WAITS), "direct": WRITES,
    }  # fmt: skip
    return found


@pytest.mark.parametrize(
    ("what", "waker"), [("futex", "holder"), ("socket", "server"), ("stop", "stopper"), ("outside", "outside")]
)
def test_the_thread_that_ends_a_wait_is_told(recorded: Recorded, what: str, waker: str) -> None:
    states = (STOPPED,) if what == "stop" else SLEEPS

    def right(wait: Event) -> bool:
        return wait["waker_irq"] == 0 and wait["waker_comm"] == waker and wait["prev_state"] in states

    assert recorded.share(what, right) >= SHARE


def test_a_timer_is_an_interrupt(recorded: Recorded) -> None:
    assert recorded.share("timer", lambda wait: wait["waker_irq"] not in (0, NOT_KNOWN)) >= SHARE


def test_a_device_is_an_interrupt_or_the_kernels_thread(recorded: Recorded) -> None:
    waits = [wait for wait in map(recorded.main_wait, recorded.ops["direct"]) if wait is not None]
    right = [w for w in waits if w["waker_irq"] not in (0, NOT_KNOWN) or w["waker_comm"].startswith("kworker")]
    assert len(right) >= SHARE * len(waits) > 0
    assert all(wait["prev_state"] in SLEEPS for wait in waits)


def test_who_wakes_from_outside_is_followed(recorded: Recorded) -> None:
    told = [one for one in recorded.follows if one["tid"] == recorded.outside]
    assert told and told[0]["level"] == 1 and told[0]["comm"] == "outside" and told[0]["start_ns"] > 0
    its = [wait for wait in recorded.waits if wait["tid"] == recorded.outside]
    assert len(its) >= WAITS and {wait["level"] for wait in its} == {1}
    # The waker's last wait, as the waker's own record has it.
    ends = {wait["ktime"]: wait for wait in its}
    linked = 0
    for op in recorded.ops["outside"]:
        wait = recorded.main_wait(op)
        last = None if wait is None else ends.get(wait["waker_on_at"])
        if wait is None or last is None:
            continue
        linked += 1
        assert (wait["waker_off_at"], wait["waker_woken_at"]) == (last["off_at"], last["woken_at"])
        assert wait["waker_prev_state"] == last["prev_state"]
        if last["woken_at"]:
            assert (wait["waker_waker_tid"], wait["waker_waker_irq"]) == (last["waker_tid"], last["waker_irq"])
    assert linked >= SHARE * WAITS


def test_levels_tell_whose_threads_they_are(recorded: Recorded) -> None:
    followed = {one["tid"] for one in recorded.follows}
    assert {wait["tid"] for wait in recorded.waits if wait["level"] > 0} <= followed
    assert {op.tid for ops in recorded.ops.values() for op in ops} <= {
        wait["tid"] for wait in recorded.waits if wait["level"] == 0
    }
    assert all(one["level"] in (-1, 1, 2, 3) for one in recorded.follows)
    assert any(one["comm"].startswith("kworker/") for one in recorded.follows)


@pytest.fixture(scope="module")
def with_stacks(recorded: Recorded) -> Recorded:
    if recorded.stacks is None:
        pytest.skip("this kernel gives no stack of another thread")
    return recorded


@pytest.mark.parametrize(
    ("what", "cause", "end"),
    [
        ("timer", "sleep", "timer"),
        ("futex", "futex", "futex"),
        ("socket", "socket", "socket"),
        ("outside", "socket", "socket"),
        ("stop", "stopped", "signal"),
    ],
)
def test_the_stacks_tell_what_was_waited_for(with_stacks: Recorded, what: str, cause: str, end: str) -> None:
    def right(wait: Event) -> bool:
        return (with_stacks.cause(wait), with_stacks.end(wait)) == (cause, end)

    assert with_stacks.share(what, right) >= SHARE


def test_of_direct_writes_nothing_but_direct_io_is_told(with_stacks: Recorded) -> None:
    waits = [wait for wait in map(with_stacks.main_wait, with_stacks.ops["direct"]) if wait is not None]
    taken = [wait for wait in waits if wait["stack"] >= 0]
    assert {with_stacks.cause(wait) for wait in taken} == {"direct I/O"}
    assert all(with_stacks.end(wait) == "device done" for wait in taken if wait["waker_irq"] != 0)


def test_every_stack_that_a_record_names_is_there(with_stacks: Recorded) -> None:
    assert with_stacks.stacks is not None and with_stacks.stacks.lost == 0
    named = {wait[which] for wait in with_stacks.waits for which in ("stack", "waker_stack")} - {-1}
    assert named <= set(with_stacks.stacks.of)
    assert all(stack.frames for stack in with_stacks.stacks.of.values())


def collector_of(run: Path) -> int:
    """The process that writes the run's stacks.json."""
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if str(run / "stacks.json").encode() in place.read_bytes().split(b"\0"):
                return int(place.parent.name)
    raise AssertionError("no collector")


def test_a_collector_that_is_killed_leaves_stacks(tmp_path: Path, program: Path, with_stacks: Recorded) -> None:
    assert with_stacks.stacks is not None and with_stacks.stacks.ended
    opline, run = str(Path(sys.executable).with_name("opline")), tmp_path / "run"
    argv = [opline, "record", "-o", str(run), "--model", "syscalls", "--stacks", "0", "--"]
    argv += [str(program), "timer", "x", "10000"]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as recorder:
        until = time.monotonic() + 60
        while not (run / "stacks.json").exists() and time.monotonic() < until and recorder.poll() is None:
            time.sleep(0.05)
        os.kill(collector_of(run), signal.SIGKILL)
        recorder.terminate()
    found = read_stacks(run / "stacks.json")
    assert not found.ended and found.causes
    told = {found.causes[stack.cause][0] for stack in found.of.values() if stack.cause is not None}
    assert "sleep" in told


def test_without_chains_the_commands_threads_are_in_it_alone(tmp_path: Path, program: Path) -> None:
    found = record(tmp_path, program, "--no-chains")
    assert found.stacks is None and found.follows == [] and found.outside not in {wait["tid"] for wait in found.waits}
    assert {(w["level"], w["waker_irq"], w["waker_on_at"], w["waker_waker_tid"]) for w in found.waits} == {
        (0, NOT_KNOWN, 0, -1)
    }


def test_where_the_kernel_refuses_the_program_of_stacks_the_rest_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = kernel.load

    def refuse(kind: int, code: bytes, name: str, wanted_for: int = 0, attached_to: int = 0) -> int:
        if name == stacks.PROGRAM:
            raise OSError(22, f"no {name} of {len(code)} bytes")
        return load(kind, code, name, wanted_for, attached_to)

    monkeypatch.setattr(kernel, "load", refuse)
    wish = stacks.StackWish(200_000, tmp_path / "stacks.json")
    collector = Collector(ring_bytes=1 << 16, states=True, chains=True, stacks=wish)
    collector.start()
    report = collector.finish()
    assert collector.no_stacks is not None and "does not take the program" in collector.no_stacks
    assert collector.chains and "sched_waking" in collector.tracepoints
    assert "stacks" not in report and not wish.file.exists()
