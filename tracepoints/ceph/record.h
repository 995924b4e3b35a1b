// SPDX-License-Identifier: MIT
// The writer's side of the ring: RECORD(ring, event, …) with the arguments of the event's tracepoint.
#pragma once
#include <sched.h>
#include <string.h>
#include <time.h>

#include "frames.h"
#include "ring.h"

#define RING_INLINE static inline __attribute__((always_inline))

RING_INLINE char *put_number(char *p, uint64_t v) {
    memcpy(p, &v, sizeof v);
    return p + sizeof v;
}

RING_INLINE char *put_pointer(char *p, const void *v) { return put_number(p, (uintptr_t)v); }

RING_INLINE char *put_text(char *p, const char *text) {
    size_t bytes = strnlen(text, RING_TEXT_BYTES - 1);
    p = put_number(p, bytes + 1);
    memcpy(p, text, bytes);
    memset(p + bytes, 0, 8 - bytes % 8);
    return p + (bytes / 8 + 1) * 8;
}

RING_INLINE char *put_message(char *p, const struct msgr_message *m) {
    struct ring_message *r = (struct ring_message *)(void *)p;
    r->tid = m->tid;
    r->seq = m->seq;
    r->flen = m->flen;
    r->type = m->type;
    r->version = m->version;
    r->unused = 0;
    p += sizeof *r;
    if (!m->front) {
        r->front_bytes = r->front_skipped = 0;
        return p;
    }
    r->front_bytes = m->front_bytes;
    r->front_skipped = m->front_skipped;
    copy_bytes(p, m->front, m->front_bytes);
    return p + (m->front_bytes + 7u) / 8 * 8;
}

// clang-format off
#define RING_PUT(a)                                                                                                    \
    at = _Generic((a), char *: put_text, const char *: put_text, void *: put_pointer, const void *: put_pointer,       \
                  const struct msgr_message *: put_message, default: put_number)(at, a);
// clang-format on
#define RING_PUT1(a) RING_PUT(a)
#define RING_PUT2(a, ...) RING_PUT(a) RING_PUT1(__VA_ARGS__)
#define RING_PUT3(a, ...) RING_PUT(a) RING_PUT2(__VA_ARGS__)
#define RING_PUT4(a, ...) RING_PUT(a) RING_PUT3(__VA_ARGS__)
#define RING_PUT5(a, ...) RING_PUT(a) RING_PUT4(__VA_ARGS__)
#define RING_PUT6(a, ...) RING_PUT(a) RING_PUT5(__VA_ARGS__)
#define RING_PUT7(a, ...) RING_PUT(a) RING_PUT6(__VA_ARGS__)
#define RING_PICK(a, b, c, d, e, f, g, name, ...) name
#define RING_PUT_ALL(...)                                                                                              \
    RING_PICK(__VA_ARGS__, RING_PUT7, RING_PUT6, RING_PUT5, RING_PUT4, RING_PUT3, RING_PUT2, RING_PUT1, )(__VA_ARGS__)

void ring_full(struct event_ring *ring);

// Where the record goes; NULL if there is no room, which is counted. `writing` says from before the clock is read that
// something with an earlier time than the collector's may still come.
RING_INLINE char *ring_begin(struct event_ring *ring) {
    uint64_t head = ring->head, tail = __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE);
    if (__builtin_expect(head + RING_RECORD_BYTES - tail > RING_BYTES, 0)) {
        __atomic_store_n(&ring->lost, ring->lost + 1, __ATOMIC_RELEASE);
        ring_full(ring);
        return NULL;
    }
    __atomic_store_n(&ring->writing, 1, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (head == tail && head - ring->base >= RING_NEAR_BYTES) __atomic_store_n(&ring->base, head, __ATOMIC_RELAXED);
    return (char *)ring + RING_HEADER_BYTES + (head - ring->base) % RING_BYTES;
}

// Where the next record goes: the collector's processor has these lines, or memory, and getting them takes longer than
// reading a frame.
RING_INLINE void ring_expect(const char *at) {
#ifdef __x86_64__
    enum { USUAL_BYTES = 320 };  // of an OSD_OP's record, wherever in a line it begins
    for (int i = 0; i < USUAL_BYTES; i += 64) __asm__ volatile("prefetchw %0" : : "m"(at[i]));
#else
    (void)at;
#endif
}

RING_INLINE void ring_end(struct event_ring *ring, char *record, const char *end, uint16_t kind, uint64_t time_ns) {
    uint64_t bytes = (uint64_t)(end - record);
    *(struct ring_record *)(void *)record =
        (struct ring_record){(uint32_t)(bytes / 8), kind, (uint32_t)sched_getcpu(), (uint32_t)ring->lost, time_ns};
    __atomic_store_n(&ring->head, ring->head + bytes, __ATOMIC_RELEASE);
    __atomic_store_n(&ring->writing, 0, __ATOMIC_RELEASE);
    ring_expect(end);
}

RING_INLINE uint64_t ring_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#define RECORD(ring, event, ...)                                                                                       \
    do {                                                                                                               \
        char *record = ring_begin(ring);                                                                               \
        if (record) {                                                                                                  \
            uint64_t record_ns = ring_now();                                                                           \
            char *at = record + sizeof(struct ring_record);                                                            \
            RING_PUT_ALL(__VA_ARGS__)                                                                                  \
            ring_end(ring, record, at, RING_##event, record_ns);                                                       \
        }                                                                                                              \
    } while (0)
