// SPDX-License-Identifier: MIT
// What the bridge (bridge.c) does with hits of declared probes: they become a CTF stream of their own, packets as LTTng
// writes them (CTF 1.8, lttng-tools 2.13, src/bin/lttng-sessiond/ust-metadata.cpp, src/common/index/ctf-index.h), a
// file per CPU with its index. The metadata is opline/capture/probes/hit_trace.py's. Why no UST provider:
// docs/probes.md.
//
//   packet   magic, uuid, stream 0, instance | begin, end, content and packet bits, number, discarded, cpu
//   event    id 65535, the event's number (4), ktime (8) | vpid (4), vtid (4), procname (17) | payload
//
// What found no room in the ring buffer is `events_discarded`: the packet that is being filled ends before the hit that
// tells of it, so the interval of the loss is from that packet's last event to the next one's.
#pragma once
#include <endian.h>
#include <fcntl.h>
#include <stdbool.h>

#include <linux/types.h>

#include "bridge_record.h"
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
    HIT_PACKET = 1 << 18,
    HIT_PACKET_HEADER = 32 + 6 * 8 + 4,
    HIT_EVENT_MOST = 14 + 25 + HIT_PAYLOAD,
    HIT_FLUSH_NS = 1000000000,  // what there is, is in the file after this time, as LTTng's switch timer does it
};

struct hit_stream {
    int file, index;
    size_t used;  // of the packet, with its header; 0: it has no event
    uint64_t begin_ns, end_ns, number, discarded, told, offset;
    uint8_t packet[HIT_PACKET];
};

static struct {
    struct hit_stream **streams;
    uint32_t cpus;
    uint8_t uuid[16];
    uint32_t event_of[KIND_COUNT];
    uint16_t bytes_of[KIND_COUNT];
    uint64_t started_ns, flushed_ns;
    uint64_t unwritten;  // packets that could not be written
} hits;

static uint8_t *put(uint8_t *at, const void *value, size_t bytes) {
    memcpy(at, value, bytes);
    return at + bytes;
}

static bool write_all(int file, const void *from, size_t bytes) {
    for (const uint8_t *at = from; bytes > 0;) {
        ssize_t done = write(file, at, bytes);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return false;
        at += done;
        bytes -= (size_t)done;
    }
    return true;
}

static void flush_stream(struct hit_stream *s, uint32_t cpu) {
    if (s->used == 0) return;
    const uint32_t magic = 0xC1FC1FC1, stream = 0;
    const uint64_t instance = cpu, bits = s->used * 8;
    uint8_t *at = s->packet;
    at = put(at, &magic, 4);
    at = put(at, hits.uuid, 16);
    at = put(at, &stream, 4);
    at = put(at, &instance, 8);
    const uint64_t context[6] = {s->begin_ns, s->end_ns, bits, bits, s->number, s->discarded};
    at = put(at, context, sizeof(context));
    put(at, &cpu, 4);
    if (write_all(s->file, s->packet, s->used)) {
        const uint64_t record[9] = {htobe64(s->offset),
                                    htobe64(bits),
                                    htobe64(bits),
                                    htobe64(s->begin_ns),
                                    htobe64(s->end_ns),
                                    htobe64(s->discarded),
                                    0,
                                    htobe64(instance),
                                    htobe64(s->number)};
        write_all(s->index, record, sizeof(record));
        s->offset += s->used;
    } else {
        if (ftruncate(s->file, (off_t)s->offset) == 0) lseek(s->file, (off_t)s->offset, SEEK_SET);
        ++hits.unwritten;
    }
    s->told = s->discarded;
    ++s->number;
    s->used = 0;
}

static void flush_all(void) {
    for (uint32_t cpu = 0; cpu < hits.cpus; ++cpu) flush_stream(hits.streams[cpu], cpu);
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
    struct hit_stream *s = hits.streams[cpu];
    if (s->used + HIT_EVENT_MOST > HIT_PACKET) flush_stream(s, cpu);
    if (s->used == 0) {
        s->used = HIT_PACKET_HEADER;
        s->begin_ns = e->ktime;
    }
    const uint16_t extended = 65535;
    const uint32_t event = hits.event_of[e->kind];
    const char nul = 0;
    uint8_t *at = s->packet + s->used;
    at = put(at, &extended, 2);
    at = put(at, &event, 4);
    at = put(at, &e->ktime, 8);
    at = put(at, &e->pid, 4);
    at = put(at, &e->tid, 4);
    at = put(at, e->comm, 16);
    at = put(at, &nul, 1);
    at = put(at, e->payload, hits.bytes_of[e->kind]);
    s->used = (size_t)(at - s->packet);
    s->end_ns = e->ktime;
    return true;
}

// Called in every round: also the time to write what has waited long enough.
static bool pass_watermark(uint64_t through_ns) {
    if (through_ns - hits.flushed_ns >= HIT_FLUSH_NS) {
        flush_all();
        hits.flushed_ns = through_ns;
    }
    return false;
}

static bool pass_lost(uint64_t time_ns, int32_t cpu_number, uint64_t count, const char *why) {
    (void)time_ns, (void)why;
    const uint32_t cpu = cpu_number >= 0 && (uint32_t)cpu_number < hits.cpus ? (uint32_t)cpu_number : 0;
    struct hit_stream *s = hits.streams[cpu];
    if (s->number == 0 && s->used == 0) {  // a packet that says that nothing was discarded until then
        s->used = HIT_PACKET_HEADER;
        s->begin_ns = s->end_ns = hits.started_ns;
    }
    flush_stream(s, cpu);
    s->discarded += count;
    return true;
}

static bool pass_lost_states(uint64_t time_ns, uint64_t until_ns, int32_t cpu, uint64_t count) {
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
        struct hit_stream *s = hits.streams[cpu] = calloc(1, sizeof(*s));
        if (!s) return false;
        char name[32];
        const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
        snprintf(name, sizeof(name), "probes_%u", cpu);
        s->file = openat(folder, name, flags, 0660);
        snprintf(name, sizeof(name), "probes_%u.idx", cpu);
        s->index = openat(index, name, flags, 0660);
        if (s->file < 0 || s->index < 0) return false;
        const uint32_t head[4] = {htobe32(0xC1F1DCC1), htobe32(1), htobe32(1), htobe32(72)};
        if (!write_all(s->index, head, sizeof(head))) return false;
    }
    hits.cpus = cpus;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    hits.started_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    return true;
}

// A program's records: which event of the metadata they are, and how long their payload is.
__attribute__((visibility("default"))) void hit_kind(uint32_t kind, uint32_t event, uint32_t bytes) {
    hits.event_of[kind] = event;
    hits.bytes_of[kind] = (uint16_t)bytes;
}

// After bridge_finish(): write what is left; packets that could not be written.
__attribute__((visibility("default"))) uint64_t hit_close(void) {
    flush_all();
    for (uint32_t cpu = 0; cpu < hits.cpus; ++cpu) {
        struct hit_stream *s = hits.streams[cpu];
        if (s->discarded != s->told) {  // losses after which no hit came: a packet without events says them
            s->used = HIT_PACKET_HEADER;
            s->begin_ns = s->end_ns;
            flush_stream(s, cpu);
        }
        close(s->file);
        close(s->index);
    }
    return hits.unwritten;
}

#include "probe_target.h"
