// SPDX-License-Identifier: MIT
// An encoder of msgr2 for tests of the shim, written from the protocol's description (Ceph's doc/dev/msgr2.rst) and not
// from the shim's parser.
#pragma once
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    T_HELLO = 1,
    T_AUTH_REQUEST = 2,
    T_AUTH_DONE = 6,
    T_CLIENT_IDENT = 8,
    T_SERVER_IDENT = 9,
    T_MESSAGE = 17,
    T_KEEPALIVE2 = 18,
    T_ACK = 20
};

struct bytes {
    uint8_t *p;
    size_t n, room;
};

static inline void add(struct bytes *b, const void *from, size_t n) {
    if (b->n + n > b->room) {
        b->room = (b->n + n) * 2;
        b->p = realloc(b->p, b->room);
    }
    memcpy(b->p + b->n, from, n);
    b->n += n;
}
static inline void add_le(struct bytes *b, uint64_t v, unsigned n) {
    uint8_t raw[8];
    for (unsigned i = 0; i < n; i++) raw[i] = (uint8_t)(v >> 8 * i);
    add(b, raw, n);
}
static inline void add_zero(struct bytes *b, size_t n) {
    while (n--) add_le(b, 0, 1);
}
static inline void add_text(struct bytes *b, const char *text) {
    add_le(b, strlen(text), 4);
    add(b, text, strlen(text));
}

// Before there are threads: one that found it half filled would make wrong frames.
static uint32_t crc32c_table[256];
__attribute__((constructor)) static void crc32c_fill(void) {
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int k = 0; k < 8; k++) c = c & 1 ? 0x82f63b78u ^ (c >> 1) : c >> 1;
        crc32c_table[i] = c;
    }
}

static inline uint32_t crc32c(uint32_t crc, const uint8_t *p, size_t n) {
    while (n--) crc = crc32c_table[(crc ^ *p++) & 255] ^ (crc >> 8);
    return crc;
}

static inline void add_banner(struct bytes *b, uint64_t features) {
    add(b, "ceph v2\n", 8);
    add_le(b, 16, 2);
    add_le(b, features, 8);
    add_le(b, 0, 8);
}

// One frame of up to four segments. Trailing empty ones are not counted, the first always is.
static inline void add_frame(struct bytes *b, int rev1, int tag, const struct bytes *segments, unsigned count) {
    while (count > 1 && segments[count - 1].n == 0) count--;
    size_t begin = b->n;
    add_le(b, (uint64_t)tag, 1);
    add_le(b, count, 1);
    for (unsigned i = 0; i < 4; i++) {
        add_le(b, i < count ? segments[i].n : 0, 4);
        add_le(b, i < count ? 8 : 0, 2);
    }
    add_zero(b, 2);
    add_le(b, crc32c(0, b->p + begin, 28), 4);
    if (rev1) {
        add(b, segments[0].p, segments[0].n);
        if (segments[0].n) add_le(b, crc32c(UINT32_MAX, segments[0].p, segments[0].n), 4);
        for (unsigned i = 1; i < count; i++) add(b, segments[i].p, segments[i].n);
        if (count > 1) {
            add_le(b, 0, 1);
            for (unsigned i = 1; i < 4; i++)
                add_le(b, i < count ? crc32c(UINT32_MAX, segments[i].p, segments[i].n) : 0, 4);
        }
    } else {
        for (unsigned i = 0; i < count; i++) add(b, segments[i].p, segments[i].n);
        add_le(b, 0, 1);
        for (unsigned i = 0; i < 4; i++) add_le(b, i < count ? crc32c(UINT32_MAX, segments[i].p, segments[i].n) : 0, 4);
    }
}

static inline void add_control(struct bytes *b, int rev1, int tag, const void *payload, size_t n) {
    struct bytes segment = {0};
    add(&segment, payload, n);
    add_frame(b, rev1, tag, &segment, 1);
    free(segment.p);
}

static inline void add_auth_done(struct bytes *b, int rev1, uint64_t global_id, uint32_t mode) {
    struct bytes payload = {0};
    add_le(&payload, global_id, 8);
    add_le(&payload, mode, 4);
    add_text(&payload, "ticket");
    add_control(b, rev1, T_AUTH_DONE, payload.p, payload.n);
    free(payload.p);
}

struct wire_message {
    unsigned type, version;
    uint64_t tid, seq;
    const struct bytes *front, *middle, *data;  // NULL: empty
};

static inline void add_message(struct bytes *b, int rev1, const struct wire_message *m) {
    static const struct bytes empty;
    struct bytes header = {0};
    add_le(&header, m->seq, 8);
    add_le(&header, m->tid, 8);
    add_le(&header, m->type, 2);
    add_le(&header, 63, 2);  // priority
    add_le(&header, m->version, 2);
    add_le(&header, 0, 4);           // data_pre_padding_len
    add_le(&header, 0, 2);           // data_off
    add_le(&header, m->seq - 1, 8);  // ack_seq
    add_le(&header, 3, 1);           // flags
    add_le(&header, 3, 2);           // compat_version
    add_le(&header, 0, 2);
    struct bytes segments[4] = {header, m->front ? *m->front : empty, m->middle ? *m->middle : empty,
                                m->data ? *m->data : empty};
    add_frame(b, rev1, T_MESSAGE, segments, 4);
    free(header.p);
}

static inline void add_versioned(struct bytes *b, unsigned version, const struct bytes *content) {
    add_le(b, version, 1);
    add_le(b, 1, 1);
    add_le(b, content->n, 4);
    add(b, content->p, content->n);
}

static inline void add_osd_operation(struct bytes *b, unsigned code, uint64_t offset, uint64_t length) {
    add_le(b, code, 2);
    add_le(b, 0, 4);
    add_le(b, offset, 8);
    add_le(b, length, 8);
    add_zero(b, 12);
    add_le(b, length, 4);
}

// The begin of a replica's write's front, or of its reply's: which message of which client it is about.
static inline void add_repop(struct bytes *b, uint64_t client, uint64_t tid) {
    struct bytes reqid = {0};
    add_le(b, 17, 4), add_le(b, 16, 4);  // epochs
    add_zero(b, 24);
    add_le(&reqid, 8, 1), add_le(&reqid, client, 8), add_le(&reqid, tid, 8), add_le(&reqid, 0, 4);
    add_versioned(b, 2, &reqid);
    free(reqid.p);
}

// The front of an OSD_OP, version 8 or 9: first a hint, if `hint`, then the operation.
static inline void add_osd_op(struct bytes *b, unsigned version, const char *object, int hint, unsigned code,
                              uint64_t offset, uint64_t length) {
    struct bytes pgid = {0}, reqid = {0}, trace = {0}, locator = {0};
    add_le(&pgid, 1, 1), add_le(&pgid, 2, 8), add_le(&pgid, 0x1234, 4), add_le(&pgid, UINT32_MAX, 4),
        add_le(&pgid, 255, 1);
    add_versioned(b, 1, &pgid);
    add_le(b, 0xabcd1234, 4), add_le(b, 17, 4), add_le(b, 0x24, 4);  // hash, epoch, flags
    add_zero(&reqid, 21);
    add_versioned(b, 2, &reqid);
    add_zero(b, 24);
    if (version >= 9) {
        add_zero(&trace, 1);
        add_versioned(b, 1, &trace);
    }
    add_le(b, 0, 4), add_le(b, 0x65000000, 8);  // client_inc, mtime
    add_le(&locator, 2, 8), add_le(&locator, UINT32_MAX, 4), add_text(&locator, ""), add_text(&locator, "ns"),
        add_le(&locator, UINT64_MAX, 8);
    add_versioned(b, 6, &locator);
    add_text(b, object);
    add_le(b, hint ? 2 : 1, 2);
    if (hint) add_osd_operation(b, 0x2223, 1 << 20, 1 << 20);
    add_osd_operation(b, code, offset, length);
    add_le(b, UINT64_MAX - 1, 8), add_zero(b, 8 + 4 + 4 + 8);  // snap id, seq, snaps, attempts, features
    free(pgid.p), free(reqid.p), free(trace.p), free(locator.p);
}
