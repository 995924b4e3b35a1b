# SPDX-License-Identifier: MIT
"""Causes of waits that are planted (tests/waiting_app/faults.c): kind and thread are named, and only where they are.

The planted time counts, which the program keeps. What a busy machine adds has other causes, and more of it is allowed.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.lib.core_driver import check_waits
from tests.lib.faulty_disks import faulty_disks
from tests.lib.recorder import record_well

from opline.readers.trace import find_stacks
from opline_analyses.runs.run import Run, open_run

pytestmark = pytest.mark.live
ROOT = Path(__file__).resolve().parents[2]
OPLINE = str(Path(sys.executable).with_name("opline"))
OPS = 20
PLANTED_NS, SHARE = 5_000_000, 0.95  # of the 6 ms: a wait begins and ends with other things

Row = dict[str, Any]


def _through(thread: str) -> Callable[[Row], bool]:
    return lambda row: thread in (row["path"] or "")


def _kept_by(row: Row, cause: str, lock: str) -> bool:
    """The thread that holds the lock waits for its I/O meanwhile: for its request, or for who works at that."""
    told = (row["cause"], row["lock_kind"], row["holder_comm"], (row["path"] or "").split(" → ")[0])
    return told == (cause, lock, "keeper", "keeper") and (row["request_id"] is not None or "freezer" in row["path"])


def _by_disk(row: Row, causes: tuple[str, ...]) -> bool:
    """The request is at the device, or who works at that waits for the file system that is frozen."""
    return row["cause"] in causes and (row["request_id"] is not None or "freezer" in row["path"])


_SYNCED = ("page under write-back", "flush", "journal commit", "journal buffer", "journal locked")
THROTTLED = "throttled: io.max"

#: Of each fault: what a row of `waits` says in the planted time.
TOLD: dict[str, Callable[[Row], bool]] = {
    "timer": lambda row: (row["cause"], row["kind"], row["path"]) == ("sleep", "timer", None),
    "futex": lambda row: row["cause"] == "futex" and _through("holder")(row),
    "pipe": lambda row: row["cause"] == "pipe" and _through("sender")(row),
    "rwsem": lambda row: row["cause"] == "kernel rwsem" and _through("freezer")(row),
    "journal": lambda row: row["cause"] == "journal commit" and (row["path"] or "").startswith("jbd2/"),
    "page": lambda row: row["cause"] == "page under write-back",
    "frozen": lambda row: row["cause"] == "queue frozen",
    "inode": lambda row: _kept_by(row, "kernel rwsem", "rwsem (to write)"),
    "mutex": lambda row: _kept_by(row, "kernel mutex", "mutex"),
    "synced": lambda row: _kept_by(row, "futex", "futex"),
    "worker": lambda row: _by_disk(row, ("direct I/O",)),
    "odsync": lambda row: _by_disk(row, _SYNCED),
    "throttle": lambda row: (row["cause"], row["last_cause"]) == ("direct I/O", THROTTLED),
    "reclaim": lambda row: row["cause"] == "reclaim",
    "punt": lambda row: row["cause"] == "io_uring completion" and bool(re.match("iou-wrk-.* → freezer", row["path"])),
    "cpu": lambda row: (row["kind"], row["instead_comm"], row["path"]) == ("cpu", "cpuhog", None),
    "stop": lambda row: (row["cause"], row["kind"], row["comm"]) == ("stopped", "stopped", "stopper"),
}
#: What plants them, besides the disks: the kernel's own controllers of version 1, and its io_uring.
NEEDS = {
    "throttle": Path("/sys/fs/cgroup/blkio/tasks"), "reclaim": Path("/sys/fs/cgroup/memory/tasks"),
    "punt": Path("/proc/sys/kernel/io_uring_disabled"),
}  # fmt: skip
PLANTED = [fault for fault in TOLD if fault not in NEEDS or NEEDS[fault].exists()]
#: A worker that is awake already takes the work of the limit without a wake-up, and the record of its own one is left.
FEWER = {"throttle": 0.8}
#: Locks of which faults are made. The file system of `page` and `journal` has more of its own.
LOCKED = {"futex": {"futex", "synced"}, "mutex": {"mutex"}, "rwsem (to write)": {"inode"}}
#: Causes that one fault alone has. The file system of `page` and `journal` does as it likes.
OWN = {
    "pipe": "pipe", "frozen": "queue frozen", "stop": "stopped", "timer": "sleep", "mutex": "kernel mutex",
    "reclaim": "reclaim", "punt": "io_uring completion",
}  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    folder = tmp_path_factory.mktemp("faults")
    include, source = str(ROOT / "tracepoints"), str(ROOT / "tests" / "waiting_app" / "faults.c")
    program = str(folder / "faults")
    subprocess.run(["cc", "-O1", "-pthread", f"-I{include}", source, "-o", program, "-llttng-ust", "-ldl"], check=True)
    with faulty_disks(folder) as disks:
        if "mq-deadline" not in Path(f"/sys/block/{Path(disks.device).name}/queue/scheduler").read_text():
            pytest.skip("no second scheduler: nothing freezes a queue")
        argv = [OPLINE, "record", "-o", str(folder / "run"), "--model", "generic", "--stacks", "0", "--"]
        argv += [program, str(disks.outer), str(disks.inner), disks.device, str(OPS), "direct", *PLANTED]
        record_well(argv, stdout=subprocess.DEVNULL, timeout=120)
    if find_stacks(folder / "run" / "trace") is None:
        pytest.skip("this kernel gives no stack of another thread")
    with open_run(folder / "run") as found:
        yield found


def rows_of(run: Run) -> dict[str, dict[int, list[Row]]]:
    """The rows of `waits` of each op of each fault."""
    sql = """SELECT o.class, o.op_id, w.kind, w.path, w.comm, w.cause, w.last_cause, w.instead_comm, w.lock_kind,
        w.holder_comm, w.request_id, w.duration_ns
        FROM ops o LEFT JOIN waits w USING (op_id)"""
    names = (
        "kind", "path", "comm", "cause", "last_cause", "instead_comm", "lock_kind", "holder_comm", "request_id",
        "duration_ns",
    )  # fmt: skip
    found: dict[str, dict[int, list[Row]]] = {}
    for fault, op_id, *values in run.rows(sql):
        there = found.setdefault(fault, {}).setdefault(op_id, [])
        if values[-1] is not None:
            there.append(dict(zip(names, values, strict=True)))
    return found


def locks_of(ops: dict[int, list[Row]]) -> set[str | None]:
    """Those that the stages' own threads slept for."""
    own = [row for rows in ops.values() for row in rows if row["cause"] in ("futex", "kernel mutex", "kernel rwsem")]
    return {row["lock_kind"] for row in own}


def _limited(row: Row) -> bool:
    return THROTTLED in (row["cause"], row["last_cause"])


def time_in(rows: list[Row], right: Callable[[Row], bool]) -> int:
    return sum(row["duration_ns"] for row in rows if right(row))


@pytest.mark.parametrize("fault", PLANTED)
def test_the_planted_time_is_named(run: Run, fault: str) -> None:
    ops = rows_of(run)[fault]
    assert len(ops) == OPS
    told = [time_in(rows, TOLD[fault]) for rows in ops.values()]
    assert sum(ns >= PLANTED_NS for ns in told) >= FEWER.get(fault, SHARE) * len(ops), sorted(told)


def test_no_fault_is_named_where_it_was_not_planted(run: Run) -> None:
    found = rows_of(run)
    for fault, cause in OWN.items():
        for other, ops in found.items():
            if other != fault:
                wrong = [row for rows in ops.values() for row in rows if row["cause"] == cause]
                assert not wrong, (fault, other)
    for lock, faults in LOCKED.items():
        assert {fault for fault, ops in found.items() if lock in locks_of(ops)} == faults, lock
    limited = {fault for fault, ops in found.items() for rows in ops.values() if time_in(rows, _limited)}
    assert limited <= {"throttle"}
    hogged = {fault for fault, ops in found.items() if any(TOLD["cpu"](row) for rows in ops.values() for row in rows)}
    assert hogged == {"cpu"}
    assert {row["cause"] for rows in found["direct"].values() for row in rows} <= {"direct I/O", None}


def test_the_holder_of_a_lock_is_told_with_its_op(run: Run) -> None:
    sql = """SELECT h.class, count(DISTINCT w.op_id) FROM waits w JOIN ops o USING (op_id)
        JOIN stages s ON s.states_tid = w.holder_tid AND s.begin_ns <= w.begin_ns
            AND s.begin_ns + s.duration_ns > w.begin_ns
        JOIN ops h ON h.op_id = s.op_id WHERE o.class = 'synced' AND h.class <> 'synced' GROUP BY ALL"""
    ((kept, count),) = run.rows(sql)
    assert kept == "keeps" and count >= SHARE * OPS


def test_the_waits_sum_exactly(run: Run) -> None:
    tables: dict[str, list[Row]] = {}
    for name, columns in (
        ("waits", "op_id, seq, kind, reason, path, depth, duration_ns, part_count"),
        ("stages", "op_id, seq, duration_ns, on_cpu_ns"),
    ):
        names = [column.strip() for column in columns.split(",")]
        tables[name] = [dict(zip(names, row, strict=True)) for row in run.rows(f"SELECT {columns} FROM {name}")]
    check_waits(tables)
    assert "partition_violations" not in run.manifest["losses"]


def test_one_op_is_told_in_words(run: Run) -> None:
    ids = dict(run.rows("SELECT class, min(op_id) FROM ops GROUP BY class"))

    def words(fault: str) -> str:
        argv = [OPLINE, "ops", str(run.path), "--op", str(ids[fault])]
        return " ".join(subprocess.run(argv, check=True, capture_output=True, text=True, timeout=60).stdout.split())

    assert "futex: holder → sleep" in words("futex")
    assert "kernel rwsem: freezer → sleep" in words("rwsem")
    assert "queue frozen" in words("frozen")
    assert "cpuhog" in words("cpu")
    if "throttle" in PLANTED:
        assert re.search(r"direct I/O: kworker/\S+ → throttled: io.max", words("throttle"))
    synced = words("synced")
    assert "futex: keeper →" in synced and "at the device" in synced
    assert re.search(r"lock: futex 0x[0-9a-f]+, held by keeper \d+ for op \d+", synced)
    assert re.search(r"lock: mutex 0x[0-9a-f]+, held by keeper \d+ for op \d+", words("mutex"))
    assert "lock: rwsem (to write) 0x" in words("inode")


def test_the_stacks_of_waits_are_exported(run: Run, tmp_path: Path) -> None:
    written = {}
    for form in ("waits-folded", "waits-speedscope"):
        argv = [OPLINE, "export", str(run.path), "--to", form, "-o", str(tmp_path / form)]
        done = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=60)
        assert "of waits have a stack" in done.stderr
        written[form] = (tmp_path / form).read_text()
    folded = [
        (tuple(stack.split(";")), int(ns))
        for stack, ns in (line.rsplit(" ", 1) for line in written["waits-folded"].splitlines())
    ]
    sums = "SELECT o.class, s.stage, sum(w.duration_ns)::BIGINT FROM waits w JOIN ops o USING (op_id)"
    joined = "JOIN stages s ON s.op_id = w.op_id AND s.seq = w.seq"
    counted = "WHERE o.complete AND NOT o.tainted"

    def recorded(which: str) -> dict[tuple[str, str], int]:
        return {(c, s): ns for c, s, ns in run.rows(f"{sums} {joined} {counted} AND {which} GROUP BY ALL")}

    def exported(found: list[tuple[tuple[str, ...], int]]) -> dict[tuple[str, str], int]:
        total: Counter[tuple[str, str]] = Counter()
        for (op_class, stage, *_), ns in found:
            total[op_class, stage] += ns
        return dict(total)

    assert exported(folded) == recorded("w.duration_ns > 0")
    with_stack = [(stack, ns) for stack, ns in folded if not stack[2].startswith("[")]
    assert exported(with_stack) == recorded("w.duration_ns > 0 AND w.stack_id IS NOT NULL")
    assert any("futex_wait" in name for stack, _ in with_stack if stack[0] == "futex" for name in stack)
    shown = json.loads(written["waits-speedscope"])
    names = [frame["name"] for frame in shown["shared"]["frames"]]
    samples = [
        ((profile["name"], *(names[i] for i in stack)), ns)
        for profile in shown["profiles"]
        for stack, ns in zip(profile["samples"], profile["weights"], strict=True)
    ]
    assert sorted(samples) == sorted(folded)
    assert all(profile["endValue"] == sum(profile["weights"]) for profile in shown["profiles"])
