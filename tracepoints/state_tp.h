// SPDX-License-Identifier: MIT
// The UST provider `sched`: when the recorded processes' threads ran, waited for a CPU and slept, and which processes these are; in each
// `ktime`, `cpu` and `seq` as in block_tp.h, of which this is a part: one stream, one order.
//
//   off_cpu   `tid` is on a CPU again. It was taken off at `off_at` in `prev_state` (LTTng's bit mask: sched/sched.cpp; 0 for a thread that was forked
//             then), and woken at `woken_at` (0: it was not; before off_at: while it was about to sleep) by `waker_tid`, `waker_comm`: whom the
//             CPU ran then. It is what sched_switch, sched_waking and sched_switch of LTTng's kernel domain say together.
//             Of the waker: `waker_cpu`, where it was; `waker_irq`, in which interrupt (wakers.bpf.c; 0: in none, 65535: not known);
//             `waker_on_at`, `waker_off_at`, `waker_woken_at`, `waker_prev_state`, `waker_waker_tid`, `waker_waker_irq`: its own last wait, which ended
//             at `waker_on_at` (0, -1, 65535: not known). `level`: 0, or how far the thread is from the recorded processes (wakers.bpf.c).
//             `stack`, `waker_stack`: numbers of stacks.json (stacks.bpf.c; -1: none)
//   ran_instead   `tid`, whose off_cpu comes next, waited for its CPU while that ran `ran_tid` of process `ran_pid`: for `ran_ns`, until `ran_until`.
//             One for each such thread that ran for 1/32 of the wait or more. Not told of short waits (states.bpf.c)
//   lock_wait   `tid`, whose off_cpu comes next, slept since `off_at` for the lock at the address `lock`: of a futex in its process, else in the kernel.
//             `lock_flags`: LCB_F_* of the kernel's include/trace/events/lock.h; 0x8000: a futex. `holder_tid` of process `holder_pid` held the lock
//             when `tid` went to sleep (0: not known). Not told of short waits (locks.bpf.c)
//   follow    `tid` of process `pid`, which began at `start_ns` and is not of the recorded processes, is followed from here on, `level` wake-ups away
//             from them; -1: no longer
//   follow_lost   as lost, of off_cpu events with a `level` of 1 and more
//   process_fork   a recorded process, `parent_pid`, has made the process `pid`, which is recorded, too; `comm`: the name of the thread that did
//   process_exec   the recorded process `pid` runs another program from here on; `comm`: its name
//   process_exit   the last thread of the recorded process `pid` has ended
//   process_runs   the recorded process `pid` runs, and did before: told when the recording begins, and in each part of one in chunks
//   process_thread   `tid` and `pid` (root PID namespace) are called `vtid` and `vpid` in their own PID namespace, whose inode is `pid_ns`
//             (LTTng-UST's context of that name). The thread began at `start_ns` (CLOCK_MONOTONIC of the recorder). In its time
//             namespace, whose inode is `time_ns`, that clock is `clock_offset_ns` ahead of the recorder's. `parent_tid`, `parent_pid`: who forked it just now;
//             0: it runs already. Which threads are told: threads.bpf.c
//   process_cgroup   `pid`'s thread `tid`, or all of its threads (0), are in the cgroup `cgroup` from here on; `pid` 0: that cgroup was made
//   process_cgroup_path   the path in its hierarchy of the cgroup that these events and block:block_bio_queue call by the number `cgroup`,
//             told before the first of them does. 0: not known
//   process_file_path   the path of the file that system calls name by `file_dev` and `inode` from here on: before the first of them, and
//             again once the path is known (before: ""). The inode number of a removed file goes to a new file, with another `generation`
//   lost      `count` of these events of `cpu` are missing, some of them as late as `until`: too many waited in the ring buffer
//
// Threads are numbered as the root PID namespace has them.

#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER sched

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./state_tp.h"

#if !defined(OPLINE_STATE_TP_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define OPLINE_STATE_TP_H

#include <lttng/tracepoint.h>
#include <stdint.h>

#include <linux/types.h>

#include "block_event.h"

LTTNG_UST_TRACEPOINT_EVENT(sched, off_cpu,
    LTTNG_UST_TP_ARGS(const struct block_event *, e, uint64_t, seq_number),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(uint64_t, ktime, e->ktime)
        lttng_ust_field_integer(uint16_t, cpu, e->cpu)
        lttng_ust_field_integer(uint64_t, seq, seq_number)
        lttng_ust_field_integer(int32_t, tid, (int32_t)e->tid)
        lttng_ust_field_integer(uint64_t, off_at, e->off_at)
        lttng_ust_field_integer(uint16_t, prev_state, e->prev_state)
        lttng_ust_field_integer(uint64_t, woken_at, e->woken_at)
        lttng_ust_field_integer(int32_t, waker_tid, (int32_t)e->pid)
        lttng_ust_field_array_text(char, waker_comm, e->comm, 16)
        lttng_ust_field_integer(uint8_t, level, (uint8_t)e->level)
        lttng_ust_field_integer(uint16_t, waker_irq, e->waker_irq)
        lttng_ust_field_integer(uint16_t, waker_cpu, (uint16_t)e->waker_cpu)
        lttng_ust_field_integer(uint64_t, waker_on_at, e->waker_on_at)
        lttng_ust_field_integer(uint64_t, waker_off_at, e->waker_off_at)
        lttng_ust_field_integer(uint64_t, waker_woken_at, e->waker_woken_at)
        lttng_ust_field_integer(uint16_t, waker_prev_state, e->waker_state)
        lttng_ust_field_integer(int32_t, waker_waker_tid, (int32_t)e->waker_waker)
        lttng_ust_field_integer(uint16_t, waker_waker_irq, e->waker_waker_irq)
        lttng_ust_field_integer(int32_t, stack, e->stack ? (int32_t)e->stack : -1)
        lttng_ust_field_integer(int32_t, waker_stack, e->waker_stack ? (int32_t)e->waker_stack : -1)))

LTTNG_UST_TRACEPOINT_EVENT(sched, ran_instead,
    LTTNG_UST_TP_ARGS(const struct block_event *, e, uint64_t, seq_number),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(uint64_t, ktime, e->ktime)
        lttng_ust_field_integer(uint16_t, cpu, e->cpu)
        lttng_ust_field_integer(uint64_t, seq, seq_number)
        lttng_ust_field_integer(int32_t, tid, (int32_t)e->tid)
        lttng_ust_field_integer(int32_t, ran_tid, (int32_t)e->args[0])
        lttng_ust_field_integer(int32_t, ran_pid, (int32_t)e->pid)
        lttng_ust_field_array_text(char, ran_comm, e->comm, 16)
        lttng_ust_field_integer(uint64_t, ran_ns, e->args[1])
        lttng_ust_field_integer(uint64_t, ran_until, e->args[2])))

LTTNG_UST_TRACEPOINT_EVENT(sched, lock_wait,
    LTTNG_UST_TP_ARGS(const struct block_event *, e, uint64_t, seq_number),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(uint64_t, ktime, e->ktime)
        lttng_ust_field_integer(uint16_t, cpu, e->cpu)
        lttng_ust_field_integer(uint64_t, seq, seq_number)
        lttng_ust_field_integer(int32_t, tid, (int32_t)e->tid)
        lttng_ust_field_integer(uint64_t, off_at, e->args[3])
        lttng_ust_field_integer(uint64_t, lock, e->args[0])
        lttng_ust_field_integer(uint16_t, lock_flags, (uint16_t)e->args[1])
        lttng_ust_field_integer(int32_t, holder_tid, (int32_t)e->args[2])
        lttng_ust_field_integer(int32_t, holder_pid, (int32_t)e->pid)
        lttng_ust_field_array_text(char, holder_comm, e->comm, 16)))

LTTNG_UST_TRACEPOINT_EVENT(sched, follow,
    LTTNG_UST_TP_ARGS(const struct block_event *, e, uint64_t, seq_number),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(uint64_t, ktime, e->ktime)
        lttng_ust_field_integer(uint16_t, cpu, e->cpu)
        lttng_ust_field_integer(uint64_t, seq, seq_number)
        lttng_ust_field_integer(int32_t, tid, (int32_t)e->tid)
        lttng_ust_field_integer(int32_t, pid, (int32_t)e->pid)
        lttng_ust_field_array_text(char, comm, e->comm, 16)
        lttng_ust_field_integer(uint64_t, start_ns, e->args[0])
        lttng_ust_field_integer(int8_t, level, e->level)))

LTTNG_UST_TRACEPOINT_EVENT(sched, process_fork,
    LTTNG_UST_TP_ARGS(const struct block_event *, e, uint64_t, seq_number),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(uint64_t, ktime, e->ktime)
        lttng_ust_field_integer(uint16_t, cpu, e->cpu)
        lttng_ust_field_integer(uint64_t, seq, seq_number)
        lttng_ust_field_integer(int32_t, pid, (int32_t)e->tid)
        lttng_ust_field_integer(int32_t, parent_pid, (int32_t)e->pid)
        lttng_ust_field_array_text(char, comm, e->comm, 16)))

LTTNG_UST_TRACEPOINT_EVENT_CLASS(sched, process,
    LTTNG_UST_TP_ARGS(const struct block_event *, e, uint64_t, seq_number),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(uint64_t, ktime, e->ktime)
        lttng_ust_field_integer(uint16_t, cpu, e->cpu)
        lttng_ust_field_integer(uint64_t, seq, seq_number)
        lttng_ust_field_integer(int32_t, pid, (int32_t)e->tid)
        lttng_ust_field_array_text(char, comm, e->comm, 16)))
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(sched, process, sched, process_exec,
    LTTNG_UST_TP_ARGS(const struct block_event *, e, uint64_t, seq_number))
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(sched, process, sched, process_exit,
    LTTNG_UST_TP_ARGS(const struct block_event *, e, uint64_t, seq_number))
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(sched, process, sched, process_runs,
    LTTNG_UST_TP_ARGS(const struct block_event *, e, uint64_t, seq_number))

LTTNG_UST_TRACEPOINT_EVENT(sched, process_thread,
    LTTNG_UST_TP_ARGS(const struct block_event *, e, uint64_t, seq_number),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(uint64_t, ktime, e->ktime)
        lttng_ust_field_integer(uint16_t, cpu, e->cpu)
        lttng_ust_field_integer(uint64_t, seq, seq_number)
        lttng_ust_field_integer(int32_t, tid, (int32_t)e->tid)
        lttng_ust_field_integer(int32_t, pid, (int32_t)e->pid)
        lttng_ust_field_array_text(char, comm, e->comm, 16)
        lttng_ust_field_integer(int32_t, vtid, (int32_t)(uint32_t)e->args[1])
        lttng_ust_field_integer(int32_t, vpid, (int32_t)(e->args[1] >> 32))
        lttng_ust_field_integer(uint32_t, pid_ns, (uint32_t)e->args[2])
        lttng_ust_field_integer(uint32_t, time_ns, (uint32_t)(e->args[2] >> 32))
        lttng_ust_field_integer(int64_t, clock_offset_ns, (int64_t)e->args[3])
        lttng_ust_field_integer(uint64_t, start_ns, e->args[0])
        lttng_ust_field_integer(int32_t, parent_tid, (int32_t)(uint32_t)e->args[4])
        lttng_ust_field_integer(int32_t, parent_pid, (int32_t)(e->args[4] >> 32))
        lttng_ust_field_integer(uint64_t, cgroup, e->args[5])))

LTTNG_UST_TRACEPOINT_EVENT(sched, process_cgroup,
    LTTNG_UST_TP_ARGS(const struct block_event *, e, uint64_t, seq_number),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(uint64_t, ktime, e->ktime)
        lttng_ust_field_integer(uint16_t, cpu, e->cpu)
        lttng_ust_field_integer(uint64_t, seq, seq_number)
        lttng_ust_field_integer(int32_t, tid, (int32_t)e->tid)
        lttng_ust_field_integer(int32_t, pid, (int32_t)e->pid)
        lttng_ust_field_integer(uint64_t, cgroup, e->args[5])))

LTTNG_UST_TRACEPOINT_EVENT(sched, process_cgroup_path,
    LTTNG_UST_TP_ARGS(uint64_t, time, uint64_t, number, const char *, text),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(uint64_t, ktime, time)
        lttng_ust_field_integer(uint64_t, cgroup, number)
        lttng_ust_field_string(path, text)))

LTTNG_UST_TRACEPOINT_EVENT(sched, process_file_path,
    LTTNG_UST_TP_ARGS(uint64_t, time, uint32_t, dev_number, uint64_t, inode_number, uint32_t, of_inode, const char *, text),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(uint64_t, ktime, time)
        lttng_ust_field_integer(uint32_t, file_dev, dev_number)
        lttng_ust_field_integer(uint64_t, inode, inode_number)
        lttng_ust_field_integer(uint32_t, generation, of_inode)
        lttng_ust_field_string(path, text)))

LTTNG_UST_TRACEPOINT_EVENT(sched, follow_lost,
    LTTNG_UST_TP_ARGS(uint64_t, time, uint64_t, until_time, int32_t, cpu_number, uint64_t, how_many),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(uint64_t, ktime, time)
        lttng_ust_field_integer(uint64_t, until, until_time)
        lttng_ust_field_integer(int32_t, cpu, cpu_number)
        lttng_ust_field_integer(uint64_t, count, how_many)))

LTTNG_UST_TRACEPOINT_EVENT(sched, lost,
    LTTNG_UST_TP_ARGS(uint64_t, time, uint64_t, until_time, int32_t, cpu_number, uint64_t, how_many),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(uint64_t, ktime, time)
        lttng_ust_field_integer(uint64_t, until, until_time)
        lttng_ust_field_integer(int32_t, cpu, cpu_number)
        lttng_ust_field_integer(uint64_t, count, how_many)))

#endif

#include <lttng/tracepoint-event.h>
