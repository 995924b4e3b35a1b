# SPDX-License-Identifier: MIT
"""Who may hand rings to the shim's collector, how many, and how much of what they say is believed.

Its socket is open to all, as OSDs of another user must reach it. The collector runs alone here: no session records.
"""

from __future__ import annotations

import array
import fcntl
import json
import mmap
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.ceph.lib.truth import events_of

from opline.applications.ceph import ringsource

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="becomes other users")
NOBODY, ANOTHER = 65534, 65533
HEADER, RING = 4096, 8 << 20  # RING_HEADER_BYTES, RING_BYTES of tracepoints/ceph/ring.h
VERSION = struct.pack("<I", 2)
CLOSED_AT, LOST_AT = 72, 16
OPEN, CLOSED, REFUSED = range(3)
F_ADD_SEALS, F_SEAL_SHRINK = 1033, 2


def new_ring(lost: int = 0) -> int:
    """A ring as a thread makes it, with nothing in it but what it says to have lost."""
    ring = os.memfd_create("test", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(ring, HEADER + RING)
    fcntl.fcntl(ring, F_ADD_SEALS, F_SEAL_SHRINK)
    os.pwrite(ring, struct.pack("<Iii16s", 2, os.getpid(), os.getpid(), b"test"), 128)
    os.pwrite(ring, struct.pack("<Q", lost), LOST_AT)
    return ring


def closed(ring: int) -> int:
    return int.from_bytes(os.pread(ring, 4, CLOSED_AT), "little")


def hand_over(path: Path, rings: list[int]) -> None:
    """As a thread does: a datagram per ring."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as to:
        to.connect(str(path))
        for ring in rings:
            to.sendmsg([VERSION], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [ring]))])


def as_user(uid: int, what: Callable[[], None]) -> None:
    """In a process of that user; its parent is the test, not the collector's."""
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            what()
            os._exit(0)
        except BaseException:
            sys.excepthook(*sys.exc_info())
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0


class Collector:
    """A collector that a shell has started: the test's other children are strangers to it."""

    def __init__(self, folder: Path, *uids: int) -> None:
        folder.chmod(0o755)
        self.path = folder / "socket"
        argv = [str(ringsource.PROGRAM), str(self.path), *map(str, uids)]
        env = {"PATH": os.environ["PATH"], "LTTNG_HOME": str(folder)}
        self.shell = subprocess.Popen(
            ["sh", "-c", '"$@" & echo $!; wait $!; exit $?', "sh", *argv], stdout=subprocess.PIPE, env=env
        )
        assert self.shell.stdout is not None
        self.pid = int(self.shell.stdout.readline())
        assert json.loads(self.shell.stdout.readline()) == {"ready": True}

    def taken_in(self, ring: int, patience_s: float = 20.0) -> int:
        """Wait until the collector has said what becomes of a ring, or has had time to."""
        until = time.monotonic() + patience_s
        while closed(ring) == OPEN and time.monotonic() < until:
            time.sleep(0.01)
        return closed(ring)

    def end(self) -> dict[str, Any]:
        """Its report."""
        assert self.shell.stdout is not None
        os.kill(self.pid, 15)
        line = self.shell.stdout.readline()
        assert self.shell.wait(30) == 0
        self.shell.stdout.close()
        report = json.loads(line)
        assert isinstance(report, dict)
        return report

    def kill(self) -> None:
        if self.shell.poll() is None:
            self.shell.kill()
        self.shell.wait()


@pytest.fixture
def folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="oplsnd-", dir="/tmp"))
    yield path
    shutil.rmtree(path)


@pytest.fixture
def collector(folder: Path) -> Iterator[Callable[..., Collector]]:
    made: list[Collector] = []

    def start(*uids: int) -> Collector:
        made.append(Collector(folder, *uids))
        return made[-1]

    yield start
    for one in made:
        one.kill()


def test_a_stranger_is_not_believed(collector: Callable[..., Collector]) -> None:
    """Any user could report trillions of lost events. The thread is told, and goes on without."""
    it = collector(ANOTHER)
    rings = [new_ring(lost=2**31 - 1) for _ in range(8)]
    as_user(NOBODY, lambda: hand_over(it.path, rings))
    assert [it.taken_in(ring) for ring in rings] == [REFUSED] * 8
    report = it.end()
    assert (report["refused"], report["rings"], report["lost_ring"]) == (8, 0, 0)


@pytest.mark.parametrize("uid", [0, ANOTHER])
def test_root_and_who_is_named_are_believed(uid: int, collector: Callable[..., Collector]) -> None:
    it = collector(ANOTHER)
    ring = new_ring(lost=23)
    as_user(uid, lambda: hand_over(it.path, [ring]))
    assert it.taken_in(ring, patience_s=0.5) == OPEN
    report = it.end()
    assert closed(ring) == CLOSED
    assert (report["refused"], report["rings"], report["lost_ring"]) == (0, 1, 23)


def test_a_process_has_room_for_so_many(collector: Callable[..., Collector]) -> None:
    """And holds up nobody: another one's ring is taken in the midst of it."""
    it = collector(ANOTHER)
    rings = [new_ring()] * 6000  # each is mapped by itself
    as_user(ANOTHER, lambda: hand_over(it.path, rings))
    last = new_ring()
    as_user(0, lambda: hand_over(it.path, [last]))
    assert it.taken_in(last, patience_s=0.5) == OPEN
    report = it.end()
    assert report["most_rings"] <= 4097 and report["refused"] >= 6000 - 4096
    assert report["rings"] + report["refused"] == 6001


def test_no_more_is_lost_than_there_was_time_for(collector: Callable[..., Collector]) -> None:
    it = collector(ANOTHER)
    rings = [new_ring(lost=2**31 - 1) for _ in range(3)]
    as_user(ANOTHER, lambda: hand_over(it.path, rings))
    it.taken_in(rings[-1], patience_s=0.5)
    report = it.end()
    assert (report["lost_ring"], report["broken"]) == (0, 3)


def test_memory_that_can_be_taken_away_is_not_taken(collector: Callable[..., Collector], folder: Path) -> None:
    """A file of the right size: shorter, it would end whoever has it mapped (SIGBUS)."""
    it = collector(ANOTHER)
    unsealed = os.memfd_create("test", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    file = os.open(folder / "file", os.O_RDWR | os.O_CREAT, 0o666)
    for fd in (unsealed, file):
        os.ftruncate(fd, HEADER + RING)
        with mmap.mmap(fd, HEADER) as head:
            head[0:8] = struct.pack("<Q", 4096)  # there is something in it
    as_user(ANOTHER, lambda: hand_over(it.path, [unsealed, file]))
    time.sleep(0.3)
    for fd in (unsealed, file):
        os.ftruncate(fd, 0)
    time.sleep(0.2)
    report = it.end()
    assert (report["refused"], report["rings"]) == (2, 0)


@pytest.fixture
def rings(folder: Path) -> list[str]:
    """The program with the shim, where any user may read it."""
    folder.chmod(0o755)
    source = Path(__file__).parent / "shim" / "rings.c"
    subprocess.run(["gcc", "-O1", "-pthread", "-o", folder / "rings", source], check=True, timeout=300)
    for library in ("libopline-ceph.so", "libopline-ceph-tp.so"):
        shutil.copy(ringsource.PROGRAM.with_name(library), folder)
    shim = [f"LD_PRELOAD={folder}/libopline-ceph.so", "OPLINE_CEPH_SHIM=now"]
    become = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    return [*become, "env", *shim, f"{folder}/rings", "threads"]


OPTIONS = ("--no-block", "--sessiond", "private", "--events", "cephshim:*")
Program = Callable[..., subprocess.CompletedProcess[str]]


def report_of(run: Path) -> dict[str, Any]:
    return dict(json.loads((run / "recording.json").read_text())["rings"])


@pytest.mark.live
def test_a_command_that_becomes_another_user_is_recorded(
    rings: list[str], runtime: Path, tmp_path: Path, opline: Program
) -> None:
    """`sudo opline record -- setpriv --reuid alice app`: whom the recorder has started it believes."""
    runtime.chmod(0o711)  # as /run/opline is
    done = opline("record", "-o", tmp_path / "run", *OPTIONS, "--", *rings, "3", "101")
    assert done.returncode == 0, done.stderr
    report = report_of(tmp_path / "run")
    assert (report["rings"], report["refused"], report["sent"]) == (3, 0, 2 * 3 * 101)


@pytest.mark.live
def test_a_stranger_goes_on_by_himself(rings: list[str], runtime: Path, tmp_path: Path, opline: Program) -> None:
    """A thread's ring is refused, or not handed over since another was refused; no event needs the collector."""
    runtime.chmod(0o711)
    run, calls = tmp_path / "run", 100_003
    go, done_at = tmp_path / "go", tmp_path / "done"
    # whose parent is gone when it begins: nobody knows who has started it
    orphan = f'( (until test -e {go}; do sleep 0.05; done; "$@"; touch {done_at}) & )'
    both = ["sh", "-c", f"{orphan}; touch {go}; until test -e {done_at}; do sleep 0.05; done", "sh"]
    done = opline("record", "-o", run, *OPTIONS, "--subbuf-size", "16M", "--", *both, *rings, "2", str(calls))
    assert done.returncode == 0, done.stderr
    report = report_of(run)
    assert report["rings"] == 0 and report["refused"] in (1, 2)
    assert f"warning: rings of threads refused: {report['refused']}," in done.stderr
    events = events_of(run / "trace")
    assert all(event.direct for event in events)
    last = {event.vtid: event.fields["off"] for event in events if "off" in event.fields}
    assert list(last.values()) == [calls - 1] * 2
