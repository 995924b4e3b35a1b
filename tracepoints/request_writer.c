// SPDX-License-Identifier: MIT
// One thread that takes the records of block requests (request.bpf.c) out of their ring buffer, puts them in the order
// of their first steps, and writes them as a CTF stream. Loaded by Python (opline/capture/bpf/requests.py).
//
// Order. A record comes when its request completes, and stands where the request began. So the thread looks through the
// two tables of what is open first, then takes out all that has been reserved: what was not in the tables has begun
// later than that look, or lies in the ring buffer. Nothing can come any more from before the oldest open step, which
// is how far the stream is written: the watermark. What has been open for longer than OPEN_NS is told as far as it is
// known, so that a device that takes seconds holds nothing up; its record then has the rest.
#define _GNU_SOURCE
#include "request_writer.h"

#include <sys/mman.h>
#include <sys/prctl.h>

#include "request_state.h"
#include "request_stream.h"
#include "request_told.h"

#define EXPORT __attribute__((visibility("default")))

// The programs' text, to be compiled behind the bridge's; layout first, so that it cannot differ from this file's.
// clang-format off
__asm__(".section .rodata\n"
        ".global request_text\n"
        ".hidden request_text\n"
        "request_text:\n"
        ".incbin \"" BRIDGE_REQUEST_EVENT_H "\"\n"
        ".incbin \"" BRIDGE_REQUEST_FILES "_open.bpf.c\"\n"
        ".incbin \"" BRIDGE_REQUEST_FILES "_bios.bpf.c\"\n"
        ".incbin \"" BRIDGE_REQUEST_FILES ".bpf.c\"\n"
        ".byte 0\n"
        ".previous\n");
// clang-format on
extern const char request_text[];
EXPORT const char *request_program_text(void) { return request_text; }

bool requests_wanted;

static void say_lost(uint64_t count, uint64_t since_ns, uint64_t until_ns) {
    const int32_t cpu = -1;
    ++w.counts.lost_events;
    uint8_t *to = ctf_event(&w.stream, ID_LOST, w.watermark_ns, EVENT_MOST);
    to = ctf_put(to, &cpu, 4);
    to = ctf_put(to, &count, 8);
    to = ctf_put(to, &since_ns, 8);
    ctf_end(&w.stream, ctf_put(to, &until_ns, 8));
}

// Requests whose records found no room began after the watermark, and are over.
static void tell_losses(uint64_t now) {
    uint64_t lost = 0;
    for (uint32_t cpu = 0; cpu < w.cpu_count; ++cpu) lost += w.cpus[cpu].lost;
    if (lost != w.lost_seen) say_lost(lost - w.lost_seen, w.watermark_ns, now);
    w.counts.lost_ring = w.lost_seen = lost;
    if (w.counts.late != w.late_seen) say_lost(w.counts.late - w.late_seen, w.late_since_ns, now);
    w.late_seen = w.counts.late;
}

static int16_t errno_of(int16_t error) {
    const struct block_event e = {.error = error};
    return (int16_t)error_of(&e);
}

static void take(const uint8_t *record, uint32_t bytes) {
    union held *h = more();
    if (!h) return;
    memcpy(h, record, bytes < sizeof(*h) ? bytes : sizeof(*h));
    bool any = true;
    switch (h->head.kind) {
    case KIND_REQUEST:
        h->request.error = errno_of(h->request.error);
        any = rest_of_request(&h->request);
        break;
    case KIND_BIO:
        h->bio.error = errno_of(h->bio.error);
        any = rest_of_bio(&h->bio);
        break;
    case KIND_REQUEST_THREAD: break;
    default: any = h->head.kind < KIND_COUNT; h->single.e.error = error_of(&h->single.e);
    }
    meet_cgroup(cgroup_in(h));
    if (any) keep_last();
    else --w.count;
}

// Take out all that is reserved now. False: a record is not filled yet.
static bool drain(void) {
    const uint64_t end = atomic_load_explicit(w.producer, memory_order_acquire);
    uint64_t position = atomic_load_explicit(w.consumer, memory_order_relaxed);
    if (end - position > w.counts.most_bytes) w.counts.most_bytes = end - position;
    while (position < end && !w.failed) {
        const uint8_t *record = w.data + (position & (w.ring_bytes - 1));
        uint32_t length = atomic_load_explicit((const _Atomic uint32_t *)(const void *)record, memory_order_acquire);
        if (length & RING_BUSY) return false;
        const bool discarded = length & RING_DISCARD;
        length &= ~(RING_BUSY | RING_DISCARD);
        if (!discarded) take(record + RING_HEADER, length);
        position += (length + RING_HEADER + 7) & ~UINT64_C(7);
        atomic_store_explicit(w.consumer, position, memory_order_release);
    }
    if (w.count > w.counts.most_held) w.counts.most_held = w.count;
    return !w.failed;
}

static void one_round(uint64_t told_before, uint16_t flags, uint64_t hold_back) {
    const uint64_t now = clock_ns(CLOCK_MONOTONIC);
    const uint64_t oldest = look_through(now, told_before, flags);
    const bool all = drain();
    tell_losses(now);
    if (all && oldest > hold_back) write_until(oldest - hold_back);
    if (ctf_goes_on(&w.stream) || w.watermark_ns - w.flushed_ns >= FLUSH_NS) say_watermark();
    if (ctf_go_on(&w.stream, w.watermark_ns)) {
        paths_to_tell_again(&w.cgroups);
        ++w.parts;
    }
    ++w.counts.rounds;
}

static void finish(void) {
    const uint64_t until = clock_ns(CLOCK_MONOTONIC) + FINISH_WITHIN_NS;
    sleep_ns(HOLD_BACK_NS);
    while (!drain() && !w.failed && clock_ns(CLOCK_MONOTONIC) < until) sleep_ns(HOLD_BACK_NS);
    const uint64_t now = clock_ns(CLOCK_MONOTONIC), before_them = w.counts.opened;
    look_through(now, UINT64_MAX, REQUEST_OPEN | REQUEST_LEFT);
    w.counts.left_open = w.counts.opened - before_them;
    w.counts.opened = before_them;
    tell_losses(now);
    write_until(now);
    if (w.watermark_ns < now) w.watermark_ns = now;
    say_watermark();
    for (uint32_t cpu = 0; cpu < w.cpu_count; ++cpu) {
        w.counts.records += w.cpus[cpu].records;
        w.counts.unseen += w.cpus[cpu].unseen;
        w.counts.no_slot += w.cpus[cpu].no_slot;
        w.counts.chain_cut += w.cpus[cpu].chain_cut;
        w.counts.own_bios += w.cpus[cpu].own_bios;
        w.counts.own_requests += w.cpus[cpu].own_requests;
    }
    w.counts.cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

static void *run(void *nothing) {
    prctl(PR_SET_NAME, "opline-requests");
    say_watermark();  // a packet that says that nothing was discarded until then
    while (!atomic_load(&w.stopping)) {
        const uint64_t now = clock_ns(CLOCK_MONOTONIC);
        one_round(now - OPEN_NS, REQUEST_OPEN, HOLD_BACK_NS);
        sleep_ns(w.period_ns);
    }
    finish();
    return nothing;
}

static void *map(int fd, size_t size, int protection, size_t offset) {
    void *mapped = mmap(NULL, size, protection, MAP_SHARED, fd, (off_t)offset);
    return mapped == MAP_FAILED ? NULL : mapped;
}

// The stream `requests_0` in the open folder, its index in the open folder `index`; the programs are told to record
// when the session does. False with errno set if that is not possible. The maps' descriptors stay the caller's and must
// be open until requests_finish().
EXPORT bool requests_start(int folder, int index, const uint8_t uuid[16], int ring_fd, uint64_t ring_bytes, int bios_fd,
                           int requests_fd, int marks_fd, int cpus_fd, uint32_t cpu_count, uint64_t period_ns) {
    memcpy(w.uuid, uuid, sizeof(w.uuid));
    w.page = (size_t)sysconf(_SC_PAGESIZE);
    w.ring_bytes = ring_bytes;
    w.cpu_count = cpu_count;
    w.period_ns = period_ns;
    const size_t pages = w.page - 1;
    w.consumer = map(ring_fd, w.page, PROT_READ | PROT_WRITE, 0);
    w.producer = map(ring_fd, w.page + 2 * ring_bytes, PROT_READ, w.page);
    struct bio_set *bios = map(bios_fd, (OPEN_SETS * sizeof(*bios) + pages) & ~pages, PROT_READ | PROT_WRITE, 0);
    struct request_set *requests =
        map(requests_fd, (OPEN_SETS * sizeof(*requests) + pages) & ~pages, PROT_READ | PROT_WRITE, 0);
    w.bios = bios;
    w.requests = requests;
    w.marks = map(marks_fd, (sizeof(struct open_marks) + pages) & ~pages, PROT_READ, 0);
    w.cpus = map(cpus_fd, (cpu_count * sizeof(struct request_cpu) + pages) & ~pages, PROT_READ, 0);
    w.told_bios = calloc((size_t)OPEN_SETS * OPEN_WAYS, sizeof(*w.told_bios));
    w.told_requests = calloc((size_t)OPEN_SETS * OPEN_WAYS, sizeof(*w.told_requests));
    if (!w.consumer || !w.producer || !w.bios || !w.requests || !w.marks || !w.cpus || !w.told_bios || !w.told_requests)
        return false;
    w.data = (const uint8_t *)w.producer + w.page;
    for (uint32_t i = 0; i < OPEN_SETS; ++i)
        for (int k = 0; k < OPEN_WAYS; ++k) bios[i].slot[k].flags = requests[i].slot[k].flags = SLOT_FILLING;
    if (!ctf_open(&w.stream, folder, index, "requests", 0, 0, w.uuid)) return false;
    w.watermark_ns = w.flushed_ns = clock_ns(CLOCK_MONOTONIC);
    requests_wanted = true;
    errno = pthread_create(&w.thread, NULL, run, NULL);
    return errno == 0;
}

// The same stream in the next chunk's folders.
EXPORT bool requests_open_next(int folder, int index) { return ctf_open_next(&w.stream, folder, index, "requests"); }

// It will go on there, and has not yet.
EXPORT bool requests_goes_on(void) { return ctf_goes_on(&w.stream); }

// Write what is left, end, and say what happened. The programs must be detached.
EXPORT void requests_finish(struct request_counts *counts) {
    atomic_store(&w.stopping, true);
    pthread_join(w.thread, NULL);
    ctf_close(&w.stream);
    w.counts.unwritten = w.stream.unwritten;
    *counts = w.counts;
}
