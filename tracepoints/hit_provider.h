// SPDX-License-Identifier: MIT
// What the bridge (bridge.c) does with hits of declared probes: they become a CTF trace of their own (ctf_stream.h), a
// stream per CPU. The metadata is opline/capture/probes/hit_trace.py's. Why no UST provider: docs/probes.md.
//
//   event    header | vpid (4), vtid (4), procname (17) | payload
//
// What found no room in the ring buffer is `events_discarded`: the packet that is being filled ends before the hit that
// tells of it, so the interval of the loss is from that packet's last event to the next one's.
#pragma once
#include <stdbool.h>

#include <linux/types.h>

#include "bridge_record.h"
#include "ctf_stream.h"
#include "hit_event.h"

struct hit_event {
    __u64 ktime;
    __u32 lost;
    __u16 cpu;
    __u8 kind;
    __u8 pad;
    __u32 tid, pid;
    char comm[16];
    __u8 payload[HIT_PAYLOAD];
};
_Static_assert(sizeof(struct hit_event) == sizeof(struct hit_head) + HIT_PAYLOAD, "one layout");
#define bridge_event hit_event

enum {
    HIT_EVENT_MOST = 25 + HIT_PAYLOAD,
    HIT_FLUSH_NS = 1000000000,  // what there is, is in the file after this time, as LTTng's switch timer does it
};

static struct {
    struct ctf_stream **streams;
    uint32_t cpus;
    uint8_t uuid[16];
    uint32_t event_of[KIND_COUNT];
    uint16_t bytes_of[KIND_COUNT];
    uint64_t started_ns, flushed_ns;
} hits;

static void flush_all(void) {
    for (uint32_t cpu = 0; cpu < hits.cpus; ++cpu) ctf_flush(hits.streams[cpu]);
}

// There is no session whose wishes would have to be asked: programs that are attached record.
static inline uint64_t enabled_mask(void) { return 1; }
static inline uint64_t enabled_calls(void) { return 0; }
static inline void number_calls(volatile __u8 *call_of) { (void)call_of; }
static inline void receive_event(struct hit_event *e, const void *record, uint32_t bytes) {
    (void)e, (void)record, (void)bytes;
}
static inline bool gives_way(const struct hit_event *e) {
    (void)e;
    return false;
}

static bool pass_event(const struct hit_event *e, uint64_t seq) {
    (void)seq;
    const uint32_t cpu = e->cpu < hits.cpus ? e->cpu : 0;
    struct ctf_stream *s = hits.streams[cpu];
    const char nul = 0;
    uint8_t *at = ctf_event(s, hits.event_of[e->kind], e->ktime, HIT_EVENT_MOST);
    at = ctf_put(at, &e->pid, 4);
    at = ctf_put(at, &e->tid, 4);
    at = ctf_put(at, e->comm, 16);
    at = ctf_put(at, &nul, 1);
    ctf_end(s, ctf_put(at, e->payload, hits.bytes_of[e->kind]));
    return true;
}

// Called in every round: also the time to write what has waited long enough.
static bool pass_watermark(uint64_t through_ns) {
    for (uint32_t cpu = 0; cpu < hits.cpus; ++cpu) ctf_go_on(hits.streams[cpu], through_ns);
    if (through_ns - hits.flushed_ns >= HIT_FLUSH_NS) {
        flush_all();
        hits.flushed_ns = through_ns;
    }
    return false;
}

static bool pass_lost(uint64_t time_ns, int32_t cpu_number, uint64_t count, const char *why) {
    (void)time_ns, (void)why;
    const uint32_t cpu = cpu_number >= 0 && (uint32_t)cpu_number < hits.cpus ? (uint32_t)cpu_number : 0;
    struct ctf_stream *s = hits.streams[cpu];
    if (s->number == 0) ctf_begin(s, hits.started_ns);  // a packet that says that nothing was discarded until then
    ctf_flush(s);
    s->discarded += count;
    return true;
}

static bool pass_lost_states(uint64_t time_ns, uint64_t until_ns, int32_t cpu, uint64_t count) {
    (void)time_ns, (void)until_ns, (void)cpu, (void)count;
    return false;
}

static bool pass_lost_followed(uint64_t time_ns, uint64_t until_ns, int32_t cpu, uint64_t count) {
    (void)time_ns, (void)until_ns, (void)cpu, (void)count;
    return false;
}

// Files `probes_CPU` in the open folder, their indexes in the open folder `index`. False with errno set if that is not
// possible.
__attribute__((visibility("default"))) bool hit_open(int folder, int index, uint32_t cpus, const uint8_t uuid[16]) {
    memcpy(hits.uuid, uuid, sizeof(hits.uuid));
    hits.streams = calloc(cpus, sizeof(*hits.streams));
    if (!hits.streams) return false;
    for (uint32_t cpu = 0; cpu < cpus; ++cpu) {
        struct ctf_stream *s = hits.streams[cpu] = calloc(1, sizeof(*s));
        if (!s || !ctf_open(s, folder, index, "probes", cpu, cpu, hits.uuid)) return false;
    }
    hits.cpus = cpus;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    hits.started_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    return true;
}

// The same in the next chunk's folders.
__attribute__((visibility("default"))) bool hit_open_next(int folder, int index) {
    bool all = true;
    for (uint32_t cpu = 0; all && cpu < hits.cpus; ++cpu)
        all = ctf_open_next(hits.streams[cpu], folder, index, "probes");
    return all;
}

// They will go on there, and one has not yet.
__attribute__((visibility("default"))) bool hit_goes_on(void) {
    bool any = false;
    for (uint32_t cpu = 0; cpu < hits.cpus; ++cpu) any = any || ctf_goes_on(hits.streams[cpu]);
    return any;
}

// A program's records: which event of the metadata they are, and how long their payload is.
__attribute__((visibility("default"))) void hit_kind(uint32_t kind, uint32_t event, uint32_t bytes) {
    hits.event_of[kind] = event;
    hits.bytes_of[kind] = (uint16_t)bytes;
}

// After bridge_finish(): write what is left; packets that could not be written.
__attribute__((visibility("default"))) uint64_t hit_close(void) {
    flush_all();
    uint64_t unwritten = 0;
    for (uint32_t cpu = 0; cpu < hits.cpus; ++cpu) {
        struct ctf_stream *s = hits.streams[cpu];
        ctf_close(s);
        unwritten += s->unwritten;
    }
    return unwritten;
}

#include "probe_target.h"
