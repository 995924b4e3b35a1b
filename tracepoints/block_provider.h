// SPDX-License-Identifier: MIT
// What the bridge (bridge.c) must know of the providers `block`, `syscall` and `sched`.
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "block_error.h"
#include "block_tp.h"
#include "bridge_calls.h"
#include "state_tp.h"

#define bridge_event block_event

// What the session records at the moment.
static uint64_t enabled_mask(void) {
    uint64_t mask = 0;
#define ASK(kind, event) mask |= lttng_ust_tracepoint_enabled(block, event) ? UINT64_C(1) << (kind) : 0
    ASK(KIND_BIO_QUEUE, block_bio_queue);
    ASK(KIND_GETRQ, block_getrq);
    ASK(KIND_BIO_BACKMERGE, block_bio_backmerge);
    ASK(KIND_BIO_FRONTMERGE, block_bio_frontmerge);
    ASK(KIND_SPLIT, block_split);
    ASK(KIND_BIO_REMAP, block_bio_remap);
    ASK(KIND_BIO_COMPLETE, block_bio_complete);
    ASK(KIND_RQ_INSERT, block_rq_insert);
    ASK(KIND_RQ_ISSUE, block_rq_issue);
    ASK(KIND_RQ_BIO, block_rq_bio);
    ASK(KIND_RQ_REQUEUE, block_rq_requeue);
    ASK(KIND_RQ_MERGE, block_rq_merge);
    ASK(KIND_RQ_REMAP, block_rq_remap);
    ASK(KIND_RQ_COMPLETE, block_rq_complete);
    ASK(KIND_PLUG, block_plug);
    ASK(KIND_UNPLUG, block_unplug);
#undef ASK
    mask |= lttng_ust_tracepoint_enabled(sched, off_cpu) ? UINT64_C(1) << KIND_OFF_CPU : 0;
    return mask;
}

static inline void receive_event(struct block_event *e, const void *record, uint32_t bytes) {
    if (e->kind < KIND_CALL_ENTRY) e->error = error_of(e);
    else if (bytes >= sizeof(struct iocbs_event)) keep_iocbs(e, record);
}

// False: the session does not record that event (any more).
static bool pass_event(const struct block_event *e, uint64_t seq) {
#define PASS_OF(provider, kind, event)                                                                                 \
    case kind:                                                                                                         \
        if (lttng_ust_tracepoint_enabled(provider, event)) {                                                           \
            lttng_ust_do_tracepoint(provider, event, e, seq);                                                          \
            return true;                                                                                               \
        }                                                                                                              \
        break
#define PASS(kind, event) PASS_OF(block, kind, event)
    switch (e->kind) {
        PASS(KIND_BIO_QUEUE, block_bio_queue);
        PASS(KIND_GETRQ, block_getrq);
        PASS(KIND_BIO_BACKMERGE, block_bio_backmerge);
        PASS(KIND_BIO_FRONTMERGE, block_bio_frontmerge);
        PASS(KIND_SPLIT, block_split);
        PASS(KIND_BIO_REMAP, block_bio_remap);
        PASS(KIND_BIO_COMPLETE, block_bio_complete);
        PASS(KIND_RQ_INSERT, block_rq_insert);
        PASS(KIND_RQ_ISSUE, block_rq_issue);
        PASS(KIND_RQ_BIO, block_rq_bio);
        PASS(KIND_RQ_REQUEUE, block_rq_requeue);
        PASS(KIND_RQ_MERGE, block_rq_merge);
        PASS(KIND_RQ_REMAP, block_rq_remap);
        PASS(KIND_RQ_COMPLETE, block_rq_complete);
        PASS(KIND_PLUG, block_plug);
        PASS(KIND_UNPLUG, block_unplug);
        PASS_OF(sched, KIND_OFF_CPU, off_cpu);
    case KIND_CALL_ENTRY:
    case KIND_CALL_EXIT: return pass_call(e, seq);
    }
#undef PASS
#undef PASS_OF
    return false;
}

static bool pass_watermark(uint64_t through_ns) {
    if (!lttng_ust_tracepoint_enabled(block, watermark)) return false;
    lttng_ust_do_tracepoint(block, watermark, through_ns);
    return true;
}

static bool pass_lost(uint64_t time_ns, int32_t cpu, uint64_t count, const char *why) {
    if (!lttng_ust_tracepoint_enabled(block, lost)) return false;
    lttng_ust_do_tracepoint(block, lost, time_ns, cpu, count, why);
    return true;
}

// One of those that may fill half of the ring buffer at most.
static inline bool gives_way(const struct block_event *e) { return e->kind == KIND_OFF_CPU; }

static bool pass_lost_states(uint64_t time_ns, uint64_t until_ns, int32_t cpu, uint64_t count) {
    if (!lttng_ust_tracepoint_enabled(sched, lost)) return false;
    lttng_ust_do_tracepoint(sched, lost, time_ns, until_ns, cpu, count);
    return true;
}
