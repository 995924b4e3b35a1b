// SPDX-License-Identifier: MIT
// What is open, and what of it the writer of block requests (request_writer.c) has told before its record came. Part of
// that file.
#pragma once
#include "request_state.h"

// ---- what was told already -----------------------------------------------------------------------------------------

static uint32_t place_of(uint64_t pointer) {
    return (uint32_t)((pointer >> 6) * UINT64_C(0x9E3779B97F4A7C15) >> 40) & (OPEN_SETS - 1);
}

static struct told_bio *told_bio(uint64_t bio) {
    struct told_bio *at = &w.told_bios[place_of(bio) * OPEN_WAYS];
    for (int i = 0; i < OPEN_WAYS; ++i)
        if (at[i].key == bio) return &at[i];
    return NULL;
}

static struct told_request *told_request(uint64_t rq) {
    struct told_request *at = &w.told_requests[place_of(rq) * OPEN_WAYS];
    for (int i = 0; i < OPEN_WAYS; ++i)
        if (at[i].key == rq) return &at[i];
    return NULL;
}

static void untell(__u64 *time, uint64_t told) {
    if (told != 0 && *time == told) *time = 0;
}

static void forget(uint64_t *key) {
    *key = 0;
    --w.told;
}

static uint64_t least(uint64_t a, uint64_t b) { return b != 0 && b < a ? b : a; }

// False: all of its steps have been told.
static bool rest_of_bio(struct bio_record *e) {
    struct told_bio *t = w.told ? told_bio(e->bio) : NULL;
    if (t && e->queue == t->queue && (t->joined == 0 || t->joined == e->joined)) {
        untell(&e->queue, t->queue);
        untell(&e->joined, t->joined);
        forget(&t->key);
    }
    e->head.time = least(least(least(least(UINT64_MAX, e->queue), e->joined), e->named), e->complete);
    return e->head.time != UINT64_MAX;
}

static bool rest_of_request(struct request_record *e) {
    struct told_bio *b = w.told ? told_bio(e->bio) : NULL;
    if (b && (e->queue != 0 || e->getrq != 0) && e->queue == b->queue && (b->joined == 0 || b->joined == e->getrq)) {
        untell(&e->queue, b->queue);
        untell(&e->getrq, b->joined);
        forget(&b->key);
    }
    struct told_request *r = w.told ? told_request(e->rq) : NULL;
    if (r && (r->issue != 0 ? e->issue == r->issue : e->insert == r->insert)) {
        untell(&e->queue, r->queue);
        untell(&e->getrq, r->getrq);
        untell(&e->insert, r->insert);
        untell(&e->issue, r->issue);
        forget(&r->key);
    }
    e->head.time = least(least(least(least(least(UINT64_MAX, e->queue), e->getrq), e->insert), e->issue), e->complete);
    return e->head.time != UINT64_MAX;
}

// ---- what is open --------------------------------------------------------------------------------------------------

static void open_bio_told(uint64_t key, const struct open_bio *b, uint16_t flags) {
    struct bio_record e = {
        .head = {0, b->cpu, KIND_BIO, {0}},
        .bio = key,
        .sector = b->sector,
        .queue = b->queue,
        .joined = b->joined,
        .bytes = b->bytes,
        .dev = b->dev,
        .tid = b->tid,
        .cgroup = b->cgroup,
        .rwbs = b->rwbs,
        .cpu = b->cpu,
        .flags = flags,
        .slot_flags = b->flags,
        .old_sector = b->old_sector,
        .old_dev = b->old_dev,
    };
    if (rest_of_bio(&e)) hold(&e, sizeof(e));
}

static void open_request_told(uint64_t key, const struct open_request *r, uint16_t flags) {
    struct request_record e = {
        .head = {0, r->cpu, KIND_REQUEST, {0}},
        .rq = key,
        .bio = r->bio,
        .sector = r->sector,
        .queue = r->queue,
        .getrq = r->getrq,
        .insert = r->insert,
        .issue = r->issue,
        .bytes = r->bytes,
        .dev = r->dev,
        .tid = r->tid,
        .issue_tid = r->issue_tid,
        .rwbs = r->rwbs,
        .cgroup = r->cgroup,
        .rq_flags = r->rq_flags,
        .cpu = r->cpu,
        .issue_cpu = r->issue_cpu,
        .hw_queue = r->hw_queue,
        .flags = flags,
        .slot_flags = r->flags,
        .old_sector = r->old_sector,
        .old_dev = r->old_dev,
    };
    if (rest_of_request(&e)) hold(&e, sizeof(e));
}

// The first set from `i` on in which anything has ever been open; OPEN_SETS: there is none.
static uint32_t next_used(enum open_table table, uint32_t i) {
    while (i < OPEN_SETS && !w.marks->of[table][i]) i += i % 8 == 0 && !w.marks->eight[table][i / 8] ? 8 : 1;
    return i;
}

// The oldest step that is open and not told; `told_before`: what is older than that is told now. 0: one is being
// written.
static uint64_t look_through(uint64_t now, uint64_t told_before, uint16_t flags) {
    uint64_t oldest = now;
    for (uint32_t i = next_used(OF_BIOS, 0); i < OPEN_SETS; i = next_used(OF_BIOS, i + 1)) {
        const volatile struct bio_set *s = &w.bios[i];
        for (int k = 0; k < OPEN_WAYS; ++k) {
            const uint64_t key = s->key[k];
            if (key == 0) continue;
            const struct open_bio b = *(const struct open_bio *)&s->slot[k];
            atomic_thread_fence(memory_order_acquire);
            if (s->key[k] != key) continue;  // its record lies in the ring buffer
            if (b.flags & SLOT_FILLING || s->slot[k].queue != b.queue || s->slot[k].flags != b.flags) return 0;
            if (b.flags & (SLOT_OWN | SLOT_SINGLE)) continue;
            uint64_t first = least(least(UINT64_MAX, b.queue), b.joined);
            if (first == UINT64_MAX) continue;
            struct told_bio *t = &w.told_bios[i * OPEN_WAYS + (uint32_t)k];
            const bool known = t->key == key && (t->queue == b.queue || t->joined == b.joined);
            if (known && t->queue == b.queue) first = t->joined == b.joined || !b.joined ? UINT64_MAX : b.joined;
            if (first < told_before) {
                open_bio_told(key, &b, flags);
                if (t->key == 0) ++w.told;
                *t = (struct told_bio){key, b.queue, b.joined};
                ++w.counts.opened;
            } else {
                oldest = least(oldest, first);
            }
        }
    }
    for (uint32_t i = next_used(OF_REQUESTS, 0); i < OPEN_SETS; i = next_used(OF_REQUESTS, i + 1)) {
        const volatile struct request_set *s = &w.requests[i];
        for (int k = 0; k < OPEN_WAYS; ++k) {
            const uint64_t key = s->key[k];
            if (key == 0) continue;
            const struct open_request r = *(const struct open_request *)&s->slot[k];
            atomic_thread_fence(memory_order_acquire);
            if (s->key[k] != key) continue;
            if (r.flags & SLOT_FILLING || s->slot[k].issue != r.issue || s->slot[k].flags != r.flags) return 0;
            if (r.flags & (SLOT_OWN | SLOT_SINGLE | SLOT_TOLD)) continue;
            struct told_request *t = &w.told_requests[i * OPEN_WAYS + (uint32_t)k];
            uint64_t first = least(least(least(least(UINT64_MAX, r.queue), r.getrq), r.insert), r.issue);
            if (t->key == key && t->insert == r.insert && t->issue == r.issue) first = UINT64_MAX;
            else if (t->key == key && t->insert != 0 && t->insert == r.insert) first = least(first, r.issue);
            if (first == UINT64_MAX) continue;
            if (first < told_before) {
                open_request_told(key, &r, flags);
                if (t->key == 0) ++w.told;
                *t = (struct told_request){key, r.queue, r.getrq, r.insert, r.issue};
                ++w.counts.opened;
            } else {
                oldest = least(oldest, first);
            }
        }
    }
    return oldest;
}
