# SPDX-License-Identifier: MIT
"""What a thread waits for, and what ends a wait, by the kernel functions in a stack. One declaration per kind.

A sleeper's stack says what it waits for (:data:`CAUSES`), the stack of who wakes it how the wait ended (:data:`ENDS`).
Any frame counts: the compiler inlines and renames the innermost ones. The first kind of a table that has a frame is
the answer, so kinds are in order from the specific to the generic.

Names: functions of Linux 5.10 to 6.18, without leading underscores and without what the compiler appends
(``.constprop.0``); a ``*`` at the end stands for any more. Found in wait records of planted causes on ext4, XFS, btrfs
and block devices, and in the sources (block/, fs/, mm/, kernel/, io_uring/, net/).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opline.values import Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

#: What a user understands; the kinds below are the finer answer.
GROUPS = (
    "device", "journal", "page", "throttled", "memory", "lock", "stopped", "timer", "network", "worker", "thread",
    "unknown",
)  # fmt: skip


class Kind(Value):
    """A kind of wait, or of its end: a name, the group that it is one of, the functions that tell it."""

    name: str
    group: str
    functions: tuple[str, ...]
    innermost: bool = False  # only the innermost frame counts, but for those of the scheduler


def _kind(name: str, group: str, functions: str, innermost: bool = False) -> Kind:
    return Kind(name, group, tuple(functions.split()), innermost)


#: What the sleeper waits for.
CAUSES = (
    _kind("journal commit", "journal", "jbd2_log_wait_commit"),
    _kind("journal full", "journal", "add_transaction_credits jbd2_log_wait_for_space jbd2_log_do_checkpoint"),
    _kind("journal locked", "journal", "wait_transaction_locked wait_transaction_switching jbd2_journal_lock_updates"),
    _kind("journal buffer", "journal", "do_get_write_access jbd2_journal_get_write_access"),
    _kind("log (XFS)", "journal", "xlog_* xfs_log_force* xfs_log_reserve xfs_log_regrant"),
    _kind(
        "log (btrfs)", "journal",
        "wait_log_commit wait_for_writer btrfs_sync_log btrfs_commit_transaction btrfs_wait_for_commit wait_for_commit",
    ),
    _kind("ordered data (btrfs)", "page", "btrfs_wait_ordered_* btrfs_start_ordered_extent*"),
    _kind("throttled: wbt", "throttled", "wbt_wait"),
    _kind("throttled: io.cost", "throttled", "ioc_rqos_throttle"),
    _kind("throttled: io.latency", "throttled", "blkcg_iolatency_throttle iolatency_* blkcg_maybe_throttle_*"),
    _kind("throttled: dirty pages", "throttled", "balance_dirty_pages*"),
    _kind("throttled: memory.high", "throttled", "mem_cgroup_handle_over_high"),
    _kind("no free tag", "throttled", "blk_mq_get_tag"),
    _kind("queue frozen", "throttled", "blk_queue_enter bio_queue_enter blk_mq_freeze_queue_wait*"),
    _kind("reclaim", "memory", "try_to_free_* shrink_* reclaim_throttle try_to_compact_pages"),
    _kind("swap-in", "memory", "do_swap_page swap_readpage swap_read_folio"),
    _kind("stopped", "stopped", "do_signal_stop ptrace_stop"),
    _kind("frozen", "stopped", "do_freezer_trap refrigerator cgroup_freezer_*"),
    _kind("futex", "lock", "futex_wait* futex_do_wait futex_lock_pi futex_wait_requeue_pi"),
    _kind(
        "file lock", "lock",
        "posix_lock_inode_wait flock_lock_inode_wait locks_lock_inode_wait do_lock_file_wait fcntl_setlk*",
    ),
    _kind("semaphore (System V)", "lock", "do_semtimedop do_semop"),
    _kind("FUSE server", "thread", "request_wait_answer fuse_simple_request"),
    _kind("NFS server", "network", "rpc_wait_bit_killable nfs_wait_bit_killable nfs_wait_on_request"),
    _kind("timerfd", "timer", "timerfd_read timerfd_read_iter"),
    _kind("sleep", "timer", "hrtimer_nanosleep do_nanosleep usleep_range* msleep msleep_interruptible"),
    _kind("io_uring completion", "device", "io_cqring_wait*"),
    _kind("aio completion", "device", "read_events do_io_getevents"),
    _kind(
        "idle worker", "worker", "worker_thread rescuer_thread io_wq_worker kthread_worker_fn smpboot_thread_fn", True
    ),
    _kind("idle SQ thread", "worker", "io_sq_thread", True),
    _kind("idle journal thread", "worker", "kjournald2 xfsaild transaction_kthread", True),
    _kind("poll", "network", "ep_poll do_epoll_wait do_sys_poll do_select"),
    _kind(
        "socket", "network",
        "unix_stream_* unix_dgram_* unix_wait_* tcp_recvmsg* tcp_sendmsg* sk_wait_data sk_stream_wait_* "
        "skb_wait_for_more_packets inet_csk_accept inet_stream_connect",
    ),
    _kind("pipe", "network", "pipe_read pipe_write anon_pipe_read anon_pipe_write"),
    _kind("event", "network", "eventfd_read eventfd_write"),
    _kind("message queue", "network", "do_msgrcv do_msgsnd do_mq_timedreceive do_mq_timedsend wq_sleep"),
    _kind("signal", "thread", "do_sigtimedwait sigsuspend do_sigsuspend x64_sys_pause arm64_sys_pause"),
    _kind("child process", "thread", "do_wait kernel_wait4 kernel_clone"),
    _kind("kernel rwsem", "lock", "rwsem_down_* percpu_rwsem_wait percpu_down_*"),
    _kind("kernel mutex", "lock", "mutex_lock* rt_mutex_* ww_mutex_lock*"),
    _kind("other direct I/O", "lock", "inode_dio_wait*"),
    _kind("flush", "device", "blkdev_issue_flush"),
    _kind("discard", "device", "blkdev_issue_discard blkdev_issue_zeroout"),
    _kind(
        "page under write-back", "page",
        "folio_wait_writeback* folio_wait_stable wait_on_page_writeback wait_for_stable_page inode_wait_for_writeback "
        "filemap_fdatawait_range",
    ),
    _kind("page being read", "page", "filemap_update_page filemap_get_pages filemap_read_folio filemap_fault"),
    _kind("page lock", "page", "folio_lock* lock_page*"),
    _kind(
        "direct I/O", "device", "iomap_dio_* blkdev_direct_IO* do_blockdev_direct_IO blkdev_bio_end_io* btrfs_direct_*"
    ),
    _kind("buffer", "device", "wait_on_buffer out_of_line_wait_on_bit* ext4_find_entry ext4_bread ext4_read_bh*"),
    _kind("page", "page", "folio_wait_bit* wait_on_page_bit*"),
    _kind("bio", "device", "submit_bio_wait bio_await_chain"),
    _kind("work item", "worker", "flush_work flush_workqueue flush_delayed_work drain_workqueue"),
    _kind("RCU grace period", "worker", "synchronize_rcu* synchronize_srcu* rcu_barrier wait_rcu_gp"),
    _kind("completion", "unknown", "wait_for_completion* wait_for_common*"),
    _kind("timeout", "unknown", "schedule_timeout* schedule_hrtimeout_range*"),
)  # fmt: skip

#: How the wait ended.
ENDS = (
    _kind("timer", "timer", "hrtimer_wakeup process_timeout it_real_fn posix_timer_fn alarmtimer_fired"),
    _kind("limit freed", "throttled", "wbt_done wbt_rqw_done ioc_timer_fn ioc_rqos_done* iolatency_*"),
    _kind("throttled: io.max", "throttled", "blk_throtl_dispatch_work_fn throtl_pending_timer_fn"),
    _kind("delayed work", "timer", "delayed_work_timer_fn"),
    _kind("unfreeze", "throttled", "blk_mq_unfreeze_queue*"),
    _kind("log (XFS)", "journal", "xlog_*"),
    _kind("log (btrfs)", "journal", "btrfs_sync_log btrfs_commit_transaction"),
    _kind("journal", "journal", "jbd2_journal_commit_transaction jbd2_journal_stop kjournald2"),
    _kind("journal asked", "journal", "jbd2_log_start_commit"),
    _kind("page written", "page", "folio_end_writeback* end_page_writeback"),
    _kind("page read", "page", "folio_end_read folio_unlock unlock_page read_end_io mpage_read_end_io"),
    _kind("flush done", "device", "blk_flush_complete_seq"),
    _kind(
        "device done", "device",
        "blk_mq_end_request* blk_mq_complete_request* blk_complete_reqs blk_done_softirq blk_update_request bio_endio "
        "iomap_dio_complete* iomap_dio_bio_end_io aio_complete_rw blk_mq_free_request*",
    ),
    _kind("network", "network", "net_rx_action tcp_v4_rcv tcp_v6_rcv"),
    _kind("signal", "stopped", "do_send_sig_info prepare_signal send_signal* complete_signal do_send_specific"),
    _kind("futex", "lock", "futex_wake* futex_requeue futex_unlock_pi"),
    _kind("socket", "network", "unix_stream_* unix_dgram_* tcp_sendmsg* sock_def_readable sock_def_write_space*"),
    _kind("pipe", "network", "pipe_write pipe_read anon_pipe_write anon_pipe_read pipe_release"),
    _kind("event", "network", "eventfd_signal* eventfd_write"),
    _kind("exit", "thread", "do_exit do_notify_parent mm_release exit_mm_release"),
    _kind("task work", "worker", "io_req_task_work_add* task_work_add"),
    _kind("work queued", "worker", "queue_work* kick_pool insert_work io_wq_enqueue mod_delayed_work_on"),
    _kind("kernel mutex", "lock", "mutex_unlock* rt_mutex_unlock"),
    _kind("kernel rwsem", "lock", "up_write up_read rwsem_wake* percpu_up_*"),
    _kind("RCU", "worker", "rcu_core rcu_do_batch rcu_gp_* wakeme_after_rcu"),
    _kind("completed", "unknown", "complete complete_all complete_with_flags"),
)  # fmt: skip

#: Causes of which the end of the wait tells more.
VAGUE = ("idle worker", "page", "buffer", "bio")

_SCHEDULER = ("schedule*", "io_schedule*")

#: Functions by which the CPU enters an interrupt, in x86 and arm64: what lies below is of the interrupted thread.
_INTERRUPT = (
    "common_interrupt", "asm_common_interrupt", "sysvec_*", "asm_sysvec_*", "handle_softirqs", "do_softirq*",
    "el1_interrupt", "el0_interrupt",
)  # fmt: skip
_SUFFIXES = (".isra", ".constprop", ".part", ".cold", ".llvm", "+0x")


def function_of(frame: str) -> str:
    """``__folio_lock.part.0+0x1f [ext4]`` → ``folio_lock``."""
    name = frame.partition(" ")[0]
    for suffix in _SUFFIXES:
        name = name.partition(suffix)[0]
    return name.lstrip("_")


def _has(functions: Sequence[str], patterns: Iterable[str]) -> bool:
    for pattern in patterns:
        if pattern.endswith("*"):
            begin = pattern[:-1]
            if any(function.startswith(begin) for function in functions):
                return True
        elif pattern in functions:
            return True
    return False


def _number(kinds: Sequence[Kind], functions: Sequence[str]) -> int | None:
    innermost = next(([one] for one in functions if not _has([one], _SCHEDULER)), [])
    for number, kind in enumerate(kinds):
        if _has(innermost if kind.innermost else functions, kind.functions):
            return number
    return None


def cause_of(frames: Sequence[str]) -> int | None:
    """What a thread with these frames, innermost first, waits for: an index of :data:`CAUSES`; None: not known."""
    return _number(CAUSES, [function_of(frame) for frame in frames])


def end_of(frames: Sequence[str]) -> tuple[int | None, bool]:
    """How who has these frames ends a wait: an index of :data:`ENDS` (None: not known), and whether an interrupt does.
    Frames of the thread that it interrupts do not count.
    """
    functions = [function_of(frame) for frame in frames]
    entered = next((i for i, function in enumerate(functions) if _has([function], _INTERRUPT)), None)
    return _number(ENDS, functions[:entered]), entered is not None
