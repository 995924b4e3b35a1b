// SPDX-License-Identifier: MIT
// The UST provider `sched`: when the recorded processes' threads ran, waited for a CPU and slept; in each `ktime`, `cpu` and `seq` as in
// block_tp.h, of which this is a part: one stream, one order.
//
//   off_cpu   `tid` is on a CPU again. It was taken off at `off_at` in `prev_state` (LTTng's bit mask: sched/sched.cpp; 0 for a thread that was forked
//             then), and woken at `woken_at` (0: it was not; before off_at: while it was about to sleep) by `waker_tid`, `waker_comm`: whom the
//             CPU ran then. It is what sched_switch, sched_waking and sched_switch of LTTng's kernel domain say together.
//   lost      `count` of these events of `cpu` are missing, some of them as late as `until`: too many waited in the ring buffer
//
// Threads are numbered as the collector's PID namespace has them.

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
        lttng_ust_field_integer(uint64_t, off_at, e->args[0])
        lttng_ust_field_integer(uint16_t, prev_state, (uint16_t)e->args[2])
        lttng_ust_field_integer(uint64_t, woken_at, e->args[1])
        lttng_ust_field_integer(int32_t, waker_tid, (int32_t)e->pid)
        lttng_ust_field_array_text(char, waker_comm, e->comm, 16)))

LTTNG_UST_TRACEPOINT_EVENT(sched, lost,
    LTTNG_UST_TP_ARGS(uint64_t, time, uint64_t, until_time, int32_t, cpu_number, uint64_t, how_many),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(uint64_t, ktime, time)
        lttng_ust_field_integer(uint64_t, until, until_time)
        lttng_ust_field_integer(int32_t, cpu, cpu_number)
        lttng_ust_field_integer(uint64_t, count, how_many)))

#endif

#include <lttng/tracepoint-event.h>
