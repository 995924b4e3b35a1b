# SPDX-License-Identifier: MIT
"""babeltrace2 reads in a process of its own: what ends that process is a trace that can't be read, in one line, and
what ends opline ends that process.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.lib.recorded import model_of

from opline import _core
from opline.errors import TraceError
from opline.readers.babeltrace import Bt2Reader
from opline.readers.trace import find_traces
from opline_analyses.cli import main

SMALL = Path(__file__).resolve().parents[1] / "corpus" / "ctf-length-elsewhere" / "packet-context"
NAME = "app-sync-qd4-nvme"
# What babeltrace 2.0.4 dies of: an assertion, a division by zero.
DEADLY = {
    "SIGABRT": ("signed = false; } := uint64_t;", "signed = false; }* := uint64_t;"),
    "SIGFPE": ("{ name = c; freq =", "{ name = c; offsetfreq ="),
}
WAIT_S = 60


def children() -> set[int]:
    """The processes that this one has started."""
    return {int(pid) for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()}


@pytest.mark.parametrize("name", DEADLY)
@pytest.mark.parametrize("command", [["events"], ["csv", "--model", "generic", "-o", "out.csv"]])
def test_metadata_that_babeltrace2_dies_of_is_one_line(
    name: str, command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(SMALL, "trace")
    metadata = Path("trace/metadata")
    metadata.write_text(metadata.read_text().replace(*DEADLY[name]))
    assert main([command[0], "trace", *command[1:], "--reader", "bt2"]) == 1
    said = capfd.readouterr()
    assert said.out == ""
    (line,) = said.err.splitlines()
    assert "cannot read trace: " in line
    if "2.0.4" in line:
        assert f"it was ended by {name}" in line
    assert [path.name for path in tmp_path.iterdir()] == ["trace"]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGABRT, signal.SIGTERM])
def test_a_process_that_dies_in_the_middle_is_a_trace_that_cannot_be_read(
    number: signal.Signals, trace: Callable[[str], Path]
) -> None:
    """It has more to send than the socket holds, so it is there when it is killed."""
    before = children()
    core = _core.Core(model_of(NAME).plan_json())
    reading = Bt2Reader(find_traces(trace(NAME))).read(core)
    while core.events_seen() == 0:
        next(reading)
    (process,) = children() - before
    os.kill(process, number)
    with pytest.raises(TraceError, match=f"cannot read .*: it was ended by {number.name}"):
        for _ in reading:
            pass
    assert core.events_seen() < 98_936
    assert children() == before


def test_reading_that_is_given_up_ends_the_process(trace: Callable[[str], Path]) -> None:
    before = children()
    reading = Bt2Reader(find_traces(trace(NAME))).read(_core.Core(model_of(NAME).plan_json()))
    next(reading)
    assert len(children() - before) == 1
    reading.close()
    assert children() == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_what_ends_opline_ends_the_process(number: signal.Signals, trace: Callable[[str], Path]) -> None:
    """Nothing takes what it prints until then, so it is in the middle of the trace."""
    argv = [sys.executable, "-m", "opline_analyses", "events", str(trace(NAME)), "--reader", "bt2"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as opline:
        assert opline.stdout is not None and opline.stderr is not None
        opline.stdout.read(1)
        (process,) = map(int, Path(f"/proc/{opline.pid}/task/{opline.pid}/children").read_text().split())
        opline.send_signal(number)
        taken = threading.Thread(target=opline.stdout.read)
        taken.start()
        status = opline.wait(WAIT_S)
        assert status == (-number if number == signal.SIGKILL else 128 + number)
        assert opline.stderr.read() == b""
        taken.join()
    end = time.monotonic() + WAIT_S
    while Path(f"/proc/{process}").exists() and time.monotonic() < end:
        time.sleep(0.01)
    assert not Path(f"/proc/{process}").exists()


def frame(kind: bytes, parts: bytes = b"") -> bytes:
    return struct.pack("=I", len(parts) + 1) + kind + parts


def text(value: str) -> bytes:
    return struct.pack("=I", len(value)) + value.encode()


STREAM = frame(b"S", text("host") + b"\1" + text("channel") + text("path") + struct.pack("=Q", 3))
CLASS = frame(b"C", text("block_rq_issue") + b"\1" + struct.pack("=I", 1) + text("dev") + b"\0\0")
EVENT = struct.pack("=IIIq", 0, 0, 0, 1000) + b"\1" + struct.pack("=Q", 8)


def fed(data: bytes) -> str:
    """What comes of a sender that says this and ends."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(data)
        theirs.shutdown(socket.SHUT_WR)
        feed = _core.WireFeed(ours.fileno(), _core.Core(model_of(NAME).plan_json()))
        try:
            while feed.run():
                pass
        except (ValueError, EOFError) as error:
            return str(error)
    return "finished"


def test_events_of_another_process() -> None:
    assert fed(STREAM + CLASS + frame(b"E", EVENT * 3) + frame(b"F")) == "finished"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "before it had finished"),
        (STREAM[:-1], "before it had finished"),
        (frame(b"X"), "nonsense"),
        (struct.pack("=I", 0) + b"F", "nonsense"),
        (b"\xff" * 9, "nonsense"),
        (STREAM + CLASS + frame(b"E", EVENT[:-1]), "nonsense"),
        (CLASS + frame(b"E", EVENT), "nonsense"),
        (STREAM + frame(b"E", EVENT), "nonsense"),
        (frame(b"C", struct.pack("=I", 1 << 30)), "nonsense"),
        (frame(b"G", bytes(40)), "nonsense"),
    ],
)
def test_what_another_process_must_not_say(data: bytes, said: str) -> None:
    assert said in fed(data)


def test_no_mutant_of_a_message_is_read_past_its_end() -> None:
    good = STREAM + CLASS + frame(b"E", EVENT * 20) + frame(b"F")
    random.seed(5)
    seen = set()
    for _ in range(400):
        data = bytearray(good)
        for _ in range(random.randint(1, 3)):
            data[random.randrange(len(data))] = random.choice((0, 1, 2, 3, 0x7F, 0x80, 0xFF))
        seen.add(fed(bytes(data)))
    assert {"finished", "the process that reads the trace sends nonsense"} <= seen
