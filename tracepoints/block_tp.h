// SPDX-License-Identifier: MIT
// The UST provider `block`: the block layer's tracepoints, as LTTng's kernel domain names them and their fields
// (lttng-modules 2.13, include/instrumentation/events/block.h), each with what BPF sees besides:
//
//   ktime   CLOCK_MONOTONIC ns in the kernel: the event's time. UST's own time is when the bridge passed it on
//   tid, pid   thread and process as the root PID namespace numbers them (recordings before 1.0 in a PID namespace: as that
//           numbers them, -1: a task outside of it)
//   cpu     CPU that it happened on (that of the stream is the bridge's)
//   rq, bio, parent   kernel pointers, 0: none. `bio` of a request is its first one; `parent` of a split the bio it was cut from
//   seq     per CPU, from 1, without gaps unless events were lost
//   queue   of a request's insert, issue, requeue, merge and completion: the number of its hardware queue (mq/N in sysfs), -1: none
//   tag     the same: the tag that the driver knows it by, -1: none (yet)
//   rq_flags   the same: struct request's rq_flags as the kernel has them; their bits differ between kernels
//   flush_seq   the same: the steps of its flush sequence that are done, as block/blk-flush.c has them in flush.seq (1 pre-flush, 2 data,
//               4 post-flush); -1: it is in no such sequence (RQF_FLUSH_SEQ is not set)
//   cgroup  of a bio that is queued: whose it is, by the number that sched:process_cgroup_path names; 0: not known. Of a
//           write of the page cache the cgroup of its pages (cgroups.bpf.c)
//
// Events come in the order of ktime. `block:watermark`: everything with ktime <= drained_through has been passed on.
// `block:lost`: `count` events of `cpu` are missing (`reason` "ring": the ring buffer was full, seq has that gap; "nested": the
// tracepoint fired in an interrupt of its own program, which BPF does not run twice; cpu is -1 then, seq has no gap).

#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER block

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./block_tp.h"

#if !defined(OPLINE_BLOCK_TP_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define OPLINE_BLOCK_TP_H

#include <lttng/tracepoint.h>
#include <stdint.h>

#include <linux/types.h>

#include "bridge_record.h"
#include "block_event.h"

#ifndef OPLINE_BLOCK_FIELDS
#define OPLINE_BLOCK_FIELDS
#define BLOCK_ARGS LTTNG_UST_TP_ARGS(const struct block_event *, e, uint64_t, seq_number)
#define BLOCK_ORIGIN                                                                                                   \
    lttng_ust_field_integer(uint64_t, ktime, e->ktime)                                                                 \
    lttng_ust_field_integer(uint32_t, cpu, e->cpu)                                                                     \
    lttng_ust_field_integer(uint64_t, seq, seq_number)
#define BLOCK_TASK                                                                                                     \
    lttng_ust_field_integer(int32_t, tid, (int32_t)e->tid)                                                             \
    lttng_ust_field_integer(int32_t, pid, (int32_t)e->pid)                                                             \
    lttng_ust_field_array_text(char, comm, e->comm, 16)
#define BLOCK_PLACE                                                                                                    \
    lttng_ust_field_integer(uint32_t, dev, e->dev)                                                                     \
    lttng_ust_field_integer(uint64_t, sector, e->sector)                                                               \
    lttng_ust_field_integer(uint32_t, nr_sector, e->nr_sector)                                                         \
    lttng_ust_field_integer(uint32_t, rwbs, e->rwbs)
#define BLOCK_POINTERS(of_parent)                                                                                      \
    lttng_ust_field_integer_hex(uint64_t, rq, e->rq)                                                                   \
    lttng_ust_field_integer_hex(uint64_t, bio, e->bio)                                                                 \
    lttng_ust_field_integer_hex(uint64_t, parent, of_parent)
#define BLOCK_QUEUE                                                                                                    \
    lttng_ust_field_integer(int32_t, queue, e->queue == NO_QUEUE ? -1 : (int32_t)e->queue)                             \
    lttng_ust_field_integer(int16_t, tag, e->tag)                                                                      \
    lttng_ust_field_integer_hex(uint32_t, rq_flags, e->rq_flags)                                                       \
    lttng_ust_field_integer(int8_t, flush_seq, e->flush_seq)
#endif

LTTNG_UST_TRACEPOINT_EVENT(block, block_bio_queue, BLOCK_ARGS,
    LTTNG_UST_TP_FIELDS(BLOCK_PLACE BLOCK_TASK BLOCK_ORIGIN BLOCK_POINTERS(e->parent)
        lttng_ust_field_integer(uint64_t, cgroup, e->other)))
LTTNG_UST_TRACEPOINT_EVENT_CLASS(block, block_bio, BLOCK_ARGS,
    LTTNG_UST_TP_FIELDS(BLOCK_PLACE BLOCK_TASK BLOCK_ORIGIN BLOCK_POINTERS(e->parent)))
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(block, block_bio, block, block_getrq, BLOCK_ARGS)
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(block, block_bio, block, block_bio_backmerge, BLOCK_ARGS)
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(block, block_bio, block, block_bio_frontmerge, BLOCK_ARGS)
// A further bio of the request `rq` that was just issued; LTTng has no such event.
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(block, block_bio, block, block_rq_bio, BLOCK_ARGS)

LTTNG_UST_TRACEPOINT_EVENT_CLASS(block, block_rq, BLOCK_ARGS,
    LTTNG_UST_TP_FIELDS(BLOCK_PLACE lttng_ust_field_integer(uint32_t, bytes, e->bytes) BLOCK_TASK BLOCK_ORIGIN BLOCK_POINTERS(0)
        BLOCK_QUEUE))
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(block, block_rq, block, block_rq_insert, BLOCK_ARGS)
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(block, block_rq, block, block_rq_issue, BLOCK_ARGS)
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(block, block_rq, block, block_rq_requeue, BLOCK_ARGS)
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(block, block_rq, block, block_rq_merge, BLOCK_ARGS)

// `error` is an errno (negative) or 0.
LTTNG_UST_TRACEPOINT_EVENT(block, block_rq_complete, BLOCK_ARGS,
    LTTNG_UST_TP_FIELDS(BLOCK_PLACE lttng_ust_field_integer(int32_t, error, e->error) BLOCK_TASK BLOCK_ORIGIN BLOCK_POINTERS(0)
        BLOCK_QUEUE))
LTTNG_UST_TRACEPOINT_EVENT(block, block_bio_complete, BLOCK_ARGS,
    LTTNG_UST_TP_FIELDS(BLOCK_PLACE lttng_ust_field_integer(int32_t, error, e->error) BLOCK_TASK BLOCK_ORIGIN BLOCK_POINTERS(0)))

LTTNG_UST_TRACEPOINT_EVENT_CLASS(block, block_moved, BLOCK_ARGS,
    LTTNG_UST_TP_FIELDS(BLOCK_PLACE
        lttng_ust_field_integer(uint32_t, old_dev, e->old_dev)
        lttng_ust_field_integer(uint64_t, old_sector, e->other) BLOCK_TASK BLOCK_ORIGIN BLOCK_POINTERS(0)))
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(block, block_moved, block, block_bio_remap, BLOCK_ARGS)
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(block, block_moved, block, block_rq_remap, BLOCK_ARGS)

LTTNG_UST_TRACEPOINT_EVENT(block, block_split, BLOCK_ARGS,
    LTTNG_UST_TP_FIELDS(BLOCK_PLACE lttng_ust_field_integer(uint64_t, new_sector, e->other) BLOCK_TASK BLOCK_ORIGIN BLOCK_POINTERS(e->parent)))

LTTNG_UST_TRACEPOINT_EVENT(block, block_plug, BLOCK_ARGS, LTTNG_UST_TP_FIELDS(BLOCK_TASK BLOCK_ORIGIN))
LTTNG_UST_TRACEPOINT_EVENT(block, block_unplug, BLOCK_ARGS,
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(int32_t, nr_rq, (int32_t)e->bytes) BLOCK_TASK BLOCK_ORIGIN))

LTTNG_UST_TRACEPOINT_EVENT(block, watermark, LTTNG_UST_TP_ARGS(uint64_t, through),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(uint64_t, ktime, through)
        lttng_ust_field_integer(uint64_t, drained_through, through)))

LTTNG_UST_TRACEPOINT_EVENT(block, lost,
    LTTNG_UST_TP_ARGS(uint64_t, time, int32_t, cpu_number, uint64_t, how_many, const char *, why),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(uint64_t, ktime, time)
        lttng_ust_field_integer(int32_t, cpu, cpu_number)
        lttng_ust_field_integer(uint64_t, count, how_many)
        lttng_ust_field_string(reason, why)))

#endif

#include <lttng/tracepoint-event.h>
