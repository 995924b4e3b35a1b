# SPDX-License-Identifier: MIT
"""Kinds of waits from kernel stacks, and the file that a recording has them in."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from opline.errors import OplineError
from opline.readers.causes import CAUSES, ENDS, GROUPS, cause_of, end_of, function_of
from opline.readers.stacks import SCHEMA, VERSION, Stack, read_stacks

# Frames of Linux 6.18, innermost first.
SLEEPERS = {
    "journal commit": ["schedule", "jbd2_log_wait_commit", "ext4_sync_file", "do_fsync"],
    "throttled: wbt": ["io_schedule", "rq_qos_wait", "wbt_wait", "__rq_qos_throttle", "blk_mq_submit_bio"],
    "no free tag": ["io_schedule", "blk_mq_get_tag", "__blk_mq_alloc_requests", "__blkdev_direct_IO_simple"],
    "log (XFS)": ["schedule", "xlog_wait_on_iclog", "xfs_log_force_seq", "xfs_file_fsync"],
    "log (btrfs)": ["schedule_timeout", "wait_log_commit", "btrfs_sync_log", "btrfs_sync_file"],
    "flush": ["schedule_timeout", "io_schedule_timeout", "submit_bio_wait", "blkdev_issue_flush", "ext4_sync_file"],
    "page under write-back": ["io_schedule", "folio_wait_bit_common", "folio_wait_writeback", "ext4_sync_file"],
    "page": ["io_schedule", "folio_wait_bit_common.constprop.0", "some_new_function"],
    "kernel mutex": ["schedule_preempt_disabled", "__mutex_lock.constprop.0+0x2f1", "f"],
    "stopped": ["do_signal_stop", "get_signal", "arch_do_signal_or_restart"],
    "idle worker": ["schedule", "worker_thread", "kthread", "ret_from_fork"],
    "idle journal thread": ["kjournald2", "kthread", "ret_from_fork"],
    "kernel rwsem": ["percpu_rwsem_wait", "lo_rw_aio.isra.0", "loop_process_work", "process_one_work", "worker_thread"],
    "file lock": ["schedule", "fcntl_setlk", "do_fcntl", "__x64_sys_fcntl"],
    "event": ["schedule", "do_wait_intr_irq", "eventfd_read", "vfs_read", "ksys_read"],
    "timerfd": ["schedule", "do_wait_intr_irq", "timerfd_read_iter", "vfs_read", "ksys_read"],
    "message queue": ["schedule", "do_msgrcv", "do_syscall_64"],
    "semaphore (System V)": ["schedule", "__do_semtimedop", "do_semtimedop", "do_syscall_64"],
    "signal": ["schedule", "schedule_timeout", "do_sigtimedwait.isra.0", "__x64_sys_rt_sigtimedwait"],
    "FUSE server": ["schedule", "request_wait_answer", "__fuse_simple_request", "fuse_file_read_iter"],
    "NFS server": ["schedule", "rpc_wait_bit_killable", "out_of_line_wait_on_bit", "__rpc_execute"],
    "timeout": ["schedule_timeout+0x1f", "a_driver [a_module]"],
}


@pytest.mark.parametrize("name", SLEEPERS)
def test_a_sleepers_stack_tells_what_it_waits_for(name: str) -> None:
    number = cause_of(SLEEPERS[name])
    assert number is not None and CAUSES[number].name == name


def test_a_stack_without_a_known_function_tells_nothing() -> None:
    assert cause_of(["a", "b+0x1"]) is None and cause_of([]) is None and end_of(["a"]) == (None, False)
    assert cause_of(["jbd2_journal_commit_transaction", "kjournald2", "kthread"]) is None, "it works"


def test_what_an_interrupt_came_upon_does_not_count() -> None:
    done = ["blk_mq_end_request", "blk_complete_reqs", "handle_softirqs", "__irq_exit_rcu", "common_interrupt"]
    number, interrupt = end_of([*done, "futex_wake", "do_futex"])
    assert number is not None and (ENDS[number].name, interrupt) == ("device done", True)
    number, interrupt = end_of(["futex_wake", "do_futex"])
    assert number is not None and (ENDS[number].name, interrupt) == ("futex", False)
    assert end_of(["asm_sysvec_call_function", "futex_wake"]) == (None, True)


@pytest.mark.parametrize(
    ("frame", "function"),
    [
        ("__folio_lock.part.0+0x1f [ext4]", "folio_lock"),
        ("schedule", "schedule"),
        ("0xffffffffa0001000", "0xffffffffa0001000"),
    ],
)
def test_functions_of_frames(frame: str, function: str) -> None:
    assert function_of(frame) == function


def test_the_tables_have_each_kind_once() -> None:
    for kinds in (CAUSES, ENDS):
        assert len({kind.name for kind in kinds}) == len(kinds)
        assert {kind.group for kind in kinds} <= set(GROUPS)
        assert all(re.fullmatch(r"[a-z0-9][A-Za-z0-9_]*\*?", one) for kind in kinds for one in kind.functions)
        # A function of an earlier kind hides the same one of a later kind.
        functions = [one for kind in kinds for one in kind.functions]
        assert len(functions) == len(set(functions))


def document() -> dict[str, Any]:
    return {
        "schema": SCHEMA, "version": VERSION, "threshold_ns": 200000, "lost": 0, "left_out": 5,
        "causes": [["flush", "device"]], "ends": [["timer", "timer"]],
        "stacks": {"3": {"cause": 0, "end": None, "interrupt": False, "frames": ["blkdev_issue_flush+0x1"]}},
    }  # fmt: skip


def test_the_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "stacks.json"
    path.write_text(json.dumps(document()))
    found = read_stacks(path)
    assert found.of == {3: Stack(0, None, False, ("blkdev_issue_flush+0x1",))}
    assert found.ended
    path.write_text(json.dumps({**document(), "ended": False}))
    assert not read_stacks(path).ended
    assert found.causes == (("flush", "device"),) and (found.threshold_ns, found.left_out) == (200000, 5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 2}, "of version 1"),
        ({"causes": [["a"]]}, "of version 1"),
        ({"causes": []}, "of version 1"),
        ({"stacks": []}, "of version 1"),
        ({"stacks": {"x": {}}}, "of version 1"),
        ({"lost": None}, "of version 1"),
        ({"left_out": "x"}, "of version 1"),
    ],
)
def test_a_damaged_file_is_one_line(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    path = tmp_path / "stacks.json"
    path.write_text(json.dumps({**document(), **change}))
    with pytest.raises(OplineError, match=message):
        read_stacks(path)
    path.write_text("{")
    with pytest.raises(OplineError, match="not JSON"):
        read_stacks(path)


def test_user_frames_are_read_where_they_were_recorded(tmp_path: Path) -> None:
    path, found = tmp_path / "stacks.json", document()
    number = next(iter(found["stacks"]))
    write(path, found)
    assert not any(stack.user for stack in read_stacks(path).of.values())
    found["stacks"][number]["user"] = ["pwrite64+0x17 [libc.so.6]", "append+0x5e [store]"]
    write(path, found)
    assert read_stacks(path).of[int(number)].user == ("pwrite64+0x17 [libc.so.6]", "append+0x5e [store]")


def write(path: Path, found: dict[str, Any]) -> None:
    path.write_text(json.dumps(found))
