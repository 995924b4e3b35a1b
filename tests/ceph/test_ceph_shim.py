# SPDX-License-Identifier: MIT
"""The shim for Ceph: results with and without it are the same, byte by byte, and its events are what really happened.

The programs are in ``tests/ceph/shim``: a client and a server of msgr2 with an encoder of their own, file I/O of every
kind, and a client of librados' interface.
"""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.ceph.lib.truth import Event, as_tuple, events_of, truth_of
from tests.lib.recorder import OWN_RUN_LTTNG

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "tests" / "ceph" / "shim"
C = ["gcc", "-O1", "-g", "-Wall", "-Wextra", "-Werror"]
PARSER = ROOT / "tracepoints" / "ceph" / "msgr.c"
SHIM = ROOT / "correlator" / "opline" / "applications" / "ceph" / "libopline-ceph.so"
LIBRADOS = ["-Wl,-soname,librados.so.2"]
PRELOADED = {"LD_PRELOAD": str(SHIM)}
CXX = ["g++", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-std=c++17"]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the programs."""
    folder = tmp_path_factory.mktemp("shim")
    library = f"{folder}/librados.so.2"
    for argv in (
        [*C, "-pthread", "-o", f"{folder}/peers", f"{SOURCES}/peers.c"],
        [*C, "-pthread", "-o", f"{folder}/disturbed", f"{SOURCES}/disturbed.c"],
        [*C, "-o", f"{folder}/files", f"{SOURCES}/files.c"],
        [*C, "-o", f"{folder}/faults", f"{SOURCES}/faults.c"],
        [*C, "-D_GNU_SOURCE", "-fsanitize=address", "-o", f"{folder}/frames", f"{SOURCES}/frames.c", str(PARSER)],
        [*C, "-shared", "-fPIC", "-o", f"{folder}/late.so", f"{SOURCES}/late.c", "-laio", "-luring"],
        [*CXX, "-shared", "-fPIC", "-pthread", *LIBRADOS, "-o", library, f"{SOURCES}/librados.cpp"],
        [*CXX, "-o", f"{folder}/radosclient", f"{SOURCES}/radosclient.cpp", library, "-Wl,-rpath,$ORIGIN"],
    ):
        subprocess.run(argv, check=True, timeout=300)
    return folder


def run(*argv: object, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run a program to its end; it must succeed."""
    done = subprocess.run(
        list(map(str, argv)),
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


Recorded = Callable[..., tuple[subprocess.CompletedProcess[str], list[Event]]]


@pytest.fixture
def recorded(built: Path, runtime: Path, tmp_path: Path) -> Recorded:
    """Run a program with the shim under ``opline record``: what it said, and the events."""

    def record(*argv: object, how: str = "now") -> tuple[subprocess.CompletedProcess[str], list[Event]]:
        options = ["-o", tmp_path / "run", "--no-block", "--sessiond", "private", "--events", "cephshim:*"]
        done = run(
            sys.executable,
            "-m",
            "opline_analyses",
            "record",
            *options,
            "--",
            "env",
            f"LD_PRELOAD={SHIM}",
            f"OPLINE_CEPH_SHIM={how}",
            *argv,
        )
        return done, events_of(tmp_path / "run" / "trace")

    return record


@pytest.mark.parametrize("seed", [1, 2])
def test_untraced_connections_give_the_same_with_the_shim(built: Path, tmp_path: Path, seed: int) -> None:
    plain = run(built / "peers", seed, tmp_path / "log")
    shim = run(built / "peers", seed, tmp_path / "log", env=PRELOADED)
    assert shim.stdout == plain.stdout and len(plain.stdout) > 60


def test_refused_calls_say_the_same_with_the_shim(built: Path) -> None:
    plain, shim = (run(built / "faults", env=env).stdout for env in ({}, PRELOADED))
    assert shim == plain and plain.count(f", {errno.EFAULT}\n") > 10


def test_frames_by_the_short_way_give_what_the_state_machine_gives(built: Path) -> None:
    short, left = map(int, run(built / "frames", 1, 1000).stdout.split())
    assert short > 10000 and left > 5000


@pytest.mark.live
@pytest.mark.parametrize(("seed", "how"), [(3, "now"), (11, "now"), (12, "now"), (12, "now,direct")])
def test_every_message_is_seen_where_it_was(
    built: Path, recorded: Recorded, tmp_path: Path, seed: int, how: str
) -> None:
    plain = run(built / "peers", seed, tmp_path / "plain")
    shim, events = recorded(built / "peers", seed, tmp_path / "log", how=how)
    # what a signal handler does in the midst of a record goes to LTTng directly
    assert not any(e.direct and e.name != "sysio_pwrite_enter" and e.name != "sysio_pwrite_exit" for e in events) or (
        how == "now,direct" and all(e.direct for e in events)
    )
    assert shim.stdout == plain.stdout
    truth = truth_of(tmp_path / "log")
    threads: dict[int, list[tuple[Any, ...]]] = defaultdict(list)
    for event in events:
        if (known := as_tuple(event)) is not None:
            threads[event.vtid].append(known)
    assert threads.keys() == truth.threads.keys()
    for thread, expected in truth.threads.items():
        assert threads[thread] == expected
    sessions = [e.fields for e in events if e.name == "msgr_session"]
    assert sorted((f["num"], f["rev1"], f["con_mode"]) for f in sessions) == sorted(truth.sessions)
    connects = Counter(e.fields["dir"] for e in events if e.name == "msgr_connect")
    assert connects == {0: len(sessions), 1: len(sessions)}
    unreadable = [e.fields["reason"] for e in events if e.name == "msgr_unreadable"]
    secure = sum(mode == 2 for *_, mode in truth.sessions)
    assert unreadable == ["secure"] * 2 * secure and secure > 0
    said = [line for line in shim.stderr.splitlines() if "secure mode" in line]
    assert len({e.vpid for e in events}) == 1 and len(said) == 1
    fd, alarms = truth.alarms
    assert sum(e.name == "sysio_pwrite_enter" and e.fields["fd"] == fd for e in events) == alarms > 0


@pytest.mark.live
def test_reading_goes_on_after_bytes_that_were_not_seen(built: Path, recorded: Recorded) -> None:
    done, events = recorded(built / "disturbed")
    # what the program sent where the shim could see it, one message per line: direction, tid
    expected = [tuple(line.split()) for line in done.stdout.splitlines()]
    names = {"msgr_tx_msg": "tx", "msgr_rx_msg": "rx"}
    seen = [(names[e.name], str(e.fields["tid"])) for e in events if e.name in names]
    assert seen == expected and len(seen) > 10
    lost = [e.fields["dir"] for e in events if e.name == "msgr_unreadable" and e.fields["reason"] == "lost"]
    assert sorted(lost) == [0, 1]


@pytest.mark.live
def test_a_recording_that_begins_later_is_told_of_the_connection(built: Path, runtime: Path, tmp_path: Path) -> None:
    """In a mount namespace with a /run/lttng of its own: a daemon, and two recordings of a program that runs."""
    program = f"{sys.executable} -m opline_analyses record --no-block --events 'cephshim:*' --sessiond system"
    speak = "sh -c 'echo -n 12 >in; head -c 2 out'"
    script = f"""
    mkdir -p /run/lttng && mount -t tmpfs opline-test /run/lttng && lttng-sessiond -d --no-kernel || exit 99
    cd {tmp_path} && mkfifo in out
    LTTNG_UST_REGISTER_TIMEOUT=-1 LD_PRELOAD={SHIM} {built}/disturbed in out & echo -n 0 >in; head -c 1 out
    {program} -o one -- {speak}
    {speak}
    {program} -o two -- {speak}
    kill $! $(cat /run/lttng/lttng-sessiond.pid)
    """
    done = run(*OWN_RUN_LTTNG, script)
    assert done.stdout == "0" + "12" * 3, done.stderr
    for name, tid in (("one", 3), ("two", 11)):
        by_fd: dict[int, list[tuple[str, int]]] = defaultdict(list)
        for e in events_of(tmp_path / name / "trace"):
            if e.name in ("msgr_connect", "msgr_session", "msgr_tx_msg"):
                by_fd[e.fields["fd"]].append((e.name, e.fields.get("dir", e.fields.get("tid", 4001))))
        told = [("msgr_connect", 0), ("msgr_connect", 1), ("msgr_session", 4001)]
        assert sorted(by_fd.values()) == [
            [*told, ("msgr_tx_msg", tid + end), ("msgr_tx_msg", tid + end + 2)] for end in (0, 1)
        ]


@pytest.mark.parametrize("how", ["local", "deep"])
def test_file_io_gives_the_same_with_the_shim(built: Path, tmp_path: Path, how: str) -> None:
    plain = run(built / "files", tmp_path / "plain", built / "late.so", how)
    shim = run(built / "files", tmp_path / "shim", built / "late.so", how, env=PRELOADED)
    assert shim.stdout == plain.stdout and "late" in plain.stdout
    assert (tmp_path / "plain").read_bytes() == (tmp_path / "shim").read_bytes()


@pytest.mark.live
def test_file_io_is_recorded(built: Path, recorded: Recorded, tmp_path: Path) -> None:
    plain = run(built / "files", tmp_path / "plain", built / "late.so", "local")
    shim, events = recorded(built / "files", tmp_path / "shim", built / "late.so", "local")
    assert shim.stdout == plain.stdout
    assert (tmp_path / "plain").read_bytes() == (tmp_path / "shim").read_bytes()
    counts = Counter(e.name for e in events)
    # the program's text has ten and six; its last pwrite may come after the shim's end
    assert counts["sysio_pwrite_enter"] in (9, 10) and counts["sysio_pread_enter"] == 6
    for name in ("pwrite", "pread", "fdatasync", "fsync", "sfr"):
        assert counts[f"sysio_{name}_enter"] == counts[f"sysio_{name}_exit"] > 0
    submits = [e.fields for e in events if e.name == "aio_submit"]
    taken = [e.fields["ret"] for e in events if e.name == "aio_submit_exit"]
    # 24 requests of which the eighth has no file: 7 taken, 17 refused, 16 taken, one without a context
    assert taken == [7, -9, 16, -22]
    assert [(f["i"], f["nr"]) for f in submits[:24]] == [(i, 24) for i in range(24)] and len(
        submits
    ) == 24 + 17 + 16 + 1
    kinds = {(f["op"], f["len"]) for f in submits if f["off"] == 409600}
    assert kinds == {(8, 8192)}
    done = {e.fields["iocb"]: e.fields["res"] for e in events if e.name == "aio_complete"}
    accepted = submits[:7] + submits[24 + 17 : 24 + 17 + 16]
    assert done == {f["iocb"]: f["len"] for f in accepted}
    if "io_uring_queue_init 0" in plain.stdout:
        wanted = {1000 + 10 * r + i: 100 + i if i < 5 else 300 for r in range(5) for i in range(6)}
        rings = [e.fields for e in events if e.name == "uring_submit"]
        assert {f["user_data"]: f["len"] for f in rings} == wanted and len(rings) == len(wanted)
        reaped = [(e.fields["user_data"], e.fields["res"]) for e in events if e.name == "uring_complete"]
        assert dict(reaped) == wanted and len(reaped) == len(wanted)


def test_librados_gives_the_same_with_the_shim(built: Path) -> None:
    plain = run(built / "radosclient")
    assert run(built / "radosclient", env=PRELOADED).stdout == plain.stdout


@pytest.mark.live
def test_librados_calls_and_callbacks_are_recorded(built: Path, recorded: Recorded) -> None:
    plain = run(built / "radosclient")
    shim, events = recorded(built / "radosclient")
    assert shim.stdout == plain.stdout
    lines = plain.stdout.splitlines()
    results = [
        int(line.rpartition(" ")[2])
        for line in lines
        if line.startswith(("IoCtx::", "rados_")) and "wait_for" not in line and "create" not in line
    ]
    calls = ("radoscxx_aio_operate_exit", "rados_aio_exit", "rados_sync_exit", "rados_get_return_value")
    assert [e.fields["ret"] for e in events if e.name in calls] == results and len(results) == 50
    begun = Counter(e.name for e in events)
    assert begun["radoscxx_aio_operate_enter"] == begun["radoscxx_aio_operate_exit"] == 9
    assert begun["rados_aio_enter"] == begun["rados_aio_exit"] == 20
    assert begun["rados_sync_enter"] == begun["rados_sync_exit"] == 20
    assert begun["radoscxx_completion_cb"] == 5 and begun["rados_completion_cb"] == 3
    assert begun["radoscxx_completion_cb"] + begun["rados_completion_cb"] == sum(
        line.startswith(("completed", "safe")) for line in lines
    )
    assert begun["rados_release"] == 2
    write = next(e.fields for e in events if e.name == "rados_aio_enter" and e.fields["call"] == "write")
    assert (write["oid"], write["len"], write["off"]) == (
        "object.of.some.length.beyond.the.short.ones",
        4003,
        (1 << 40) + 4,
    )
    long = [e.fields for e in events if e.name.startswith("rados_sync_") and e.fields["oid"].startswith("nn")]
    assert [(f["call"], len(f["oid"])) for f in long] == [("stat", 700)] * 2
    assert long[0]["off"] == long[0]["len"] == 0 and f"rados_stat: {long[1]['ret']}" in lines
