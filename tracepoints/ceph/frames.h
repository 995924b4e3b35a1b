// SPDX-License-Identifier: MIT
// Frames as they lie in a call's bytes, and the short way through them: of what is whole there is no state but the parser's count of messages. What
// these functions don't take is for msgr_feed(), which would have done the same with what they do.
#pragma once
#include <string.h>

#include "msgr.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "msgr2 is little-endian, and so is this file"
#endif

enum {
    TAG_AUTH_DONE = 6,
    TAG_MESSAGE = 17,
    TAG_LAST = 31,  // 22 are known; a few more may come
    MAX_SEGMENTS = 4,
    FLAG_COMPRESSED = 1,
    FEATURE_REVISION_1 = 1,     // CEPH_MSGR2_FEATURE_REVISION_1: msgr2.1
    OP_BYTES = 38,              // struct ceph_osd_op
    OP_SETALLOCHINT = 0x2223,   // CEPH_OSD_OP_SETALLOCHINT
    BLKIN_TRACE_BYTES = 24,
    REQID_BYTES = 21,           // osd_reqid_t, behind its version: type, number, tid, incarnation
    REPOP_BYTES = 4 + 4 + BLKIN_TRACE_BYTES + 6 + REQID_BYTES,
};

static inline uint16_t get16(const uint8_t *p) { uint16_t v; memcpy(&v, p, sizeof v); return v; }
static inline uint32_t get32(const uint8_t *p) { uint32_t v; memcpy(&v, p, sizeof v); return v; }
static inline uint64_t get64(const uint8_t *p) { uint64_t v; memcpy(&v, p, sizeof v); return v; }

// CRC-32C, without the inversions, from 0: how Ceph seals a preamble.
uint32_t crc32c_slow(const uint8_t *p, size_t n);

static inline uint32_t preamble_crc(const uint8_t *p) {
#ifdef __x86_64__
    if (__builtin_expect(__builtin_cpu_supports("sse4.2"), 1)) {  // the instruction itself: the function for it would not be inlined
        uint64_t crc = 0;
        for (int i = 0; i < 3; i++) __asm__("crc32q %1, %0" : "+r"(crc) : "rm"(get64(p + 8 * i)));
        __asm__("crc32l %1, %k0" : "+r"(crc) : "rm"(get32(p + 24)));
        return (uint32_t)crc;
    }
#endif
    return crc32c_slow(p, 28);
}

static inline bool is_preamble(const uint8_t *p) {
    return (unsigned)(p[0] - 1) < TAG_LAST && (unsigned)(p[1] - 1) < MAX_SEGMENTS && get32(p + 28) == preamble_crc(p);
}

// Of a preamble.
struct frame { uint32_t head, front; uint64_t payload; };  // bytes of the first and the second segment, and of all that comes behind the preamble

static inline struct frame frame_of(const uint8_t *b, bool rev1) {
    unsigned count = b[1];
    uint64_t first = get32(b + 2), second = count > 1 ? get32(b + 8) : 0;
    uint64_t payload = first + second + (count > 2 ? get32(b + 14) : 0) + (count > 3 ? get32(b + 20) : 0);
    // msgr2.1: the first segment has its checksum behind it, the others theirs at the end, if there are others
    payload += rev1 ? (first ? 4 : 0) + (count > 1 ? 13 : 0) : 17;
    return (struct frame){(uint32_t)first, (uint32_t)second, payload};
}

static inline bool frame_is_compressed(const uint8_t *preamble) { return preamble[26] & FLAG_COMPRESSED; }

// The message whose header is at `b`, without what its front says. One by one: gcc would clear and copy the whole by `rep`.
static inline void frame_message(struct msgr_message *m, uint64_t payload, const uint8_t *b) {
    m->seq = get64(b);
    m->tid = get64(b + 8);
    m->type = get16(b + 16);
    m->version = get16(b + 20);
    m->flen = (uint32_t)(MSGR_PREAMBLE_BYTES + payload);
    m->front = NULL;
    m->front_bytes = m->front_skipped = 0;
    m->op = 0;
    m->offset = m->length = 0;
    m->object = MSGR_NO_OBJECT;
    m->client = 0;
    m->client_tid = msgr_own(m->type, m->tid);
}

// How many bytes at the begin of an OSD_OP's front say nothing that is looked up: up to the object's locator, if they are of the form that Ceph 10 to 19
// give them (MOSDOp, message version 8 and 9); else 0.
static inline uint32_t frame_unneeded(const struct msgr_message *m) {
    enum { SPG = 6 + 18, HASH = 12, REQID = 6 + REQID_BYTES, CONTEXT = 6 + 1, TIME = 12 };
    enum { BEFORE_CONTEXT = SPG + HASH + REQID + BLKIN_TRACE_BYTES, UNNEEDED = BEFORE_CONTEXT + CONTEXT + TIME };
    const uint8_t *p = m->front;
    if (m->type != MSGR_OSD_OP || m->front_bytes < UNNEEDED || get32(p + 2) != SPG - 6 || get32(p + SPG + HASH + 2) != REQID_BYTES) return 0;
    if (m->version == 8) return UNNEEDED - CONTEXT;
    return m->version == 9 && get32(p + BEFORE_CONTEXT + 2) == CONTEXT - 6 ? UNNEEDED : 0;
}

// How many bytes of the front segment are looked at, if it has `front`.
static inline uint32_t frame_looked_at(uint16_t type, uint32_t front) {
    uint32_t most = type == MSGR_OSD_OP ? MSGR_HEAD_BYTES : type == MSGR_OSD_REPOP || type == MSGR_OSD_REPOPREPLY ? REPOP_BYTES : 0;
    return front < most ? front : most;
}

// -- a call's bytes --------------------------------------------------------------------------------------------------------

// n of them, of as many as are left: where they lie, or in `room`.
const uint8_t *msgr_gather(struct msgr_bytes *bytes, size_t n, uint8_t *room);
static inline const uint8_t *msgr_take(struct msgr_bytes *bytes, size_t n, uint8_t *room) {
    if (bytes->at == bytes->v->iov_len) {
        bytes->v++;
        bytes->at = 0;
    }
    if (__builtin_expect(bytes->v->iov_len - bytes->at < n, 0)) return msgr_gather(bytes, n, room);
    const uint8_t *p = (const uint8_t *)bytes->v->iov_base + bytes->at;
    bytes->at += n;
    bytes->left -= n;
    return p;
}

static inline void msgr_skip(struct msgr_bytes *bytes, size_t n) {
    bytes->left -= n;
    for (size_t part; n > (part = bytes->v->iov_len - bytes->at); n -= part) {
        bytes->v++;
        bytes->at = 0;
    }
    bytes->at += n;
}

// What the parser takes next.
static inline void msgr_expect(struct msgr_parser *p, enum msgr_phase phase, uint32_t need) {
    p->phase = phase;
    p->have = 0;
    p->need = need;
    p->gap = 0;
}

static inline bool msgr_between_frames(const struct msgr_parser *p) { return p->phase == MSGR_PREAMBLE && p->have == 0; }

#define SHORT_WAY static inline __attribute__((always_inline)) bool

// Its front, if the details are wanted.
static inline uint32_t frame_wanted(const struct msgr_parser *p, uint16_t type, struct frame f) {
    return p->details ? frame_looked_at(type, f.head == MSGR_HEADER_BYTES ? f.front : 0) : 0;
}

// The next message, if the parser is between two frames and all of it is among these bytes.
SHORT_WAY msgr_whole(struct msgr_parser *p, struct msgr_bytes *bytes, struct msgr_message *m) {
    bool rev1 = p->features & p->peer_features & FEATURE_REVISION_1;
    while (bytes->left >= MSGR_PREAMBLE_BYTES) {
        struct msgr_bytes behind = *bytes;
        const uint8_t *b = msgr_take(&behind, MSGR_PREAMBLE_BYTES, p->buf);
        struct frame f = frame_of(b, rev1);
        if (f.payload > behind.left || !is_preamble(b)) return false;
        uint8_t tag = b[0];
        bool message = tag == TAG_MESSAGE && f.head >= MSGR_HEADER_BYTES;
        if (tag == TAG_AUTH_DONE || (tag == TAG_MESSAGE && frame_is_compressed(b))) return false;
        if (message) {
            frame_message(m, f.payload, msgr_take(&behind, MSGR_HEADER_BYTES, p->buf));
            uint32_t front = frame_wanted(p, m->type, f);
            if (front) {
                if (rev1) msgr_skip(&behind, 4);
                m->front = msgr_take(&behind, front, p->buf);
                m->front_bytes = (uint16_t)front;
            }
            m->index = p->messages++;
        }
        if (bytes->left == MSGR_PREAMBLE_BYTES + f.payload) {
            bytes->left = 0;
        } else {
            msgr_skip(bytes, MSGR_PREAMBLE_BYTES + f.payload);
        }
        if (message) return true;
    }
    return false;
}

// After that: the parser's message has begun, if what is looked at of it is among these bytes, which are all of it that came.
SHORT_WAY msgr_begins(struct msgr_parser *p, struct msgr_bytes *bytes) {
    if (bytes->left < MSGR_PREAMBLE_BYTES + MSGR_HEADER_BYTES) return false;
    struct msgr_bytes behind = *bytes;
    const uint8_t *b = msgr_take(&behind, MSGR_PREAMBLE_BYTES, p->buf);
    bool rev1 = p->features & p->peer_features & FEATURE_REVISION_1;
    struct frame f = frame_of(b, rev1);
    if (b[0] != TAG_MESSAGE || f.head < MSGR_HEADER_BYTES || f.payload <= behind.left || frame_is_compressed(b) || !is_preamble(b)) return false;
    struct msgr_message *m = &p->message;
    uint64_t left = f.payload - behind.left;
    frame_message(m, f.payload, msgr_take(&behind, MSGR_HEADER_BYTES, p->buf));
    uint32_t front = frame_wanted(p, m->type, f), gap = rev1 ? 4 : 0;
    if (front) {
        if (behind.left < gap + front) return false;
        msgr_skip(&behind, gap);
        const uint8_t *at = msgr_take(&behind, front, p->buf);
        if (at != p->buf) memcpy(p->buf, at, front);
        m->front = p->buf;
        m->front_bytes = (uint16_t)front;
    }
    m->index = p->messages++;
    p->tag = TAG_MESSAGE;
    p->phase = MSGR_BODY;
    p->left = left;
    p->reported = true;
    bytes->left = 0;
    return true;
}

// The parser's message has ended: its rest is among these bytes.
SHORT_WAY msgr_ends(struct msgr_parser *p, struct msgr_bytes *bytes) {
    if (p->phase != MSGR_BODY || p->tag != TAG_MESSAGE || !p->reported) return false;
    if (p->left > bytes->left) {
        p->left -= bytes->left;
        bytes->left = 0;
        return false;
    }
    msgr_skip(bytes, p->left);
    p->left = 0;
    p->reported = false;
    msgr_expect(p, MSGR_PREAMBLE, MSGR_PREAMBLE_BYTES);
    return true;
}
