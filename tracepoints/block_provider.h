// SPDX-License-Identifier: MIT
// What the bridge (bridge.c) must know of the providers `block`, `syscall`, `sched` and `tcp`.
#pragma once
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "block_error.h"
#include "block_tp.h"
#include "bridge_calls.h"
#include "cgroup_paths.h"
#include "file_paths.h"
#include "request_event.h"
#include "request_writer.h"
#include "state_tp.h"
#include "tcp_tp.h"

// The same events as functions that write them (tp_writer.h).
#include "bridge_stream.h"
#include "tp_writer.h"
#define LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ
#include "block_tp.h"
#include "state_tp.h"
#include "tcp_tp.h"

#define bridge_event block_event

static pthread_mutex_t of_cgroups = PTHREAD_MUTEX_INITIALIZER;  // the writer of requests looks, too

// What the session records at the moment.
static uint64_t enabled_mask(void) {
    uint64_t mask = 0;
    // Records of requests go into a stream of their own, while the session records.
    if (requests_wanted && lttng_ust_tracepoint_enabled(block, watermark)) mask |= UINT64_C(1) << KIND_REQUEST;
    if (!bridge_is_open()) return mask;
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
    if (lttng_ust_tracepoint_enabled(sched, process_fork) || lttng_ust_tracepoint_enabled(sched, process_exec) ||
        lttng_ust_tracepoint_enabled(sched, process_exit) || lttng_ust_tracepoint_enabled(sched, process_runs))
        mask |= UINT64_C(1) << KIND_PROCESS;
    mask |= lttng_ust_tracepoint_enabled(sched, process_thread) ? UINT64_C(1) << KIND_THREAD : 0;
    mask |= lttng_ust_tracepoint_enabled(sched, process_cgroup) ? UINT64_C(1) << KIND_CGROUP : 0;
    mask |= lttng_ust_tracepoint_enabled(sched, follow) ? UINT64_C(1) << KIND_FOLLOW : 0;
    mask |= lttng_ust_tracepoint_enabled(tcp, send) || lttng_ust_tracepoint_enabled(tcp, receive)
                ? UINT64_C(1) << KIND_TCP
                : 0;
    mask |= lttng_ust_tracepoint_enabled(sched, ran_instead) ? UINT64_C(1) << KIND_INSTEAD : 0;
    mask |= lttng_ust_tracepoint_enabled(sched, lock_wait) ? UINT64_C(1) << KIND_LOCK : 0;
    mask |= uring_enabled() ? UINT64_C(1) << KIND_URING : 0;
    return mask;
}

static inline void receive_event(struct block_event *e, const void *record, uint32_t bytes) {
    if (e->kind < KIND_CALL_ENTRY) e->error = error_of(e);
    else if (bytes >= sizeof(struct iocbs_event)) keep_iocbs(e, record);
    // Now, that they are there.
    if (e->kind == KIND_CGROUP) {
        pthread_mutex_lock(&of_cgroups);
        (void)cgroup_by_number(e->args[5]);
        pthread_mutex_unlock(&of_cgroups);
    }
    meet_file(e);
}

char *path_of_cgroup(uint64_t number) {
    pthread_mutex_lock(&of_cgroups);
    const char *known = path_of(&cgroups.paths, 0, number);
    char *path = known ? strdup(known) : NULL;
    pthread_mutex_unlock(&of_cgroups);
    return path;
}

// Before the first event that calls the cgroup, or the file, by its number.
static void pass_paths(const struct block_event *e) {
    const struct known_path *c = NULL;
    if (cgroup_named_in(e) != 0 && lttng_ust_tracepoint_enabled(sched, process_cgroup_path)) {
        pthread_mutex_lock(&of_cgroups);
        c = cgroup_to_tell(e);
        pthread_mutex_unlock(&of_cgroups);
    }
    if (c) write_sched_process_cgroup_path(e->ktime, e->ktime, c->number, c->path);
    const struct known_path *f = lttng_ust_tracepoint_enabled(sched, process_file_path) ? file_to_tell(e) : NULL;
    if (f) write_sched_process_file_path(e->ktime, e->ktime, e->dev, e->inode, e->old_dev, f->path ? f->path : "");
}

// In the next part of the stream.
static void tell_paths_again(void) {
    pthread_mutex_lock(&of_cgroups);
    paths_to_tell_again(&cgroups.paths);
    pthread_mutex_unlock(&of_cgroups);
    paths_to_tell_again(&files.paths);
}

__attribute__((visibility("default"))) uint64_t paths_told(void) { return cgroups.paths.told + files.paths.told; }

static bool pass_process(const struct block_event *e, uint64_t seq) {
#define PASS_STEP(step, event)                                                                                         \
    case step:                                                                                                         \
        if (lttng_ust_tracepoint_enabled(sched, event)) {                                                              \
            write_sched_##event(e->ktime, e, seq);                                                                     \
            return true;                                                                                               \
        }                                                                                                              \
        break
    switch (e->call) {
        PASS_STEP(PROCESS_FORK, process_fork);
        PASS_STEP(PROCESS_EXEC, process_exec);
        PASS_STEP(PROCESS_EXIT, process_exit);
        PASS_STEP(PROCESS_RUNS, process_runs);
    }
#undef PASS_STEP
    return false;
}

static bool pass_stream(const struct block_event *e, uint64_t seq) {
    if (e->call == TCP_SEND && lttng_ust_tracepoint_enabled(tcp, send)) write_tcp_send(e->ktime, e, seq);
    else if (e->call == TCP_RECEIVE && lttng_ust_tracepoint_enabled(tcp, receive)) write_tcp_receive(e->ktime, e, seq);
    else return false;
    return true;
}

// False: the session does not record that event (any more).
static bool pass_event(const struct block_event *e, uint64_t seq) {
#define PASS_OF(provider, kind, event)                                                                                 \
    case kind:                                                                                                         \
        if (lttng_ust_tracepoint_enabled(provider, event)) {                                                           \
            write_##provider##_##event(e->ktime, e, seq);                                                              \
            return true;                                                                                               \
        }                                                                                                              \
        break
#define PASS(kind, event) PASS_OF(block, kind, event)
    pass_paths(e);
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
        PASS_OF(sched, KIND_FOLLOW, follow);
        PASS_OF(sched, KIND_INSTEAD, ran_instead);
        PASS_OF(sched, KIND_LOCK, lock_wait);
    case KIND_PROCESS:
        return pass_process(e, seq);
        PASS_OF(sched, KIND_THREAD, process_thread);
        PASS_OF(sched, KIND_CGROUP, process_cgroup);
    case KIND_CALL_ENTRY:
    case KIND_CALL_EXIT: return pass_call(e, seq);
    case KIND_URING: return pass_uring(e, seq);
    case KIND_TCP: return pass_stream(e, seq);
    }
#undef PASS
#undef PASS_OF
    return false;
}

enum { FLUSH_AFTER_NS = 250000000 };  // what there is, is in the file after this time

// Called in every round: also the time to write what has waited long enough.
static bool pass_watermark(uint64_t through_ns) {
    static uint64_t flushed_ns;
    if (!bridge_is_open()) return false;
    const bool goes_on = ctf_goes_on(&bridge_stream);
    if (!goes_on && through_ns - flushed_ns < FLUSH_AFTER_NS) return false;
    const bool says = lttng_ust_tracepoint_enabled(block, watermark);
    if (says) write_block_watermark(through_ns, through_ns);
    ctf_flush(&bridge_stream);
    if (ctf_go_on(&bridge_stream, through_ns)) tell_paths_again();
    flushed_ns = through_ns;
    return says;
}

static bool pass_lost(uint64_t time_ns, int32_t cpu, uint64_t count, const char *why) {
    if (!bridge_is_open() || !lttng_ust_tracepoint_enabled(block, lost)) return false;
    write_block_lost(time_ns, time_ns, cpu, count, why);
    return true;
}

// One of those that may fill half of the ring buffer at most.
static inline bool gives_way(const struct block_event *e) {
    return e->kind == KIND_OFF_CPU || e->kind == KIND_INSTEAD || e->kind == KIND_LOCK;
}

static bool pass_lost_states(uint64_t time_ns, uint64_t until_ns, int32_t cpu, uint64_t count) {
    if (!bridge_is_open() || !lttng_ust_tracepoint_enabled(sched, lost)) return false;
    write_sched_lost(time_ns, time_ns, until_ns, cpu, count);
    return true;
}

static bool pass_lost_followed(uint64_t time_ns, uint64_t until_ns, int32_t cpu, uint64_t count) {
    if (!bridge_is_open() || !lttng_ust_tracepoint_enabled(sched, follow_lost)) return false;
    write_sched_follow_lost(time_ns, time_ns, until_ns, cpu, count);
    return true;
}
