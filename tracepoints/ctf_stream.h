// SPDX-License-Identifier: MIT
// A CTF stream that a collector writes by itself: packets as LTTng writes them (CTF 1.8, lttng-tools 2.13,
// src/bin/lttng-sessiond/ust-metadata.cpp, src/common/index/ctf-index.h), in a file with its index.
//
//   packet   magic, uuid, stream 0, instance | begin, end, content and packet bits, number, discarded, cpu
//   event    LTTng's large header: number and low half of the time (2 + 4), or 65535, number, time (2 + 4 + 8)
//
// The metadata is opline/capture/probes/hit_trace.py's, or opline/capture/bpf/request_trace.py's.
#pragma once
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    CTF_PACKET = 1 << 18,
    CTF_PACKET_HEADER = 32 + 6 * 8 + 4,
    CTF_EVENT_HEADER = 14,  // at most
};

// Where a stream goes on: another thread opens the files, the one that writes the stream takes them.
struct ctf_next {
    int file, index;
    atomic_bool open;
};

struct ctf_stream {
    int file, index;
    struct ctf_next next;
    uint32_t instance, cpu;
    const uint8_t *uuid;
    size_t used;  // of the packet, with its header; 0: it has no event
    uint64_t begin_ns, end_ns, number, discarded, told, offset;
    uint64_t events;     // of the packet
    uint64_t packets;    // of this part: of the files that are open
    uint64_t unwritten;  // packets that could not be written: their events are `discarded` of the next one
    uint8_t packet[CTF_PACKET];
};

static inline uint8_t *ctf_put(uint8_t *at, const void *value, size_t bytes) {
    memcpy(at, value, bytes);
    return at + bytes;
}

static bool ctf_write(int file, const void *from, size_t bytes) {
    for (const uint8_t *at = from; bytes > 0;) {
        ssize_t done = write(file, at, bytes);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return false;
        at += done;
        bytes -= (size_t)done;
    }
    return true;
}

// Files NAME_INSTANCE in the open folder, NAME_INSTANCE.idx in the open folder `index`. False with errno set if that is
// not possible.
static bool ctf_files(int *file, int *index_file, int folder, int index, const char *stream, uint32_t instance) {
    char name[32];
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    snprintf(name, sizeof(name), "%s_%u", stream, instance);
    *file = openat(folder, name, flags, 0660);
    snprintf(name, sizeof(name), "%s_%u.idx", stream, instance);
    *index_file = openat(index, name, flags, 0660);
    const uint32_t head[4] = {htobe32(0xC1F1DCC1), htobe32(1), htobe32(1), htobe32(72)};
    if (*file >= 0 && *index_file >= 0 && ctf_write(*index_file, head, sizeof(head))) return true;
    const int why = errno;
    if (*file >= 0) close(*file);
    if (*index_file >= 0) close(*index_file);
    errno = why;
    return false;
}

static inline bool ctf_open(struct ctf_stream *s, int folder, int index, const char *stream, uint32_t instance,
                            uint32_t cpu, const uint8_t *uuid) {
    if (!ctf_files(&s->file, &s->index, folder, index, stream, instance)) return false;
    s->instance = instance;
    s->cpu = cpu;
    s->uuid = uuid;
    return true;
}

// It will go on in other files, and has not yet.
static inline bool ctf_goes_on(const struct ctf_stream *s) { return atomic_load(&s->next.open); }

// Let the stream go on in such files of another folder, which is the next chunk's: the thread that writes it does that
// at its next ctf_go_on(). False with errno set if that is not possible, or it has not gone on since the last time.
static inline bool ctf_open_next(struct ctf_stream *s, int folder, int index, const char *stream) {
    if (ctf_goes_on(s)) return errno = EBUSY, false;
    if (!ctf_files(&s->next.file, &s->next.index, folder, index, stream, s->instance)) return false;
    atomic_store(&s->next.open, true);
    return true;
}

static void ctf_begin(struct ctf_stream *s, uint64_t time_ns) {
    if (s->used != 0) return;
    s->used = CTF_PACKET_HEADER;
    s->begin_ns = s->end_ns = time_ns;
}

static void ctf_flush(struct ctf_stream *s) {
    if (s->used == 0) return;
    const uint32_t magic = 0xC1FC1FC1, stream = 0;
    const uint64_t instance = s->instance, bits = s->used * 8;
    uint8_t *at = s->packet;
    at = ctf_put(at, &magic, 4);
    at = ctf_put(at, s->uuid, 16);
    at = ctf_put(at, &stream, 4);
    at = ctf_put(at, &instance, 8);
    const uint64_t context[6] = {s->begin_ns, s->end_ns, bits, bits, s->number, s->discarded};
    at = ctf_put(at, context, sizeof(context));
    ctf_put(at, &s->cpu, 4);
    if (ctf_write(s->file, s->packet, s->used)) {
        const uint64_t record[9] = {htobe64(s->offset),
                                    htobe64(bits),
                                    htobe64(bits),
                                    htobe64(s->begin_ns),
                                    htobe64(s->end_ns),
                                    htobe64(s->discarded),
                                    0,
                                    htobe64(instance),
                                    htobe64(s->number)};
        ctf_write(s->index, record, sizeof(record));
        s->offset += s->used;
        s->told = s->discarded;
        ++s->number;
        ++s->packets;
    } else {
        if (ftruncate(s->file, (off_t)s->offset) == 0) lseek(s->file, (off_t)s->offset, SEEK_SET);
        ++s->unwritten;
        s->discarded += s->events;
    }
    s->used = s->events = 0;
}

// Room for an event of at most so many bytes behind its header, which is written; ctf_end() with where it ends.
static inline uint8_t *ctf_event(struct ctf_stream *s, uint32_t id, uint64_t time_ns, size_t most) {
    if (s->used + CTF_EVENT_HEADER + most > CTF_PACKET) ctf_flush(s);
    if (s->used == 0) ctf_begin(s, time_ns);
    uint8_t *at = s->packet + s->used;
    if (time_ns - s->end_ns < UINT64_C(1) << 32) {
        const uint16_t number = (uint16_t)id;
        const uint32_t low = (uint32_t)time_ns;
        at = ctf_put(at, &number, 2);
        at = ctf_put(at, &low, 4);
    } else {
        const uint16_t extended = 65535;
        at = ctf_put(at, &extended, 2);
        at = ctf_put(at, &id, 4);
        at = ctf_put(at, &time_ns, 8);
    }
    s->end_ns = time_ns;
    return at;
}

static inline void ctf_end(struct ctf_stream *s, const uint8_t *at) {
    s->used = (size_t)(at - s->packet);
    ++s->events;
}

// Between two events: go on in the files that ctf_open_next() has opened. The packets are numbered on, and a part has
// a packet at least, as LTTng's have: the end of what was lost is known in each. False: there are none.
static inline bool ctf_go_on(struct ctf_stream *s, uint64_t time_ns) {
    if (!ctf_goes_on(s)) return false;
    if (s->packets == 0) ctf_begin(s, time_ns < s->end_ns ? s->end_ns : time_ns);
    ctf_flush(s);
    close(s->file);
    close(s->index);
    s->file = s->next.file;
    s->index = s->next.index;
    s->offset = s->packets = 0;
    atomic_store(&s->next.open, false);
    return true;
}

// At the end: what is left, and a packet without events if losses came behind the last one.
static inline void ctf_close(struct ctf_stream *s) {
    ctf_go_on(s, s->end_ns);
    ctf_flush(s);
    if (s->discarded != s->told) {
        ctf_begin(s, s->end_ns);
        ctf_flush(s);
    }
    close(s->file);
    close(s->index);
}
