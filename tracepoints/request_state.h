// SPDX-License-Identifier: MIT
// What the writer of block requests (request_writer.c) has in its hands, and what it holds back. Part of that file.
#pragma once
#include <linux/types.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include "block_error.h"
#include "block_event.h"
#include "bridge_record.h"
#include "cgroup_paths.h"
#include "ctf_stream.h"
#include "request_event.h"

enum {
    OPEN_NS = 100000000,
    HOLD_BACK_NS = 1000000,  // for clocks that differ between CPUs
    FLUSH_NS = 250000000,    // what there is, is in the file after this time: sooner than LTTng's switch timer does it
    FINISH_WITHIN_NS = 2000000000,
    EVENT_MOST = 192,
    ID_LOST = KIND_RECORD_COUNT,
    ID_WATERMARK,
    ID_CGROUP_PATH,
};
#define RING_BUSY (1u << 31)
#define RING_DISCARD (1u << 30)
#define RING_HEADER 8

// What happened; read by Python at the end. Order and types are repeated in requests.py.
struct request_counts {
    uint64_t sent[KIND_RECORD_COUNT];  // events, by kind
    uint64_t lost_ring, late, records, unseen, left_open, opened, no_slot, chain_cut, own_bios, own_requests;
    uint64_t unwritten, most_bytes, most_held, cpu_ns, rounds;
    uint64_t watermarks, lost_events, paths;
};

union held {
    struct record_head head;
    struct request_record request;
    struct bio_record bio;
    struct thread_record thread;
    struct single_record single;
};
struct turn {
    uint64_t time;
    size_t at;  // in what is held
};

// What has been told of an open one before its record came: these very times.
struct told_bio {
    uint64_t key, queue, joined;
};
struct told_request {
    uint64_t key, queue, getrq, insert, issue;
};

// Who a thread is, as it was told last. `part`: the number of the part of the stream in which it was; 0: no thread.
struct known_thread {
    uint64_t part;
    uint32_t who[7];  // struct thread_record, from kernel_tid on
};
#define THREAD_SETS 16384  // by the kernel's number of the thread
#define THREAD_WAYS 4

static struct {
    _Atomic uint64_t *consumer;
    _Atomic uint64_t *producer;
    const uint8_t *data;
    size_t ring_bytes, page;
    const volatile struct bio_set *bios;
    const volatile struct request_set *requests;
    const volatile struct open_marks *marks;
    volatile struct request_cpu *cpus;
    uint32_t cpu_count;
    uint64_t period_ns;

    union held *held;
    size_t count, room;
    struct turn *turns;  // so many as there is room for
    struct told_bio *told_bios;
    struct told_request *told_requests;
    uint64_t told;  // entries of both
    uint64_t lost_seen, late_seen, late_since_ns;
    struct path_table cgroups;  // that records name
    struct known_thread threads[THREAD_SETS][THREAD_WAYS];
    uint64_t parts;  // of the stream that are over

    uint8_t uuid[16];
    struct ctf_stream stream;
    uint64_t watermark_ns, flushed_ns;
    struct request_counts counts;
    bool failed;

    pthread_t thread;
    atomic_bool stopping;
} w;

static uint64_t clock_ns(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void sleep_ns(uint64_t ns) {
    struct timespec t = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
}

// ---- what is held back ---------------------------------------------------------------------------------------------

static union held *more(void) {
    if (w.count == w.room) {
        const size_t room = w.room ? w.room * 2 : 4096;
        union held *held = realloc(w.held, room * sizeof(*held));
        if (held) w.held = held;
        struct turn *turns = realloc(w.turns, room * sizeof(*turns));
        if (turns) w.turns = turns;
        if (!held || !turns) {
            w.failed = true;
            return NULL;
        }
        w.room = room;
    }
    return &w.held[w.count++];
}

// The last one that was held is not, if the stream has gone past it: that is a loss.
static void keep_last(void) {
    const uint64_t time = w.held[w.count - 1].head.time;
    if (time > w.watermark_ns) return;
    --w.count;
    if (w.counts.late++ == w.late_seen || time < w.late_since_ns) w.late_since_ns = time;
}

static void hold(const void *record, size_t bytes) {
    union held *h = more();
    if (!h) return;
    memcpy(h, record, bytes);
    keep_last();
}

static int compare(const void *a, const void *b) {
    const struct turn *x = a, *y = b;
    if (x->time != y->time) return x->time < y->time ? -1 : 1;
    return x->at < y->at ? -1 : 1;
}

// By time, and as they came. They are nearly in that order: a queue's depth away from it at most, but for what waited.
static void sort(struct turn *turns, size_t count) {
    size_t moves = 16 * count + 4096;
    for (size_t i = 1; i < count; ++i) {
        const struct turn turn = turns[i];
        size_t k = i;
        for (; k > 0 && turns[k - 1].time > turn.time && moves > 0; --k, --moves) turns[k] = turns[k - 1];
        turns[k] = turn;
        if (moves == 0) {
            qsort(turns, count, sizeof(*turns), compare);
            return;
        }
    }
}
