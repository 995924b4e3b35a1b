// SPDX-License-Identifier: MIT
// From records of block requests to events of the stream (request_writer.c). Part of that file.
#pragma once
#include "request_state.h"

// ---- into the stream -----------------------------------------------------------------------------------------------

static bool of_request(uint8_t kind) {
    return kind >= KIND_RQ_INSERT && kind <= KIND_RQ_COMPLETE && kind != KIND_RQ_BIO;
}

static uint8_t *put_single(uint8_t *to, const struct block_event *e) {
    const bool request = of_request(e->kind);
    const uint32_t cpu = e->cpu, rq_flags = request ? e->rq_flags : 0;
    const uint64_t parent = request ? 0 : e->parent;
    const int32_t queue = request && e->queue != NO_QUEUE ? e->queue : -1;
    const int16_t tag = request ? e->tag : -1;
    const int8_t flush_seq = request ? e->flush_seq : -1;
    const char nul = 0;
    to = ctf_put(to, &e->dev, 4);
    to = ctf_put(to, &e->sector, 8);
    to = ctf_put(to, &e->nr_sector, 4);
    to = ctf_put(to, &e->bytes, 4);
    to = ctf_put(to, &e->rwbs, 4);
    to = ctf_put(to, &e->error, 4);
    to = ctf_put(to, &e->tid, 4);
    to = ctf_put(to, &e->pid, 4);
    to = ctf_put(to, e->comm, 16);
    to = ctf_put(to, &nul, 1);
    to = ctf_put(to, &cpu, 4);
    to = ctf_put(to, &e->rq, 8);
    to = ctf_put(to, &e->bio, 8);
    to = ctf_put(to, &parent, 8);
    to = ctf_put(to, &e->old_dev, 4);
    to = ctf_put(to, &e->other, 8);
    to = ctf_put(to, &queue, 4);
    to = ctf_put(to, &tag, 2);
    to = ctf_put(to, &rq_flags, 4);
    return ctf_put(to, &flush_seq, 1);
}

// Times since the record's own, in units of 1024 ns where they are too long for 32 bits.
static uint8_t *put_times(uint8_t *to, uint64_t first, const uint64_t *times, int count, uint16_t *flags) {
    uint64_t last = first;
    for (int i = 0; i < count; ++i)
        if (times[i] > last) last = times[i];
    const int shift = last - first >= STEP_ABSENT ? 10 : 0;
    if (shift) *flags |= REQUEST_COARSE;
    for (int i = 0; i < count; ++i) {
        const uint32_t since = times[i] ? (uint32_t)((times[i] - first) >> shift) : STEP_ABSENT;
        to = ctf_put(to, &since, 4);
    }
    return to;
}

static uint8_t *put_partition(uint8_t *to, uint64_t sector, uint32_t dev) {
    to = ctf_put(to, &sector, 8);
    return ctf_put(to, &dev, 4);
}

static uint8_t *put_request(uint8_t *to, const struct request_record *e) {
    const uint64_t times[4] = {e->getrq, e->insert, e->issue, e->complete};
    uint16_t flags = e->flags | (e->queue ? REQUEST_QUEUED : 0);
    to = ctf_put(to, &e->rq, 24);
    to = put_times(to, e->head.time, times, 4, &flags);
    to = ctf_put(to, &e->bytes, 16);
    to = ctf_put(to, &e->cgroup, 8);
    to = ctf_put(to, &e->rq_flags, 4);
    to = ctf_put(to, &e->rwbs, 10);
    to = ctf_put(to, &flags, 2);
    return ctf_put(to, &e->error, 2);
}

static uint8_t *put_bio(uint8_t *to, const struct bio_record *e) {
    const bool merged = e->slot_flags & SLOT_MERGED;
    const uint64_t times[5] = {e->queue, merged ? 0 : e->joined, merged ? e->joined : 0, e->named, e->complete};
    uint16_t flags = e->flags | (e->slot_flags & SLOT_FRONT ? REQUEST_FRONT : 0);
    to = ctf_put(to, &e->bio, 24);
    to = put_times(to, e->head.time, times, 5, &flags);
    to = ctf_put(to, &e->cgroup, 8);
    to = ctf_put(to, &e->bytes, 12);
    to = ctf_put(to, &e->rwbs, 4);
    to = ctf_put(to, &flags, 2);
    return ctf_put(to, &e->error, 2);
}

static uint64_t cgroup_in(const union held *h) {
    switch (h->head.kind) {
    case KIND_REQUEST: return h->request.cgroup;
    case KIND_BIO: return h->bio.cgroup;
    case KIND_BIO_QUEUE: return h->single.e.other;
    }
    return 0;
}

// As soon as a record names it: the cgroup may be gone soon.
static void meet_cgroup(uint64_t number) {
    struct known_path *c = path_entry(&w.cgroups, 0, number);
    if (!c || c->tries != 0) return;
    char *path = path_of_cgroup(number);
    path_found(&w.cgroups, c, path ? path : look_cgroup_up(number));
}

// Before the first record that calls it by its number.
static void tell_cgroup(const union held *h) {
    const uint64_t number = cgroup_in(h);
    meet_cgroup(number);
    const struct known_path *c = number ? path_to_tell(&w.cgroups, path_entry(&w.cgroups, 0, number)) : NULL;
    if (!c) return;
    ++w.counts.paths;
    const size_t length = strlen(c->path) + 1;
    uint8_t *to = ctf_event(&w.stream, ID_CGROUP_PATH, h->head.time, 8 + length);
    to = ctf_put(to, &number, 8);
    ctf_end(&w.stream, ctf_put(to, c->path, length));
}

static void put_thread(const uint32_t who[7], uint64_t time) {
    ++w.counts.sent[KIND_REQUEST_THREAD];
    ctf_end(&w.stream, ctf_put(ctf_event(&w.stream, KIND_REQUEST_THREAD, time, EVENT_MOST), who, 28));
}

// BPF tells who a thread is once.
static void thread_told(const struct thread_record *t) {
    struct known_thread *set = w.threads[t->kernel_tid & (THREAD_SETS - 1)], *oldest = set;
    for (int i = 0; i < THREAD_WAYS; ++i) {
        if (set[i].part && set[i].who[0] == t->kernel_tid) {
            oldest = &set[i];
            break;
        }
        if (set[i].part < oldest->part) oldest = &set[i];
    }
    memcpy(oldest->who, &t->kernel_tid, sizeof(oldest->who));
    oldest->part = w.parts + 1;
    put_thread(oldest->who, t->head.time);
}

// In a later part of the stream, before the first record that calls the thread by its number.
static void tell_thread(uint32_t kernel_tid, uint64_t time) {
    struct known_thread *set = w.threads[kernel_tid & (THREAD_SETS - 1)];
    for (int i = 0; i < THREAD_WAYS; ++i)
        if (set[i].part && set[i].who[0] == kernel_tid) {
            if (set[i].part <= w.parts) put_thread(set[i].who, time);
            set[i].part = w.parts + 1;
            return;
        }
}

static void tell_threads(const union held *h) {
    if (w.parts == 0) return;  // each was told in this part
    if (h->head.kind == KIND_BIO) tell_thread(h->bio.tid, h->head.time);
    if (h->head.kind != KIND_REQUEST) return;
    tell_thread(h->request.tid, h->head.time);
    tell_thread(h->request.issue_tid, h->head.time);
}

static void write_out(const union held *h) {
    if (h->head.kind == KIND_REQUEST_THREAD) {
        thread_told(&h->thread);
        return;
    }
    tell_cgroup(h);
    tell_threads(h);
    uint32_t id = h->head.kind;
    const bool of_partition = (id == KIND_REQUEST && h->request.slot_flags & SLOT_PARTITION && h->request.queue) ||
                              (id == KIND_BIO && h->bio.slot_flags & SLOT_PARTITION && h->bio.queue);
    if (of_partition) id = id == KIND_REQUEST ? KIND_REQUEST_OF_PARTITION : KIND_BIO_OF_PARTITION;
    ++w.counts.sent[id];
    uint8_t *to = ctf_event(&w.stream, id, h->head.time, EVENT_MOST);
    switch (id) {
    case KIND_REQUEST: to = put_request(to, &h->request); break;
    case KIND_REQUEST_OF_PARTITION:
        to = put_partition(put_request(to, &h->request), h->request.old_sector, h->request.old_dev);
        break;
    case KIND_BIO: to = put_bio(to, &h->bio); break;
    case KIND_BIO_OF_PARTITION: to = put_partition(put_bio(to, &h->bio), h->bio.old_sector, h->bio.old_dev); break;
    default: to = put_single(to, &h->single.e);
    }
    ctf_end(&w.stream, to);
}

// All that stands before or at the watermark.
static void write_until(uint64_t limit) {
    if (limit <= w.watermark_ns) return;
    size_t due = 0, kept = 0;
    for (size_t i = 0; i < w.count; ++i)
        if (w.held[i].head.time <= limit) w.turns[due++] = (struct turn){w.held[i].head.time, i};
    sort(w.turns, due);
    for (size_t i = 0; i < due; ++i) write_out(&w.held[w.turns[i].at]);
    for (size_t i = 0; i < w.count; ++i)
        if (w.held[i].head.time > limit) {
            if (kept != i) w.held[kept] = w.held[i];
            ++kept;
        }
    w.count = kept;
    w.watermark_ns = limit;
}

static void say_watermark(void) {
    ctf_end(&w.stream, ctf_put(ctf_event(&w.stream, ID_WATERMARK, w.watermark_ns, EVENT_MOST), &w.watermark_ns, 8));
    ++w.counts.watermarks;
    ctf_flush(&w.stream);
    w.flushed_ns = w.watermark_ns;
}
