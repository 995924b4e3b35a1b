// SPDX-License-Identifier: MIT
// Which descriptors stand for which connection of Ceph's.
#include <errno.h>
#include <sched.h>
#include <sys/mman.h>

#include "stream.h"
#include "streams.h"

struct stream **stream_chunks[STREAM_CHUNKS];

// Streams are never given back to the system: a thread that still holds one reads no freed memory.
static struct stream *free_streams;
static int free_lock;

static void lock(void) {
    while (__atomic_exchange_n(&free_lock, 1, __ATOMIC_ACQUIRE)) sched_yield();
}

static void unlock(void) { __atomic_store_n(&free_lock, 0, __ATOMIC_RELEASE); }

static void *pages(size_t bytes) {
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

static struct stream **slot(int fd, bool make) {
    if (fd < 0 || fd >= STREAM_CHUNK * STREAM_CHUNKS) return NULL;
    struct stream ***chunk = &stream_chunks[fd / STREAM_CHUNK];
    struct stream **at = __atomic_load_n(chunk, __ATOMIC_ACQUIRE);
    if (!at) {
        if (!make) return NULL;
        struct stream **fresh = pages(STREAM_CHUNK * sizeof *fresh);
        if (!fresh) return NULL;
        if (__atomic_compare_exchange_n(chunk, &at, fresh, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            at = fresh;
        } else {
            munmap(fresh, STREAM_CHUNK * sizeof *fresh);
        }
    }
    return &at[fd % STREAM_CHUNK];
}

static struct stream *make(void) {
    enum { BATCH = 16 };
    lock();
    if (!free_streams) {
        struct stream *fresh = pages(BATCH * sizeof *fresh);
        for (int i = 0; fresh && i < BATCH; i++) {
            fresh[i].next_free = free_streams;
            free_streams = &fresh[i];
        }
    }
    struct stream *s = free_streams;
    if (s) free_streams = s->next_free;
    unlock();
    if (!s) return NULL;
    for (int d = 0; d < 2; d++) {
        struct side *side = &s->side[d];
        msgr_reset(&side->parser);
        side->disturbed = 0;
        side->open = side->said = false;
        side->announced = 0;
        side->peer_features = UINT64_MAX;
    }
    s->global_id = 0;
    s->local_port = s->remote_port = 0;
    s->descriptors = 1;
    s->recording = 0;
    return s;
}

static void release(struct stream *s) {
    if (__atomic_sub_fetch(&s->descriptors, 1, __ATOMIC_ACQ_REL) > 0) return;
    // A call that is still in progress keeps it for ever: rare, and small.
    if (__atomic_exchange_n(&s->side[TX].busy, 1, __ATOMIC_ACQUIRE)) return;
    if (__atomic_exchange_n(&s->side[RX].busy, 1, __ATOMIC_ACQUIRE)) return;
    s->side[TX].busy = s->side[RX].busy = 0;
    lock();
    s->next_free = free_streams;
    free_streams = s;
    unlock();
}

static void put(int fd, struct stream *s) {
    struct stream **where = slot(fd, s != NULL);
    struct stream *before = where ? __atomic_exchange_n(where, s, __ATOMIC_ACQ_REL) : s;
    if (before) release(before);
}

void stream_open(int fd) {
    int errno_before = errno;
    put(fd, make());
    errno = errno_before;
}

void stream_close(int fd) {
    if (stream_at(fd)) put(fd, NULL);
}

void stream_close_range(unsigned first, unsigned last) {
    for (unsigned i = first / STREAM_CHUNK; i < STREAM_CHUNKS && i <= last / STREAM_CHUNK; i++) {
        if (!__atomic_load_n(&stream_chunks[i], __ATOMIC_ACQUIRE)) continue;
        for (unsigned fd = i * STREAM_CHUNK; fd < (i + 1) * STREAM_CHUNK; fd++) {
            if (fd >= first && fd <= last) stream_close((int)fd);
        }
    }
}

void stream_duplicate(int from, int to) {
    struct stream *s = stream_at(from);
    if (s == stream_at(to)) return;
    if (s) __atomic_add_fetch(&s->descriptors, 1, __ATOMIC_ACQ_REL);
    put(to, s);
}
