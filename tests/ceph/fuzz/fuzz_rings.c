/* SPDX-License-Identifier: MIT
 * libFuzzer target: rings of the Ceph shim's threads, and the collector that takes them out (tracepoints/ceph). The
 * first byte says which of two: threads that write records as they do, at any time between the collector's rounds: each
 * record arrives once, in order, as it was written, or is counted as lost; or a process that writes into its rings
 * whatever it likes: the collector stays in them. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "fuzz_rings.h"
#include "record.h"

#define main collector_main
#define munmap(at, bytes) 0  // rings are used again
#include "collector.c"
#undef munmap
#undef main

enum { RINGS = 3, MOST_STEPS = 300, GUARD_BYTES = 4096, LONG_TEXT = 256 * 17 };

static struct event_ring *rings[RINGS];
static bool honest;
static struct ring_of_what_was_written {
    struct {
        uint16_t kind;
        uint16_t bytes;
        uint32_t at;
    } records[MOST_STEPS];
    size_t count, arrived;
    char arguments[1 << 20];
    size_t used;
    uint64_t lost, told;
} written[RINGS];
static uint64_t last_ns;

struct input {
    const uint8_t *at, *end;
};
static uint64_t next(struct input *in, size_t bytes) {
    uint64_t v = 0;
    size_t left = (size_t)(in->end - in->at);
    if (bytes > left) bytes = left;
    memcpy(&v, in->at, bytes);
    in->at += bytes;
    return v;
}

static void require(bool holds) {
    if (!holds) __builtin_trap();
}

bool is_welcome(const struct ucred *who) { return who->pid == 0; }
bool senders_begin(pid_t recorder, char **uids) { return recorder && uids; }
void ring_full(struct event_ring *ring) { (void)ring; }  // the thread would give it up after some time

void passed_on(const struct ring_origin *origin, unsigned kind, const char *arguments, size_t bytes) {
    require(strlen(origin->name) < sizeof origin->name);
    if (!honest) return;
    require(origin->tid >= 0 && origin->tid < RINGS);
    struct ring_of_what_was_written *w = &written[origin->tid];
    if (kind == RING_lost) {
        uint64_t count;
        memcpy(&count, arguments, sizeof count);
        w->told += count;
        return;
    }
    require(origin->time_ns >= last_ns);
    last_ns = origin->time_ns;
    require(w->arrived < w->count);
    size_t i = w->arrived++;
    require(w->records[i].kind == kind);
    if (kind == RING_msgr_tx_msg || kind == RING_msgr_rx_msg) return;  // its front is not passed on, but what it says
    require(w->records[i].bytes == bytes && memcmp(w->arguments + w->records[i].at, arguments, bytes) == 0);
}

// The same memory with pages around it that nobody may touch.
static struct event_ring *guarded_ring(void) {
    int fd = memfd_create("opline-fuzz", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, RING_HEADER_BYTES + RING_BYTES)) abort();
    char *room = mmap(NULL, RING_MAPPED_BYTES + 2 * GUARD_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
         *at = room + GUARD_BYTES;
    if (room == MAP_FAILED) abort();
    int both = PROT_READ | PROT_WRITE, how = MAP_SHARED | MAP_FIXED;
    if (mmap(at, RING_HEADER_BYTES + RING_BYTES, both, how, fd, 0) != at) abort();
    char *again = at + RING_HEADER_BYTES + RING_BYTES;
    if (mmap(again, RING_BYTES, both, how, fd, RING_HEADER_BYTES) != again) abort();
    close(fd);
    return (struct event_ring *)(void *)at;
}

static void begin(struct input *in) {
    honest = next(in, 1) & 1;
    memset(&counts, 0, sizeof counts);
    sent_ns = last_ns = 0;
    source_count = 0;
    require(has_room(1));
    for (int i = 0; i < RINGS; i++) {
        if (!rings[i]) rings[i] = guarded_ring();
        uint64_t place = next(in, 3) * 8;  // where in the ring it is by now: near the end is as good as any
        // since writing began at the front: about to do so again, or never yet
        uint64_t since = next(in, 1) & 1 ? RING_NEAR_BYTES - next(in, 1) * 8 : place;
        *rings[i] = (struct event_ring){.head = place,
                                        .tail = place,
                                        .base = place < since ? 0 : place - since,
                                        .version = RING_VERSION,
                                        .tid = i,
                                        .name = "thread"};
        sources[source_count++] = (struct source){.ring = rings[i],
                                                  .process = -1,
                                                  .tail = place,
                                                  .head = place,
                                                  .origin = {.tid = i, .name = "thread"},
                                                  .since_ns = clock_ns(CLOCK_MONOTONIC)};
        written[i].count = written[i].arrived = written[i].used = 0;
        written[i].lost = written[i].told = 0;
    }
}

// -- as the shim writes -----------------------------------------------------------------------------------------------

static const char *a_text(struct input *in, char room[LONG_TEXT]) {
    size_t bytes = next(in, 1);
    if (bytes > 250) bytes *= 17;  // longer than a record takes
    memset(room, 'a' + (int)(bytes % 26), bytes);
    room[bytes] = 0;
    return room;
}

static void note(struct ring_of_what_was_written *w, struct event_ring *ring, uint64_t head, uint16_t kind,
                 uint64_t lost) {
    if (ring->lost != lost) {
        w->lost += ring->lost - lost;
        return;
    }
    size_t bytes = ring->head - head - sizeof(struct ring_record);
    const char *from =
        (const char *)ring + RING_HEADER_BYTES + (head - ring->base) % RING_BYTES + sizeof(struct ring_record);
    require(w->count < MOST_STEPS && bytes < RING_RECORD_BYTES);
    w->records[w->count].kind = kind;
    w->records[w->count].bytes = (uint16_t)bytes;
    w->records[w->count].at = (uint32_t)w->used;
    if (w->used + bytes <= sizeof w->arguments) memcpy(w->arguments + w->used, from, bytes);
    else abort();
    w->used += bytes;
    w->count++;
}

static void write_one(struct input *in, struct event_ring *ring, struct ring_of_what_was_written *w) {
    static char one[LONG_TEXT], other[LONG_TEXT];
    static uint8_t front[MSGR_HEAD_BYTES];
    if (w->used + RING_RECORD_BYTES > sizeof w->arguments) return;
    uint64_t head = ring->head, lost = ring->lost, tail = ring->tail;
    int what = (int)next(in, 1);
    // as full as if nobody had taken any out
    if (what >= 240) ring->tail = head - RING_BYTES + (uint64_t)(what - 240) * 8;
    uint64_t number = next(in, 8);
    uint16_t kind;
#define WRITE(event, ...)                                                                                              \
    do {                                                                                                               \
        RECORD(ring, event, __VA_ARGS__);                                                                              \
        kind = RING_##event;                                                                                           \
    } while (0)
    switch (what % 8) {
    case 0: WRITE(msgr_send_enter, (int)number, (int64_t)number); break;
    case 1:
        WRITE(aio_submit, number, (int)number, (int)next(in, 1), next(in, 8), next(in, 4), (int)number,
              (int)next(in, 4));
        break;
    case 2: WRITE(radoscxx_aio_operate_enter, a_text(in, one), (const void *)(uintptr_t)number); break;
    case 3:
        WRITE(rados_aio_enter, a_text(in, one), a_text(in, other), (const void *)(uintptr_t)number, next(in, 8),
              number);
        break;
    case 4: WRITE(sysio_fsync_exit, (int)number, (int)next(in, 4)); break;
    case 5: WRITE(msgr_unreadable, (int)number, (int)next(in, 1), a_text(in, one)); break;
    case 6:
        WRITE(msgr_session, (int)number, number, (uint32_t)next(in, 4), (uint32_t)number, (int)next(in, 1),
              (int)number);
        break;
    default: {
        struct msgr_message m = {.tid = number,
                                 .seq = next(in, 2),
                                 .type = what & 8 ? MSGR_OSD_OP : MSGR_OSD_REPOP,
                                 .version = (uint16_t)next(in, 1)};
        m.front_bytes = (uint16_t)(next(in, 2) % (sizeof front + 1));
        for (size_t i = 0; i < m.front_bytes; i += 8) {
            uint64_t v = next(in, 8);
            memcpy(front + i, &v, sizeof v);
        }
        m.front = m.front_bytes ? front : NULL;
        const struct msgr_message *message = &m;
        WRITE(msgr_tx_msg, (int)number, message, number, 1);
    }
    }
    ring->tail = tail;
    note(w, ring, head, kind, lost);
}

static void play_honestly(struct input *in) {
    for (int step = 0; step < MOST_STEPS && in->at < in->end; step++) {
        unsigned what = (unsigned)next(in, 1);
        if (what < 224) write_one(in, rings[what % RINGS], &written[what % RINGS]);
        else round_of(-1, 0);
    }
    round_of(-1, 0);
    require(counts.broken == 0 && counts.late == 0 && counts.lost_killed == 0 && source_count == RINGS);
    for (int i = 0; i < RINGS; i++)
        require(written[i].arrived == written[i].count && written[i].told == written[i].lost);
}

// -- as anybody could -------------------------------------------------------------------------------------------------

static void play_as_one_likes(struct input *in) {
    for (int step = 0; step < MOST_STEPS && in->at < in->end; step++) {
        unsigned what = (unsigned)next(in, 1);
        struct event_ring *ring = rings[what % RINGS];
        switch (what / RINGS % 8) {
        case 0: ring->head = next(in, 8); break;
        case 1: ring->head += next(in, 2) * 8; break;
        case 2: ring->base = next(in, 8); break;
        case 3: ring->lost = next(in, 4); break;
        case 4: ring->writing = (uint32_t)next(in, 1) & 1; break;
        case 5: {  // bytes where the collector is about to read, or anywhere
            uint64_t bytes = next(in, 1) * 8, at = what & 128 ? next(in, 8) : ring->tail - ring->base;
            for (uint64_t i = 0; i < bytes && in->at < in->end; i += 8) {
                uint64_t v = next(in, 8);
                memcpy((char *)ring + RING_HEADER_BYTES + (at + i) % RING_BYTES / 8 * 8, &v, sizeof v);
            }
            break;
        }
        case 6: {  // a record's head, that fits
            struct ring_record r = {
                .words = (uint32_t)next(in, 2) & 2047, .kind = (uint32_t)next(in, 1), .time_ns = next(in, 4)};
            memcpy((char *)ring + RING_HEADER_BYTES + (ring->head - ring->base) % RING_BYTES / 8 * 8, &r, sizeof r);
            ring->head += r.words * 8u;
            break;
        }
        default: round_of(-1, 0);
        }
    }
    round_of(-1, 0);
    send_until(UINT64_MAX);
    for (size_t i = 0; i < source_count; i++) require(sources[i].tail == sources[i].head);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct input in = {data, data + size};
    begin(&in);
    if (honest) play_honestly(&in);
    else play_as_one_likes(&in);
    return 0;
}
